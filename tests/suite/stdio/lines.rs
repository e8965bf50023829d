//! Lines share the memory that they were read into.

use bytes::BufMut as _;
use mcp_jsonrpc::{Bytes, Frame, LineDecoder};

fn line(decoder: &mut LineDecoder) -> Bytes {
    match decoder.next_frame() {
        Some(Frame::Line(line)) => line,
        other => panic!("{other:?}"),
    }
}

/// A request that waits keeps what it was read into, which must not be a large message that came before it.
#[test]
fn a_short_line_does_not_keep_the_memory_of_a_long_one() {
    const LONG: usize = 4 << 20;
    let mut decoder = LineDecoder::new(LONG);
    for _ in 0..3 {
        decoder.buffer().put_bytes(b'x', LONG);
        decoder.buffer().put_slice(b"\nshort\nnext");
        assert_eq!(line(&mut decoder).len(), LONG);
        let short = line(&mut decoder);
        assert_eq!(short, "short");
        decoder.buffer().put_slice(b"\n");
        assert_eq!(line(&mut decoder), "next");
        // Alone with its memory, it tells how much that is.
        let kept = short.try_into_mut().map(|mut short| short.try_reclaim(1 << 20));
        assert_eq!(kept, Ok(false));
    }
}
