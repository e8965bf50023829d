use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::defaults::{MAX_EVENT_ID, MAX_RETRY};

/// Reads server-sent events out of a byte stream, with a cap on each.
///
/// Lines end at LF, CR LF or CR, mixed as they like and cut across chunks as they like. Comments keep nothing, and so do
/// fields that the standard does not name.
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
    id: Option<Bytes>,
    retry: Option<Duration>,
    at_start: bool,
    /// The last line ended at a CR, whose LF may still come.
    after_cr: bool,
}

/// An event that has data, or an id, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The type; empty where none is named.
    pub(crate) kind: Bytes,
    /// The data; empty where the event is there for its id alone, as the first of a resumable stream is.
    pub(crate) data: Bytes,
    /// The id that this event names; an empty one takes back those before.
    pub(crate) id: Option<Bytes>,
}

impl Event {
    /// Whether its data is a message. What is of another type, nobody listens for.
    pub(crate) fn is_message(&self) -> bool {
        !self.data.is_empty() && matches!(&*self.kind, b"" | b"message")
    }
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
            id: None,
            retry: None,
            at_start: true,
            after_cr: false,
        }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// How long the stream last said to wait before coming back.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The next event. What the stream ends with, unfinished, is none.
    pub(crate) fn next_event(&mut self) -> Option<Result<Event, TooLong>> {
        while let Some(line) = self.line() {
            if !line.is_empty() {
                self.field(&line);
            } else if let Some(event) = self.dispatch() {
                return Some(Ok(event));
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
            b"id" if value.len() <= MAX_EVENT_ID && !value.contains(&0) => {
                self.id = Some(Bytes::copy_from_slice(value))
            }
            b"retry" => self.retry = retry(value).or(self.retry),
            _ => {}
        }
    }

    /// The end of an event. One that has neither data nor an id says nothing.
    fn dispatch(&mut self) -> Option<Event> {
        let (kind, id, mut data) = (std::mem::take(&mut self.kind), self.id.take(), self.data.split());
        data.truncate(data.len().saturating_sub(1));
        (!data.is_empty() || id.is_some()).then(|| Event { kind, data: data.freeze(), id })
    }
}

/// Milliseconds in digits alone; more than can be counted is the most there is.
fn retry(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let milliseconds = std::str::from_utf8(value).ok()?.parse().unwrap_or(u64::MAX);
    Some(Duration::from_millis(milliseconds).min(MAX_RETRY))
}

/// However a stream is cut, its events are the same, and none is over the cap.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    const MAX: usize = 16;
    let (seed, stream) = data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let events = |chunk: usize| {
        let (mut decoder, mut events) = (EventDecoder::new(MAX), Vec::new());
        for part in stream.chunks(chunk) {
            decoder.feed(part);
            while let Some(event) = decoder.next_event() {
                let Ok(event) = event else { return events };
                assert!(event.data.len() <= MAX);
                assert!(decoder.retry().is_none_or(|retry| retry <= MAX_RETRY));
                events.push(event);
            }
        }
        events
    };
    let (whole, cut) = (events(stream.len().max(1)), events(seed % 7 + 1));
    // A stream that breaks the cap ends sooner where it comes in smaller pieces.
    assert_eq!(whole[..cut.len()], cut[..]);
}

#[cfg(test)]
mod tests;
