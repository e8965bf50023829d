//! The head of a request's parameters: what routing needs, picked in two shallow scans and shared, not copied.

use std::borrow::Cow;

use mcp_jsonrpc::{ByteString, Members, Notification, Raw, RequestId};

use crate::{Fault, method::notification, shown::Elided};

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
    /// From which level on log messages about a request are wanted.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Which subscription a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The server's name and version, in results.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

    /// Whether a client says something under that key itself.
    pub(crate) fn is_reserved(key: &str) -> bool {
        key == PROGRESS_TOKEN
            || [PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, SUBSCRIPTION_ID].contains(&key)
    }
}

/// What a request's progress notifications name: a string or an integer.
///
/// Specification: *Progress*.
pub type ProgressToken = RequestId;

/// What routing and the exit need of the parameters.
#[derive(Clone, Default)]
pub(crate) struct Head {
    pub(crate) meta: Meta,
    pub(crate) name: Option<ByteString>,
    pub(crate) uri: Option<ByteString>,
    pub(crate) cursor: Option<ByteString>,
    pub(crate) arguments: Option<Raw>,
    /// What the modern era reads as the state of earlier rounds.
    pub(crate) request_state: Option<ByteString>,
    /// What it reads as answers to their questions.
    pub(crate) input_responses: Option<Raw>,
    /// What it reads as the id of a task, if that is a string.
    pub(crate) task_id: Option<Elided<ByteString>>,
    /// What is wrong with the parameters. It is told once the method is known to exist, and the headers to agree.
    pub(crate) fault: Option<Fault>,
}

/// What is in `_meta`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meta {
    pub(crate) raw: Option<Raw>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) has_capabilities: bool,
    /// What the modern era reads as a log level.
    pub(crate) log_level: Option<Raw>,
    /// What is wrong with it. It is told once the era is known, which may have other shapes than ours.
    pub(crate) fault: Option<Fault>,
}

/// Nothing of it is shown but what is called: all else is the caller's own, and some of it opens something.
impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Head")
            .field("meta", &self.meta)
            .field("name", &self.name)
            .field("arguments", &self.arguments)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}

const HEAD: [&str; 8] = ["_meta", "name", "uri", "cursor", "arguments", "requestState", "inputResponses", "taskId"];
const META: [&str; 5] = [
    meta_key::PROGRESS_TOKEN,
    meta_key::PROTOCOL_VERSION,
    meta_key::CLIENT_INFO,
    meta_key::CLIENT_CAPABILITIES,
    meta_key::LOG_LEVEL,
];

impl Head {
    /// Scans `params`, where there are any: the head, and the revision that `_meta` names.
    pub(crate) fn scan(params: Option<&Raw>, id_bytes: usize) -> (Self, Option<Cow<'_, str>>) {
        let (mut head, mut version) = (Self::default(), None);
        if let Some(params) = params {
            head.fault = head.pick(params, id_bytes, &mut version).err();
        }
        (head, version)
    }

    fn pick<'a>(&mut self, params: &'a Raw, id_bytes: usize, version: &mut Option<Cow<'a, str>>) -> Result<(), Fault> {
        let members = Members::scan(params.as_str(), &HEAD).map_err(|_| not("params", "an object"))?;
        if let Some(meta) = members.get_some(0) {
            self.meta = Meta::scan(params.slice(meta), meta, id_bytes, version);
        }
        refuse_duplicates(&members, &HEAD)?;
        let text = |index: usize| members.get_some(index).map(|raw| string(params, raw, HEAD[index])).transpose();
        (self.name, self.uri, self.cursor) = (text(1)?, text(2)?, text(3)?);
        self.arguments = object(members.get_some(4), "params.arguments")?.map(|raw| params.slice(raw));
        // Before the modern era they mean nothing, so what is wrong with them is told where they are read.
        self.request_state = members.get_some(5).map(|raw| params.slice(raw).to_string_value().unwrap_or_default());
        self.input_responses = members.get_some(6).map(|raw| params.slice(raw));
        self.task_id = members.get_some(7).and_then(|raw| params.slice(raw).to_string_value().ok()).map(Elided);
        Ok(())
    }
}

impl Meta {
    fn scan<'a>(raw: Raw, text: &'a str, id_bytes: usize, version: &mut Option<Cow<'a, str>>) -> Self {
        let mut meta = Self { raw: Some(raw), ..Self::default() };
        meta.fault = meta.pick(text, id_bytes, version).err().map(|fault| match fault {
            Fault::InvalidParams(why) => Fault::InvalidMeta(why),
            other => other,
        });
        meta
    }

    fn pick<'a>(&mut self, text: &'a str, id_bytes: usize, version: &mut Option<Cow<'a, str>>) -> Result<(), Fault> {
        let members = Members::scan(text, &META).map_err(|_| not("params._meta", "an object"))?;
        // First, since it decides how all else is to be read.
        *version = members.get_string(1).transpose().map_err(|_| not(META[1], "a string"))?;
        refuse_duplicates(&members, &META)?;
        let shared = |raw: &str| self.raw.as_ref().map(|whole| whole.slice(raw));
        let token = members.get_some(0).and_then(shared).map(|token| ProgressToken::parse_shared(token, id_bytes));
        let token = token.transpose().map_err(|_| not(META[0], "a string or an integer"))?;
        object(members.get_some(2), META[2])?;
        self.has_capabilities = object(members.get_some(3), META[3])?.is_some();
        (self.progress_token, self.log_level) = (token, members.get_some(4).and_then(shared));
        Ok(())
    }

    /// One of its members, if that is there.
    pub(crate) fn member(&self, key: &str) -> Option<Raw> {
        self.raw.as_ref()?.member(key).filter(|member| !member.is_null())
    }
}

