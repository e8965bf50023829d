//! One request after another on a connection of HTTP, for what is not timed call by call.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use anyhow::{Context, Result, ensure};

use super::wire::{
    Wire,
    http::{Response, head, response},
};

const CHUNK: usize = 1 << 14;

pub(super) struct Poster {
    stream: TcpStream,
    host: String,
    received: Vec<u8>,
    chunk: Vec<u8>,
}

impl Poster {
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = Wire::Http.connect(address)?;
        Ok(Self { stream, host: address.to_string(), received: Vec::new(), chunk: vec![0; CHUNK] })
    }

    /// Posts a message, and waits for all of the response.
    pub(super) fn post(&mut self, headers: &str, body: &str) -> Result<Response<'_>> {
        self.received.clear();
        self.stream.write_all((head(&self.host, headers, body.len()) + body).as_bytes())?;
        while response(&self.received)?.is_none() {
            let count = self.stream.read(&mut self.chunk)?;
            ensure!(count > 0, "the server closed the connection, or was ended as it did not answer");
            self.received.extend_from_slice(&self.chunk[..count]);
        }
        response(&self.received)?.context("a response that is whole no more")
    }
}
