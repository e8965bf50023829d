//! HTTP/1.1: a POST a call, answered with JSON of a stated length, or with an event stream in chunks.

use std::{borrow::Cow, fmt::Write};

use anyhow::{Context, Result, bail, ensure};
use httparse::{EMPTY_HEADER, Status};
use memchr::memmem;

use super::{Plan, Reply};
use crate::load::{
    call::{Era, Template},
    check::lossy,
};

/// A request with the headers that belong to it.
pub(super) fn template(request: &Template, plan: &Plan) -> Template {
    let mut headers = String::new();
    // Writing to a string cannot fail.
    let _ = match (plan.era, plan.work.tool()) {
        (Era::Modern, tool) => modern(&mut headers, plan.work.method(), tool),
        (Era::Legacy, _) => legacy(&mut headers, plan.session.as_deref()),
    };
    request.wrapped(head(&plan.host, &headers, request.len()).as_bytes(), b"")
}

/// What stands before a body of that length.
pub(crate) fn head(host: &str, headers: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\n\
         Host: {host}\r\n\
         Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n\
         {headers}\
         Content-Length: {length}\r\n\r\n"
    )
}

/// Writes what a modern request says in headers.
pub(crate) fn modern(headers: &mut String, method: &str, name: Option<&str>) -> std::fmt::Result {
    write!(headers, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n")?;
    name.map_or(Ok(()), |name| write!(headers, "Mcp-Name: {name}\r\n"))
}

/// Writes what a legacy request says in headers.
pub(crate) fn legacy(headers: &mut String, session: Option<&str>) -> std::fmt::Result {
    write!(headers, "MCP-Protocol-Version: 2025-11-25\r\n")?;
    session.map_or(Ok(()), |session| write!(headers, "Mcp-Session-Id: {session}\r\n"))
}

/// A response, all of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    /// The session that it begins.
    pub(crate) session: Option<&'a str>,
    pub(crate) body: Cow<'a, [u8]>,
    /// How many bytes it took, with its head.
    pub(crate) length: usize,
}

/// Its head.
pub(crate) struct Head<'a> {
    pub(crate) status: u16,
    session: Option<&'a str>,
    framing: Framing,
    length: usize,
}

/// How the end of a body is told.
enum Framing {
    Length(usize),
    Chunks,
}

/// Takes the head of the first response, if all of it is there.
pub(crate) fn response_head(received: &[u8]) -> Result<Option<Head<'_>>> {
    let mut headers = [EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let Status::Complete(length) = response.parse(received)? else { return Ok(None) };
    let status = response.code.unwrap_or_default();
    let (mut session, mut framing) = (None, None);
    for header in response.headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            framing = Some(Framing::Length(std::str::from_utf8(header.value)?.parse()?));
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") && header.value == b"chunked" {
            framing = Some(Framing::Chunks);
        } else if header.name.eq_ignore_ascii_case("mcp-session-id") {
            session = Some(std::str::from_utf8(header.value)?);
        }
    }
    let framing = match framing {
        Some(framing) => framing,
        None if status == 202 || status == 204 => Framing::Length(0),
        None => bail!("a body whose end nothing tells"),
    };
    Ok(Some(Head { status, session, framing, length }))
}

/// Takes the first response, if all of it is there.
pub(crate) fn response(received: &[u8]) -> Result<Option<Response<'_>>> {
    let Some(Head { status, session, framing, length }) = response_head(received)? else { return Ok(None) };
    let rest = &received[length..];
    let (body, taken): (Cow<'_, [u8]>, _) = match framing {
        Framing::Length(wanted) if rest.len() < wanted => return Ok(None),
        Framing::Length(wanted) => (rest[..wanted].into(), wanted),
        Framing::Chunks => match chunks(rest)? {
            Some((body, taken)) => (body.into(), taken),
            None => return Ok(None),
        },
    };
    Ok(Some(Response { status, session, body, length: length + taken }))
}

pub(super) fn reply(received: &[u8]) -> Result<Option<Reply<'_>>> {
    let Some(Response { status, body, length, .. }) = response(received)? else { return Ok(None) };
    ensure!(status == 200, "answered with {status}: {:.2000}", lossy(&body));
    if body.first() == Some(&b'{') {
        return Ok(Some(Reply { before: Vec::new(), message: body, length }));
    }
    let mut before = messages(&body);
    let message = before.pop().context("a stream without a message")?;
    Ok(Some(Reply { before, message: message.into(), length }))
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

/// The messages in a stream of events. An event without JSON only primes the stream.
fn messages(body: &[u8]) -> Vec<Vec<u8>> {
    let lines = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    lines.map(<[u8]>::trim_ascii).filter(|data| data.starts_with(b"{")).map(<[u8]>::to_vec).collect()
}

/// How many notifications of a method there are in whole lines of a stream. What is between them is not looked at, and
/// nobody here cuts a line into chunks.
pub(crate) fn count(stream: &[u8], method: &str) -> usize {
    memmem::find_iter(stream, format!(r#""method":"{method}""#).as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
        9\r\ndata:\nid:\r\n9\r\n\n\ndata: {\r\n3\r\n}\n\n\r\n0\r\n\r\n";
    const TWO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\ndata: {\"n\":1}\n\ndata: {}\n\n";

    #[test]
    fn a_body_of_a_stated_length_is_taken_when_it_is_whole() {
        assert_eq!(reply(JSON).unwrap().unwrap(), Reply::alone(b"{}", JSON.len()));
    }

    #[test]
    fn the_message_is_found_in_a_stream_of_events() {
        assert_eq!(reply(EVENTS).unwrap().unwrap(), Reply::alone(b"{}", EVENTS.len()));
    }

    #[test]
    fn the_last_message_of_a_stream_is_the_reply() {
        let reply = reply(TWO).unwrap().unwrap();
        assert_eq!((reply.before, reply.message.as_ref()), (vec![br#"{"n":1}"#.to_vec()], b"{}".as_slice()));
    }

    #[test]
    fn whatever_is_cut_off_is_waited_for() {
        for whole in [JSON, EVENTS, TWO] {
            for end in 0..whole.len() {
                assert_eq!(reply(&whole[..end]).unwrap(), None, "cut off at {end}");
            }
        }
    }

    #[test]
    fn another_status_is_an_error() {
        assert!(reply(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").is_err());
    }

    #[test]
    fn a_response_may_begin_a_session_and_may_be_empty() {
        let bytes = b"HTTP/1.1 202 Accepted\r\nMcp-Session-Id: abc\r\n\r\n";
        let response = response(bytes).unwrap().unwrap();
        assert_eq!((response.status, response.session, response.length), (202, Some("abc"), bytes.len()));
    }
}
