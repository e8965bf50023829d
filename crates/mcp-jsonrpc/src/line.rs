use bytes::{Buf, Bytes, BytesMut};

use crate::scan::is_blank;

/// Cuts a byte stream into lines, with a cap on each.
///
/// Fill [`buffer`](Self::buffer), then take frames with [`next_frame`](Self::next_frame) until there is none; at the end of
/// the stream, [`finish`](Self::finish) hands out a last line that no newline ended. Lines end at LF or CR LF; blank
/// ones are skipped, also behind a byte order mark. Bytes are cut before anything is decoded, so that a character may lie
/// across two reads.
///
/// Memory is bounded by the cap and one read: an over-long line is reported once and its bytes are dropped as they
/// come, up to its newline.
///
/// Specification: *stdio*.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    scanned: usize,
    max: usize,
    skipping: bool,
}

/// What [`LineDecoder`] found. `Debug` says how long it is, and not what is in it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame {
    /// A line that is not blank, without its end.
    Line(Bytes),
    /// A line longer than the cap was here; this is how it begins, up to 1 KiB.
    TooLong(Bytes),
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(line) => write!(f, "Line({} bytes)", line.len()),
            Self::TooLong(beginning) => write!(f, "TooLong({} bytes)", beginning.len()),
        }
    }
}

/// A line that is longer shares its memory with no other.
const ALONE: usize = 16 << 10;

impl LineDecoder {
    /// A decoder for lines of at most `max` bytes, the line's end not counted.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, max, skipping: false }
    }

    /// Where the bytes that were read go.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next complete line.
    pub fn next_frame(&mut self) -> Option<Frame> {
        while let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
            let mut line = self.buffer.split_to(self.scanned + offset);
            self.buffer.advance(1);
            self.scanned = 0;
            if line.len() > ALONE {
                // What comes next must not keep the memory of this one for as long as it is kept itself.
                self.buffer = BytesMut::from(&*self.buffer);
            }
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if let Some(frame) = self.judge(line) {
                return Some(frame);
            }
        }
        self.hold_the_cap()
    }

    /// The last line, where the stream ended without a newline.
    pub fn finish(&mut self) -> Option<Frame> {
        let line = self.buffer.split();
        self.scanned = 0;
        if std::mem::take(&mut self.skipping) { None } else { self.judge(line) }
    }

    fn judge(&self, line: BytesMut) -> Option<Frame> {
        if line.len() > self.max {
            Some(Frame::TooLong(start_of(&line)))
        } else if line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).iter().all(|byte| is_blank(*byte)) {
            None
        } else {
            Some(Frame::Line(line.freeze()))
        }
    }

    /// Nothing complete is left: remember what was scanned, and drop what is already too long.
    fn hold_the_cap(&mut self) -> Option<Frame> {
        self.scanned = self.buffer.len();
        // One byte more may be the CR of a line that just fits.
        if self.skipping || self.buffer.len() > self.max + 1 {
            let news = (!self.skipping).then(|| Frame::TooLong(start_of(&self.buffer)));
            if news.is_some() {
                // However long it goes on, and the connection after it, the memory of its start is not kept.
                self.buffer = BytesMut::new();
            }
            self.skipping = true;
            self.buffer.clear();
            self.scanned = 0;
            return news;
        }
        None
    }
}

/// Copied, so that what is dropped frees its memory.
fn start_of(line: &[u8]) -> Bytes {
    const START: usize = 1 << 10;
    Bytes::copy_from_slice(&line[..line.len().min(START)])
}

