//! HTTP/1.1: a POST a call, answered with JSON of a stated length, or with an event stream in chunks.

use std::borrow::Cow;

use anyhow::{Context, Result, bail, ensure};
use httparse::{EMPTY_HEADER, Response, Status};

use super::Reply;
use crate::load::call::Template;

pub(super) fn template(call: &Template, host: &str) -> Template {
    let head = format!(
        "POST /mcp HTTP/1.1\r\n\
         Host: {host}\r\n\
         Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\n\
         Mcp-Name: add\r\n\
         Content-Length: {}\r\n\r\n",
        call.len()
    );
    call.wrapped(head.as_bytes(), b"")
}

/// How the end of a body is told.
enum Framing {
    Length(usize),
    Chunks,
}

pub(super) fn reply(received: &[u8]) -> Result<Option<Reply<'_>>> {
    let mut headers = [EMPTY_HEADER; 32];
    let mut response = Response::new(&mut headers);
    let Status::Complete(head) = response.parse(received)? else { return Ok(None) };
    ensure!(response.code == Some(200), "{}", String::from_utf8_lossy(received));
    let body = &received[head..];
    match framing(&response)? {
        Framing::Length(length) if body.len() < length => Ok(None),
        Framing::Length(length) => Ok(Some(Reply { message: body[..length].into(), length: head + length })),
        Framing::Chunks => match chunks(body)? {
            Some((body, length)) => Ok(Some(Reply { message: message(body)?, length: head + length })),
            None => Ok(None),
        },
    }
}

fn framing(response: &Response<'_, '_>) -> Result<Framing> {
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            return Ok(Framing::Length(std::str::from_utf8(header.value)?.parse()?));
        }
        if header.name.eq_ignore_ascii_case("transfer-encoding") && header.value == b"chunked" {
            return Ok(Framing::Chunks);
        }
    }
    bail!("a body whose end nothing tells")
}

/// A body in chunks, if its last chunk is there, and how many bytes it took.
fn chunks(received: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Ok(Status::Complete((line, size))) = httparse::parse_chunk_size(&received[at..]) else { return Ok(None) };
        let start = at + line;
        let end = start + usize::try_from(size)?;
        let Some(after) = received.get(end..end + 2) else { return Ok(None) };
        ensure!(after == b"\r\n", "a chunk without an end");
        body.extend_from_slice(&received[start..end]);
        at = end + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

/// The body, or the one message in it if it is a stream of events. An event without JSON only primes the stream.
fn message(body: Vec<u8>) -> Result<Cow<'static, [u8]>> {
    if body.first() == Some(&b'{') {
        return Ok(body.into());
    }
    let mut messages = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let message = messages.find(|data| data.trim_ascii().starts_with(b"{")).context("a stream without a message")?;
    Ok(message.trim_ascii().to_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
        9\r\ndata:\nid:\r\n9\r\n\n\ndata: {\r\n3\r\n}\n\n\r\n0\r\n\r\n";

    #[test]
    fn a_body_of_a_stated_length_is_taken_when_it_is_whole() {
        let reply = reply(JSON).unwrap().unwrap();
        assert_eq!((reply.message.as_ref(), reply.length), (b"{}".as_slice(), JSON.len()));
    }

    #[test]
    fn the_message_is_found_in_a_stream_of_events() {
        let reply = reply(EVENTS).unwrap().unwrap();
        assert_eq!((reply.message.as_ref(), reply.length), (b"{}".as_slice(), EVENTS.len()));
    }

    #[test]
    fn whatever_is_cut_off_is_waited_for() {
        for whole in [JSON, EVENTS] {
            for end in 0..whole.len() {
                assert_eq!(reply(&whole[..end]).unwrap(), None, "cut off at {end}");
            }
        }
    }

    #[test]
    fn another_status_is_an_error() {
        assert!(reply(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").is_err());
    }
}
