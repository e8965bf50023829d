//! WebSocket: a text frame a call, one a reply.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Reply;
use crate::load::call::Template;

/// A whole frame of text.
const TEXT: u8 = 0x81;

/// From a client: the length follows in two bytes, and is followed by a mask.
const MASKED_MEDIUM: u8 = 0x80 | 126;

/// A mask that changes nothing, so that a call can be renumbered in its frame. A server unmasks all the same.
const MASK: [u8; 4] = [0; 4];

pub(super) fn template(call: &Template) -> Template {
    // Calls are longer than 125 bytes, and shorter than 2^16.
    let length = u16::try_from(call.len()).unwrap_or(u16::MAX);
    call.wrapped(&[&[TEXT, MASKED_MEDIUM], length.to_be_bytes().as_slice(), &MASK].concat(), b"")
}

/// Asks for a WebSocket, and reads the answer byte by byte, so as to take nothing of what comes after it.
pub(super) async fn open(stream: &mut TcpStream, address: SocketAddr) -> Result<()> {
    let request = format!(
        "GET /mcp HTTP/1.1\r\n\
         Host: {address}\r\n\
         Connection: Upgrade\r\n\
         Upgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: mcp\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101 "), "no WebSocket: {}", String::from_utf8_lossy(&head));
    Ok(())
}

/// The first text frame; nobody here is pinged, or sent frames in pieces.
pub(super) fn reply(received: &[u8]) -> Result<Option<Reply<'_>>> {
    let &[kind, short, ref rest @ ..] = received else { return Ok(None) };
    ensure!(kind == TEXT, "a frame that is no text: {received:02x?}");
    let (length, rest) = match (short, rest) {
        (126, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        (126, _) => return Ok(None),
        _ => (usize::from(short), rest),
    };
    ensure!(short <= 126, "a frame that is longer than any answer, or masked");
    let head = received.len() - rest.len();
    Ok(rest.get(..length).map(|message| Reply { message: message.into(), length: head + length }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::call::{Era, FIRST};

    #[test]
    fn a_call_is_one_masked_frame_of_its_length() {
        let mut frame = template(&Template::new(Era::Modern));
        let frame = frame.numbered(FIRST);
        assert_eq!(frame[..2], [TEXT, MASKED_MEDIUM]);
        assert_eq!(usize::from(u16::from_be_bytes([frame[2], frame[3]])), frame.len() - 8);
        assert_eq!((frame[8], frame[frame.len() - 1]), (b'{', b'}'));
    }

    #[test]
    fn frames_of_both_lengths_are_taken_when_they_are_whole() {
        let long = [&[TEXT, 126, 0, 200], [b'x'; 200].as_slice()].concat();
        for (frame, head) in [(b"\x81\x02{}".as_slice(), 2), (&long, 4)] {
            for end in 0..frame.len() {
                assert_eq!(reply(&frame[..end]).unwrap(), None, "cut off at {end}");
            }
            let reply = reply(frame).unwrap().unwrap();
            assert_eq!((reply.message.as_ref(), reply.length), (&frame[head..], frame.len()));
        }
    }

    #[test]
    fn a_close_frame_is_an_error() {
        assert!(reply(&[0x88, 0]).is_err());
    }
}
