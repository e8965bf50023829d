//! The head of a request's parameters: what routing needs, picked in two shallow scans and shared, not copied.

use mcp_jsonrpc::{ByteString, Members, Raw, RequestId};
use serde_json::value::RawValue;

use crate::Fault;

/// The keys of `_meta` that the specification reserves.
///
/// Specification: *Overview, `_meta`*.
pub mod meta_key {
    /// Asks for progress notifications about a request.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The revision that a request speaks.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The client's name and version.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the client can do for the server while it answers.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The server's name and version, in results.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

/// What a request's progress notifications name: a string or an integer.
///
/// Specification: *Progress*.
pub type ProgressToken = RequestId;

/// What routing and the exit need of the parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) meta: Meta,
    pub(crate) name: Option<ByteString>,
    pub(crate) uri: Option<ByteString>,
    pub(crate) cursor: Option<ByteString>,
    pub(crate) arguments: Option<Raw>,
}

/// What is in `_meta`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meta {
    pub(crate) raw: Option<Raw>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) version: Option<ByteString>,
    pub(crate) client_info: Option<Raw>,
    pub(crate) client_capabilities: Option<Raw>,
}

const HEAD: [&str; 5] = ["_meta", "name", "uri", "cursor", "arguments"];
const META: [&str; 4] =
    [meta_key::PROGRESS_TOKEN, meta_key::PROTOCOL_VERSION, meta_key::CLIENT_INFO, meta_key::CLIENT_CAPABILITIES];

impl Head {
    /// Scans `params`, where there are any; every defect is one of the parameters (-32602).
    pub(crate) fn scan(params: Option<&Raw>, id_bytes: usize) -> Result<Self, Fault> {
        let Some(params) = params else { return Ok(Self::default()) };
        let members = Members::scan(params.as_str(), &HEAD).map_err(|_| not("params", "an object"))?;
        refuse_duplicates(&members, &HEAD)?;
        let meta = match members.get_some(0) {
            Some(meta) => Meta::scan(params.slice(meta), id_bytes)?,
            None => Meta::default(),
        };
        let arguments = members.get_some(4).map(|raw| params.slice(raw));
        if arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
            return Err(not("params.arguments", "an object"));
        }
        let text = |index: usize| members.get_some(index).map(|raw| string(params, raw, HEAD[index])).transpose();
        Ok(Self { meta, name: text(1)?, uri: text(2)?, cursor: text(3)?, arguments })
    }
}

impl Meta {
    fn scan(raw: Raw, id_bytes: usize) -> Result<Self, Fault> {
        Self::pick(raw, id_bytes).map_err(|fault| match fault {
            Fault::InvalidParams(why) => Fault::InvalidMeta(why),
            other => other,
        })
    }

    fn pick(raw: Raw, id_bytes: usize) -> Result<Self, Fault> {
        let members = Members::scan(raw.as_str(), &META).map_err(|_| not("params._meta", "an object"))?;
        refuse_duplicates(&members, &META)?;
        let progress_token = members.get_some(0).map(|token| raw.slice(token)).map(|token| {
            ProgressToken::parse_shared(token, id_bytes).map_err(|_| not(META[0], "a string or an integer"))
        });
        let object = |index: usize| match members.get_some(index).map(|value| raw.slice(value)) {
            Some(value) if !value.is_object() => Err(not(META[index], "an object")),
            value => Ok(value),
        };
        Ok(Self {
            progress_token: progress_token.transpose()?,
            version: members.get_some(1).map(|version| string(&raw, version, META[1])).transpose()?,
            client_info: object(2)?,
            client_capabilities: object(3)?,
            raw: Some(raw.clone()),
        })
    }
}

/// Two readers of one message must not see two tools.
fn refuse_duplicates<const N: usize>(members: &Members<'_, N>, names: &[&str; N]) -> Result<(), Fault> {
    match members.duplicate() {
        Some(index) => Err(Fault::InvalidParams(format!("more than one member `{}`", names[index]).into())),
        None => Ok(()),
    }
}

fn string(whole: &Raw, raw: &RawValue, name: &str) -> Result<ByteString, Fault> {
    whole.slice(raw).to_string_value().map_err(|_| not(name, "a string"))
}

fn not(name: &str, what: &str) -> Fault {
    Fault::InvalidParams(format!("`{name}` must be {what}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(params: &str) -> Result<Head, Fault> {
        Head::scan(Some(&Raw::parse(params).unwrap()), 256)
    }

    #[test]
    fn picks_what_routing_needs() {
        let head = scan(
            r#"{"name":"a\u0064d","arguments":{"a":1},"_meta":{"progressToken":7,"x":1,
                "io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
        )
        .unwrap();
        assert_eq!(head.name.as_deref(), Some("add"));
        assert_eq!(head.arguments.unwrap().as_str(), r#"{"a":1}"#);
        assert_eq!(head.meta.progress_token, Some(7u64.into()));
        assert_eq!(head.meta.version.as_deref(), Some("2026-07-28"));
    }

    #[test]
    fn null_counts_as_absent() {
        let head = scan(r#"{"name":null,"cursor":null,"arguments":null,"_meta":null}"#).unwrap();
        assert!(head.name.is_none() && head.cursor.is_none() && head.arguments.is_none() && head.meta.raw.is_none());
    }

    #[test]
    fn what_does_not_fit_is_invalid_params() {
        for params in [
            "[1,2]",
            "\"s\"",
            "42",
            r#"{"name":{}}"#,
            r#"{"cursor":5}"#,
            r#"{"uri":[]}"#,
            r#"{"arguments":5}"#,
            r#"{"arguments":[1]}"#,
            r#"{"arguments":"x"}"#,
            r#"{"_meta":[]}"#,
            r#"{"_meta":{"progressToken":1.5}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":20260728}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":[]}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientInfo":"me"}}"#,
            r#"{"name":"safe","name":"admin"}"#,
            r#"{"name":"\ud800"}"#,
        ] {
            let fault = scan(params).unwrap_err();
            assert_eq!(matches!(fault, Fault::InvalidMeta(_)), params.contains("_meta"), "{params}");
            assert_eq!(fault.to_error(crate::Revision::LATEST).code, -32602, "{params}");
        }
    }
}
