//! WebSocket: a text frame a call, one a reply.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use anyhow::{Result, ensure};

use super::Reply;
use crate::load::call::Template;

/// A whole frame of text.
const TEXT: u8 = 0x81;

/// From a client: the length is followed by a mask.
const MASKED: u8 = 0x80;

/// The length follows in two bytes.
const MEDIUM: u8 = 126;

/// The length follows in eight bytes.
const LONG: u8 = 127;

/// A mask that changes nothing, so that a call can be renumbered in its frame. A server unmasks all the same.
const MASK: [u8; 4] = [0; 4];

pub(super) fn template(request: &Template) -> Template {
    // No request is as short as 125 bytes.
    let length = match u16::try_from(request.len()) {
        Ok(length) => [&[MASKED | MEDIUM], length.to_be_bytes().as_slice()].concat(),
        Err(_) => [&[MASKED | LONG], (request.len() as u64).to_be_bytes().as_slice()].concat(),
    };
    request.wrapped(&[&[TEXT], length.as_slice(), &MASK].concat(), b"")
}

/// Asks for a WebSocket, and reads the answer byte by byte, so as to take nothing of what comes after it.
pub(super) fn open(stream: &mut TcpStream, address: SocketAddr) -> Result<()> {
    let request = format!(
        "GET /mcp HTTP/1.1\r\n\
         Host: {address}\r\n\
         Connection: Upgrade\r\n\
         Upgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: mcp\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101 "), "no WebSocket: {}", String::from_utf8_lossy(&head));
    Ok(())
}

/// The first text frame; nobody here is pinged, or sent frames in pieces.
pub(super) fn reply(received: &[u8]) -> Result<Option<Reply<'_>>> {
    let &[kind, short, ref rest @ ..] = received else { return Ok(None) };
    ensure!(kind == TEXT, "a frame that is no text: {received:02x?}");
    ensure!(short <= LONG, "a frame that is masked");
    let (length, rest) = match short {
        MEDIUM => match rest.split_at_checked(2) {
            Some((length, rest)) => (number(length), rest),
            None => return Ok(None),
        },
        LONG => match rest.split_at_checked(8) {
            Some((length, rest)) => (number(length), rest),
            None => return Ok(None),
        },
        _ => (usize::from(short), rest),
    };
    let head = received.len() - rest.len();
    Ok(rest.get(..length).map(|message| Reply::alone(message, head + length)))
}

/// A number in network order.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::call::{Era, FIRST, Work};

    #[test]
    fn a_call_is_one_masked_frame_of_its_length() {
        for (work, head, form) in [(Work::Add, 4, MEDIUM), (Work::Echo, 10, LONG)] {
            let mut frame = template(&Template::new(work, Era::Modern));
            let frame = frame.numbered(FIRST);
            assert_eq!(frame[..2], [TEXT, MASKED | form]);
            assert_eq!(number(&frame[2..head]), frame.len() - head - MASK.len());
            assert_eq!((frame[head + MASK.len()], frame[frame.len() - 1]), (b'{', b'}'));
        }
    }

    #[test]
    fn frames_of_all_lengths_are_taken_when_they_are_whole() {
        let medium = [&[TEXT, MEDIUM, 0, 200], [b'x'; 200].as_slice()].concat();
        let long = [&[TEXT, LONG, 0, 0, 0, 0, 0, 1, 0, 0], [b'x'; 1 << 16].as_slice()].concat();
        for (frame, head) in [(b"\x81\x02{}".as_slice(), 2), (&medium, 4), (&long, 10)] {
            for end in (0..frame.len()).step_by(frame.len().div_ceil(300)) {
                assert_eq!(reply(&frame[..end]).unwrap(), None, "cut off at {end}");
            }
            assert_eq!(reply(frame).unwrap().unwrap(), Reply::alone(&frame[head..], frame.len()));
        }
    }

    #[test]
    fn a_close_frame_is_an_error() {
        assert!(reply(&[0x88, 0]).is_err());
    }
}
