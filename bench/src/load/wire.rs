//! What a wire puts around a message, and how it is taken off again. Written by hand, so that the load costs less than
//! any server.

mod http;
mod websocket;

use std::{borrow::Cow, net::SocketAddr};

use anyhow::Result;
use tokio::net::TcpStream;

use super::call::Template;

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// One message a line.
    Lines,
    /// A POST a message, on connections that are kept.
    Http,
    /// A text frame a message.
    WebSocket,
}

/// A message at the beginning of what was received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    pub(crate) message: Cow<'a, [u8]>,
    /// How many bytes it took, with what was around it.
    pub(crate) length: usize,
}

impl Wire {
    /// A call with what this wire puts around it.
    pub(crate) fn template(self, call: &Template, host: &str) -> Template {
        match self {
            Self::Lines => call.wrapped(b"", b"\n"),
            Self::Http => http::template(call, host),
            Self::WebSocket => websocket::template(call),
        }
    }

    /// What a new connection needs before the first call.
    pub(crate) async fn open(self, stream: &mut TcpStream, address: SocketAddr) -> Result<()> {
        match self {
            Self::Lines | Self::Http => Ok(()),
            Self::WebSocket => websocket::open(stream, address).await,
        }
    }

    /// Takes the first message, if all of it is there.
    pub(crate) fn reply(self, received: &[u8]) -> Result<Option<Reply<'_>>> {
        match self {
            Self::Lines => Ok(line(received)),
            Self::Http => http::reply(received),
            Self::WebSocket => websocket::reply(received),
        }
    }
}

fn line(received: &[u8]) -> Option<Reply<'_>> {
    let end = memchr::memchr(b'\n', received)?;
    Some(Reply { message: received[..end].into(), length: end + 1 })
}
