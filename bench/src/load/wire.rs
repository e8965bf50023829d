//! What a wire puts around a message, and how it is taken off again. Written by hand, so that the load costs less than
//! any server.

pub(crate) mod http;
mod websocket;

use std::{
    borrow::Cow,
    net::{SocketAddr, TcpStream},
};

use anyhow::{Context, Result};

use super::call::{Era, Template, Work};

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the programs of this package name all of them")]
pub enum Wire {
    /// One message a line.
    Lines,
    /// A POST a message, on connections that are kept.
    Http,
    /// A text frame a message.
    WebSocket,
}

/// What a connection asks for, and how.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) wire: Wire,
    pub(crate) work: Work,
    pub(crate) era: Era,
    /// Who is asked, on wires that say it.
    pub(crate) host: String,
    /// In which session of HTTP, if in one.
    pub(crate) session: Option<String>,
}

impl Plan {
    /// The first request of each call, with what the wire puts around it.
    pub(crate) fn template(&self) -> Template {
        self.wrapped(&Template::new(self.work, self.era))
    }

    /// A request with what the wire puts around it.
    pub(crate) fn wrapped(&self, request: &Template) -> Template {
        match self.wire {
            Wire::Lines => request.wrapped(b"", b"\n"),
            Wire::Http => http::template(request, self),
            Wire::WebSocket => websocket::template(request),
        }
    }
}

/// A message that answers one of ours, at the beginning of what was received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    /// What came before it and belongs to it.
    pub(crate) before: Vec<Vec<u8>>,
    pub(crate) message: Cow<'a, [u8]>,
    /// How many bytes all that took, with what was around it.
    pub(crate) length: usize,
}

impl<'a> Reply<'a> {
    /// One that stands alone.
    pub(crate) fn alone(message: &'a [u8], length: usize) -> Self {
        Self { before: Vec::new(), message: message.into(), length }
    }
}

impl Wire {
    /// A connection on which calls can be made.
    pub(crate) fn connect(self, address: SocketAddr) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        if self == Self::WebSocket {
            websocket::open(&mut stream, address)?;
        }
        Ok(stream)
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
    Some(Reply::alone(&received[..end], end + 1))
}