fn object<'a>(value: Option<&'a str>, name: &str) -> Result<Option<&'a str>, Fault> {
    match value {
        Some(value) if !value.starts_with('{') => Err(not(name, "an object")),
        value => Ok(value),
    }
}

/// Two readers of one message must not see two tools.
fn refuse_duplicates<const N: usize>(members: &Members<'_, N>, names: &[&str; N]) -> Result<(), Fault> {
    match members.duplicate() {
        Some(index) => Err(Fault::InvalidParams(format!("more than one member `{}`", names[index]).into())),
        None => Ok(()),
    }
}

fn string(whole: &Raw, raw: &str, name: &str) -> Result<ByteString, Fault> {
    whole.slice(raw).to_string_value().map_err(|_| not(name, "a string"))
}

fn not(name: &str, what: &str) -> Fault {
    Fault::InvalidParams(format!("`{name}` must be {what}").into())
}

/// The request that is called off, where that is what a notification says.
///
/// Specification: *Cancellation*.
pub(crate) fn cancelled(notification: &Notification, most: usize) -> Option<RequestId> {
    let params = notification.params.as_ref().filter(|_| notification.method == notification::CANCELLED)?;
    RequestId::parse_shared(params.member("requestId")?, most).ok()
}

/// What is picked of parameters is what `serde_json` reads there.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    use serde_json::Value;

    let Some(params) = std::str::from_utf8(data).ok().and_then(|text| Raw::parse(text).ok()) else { return };
    // It knows no number that is no double, and no lone surrogate.
    let Ok(value) = params.decode::<Value>() else { return };
    let (head, version) = Head::scan(Some(&params), 64);
    let some = |name: &str| value.get(name).filter(|member| !member.is_null());
    let fits = |name: &str, is: fn(&Value) -> bool| some(name).is_none_or(is);
    let fit = value.is_object()
        && fits("arguments", Value::is_object)
        && ["name", "uri", "cursor"].into_iter().all(|name| fits(name, Value::is_string));
    if let Some(fault) = &head.fault {
        assert!(!fit || format!("{fault:?}").contains("more than one"), "{fault:?}");
        return;
    }
    assert!(fit, "{value} is no head");
    for (picked, name) in [(&head.name, "name"), (&head.uri, "uri"), (&head.cursor, "cursor")] {
        assert_eq!(picked.as_deref(), some(name).and_then(Value::as_str), "{name}");
    }
    let decoded = |raw: Option<Raw>| raw.and_then(|raw| raw.decode::<Value>().ok());
    assert_eq!(decoded(head.arguments), some("arguments").cloned());
    assert_eq!(decoded(head.meta.raw.clone()), some("_meta").cloned());
    if head.meta.fault.is_none() {
        assert_eq!(version.as_deref(), some("_meta").and_then(|meta| meta[meta_key::PROTOCOL_VERSION].as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(params: &str) -> Result<Head, Fault> {
        let params = Raw::parse(params).unwrap();
        let (head, _) = Head::scan(Some(&params), 256);
        match head.meta.fault.clone().or(head.fault.clone()) {
            Some(fault) => Err(fault),
            None => Ok(head),
        }
    }

    #[test]
    fn picks_what_routing_needs() {
        let params = r#"{"name":"a\u0064d","arguments":{"a":1},"_meta":{"progressToken":7,"x":1,
            "io.modelcontextprotocol/protocolVersion":"2026-0\u0037-28"}}"#;
        let params = Raw::parse(params).unwrap();
        let (head, version) = Head::scan(Some(&params), 256);
        assert_eq!(version.as_deref(), Some("2026-07-28"));
        assert_eq!(head.name.as_deref(), Some("add"));
        assert_eq!(head.arguments.unwrap().as_str(), r#"{"a":1}"#);
        assert_eq!(head.meta.progress_token, Some(7u64.into()));
    }

    #[test]
    fn what_the_fuzzer_compares_is_the_same_for_what_is_known() {
        for params in [
            r#"{"name":"a\u0064d","arguments":{"a":1},"_meta":{"progressToken":7}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-0\u0037-28"},"cursor":null}"#,
            r#"{"name":5}"#,
            r#"{"name":"a","name":"b"}"#,
            r#"{"_meta":[],"arguments":[]}"#,
            "[1]",
            " null ",
            r#"{"uri":"\ud800"}"#,
            "no JSON",
        ] {
            fuzz(params.as_bytes());
        }
    }

    #[test]
    fn what_a_caller_says_is_not_shown() {
        let head = scan(
            r#"{"uri":"secret:1","cursor":"secret","arguments":{"a":"secret"},"requestState":"secret-state",
            "inputResponses":{"a":"secret"},"taskId":"secret-task-id","_meta":{"x":"secret"}}"#,
        );
        let shown = format!("{:?}", head.unwrap());
        assert!(!shown.contains("secret"), "{shown}");
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
            r#"{"taskId":"mine","taskId":"yours"}"#,
            r#"{"name":"\ud800"}"#,
        ] {
            let fault = scan(params).unwrap_err();
            assert_eq!(matches!(fault, Fault::InvalidMeta(_)), params.contains("_meta"), "{params}");
            assert_eq!(fault.to_error(crate::Revision::LATEST).code, -32602, "{params}");
        }
    }
}