/// Any bytes, cut anywhere, give the same frames, and none over the cap.
#[cfg(any(fuzzing, test))]
pub fn fuzz(data: &[u8]) {
    const MAX: usize = 16;
    let (seed, stream) = data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let frames = |chunk: usize| {
        let (mut decoder, mut frames) = (LineDecoder::new(MAX), Vec::new());
        for part in stream.chunks(chunk) {
            decoder.buffer().extend_from_slice(part);
            while let Some(frame) = decoder.next_frame() {
                frames.push(frame);
            }
            assert!(decoder.buffer().len() <= MAX + 1, "memory is bounded");
        }
        frames.extend(decoder.finish());
        frames
    };
    // How much of an over-long line was there when it was noticed depends on the reads, and on nothing else does.
    let lines = |frames: &[Frame]| -> Vec<Option<Bytes>> {
        let line = |frame: &Frame| if let Frame::Line(line) = frame { Some(line.clone()) } else { None };
        frames.iter().map(line).collect()
    };
    let whole = frames(stream.len().max(1));
    assert_eq!(lines(&frames(seed % 7 + 1)), lines(&whole), "where the stream is cut makes no difference");
    for frame in whole {
        assert!(!matches!(frame, Frame::Line(line) if line.len() > MAX || line.contains(&b'\n')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(max: usize, chunks: &[&[u8]]) -> Vec<Frame> {
        let (mut decoder, mut frames) = (LineDecoder::new(max), Vec::new());
        for chunk in chunks {
            decoder.buffer().extend_from_slice(chunk);
            frames.extend(std::iter::from_fn(|| decoder.next_frame()));
        }
        frames.extend(decoder.finish());
        frames
    }

    fn line(text: &str) -> Frame {
        Frame::Line(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn too_long(start: &str) -> Frame {
        Frame::TooLong(Bytes::copy_from_slice(start.as_bytes()))
    }

    #[test]
    fn the_start_of_what_is_too_long_is_bounded() {
        let frames = frames(2000, &[&[b'a'; 5000]]);
        assert_eq!(frames, [too_long(&"a".repeat(1024))]);
    }

    #[test]
    fn line_ends_blank_lines_and_a_last_line_without_newline() {
        let stream = b"a\r\n\n \t\r\nb\nc\rd\n\x0c\ne";
        assert_eq!(frames(8, &[stream]), [line("a"), line("b"), line("c\rd"), line("\x0c"), line("e")]);
    }

    #[test]
    fn a_character_may_lie_across_reads() {
        let text = "\u{20ac}\u{1f600}";
        let bytes: Vec<[u8; 1]> = text.bytes().chain(*b"\n").map(|byte| [byte]).collect();
        let chunks: Vec<&[u8]> = bytes.iter().map(<[u8; 1]>::as_slice).collect();
        assert_eq!(frames(16, &chunks), [line(text)]);
    }

    #[test]
    fn the_cap_at_its_edge() {
        assert_eq!(frames(4, &[b"1234\r\n12345\n1234"]), [line("1234"), too_long("12345"), line("1234")]);
        assert_eq!(frames(4, &[b"1234", b"\r", b"\n"]), [line("1234")]);
        assert_eq!(frames(4, &[b"1234", b"5"]), [too_long("12345")]);
    }

    #[test]
    fn what_is_too_long_leaves_no_memory_behind() {
        let mut decoder = LineDecoder::new(1 << 20);
        decoder.buffer().extend_from_slice(&vec![b'a'; (1 << 20) + 2]);
        assert!(matches!(decoder.next_frame(), Some(Frame::TooLong(_))));
        assert_eq!(decoder.buffer().capacity(), 0);
    }

    #[test]
    fn an_over_long_line_is_reported_once_and_what_surrounds_it_is_kept() {
        let mut chunks: Vec<&[u8]> = vec![b"ok\nstart"];
        chunks.extend(std::iter::repeat_n(b"aaaaaaaa".as_slice(), 100));
        chunks.push(b"end\nnext\n");
        assert_eq!(frames(8, &chunks), [line("ok"), too_long("startaaaaaaaa"), line("next")]);
    }

    #[test]
    fn fuzz_seeds() {
        for seed in 0..=255u8 {
            fuzz(&[&[seed], b"a\n\nbbbbbbbbbbbbbbbbbbbbbb\r\ncccccccccccccccc\r\nd".as_slice()].concat());
        }
    }
}
