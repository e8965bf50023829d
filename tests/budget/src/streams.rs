//! Wires over byte streams, from bytes that are written to bytes that are read. The other side is as little as can be.

use bytes::{Bytes, BytesMut};
use mcp_ws::Socket;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};

use crate::{
    messages::{self, expect_sum},
    servers,
    stand::Stand,
};

/// Bytes that wait in a pair.
const CAPACITY: usize = 1 << 16;

/// How many calls are in flight together.
const DEPTH: u64 = 64;

pub(crate) fn lines(stand: &mut Stand<'_>) {
    let (mut near, far) = duplex(CAPACITY);
    stand.prepare(async {
        let (reader, writer) = split(far);
        tokio::spawn(mcp_stdio::serve_lines(servers::small(), reader, writer));
    });
    let lines: Vec<u8> =
        (0..DEPTH).flat_map(|index| [&messages::numbered_call(10 + index)[..], b"\n"].concat()).collect();
    let check = |answers: BytesMut| answers.trim_ascii_end().split(|byte| *byte == b'\n').for_each(expect_sum);
    stand.measure_many(DEPTH, || (), async |()| answered(&mut near, &lines).await, check);
}

/// The answers to all of `lines`.
async fn answered(stream: &mut DuplexStream, lines: &[u8]) -> BytesMut {
    stream.write_all(lines).await.unwrap();
    let mut answers = BytesMut::with_capacity(CAPACITY);
    let mut missing = DEPTH;
    while missing > 0 {
        let known = answers.len();
        assert!(stream.read_buf(&mut answers).await.unwrap() > 0);
        missing -= memchr::memchr_iter(b'\n', &answers[known..]).count() as u64;
    }
    answers
}

pub(crate) fn websocket(stand: &mut Stand<'_>) {
    let (mut near, far) = duplex(CAPACITY);
    stand.prepare(async {
        let server = servers::small();
        let socket = Socket::server(far, server.limits()).await;
        tokio::spawn(mcp_core::server::serve(server, socket));
    });
    let frame = text_frame(&messages::modern_call());
    stand.measure(|| frame.clone(), async |frame| echoed(&mut near, &frame).await, expect_sum);
}

/// A text frame as clients send it: masked, and with a length of two bytes.
fn text_frame(message: &[u8]) -> Bytes {
    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let length = u16::try_from(message.len()).unwrap();
    let masked = message.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
    [0x81, 0x80 | 126].into_iter().chain(length.to_be_bytes()).chain(MASK).chain(masked).collect()
}

/// The text of the frame that answers `frame`.
async fn echoed(stream: &mut DuplexStream, frame: &[u8]) -> Bytes {
    stream.write_all(frame).await.unwrap();
    let mut answer = BytesMut::with_capacity(1 << 10);
    while !is_whole(&answer) {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0);
    }
    answer.freeze()
}

fn is_whole(frame: &[u8]) -> bool {
    match *frame {
        [0x81, 126, high, low, ref text @ ..] => text.len() == usize::from(u16::from_be_bytes([high, low])),
        [0x81, length @ ..126, ref text @ ..] => text.len() == usize::from(length),
        _ => false,
    }
}
