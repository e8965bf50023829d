//! Which `Host` and `Origin` a server on the network answers: the guard against DNS rebinding.
//!
//! A page on the open web can make a browser send requests to a server on the visitor's own machine. Two headers give
//! such a request away: `Origin` names the page, and `Host` names what the browser believes it is talking to. These are
//! the rules alone, on text; a transport reads the headers and answers 403 with the words of [`Refused`].
//!
//! Specification: *Streamable HTTP, Security & Endpoint*.

mod authority;
mod hosts;
mod origins;
mod refused;
#[cfg(test)]
mod tests;

pub use hosts::Hosts;
pub use origins::Origins;
pub use refused::{HostError, OriginError, Refused};
