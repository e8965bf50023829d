//! For the fuzzer: the stream of a call that loses its connection anywhere, and is gone back to.

use std::time::Duration;

use super::{
    cursor::{Cursor, SHORTEST, SPREAD},
    resume::ATTEMPTS,
};
use crate::{
    client::sse::EventDecoder,
    defaults::{MAX_EVENT_ID, MAX_RETRY},
};

/// The input as a row of choices; behind its end each is 0.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }
}

/// Where a server that has a place for every event is gone back to as its ids say, each message is heard once and in order,
/// wherever connections end; and whatever a stream is, waits are bounded.
pub(crate) fn fuzz(data: &[u8]) {
    let mut choices = Choices(data);
    let (mut events, mut expected) = (Vec::new(), Vec::new());
    for number in 0..choices.below(16) {
        let (text, message) = event(number, &mut choices);
        events.push(text);
        expected.extend(message);
    }
    follow(&events, &expected, &mut choices);
    let mut cursor = Cursor::default();
    drop(hear(choices.0, 7, 64, &mut cursor));
    assert!(cursor.last().is_none_or(|last| last.len() <= MAX_EVENT_ID));
    assert_bounded(cursor.wait(1.0));
}

/// An event as it may be written, and its message, if it is one.
fn event(number: usize, choices: &mut Choices<'_>) -> (String, Option<String>) {
    let end = ["\n", "\r", "\r\n"][choices.below(3)];
    let data = format!("{{\"n\":{number}}}");
    let (fields, message) = match choices.below(8) {
        0 => (vec![format!("id: {number}")], None),
        1 => (vec!["event: ping".to_owned(), format!("data: {data}"), format!("id:{number}")], None),
        2 => (vec![format!("id: {number}"), "retry: 3".to_owned(), format!("data:{data}")], Some(data)),
        3 => (vec!["data: [".to_owned(), format!("id: {number}"), "data: ]".to_owned()], Some("[\n]".to_owned())),
        4 => (vec![format!("data: {data}"), ": keep".to_owned(), format!("id:{number}")], Some(data)),
        5 => (vec!["id: x".to_owned(), format!("id: {number}"), format!("data: {data}")], Some(data)),
        _ => (vec![format!("id: {number}"), "event: message".to_owned(), format!("data: {data}")], Some(data)),
    };
    (fields.iter().chain([&String::new()]).map(|field| format!("{field}{end}")).collect(), message)
}

/// Goes back until all was heard, or for as often as is allowed.
fn follow(events: &[String], expected: &[String], choices: &mut Choices<'_>) {
    let (mut cursor, mut heard) = (Cursor::default(), Vec::new());
    let mut from = 0;
    loop {
        let sent = events[from..].concat();
        let end = match choices.below(4) {
            0 => sent.len(),
            _ => (usize::from(choices.byte()) << 8 | usize::from(choices.byte())) % (sent.len() + 1),
        };
        heard.extend(hear(&sent.as_bytes()[..end], 1 + choices.below(9), 1 << 10, &mut cursor));
        assert!(expected.starts_with(&heard), "{heard:?} of {events:?}");
        if end == sent.len() {
            return assert_eq!(heard, expected, "of {events:?}");
        }
        let Some(last) = cursor.last() else { return };
        // What follows the last id that the client knows.
        let last = last.to_str().ok().and_then(|last| last.parse::<usize>().ok());
        from = last.unwrap_or_else(|| panic!("no id of {events:?}")) + 1;
        if cursor.barren() == ATTEMPTS {
            return;
        }
        assert_bounded(cursor.wait(f64::from(choices.byte()) / 255.0));
    }
}

/// One connection: the messages that come whole.
fn hear(sent: &[u8], chunk: usize, most: usize, cursor: &mut Cursor) -> Vec<String> {
    let (mut decoder, mut heard) = (EventDecoder::new(most), Vec::new());
    'connection: for part in sent.chunks(chunk) {
        decoder.feed(part);
        while let Some(event) = decoder.next_event() {
            let Ok(event) = event else { break 'connection };
            cursor.heard(&event);
            if event.is_message() {
                heard.push(String::from_utf8_lossy(&event.data).into_owned());
            }
        }
    }
    cursor.ended(decoder.retry());
    heard
}

fn assert_bounded(wait: Duration) {
    assert!((SHORTEST..=MAX_RETRY + SPREAD).contains(&wait), "{wait:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_fuzzer_does_holds_for_streams_that_are_cut_at_every_byte() {
        for kinds in [[0, 1, 2, 3], [4, 5, 6, 2]] {
            for end in 0..3 {
                for cut in 0..=255 {
                    let script = kinds.map(|kind| [end, kind]).concat();
                    fuzz(&[&[4], script.as_slice(), &[1, 0, cut, 0, 128, 1, 0, 7, 3, 9]].concat());
                }
            }
        }
        fuzz(b"");
        fuzz(b"\0id: 1\nretry: 9999999999999\ndata: x\n\n");
    }
}
