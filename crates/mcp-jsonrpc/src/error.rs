use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Raw;

/// The error codes of JSON-RPC 2.0.
///
/// Specification: *Overview, Error Codes*. Those that the Model Context Protocol adds live with the protocol.
pub mod code {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON is not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method exists and its parameters do not fit.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The first code of the range that JSON-RPC leaves to implementations. Only ever received.
    pub const SERVER_ERROR: i64 = -32000;
}

/// The `error` member of a response, as it stands on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// What kind of error it is: one of [`code`], of the protocol, or of an application.
    pub code: i64,
    /// One sentence for a person.
    pub message: Cow<'static, str>,
    /// What else the sender tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

impl ErrorObject {
    /// An error without `data`.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with `data`.
    #[must_use]
    pub fn with_data(mut self, data: Raw) -> Self {
        self.data = Some(data);
        self
    }

    /// Reads the member; what does not have the shape of an error, and no code either, is kept whole as `data` of an internal
    /// error, so that the call it answers fails instead of hanging.
    pub(crate) fn lenient(raw: Raw) -> Self {
        raw.decode().unwrap_or_else(|_| match raw.member("code").and_then(|code| whole(&code)) {
            Some(code) => {
                let message = raw.member("message").and_then(|message| message.decode::<String>().ok());
                let message = message.unwrap_or_else(|| "the peer does not say what is wrong".to_owned());
                Self { code, message: message.into(), data: raw.member("data").filter(|data| !data.is_null()) }
            }
            None => Self::new(code::INTERNAL_ERROR, "the peer sent a malformed error").with_data(raw),
        })
    }
}

/// A number without a fraction, however it is written.
#[expect(clippy::cast_possible_truncation, reason = "it is within what a float holds exactly")]
fn whole(raw: &Raw) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = || raw.decode::<f64>().ok().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT);
    raw.decode().ok().or_else(|| float().map(|number| number as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_error_is_still_an_error() {
        let error = ErrorObject::lenient(Raw::parse("\"no\"").unwrap());
        assert_eq!(error.code, code::INTERNAL_ERROR);
        assert_eq!(error.data.unwrap().as_str(), "\"no\"");
    }

    #[test]
    fn an_error_keeps_its_code_whatever_is_beside_it() {
        for (error, code, message) in [
            (r#"{"code":-32602}"#, -32602, "the peer does not say what is wrong"),
            (r#"{"code":-32602,"message":null,"data":null}"#, -32602, "the peer does not say what is wrong"),
            (r#"{"code":-32602.0,"message":"no"}"#, -32602, "no"),
            (r#"{"code":1e3,"message":"no"}"#, 1000, "no"),
            (r#"{"code":1.5,"message":"no"}"#, code::INTERNAL_ERROR, "the peer sent a malformed error"),
            (r#"{"code":"1","message":"no"}"#, code::INTERNAL_ERROR, "the peer sent a malformed error"),
            (r#"{"message":"no"}"#, code::INTERNAL_ERROR, "the peer sent a malformed error"),
        ] {
            let read = ErrorObject::lenient(Raw::parse(error).unwrap());
            assert_eq!((read.code, &*read.message), (code, message), "{error}");
        }
    }

    #[test]
    fn data_is_left_out_when_there_is_none() {
        let error = ErrorObject::new(code::INVALID_PARAMS, "no");
        assert_eq!(serde_json::to_string(&error).unwrap(), r#"{"code":-32602,"message":"no"}"#);
    }
}
