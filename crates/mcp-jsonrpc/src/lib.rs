//! JSON-RPC 2.0 as the Model Context Protocol uses it, and nothing of the protocol itself.
//!
//! A message stays the bytes it came in: [`decode`] scans the envelope once, and what it returns shares those bytes
//! ([`Raw`], [`RequestId`]). Nothing here is asynchronous, and nothing turns a message into a tree of values.
//!
//! ```
//! use mcp_jsonrpc::{DecodeLimits, Inbound, Message, decode, encode};
//!
//! let frame = br#"{"jsonrpc":"2.0","id":"7","method":"ping"}"#.as_slice();
//! let Inbound::One(Message::Request(request)) = decode(frame.into(), &DecodeLimits::default()) else { panic!() };
//! assert_eq!(request.method, "ping");
//! assert_eq!(encode::result(&request.id, b"{}"), r#"{"jsonrpc":"2.0","id":"7","result":{}}"#);
//! ```

mod decode;
/// Messages as JSON text on one line, without the newline.
pub mod encode;
mod error;
mod id;
mod line;
mod members;
mod message;
mod raw;
mod scan;

pub use bytes::Bytes;
pub use bytestring::ByteString;
pub use decode::{DecodeLimits, decode};
pub use error::{ErrorObject, code};
pub use id::{InvalidId, RequestId};
pub use line::{Frame, LineDecoder};
pub use members::Members;
pub use message::{Inbound, Malformed, MalformedKind, Message, Notification, Request, Response};
pub use raw::Raw;

/// Entry points for the fuzzer, each beside the code that it exercises.
#[cfg(any(fuzzing, test))]
pub mod fuzz {
    pub use crate::{decode::fuzz as envelope, line::fuzz as lines, scan::fuzz as json};
}

/// The README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
