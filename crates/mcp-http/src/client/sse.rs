use bytes::{Buf, Bytes, BytesMut};

/// Reads server-sent events out of a byte stream, with a cap on each.
///
/// Lines end at LF, CR LF or CR, mixed as they like and cut across chunks as they like. Of the fields only `event` and
/// `data` matter here; comments keep nothing.
///
/// Specification: *HTML Standard, Server-sent events*.
#[derive(Debug)]
pub(crate) struct EventDecoder {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    scanned: usize,
    max: usize,
    /// The data lines of the event so far, each with a line feed behind it.
    data: BytesMut,
    kind: Bytes,
    at_start: bool,
    /// The last line ended at a CR, whose LF may still come.
    after_cr: bool,
}

/// An event is longer than the cap.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {0} bytes")]
pub(crate) struct TooLong(usize);

/// What a line has beside its value: the field's name, a colon, a space, and a line end.
const FIELD: usize = 16;

impl EventDecoder {
    /// A decoder for events whose data is at most `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            max,
            data: BytesMut::new(),
            kind: Bytes::new(),
            at_start: true,
            after_cr: false,
        }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The data of the next event that is a message. What the stream ends with, unfinished, is none.
    pub(crate) fn next_message(&mut self) -> Option<Result<Bytes, TooLong>> {
        while let Some(line) = self.line() {
            if !line.is_empty() {
                self.field(&line);
            } else if let Some(message) = self.dispatch() {
                return Some(Ok(message));
            }
            if self.data.len() > self.max + 1 {
                return Some(Err(TooLong(self.max)));
            }
        }
        (self.buffer.len() > self.max + FIELD).then_some(Err(TooLong(self.max)))
    }

    fn line(&mut self) -> Option<BytesMut> {
        self.skip_start()?;
        if std::mem::take(&mut self.after_cr) {
            match self.buffer.first() {
                Some(b'\n') => self.buffer.advance(1),
                Some(_) => {}
                None => self.after_cr = true,
            }
        }
        let Some(offset) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.scanned + offset);
        self.after_cr = self.buffer.first() == Some(&b'\r');
        self.buffer.advance(1);
        self.scanned = 0;
        Some(line)
    }

    /// A byte order mark is skipped at the start of the stream, and is text anywhere else. None while it may be cut.
    fn skip_start(&mut self) -> Option<()> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        if !self.at_start {
            return Some(());
        }
        let there = self.buffer.len().min(MARK.len());
        if self.buffer[..there] == MARK[..there] {
            if there < MARK.len() {
                return None;
            }
            self.buffer.advance(MARK.len());
        }
        self.at_start = false;
        Some(())
    }

    fn field(&mut self, line: &[u8]) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.extend_from_slice(b"\n");
            }
            b"event" => self.kind = Bytes::copy_from_slice(value),
            _ => {}
        }
    }

    /// The end of an event: one without data, as the first of a resumable stream, and one of another type say nothing.
    fn dispatch(&mut self) -> Option<Bytes> {
        let (kind, mut data) = (std::mem::take(&mut self.kind), self.data.split());
        data.truncate(data.len().saturating_sub(1));
        (!data.is_empty() && matches!(&*kind, b"" | b"message")).then(|| data.freeze())
    }
}

/// However a stream is cut, its messages are the same, and none is over the cap.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    const MAX: usize = 16;
    let (seed, stream) = data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let messages = |chunk: usize| {
        let (mut decoder, mut messages) = (EventDecoder::new(MAX), Vec::new());
        for part in stream.chunks(chunk) {
            decoder.feed(part);
            while let Some(message) = decoder.next_message() {
                let Ok(message) = message else { return messages };
                assert!(message.len() <= MAX);
                messages.push(message);
            }
        }
        messages
    };
    let (whole, cut) = (messages(stream.len().max(1)), messages(seed % 7 + 1));
    // A stream that breaks the cap ends sooner where it comes in smaller pieces.
    assert_eq!(whole[..cut.len()], cut[..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(chunks: &[&[u8]]) -> Vec<Result<String, TooLong>> {
        let (mut decoder, mut messages) = (EventDecoder::new(32), Vec::new());
        for chunk in chunks {
            decoder.feed(chunk);
            while let Some(message) = decoder.next_message() {
                let end = message.is_err();
                messages.push(message.map(|data| String::from_utf8(data.to_vec()).unwrap()));
                if end {
                    return messages;
                }
            }
        }
        messages
    }

    fn whole(stream: &str) -> Vec<Result<String, TooLong>> {
        messages(&[stream.as_bytes()])
    }

    #[test]
    fn lines_end_as_they_like_wherever_they_are_cut() {
        let stream = "\u{feff}event: message\r\ndata: {\"a\":\r\ndata: \"\u{4f60}\"}\r\n\r\n: note\rdata:x\n\r";
        let expected = vec![Ok("{\"a\":\n\"\u{4f60}\"}".to_owned()), Ok("x".to_owned())];
        for end in ["\r\n", "\n", "\r"] {
            let stream = stream.replace("\r\n", end);
            assert_eq!(whole(&stream), expected, "{end:?}");
            for cut in 1..stream.len() {
                let (left, right) = stream.as_bytes().split_at(cut);
                assert_eq!(messages(&[left, right]), expected, "{end:?} {cut}");
            }
        }
    }

    #[test]
    fn what_is_no_message() {
        for stream in
            ["id: 1\nretry: 5\ndata:\n\n", "event: ping\ndata: x\n\n", ": note\n\n", "data: unfinished\n", "data"]
        {
            assert_eq!(whole(stream), [], "{stream:?}");
        }
        assert_eq!(whole("event: ping\ndata: x\n\ndata: y\n\n"), [Ok("y".to_owned())]);
    }

    #[test]
    fn the_cap_at_its_edge() {
        let data = |len: usize| format!("data: {}\n\n", "x".repeat(len));
        assert_eq!(whole(&data(32)), [Ok("x".repeat(32))]);
        assert_eq!(whole(&data(33)), [Err(TooLong(32))]);
        assert_eq!(whole(&format!("data: {}\n{}", "x".repeat(16), data(16))), [Err(TooLong(32))]);
        assert_eq!(whole(&"x".repeat(100)), [Err(TooLong(32))]);
        assert_eq!(whole(&": keep-alive\n\n".repeat(100)), []);
    }

    #[test]
    fn fuzz_seeds() {
        for seed in 0..=255u8 {
            fuzz(
                &[&[seed], b"\xef\xbb\xbfdata:a\r\ndata: b\r\rdata:cccccccccccccccc\n\nevent:x\ndata:y\n\n".as_slice()]
                    .concat(),
            );
        }
    }
}
