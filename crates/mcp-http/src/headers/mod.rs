//! The headers of Streamable HTTP: their names, and how a value of the body travels in one.
//!
//! Specification: *Streamable HTTP, Request Metadata and Value Encoding*.

#[cfg(feature = "server")]
mod compare;
#[cfg(feature = "client")]
mod encode;
#[cfg(all(any(fuzzing, test), feature = "client", feature = "server"))]
mod fuzz;
#[cfg(any(feature = "client", feature = "server"))]
mod sentinel;
#[cfg(all(test, feature = "client", feature = "server"))]
mod tests;

#[cfg(feature = "server")]
pub(crate) use compare::{Mismatch, matches, matches_argument, matches_plain};
#[cfg(feature = "client")]
pub(crate) use encode::encode_value;
#[cfg(all(fuzzing, feature = "client", feature = "server"))]
pub(crate) use fuzz::fuzz;
use http::HeaderName;

/// The session that a legacy request belongs to.
///
/// Specification: *2025-11-25, Transports, Session Management*.
pub const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The revision that a request is written in.
///
/// Specification: *Streamable HTTP, Protocol Version Header*.
pub const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The `method` of the request in the body, as it stands there.
///
/// Specification: *Streamable HTTP, Standard Request Headers*.
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The `name` or `uri` of the request in the body, encoded where it is not plain ASCII.
///
/// Specification: *Streamable HTTP, Standard Request Headers*.
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What the name of each header begins with that carries a tool's argument.
///
/// Specification: *Streamable HTTP, Custom Headers from Tool Parameters*.
pub const MCP_PARAM_PREFIX: &str = "mcp-param-";

/// The last event that a client saw of a legacy stream that it resumes.
///
/// Specification: *2025-11-25, Transports, Resumability and Redelivery*.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
