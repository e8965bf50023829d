use std::{borrow::Cow, collections::BTreeMap};

use mcp_jsonrpc::{ByteString, ErrorObject, Raw, code};

use crate::{
    Era, Revision, Revisions, ToolError,
    shown::{bounded, shown},
    types::ClientCapability,
};

/// The error codes that the protocol adds to JSON-RPC's.
///
/// Specification: *Overview, Error Codes*.
pub mod mcp_code {
    /// HTTP headers contradict the body, or are missing.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client did not declare.
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The request speaks a revision that the server does not accept.
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
    /// The user has to visit a web page first (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// No such resource (up to 2025-11-25 only).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
}

/// Why a request gets an error instead of a result.
///
/// It says what went wrong in a few words, not how it is told: [`to_error`](Self::to_error) gives the code, `mcp-http` the HTTP status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The message could not be read; the error says how.
    Malformed(ErrorObject),
    /// The message is no request that this connection takes.
    InvalidRequest(Cow<'static, str>),
    /// There is no such method in this revision, or nothing backs it.
    MethodNotFound(ByteString),
    /// The method's parameters do not fit.
    InvalidParams(Cow<'static, str>),
    /// `_meta` lacks what it must carry in this revision, or does not have its shape.
    InvalidMeta(Cow<'static, str>),
    /// The revision is not accepted here.
    UnsupportedVersion {
        /// What the request asked for.
        requested: ByteString,
        /// What the server accepts.
        supported: Revisions,
    },
    /// The HTTP headers contradict the body, or are missing.
    HeaderMismatch(Cow<'static, str>),
    /// There is no resource of that URI.
    ResourceNotFound(ByteString),
    /// The client did not declare what the request needs.
    MissingCapability(Vec<ClientCapability>),
    /// Whoever asks lacks scopes; all that it needs. Over HTTP it is 403, and the fault is among the response's extensions, for
    /// the layer that knows how they are had.
    InsufficientScope(Vec<String>),
    /// Too much is waiting already.
    Busy,
    /// The time for it ran out.
    TimedOut,
    /// The server failed; what happened is told to the log, not to the peer.
    Internal,
    /// An error of the application's own.
    Other(ErrorObject),
}

impl Fault {
    /// What the call of a tool gets that is not there, or that the caller does not see.
    #[must_use]
    pub fn unknown_tool(name: &str) -> Self {
        Self::InvalidParams(format!("Unknown tool: {}", shown(name)).into())
    }

    /// The error as the wire has it in `revision`.
    #[must_use]
    pub fn to_error(&self, revision: Revision) -> ErrorObject {
        match self {
            Self::Malformed(error) | Self::Other(error) => error.clone(),
            Self::InvalidRequest(why) => ErrorObject::new(code::INVALID_REQUEST, format!("Invalid request: {why}")),
            Self::MethodNotFound(method) => {
                ErrorObject::new(code::METHOD_NOT_FOUND, format!("Method not found: {}", shown(method)))
            }
            Self::InvalidParams(why) | Self::InvalidMeta(why) => {
                ErrorObject::new(code::INVALID_PARAMS, format!("Invalid params: {why}"))
            }
            Self::UnsupportedVersion { requested, supported } => unsupported(requested, *supported),
            Self::HeaderMismatch(why) => ErrorObject::new(mcp_code::HEADER_MISMATCH, format!("Header mismatch: {why}")),
            Self::ResourceNotFound(uri) => resource_not_found(uri, revision),
            Self::MissingCapability(missing) => missing_capability(missing, revision),
            Self::InsufficientScope(needed) => insufficient_scope(needed),
            Self::Busy => ErrorObject::new(code::INTERNAL_ERROR, "Server busy: too many requests are waiting"),
            Self::TimedOut => ErrorObject::new(code::INTERNAL_ERROR, "The request timed out in the server"),
            Self::Internal => ErrorObject::new(code::INTERNAL_ERROR, "Internal error"),
        }
    }
}

/// Layers answer with a fault by failing with it.
impl std::error::Error for Fault {}

/// A handler's failure where the result has no place for it: an error with the handler's own words.
impl From<ToolError> for Fault {
    fn from(error: ToolError) -> Self {
        match error.fault() {
            Some(fault) => fault.clone(),
            None => Self::Other(ErrorObject::new(code::INTERNAL_ERROR, error.into_message())),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_error(Revision::LATEST).message)
    }
}

fn unsupported(requested: &ByteString, supported: Revisions) -> ErrorObject {
    #[derive(serde::Serialize)]
    struct Data<'a> {
        supported: Vec<&'static str>,
        requested: &'a str,
    }
    let data = Data { supported: supported.iter().map(Revision::as_str).collect(), requested: bounded(requested) };
    with_data(ErrorObject::new(mcp_code::UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version"), &data)
}

/// The legacy era has a code of its own for it.
///
/// Specification: *Resources, Error Handling*.
fn resource_not_found(uri: &str, revision: Revision) -> ErrorObject {
    #[derive(serde::Serialize)]
    struct Data<'a> {
        uri: &'a str,
    }
    let code = match revision.era() {
        Era::Modern => code::INVALID_PARAMS,
        Era::Legacy => mcp_code::RESOURCE_NOT_FOUND,
    };
    with_data(ErrorObject::new(code, "Resource not found"), &Data { uri: bounded(uri) })
}

/// In the words of OAuth, as a challenge has them over HTTP.
fn insufficient_scope(needed: &[String]) -> ErrorObject {
    #[derive(serde::Serialize)]
    struct Data<'a> {
        error: &'static str,
        scope: &'a str,
    }
    let scope = needed.join(" ");
    let message = format!("Insufficient scope: this needs `{scope}`");
    with_data(ErrorObject::new(code::INVALID_REQUEST, message), &Data { error: "insufficient_scope", scope: &scope })
}

/// The code exists in the modern era only; before it, the parameters could not be served as they are.
fn missing_capability(missing: &[ClientCapability], revision: Revision) -> ErrorObject {
    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        required_capabilities: BTreeMap<&'static str, BTreeMap<&'static str, Raw>>,
    }
    let names: Vec<_> = missing.iter().map(|capability| capability.name()).collect();
    let code = match revision.era() {
        Era::Modern => mcp_code::MISSING_CLIENT_CAPABILITY,
        Era::Legacy => code::INVALID_PARAMS,
    };
    let message = format!("The client did not declare a capability that this request needs: {}", names.join(", "));
    let mut required_capabilities = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (outer, inner) in missing.iter().map(|capability| capability.path()) {
        let members = required_capabilities.entry(outer).or_default();
        members.extend(inner.map(|inner| (inner, Raw::empty_object())));
    }
    with_data(ErrorObject::new(code, message), &Data { required_capabilities })
}

fn with_data(error: ErrorObject, data: &impl serde::Serialize) -> ErrorObject {
    match Raw::encode(data) {
        Ok(data) => error.with_data(data),
        Err(_) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_capability_has_its_own_code_in_the_modern_era_only() {
        let fault = Fault::MissingCapability(vec![ClientCapability::Sampling]);
        let error = fault.to_error(Revision::LATEST);
        assert_eq!(error.code, -32021);
        assert_eq!(error.data.unwrap().as_str(), r#"{"requiredCapabilities":{"sampling":{}}}"#);
        assert_eq!(fault.to_error(Revision::LATEST_LEGACY).code, -32602);
    }

    #[test]
    fn a_missing_capability_within_another_stands_within_it() {
        let missing = [ClientCapability::ElicitationUrl, ClientCapability::Roots, ClientCapability::Elicitation];
        let data = Fault::MissingCapability(missing.to_vec()).to_error(Revision::LATEST).data.unwrap();
        assert_eq!(data.as_str(), r#"{"requiredCapabilities":{"elicitation":{"url":{}},"roots":{}}}"#);
        let of = |text: &str| ClientCapability::named_in(&Raw::parse(text).unwrap().decode().unwrap());
        assert_eq!(of(r#"{"elicitation":{"url":{}}}"#), [ClientCapability::Elicitation, missing[0]]);
        assert_eq!(of(r#"{"elicitation":{},"roots":null}"#), [ClientCapability::Elicitation]);
    }

    #[test]
    fn an_unsupported_version_tells_what_is_supported() {
        let supported = Revisions::of([Revision::V2026_07_28, Revision::V2025_11_25]);
        let fault = Fault::UnsupportedVersion { requested: "1900-01-01".into(), supported };
        let data = fault.to_error(Revision::LATEST).data.unwrap();
        assert_eq!(data.as_str(), r#"{"supported":["2026-07-28","2025-11-25"],"requested":"1900-01-01"}"#);
    }
}
