use mcp_jsonrpc::{Members, Raw};

/// What a request says of the trace that it is part of, as W3C Trace Context and Baggage have it; unchecked text.
///
/// Specification: *Overview, `_meta`* (reserved keys).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceContext {
    /// The trace and the span that the request comes from.
    pub traceparent: Option<String>,
    /// What the systems on the way have added.
    pub tracestate: Option<String>,
    /// What travels with the trace.
    pub baggage: Option<String>,
}

impl TraceContext {
    /// The trace and the span that a request comes from, as the header `traceparent` has it.
    pub fn new(traceparent: impl Into<String>) -> Self {
        Self { traceparent: Some(traceparent.into()), ..Self::default() }
    }

    /// The members of `_meta`.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let members =
            [("traceparent", &self.traceparent), ("tracestate", &self.tracestate), ("baggage", &self.baggage)];
        members.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }

    /// What stands in a request's `_meta`; a member that is no string counts as absent.
    pub(crate) fn of(meta: Option<&Raw>) -> Self {
        const KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];
        let Some((meta, members)) = meta.and_then(|meta| Some((meta, Members::scan(meta.as_str(), &KEYS).ok()?)))
        else {
            return Self::default();
        };
        let text = |index| {
            let value = members.get_some(index)?;
            meta.slice(value).to_string_value().ok().map(|text| text.to_string())
        };
        Self { traceparent: text(0), tracestate: text(1), baggage: text(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strings_are_taken() {
        let meta = Raw::parse(r#"{"traceparent":"00-1-2-01","tracestate":5,"other":{},"baggage":null}"#).unwrap();
        let trace = TraceContext::of(Some(&meta));
        assert_eq!(trace.traceparent.as_deref(), Some("00-1-2-01"));
        assert_eq!((trace.tracestate, trace.baggage), (None, None));
        assert_eq!(TraceContext::of(None), TraceContext::default());
    }
}
