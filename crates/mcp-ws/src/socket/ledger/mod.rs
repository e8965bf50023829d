//! What resuming has to remember: which of our messages the peer has not taken yet, and how many of its messages we have.
//!
//! Messages are numbered by counting, so that no message carries a number. Pure: no socket, no clock.

use std::collections::VecDeque;

use mcp_core::Limits;
use serde::{Deserialize, Serialize};
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// How a text begins that is not a message but about them.
const MARK: &[u8] = br#"{"resume":"#;
/// The longest text of that kind.
pub(crate) const MOST: usize = 1 << 10;

/// What both sides say first on each socket.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Which connection it is; a client that has none yet says `null`.
    pub(crate) token: Option<String>,
    /// How many messages were received on the connection, over all its sockets.
    pub(crate) received: u64,
    #[serde(flatten)]
    pub(crate) window: Window,
}

/// The token is a secret.
impl std::fmt::Debug for Hello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hello").field("received", &self.received).field("window", &self.window).finish_non_exhaustive()
    }
}

/// How much may be on its way: a further message is sent while fewer than so many, and fewer than so many bytes, are not
/// taken yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Marked<T> {
    resume: T,
}

#[derive(Serialize, Deserialize)]
struct Taken {
    taken: u64,
}

/// The peer said what cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) &'static str);

impl Window {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { messages: limits.queue_messages as u64, bytes: limits.queue_bytes as u64 }
    }

    /// What both sides can keep. At least one message, or nothing could ever move.
    fn and(self, other: Self) -> Self {
        Self { messages: self.messages.min(other.messages).max(1), bytes: self.bytes.min(other.bytes).max(1) }
    }
}

impl Hello {
    pub(crate) fn to_text(&self) -> Utf8Bytes {
        text(self)
    }

    pub(crate) fn parse(text: &[u8]) -> Result<Self, Broken> {
        parse(text)
    }
}

fn text(said: &impl Serialize) -> Utf8Bytes {
    // Numbers and strings always serialize.
    serde_json::to_string(&Marked { resume: said }).unwrap_or_default().into()
}

fn parse<T: for<'a> Deserialize<'a>>(text: &[u8]) -> Result<T, Broken> {
    let marked = (text.len() <= MOST && text.starts_with(MARK)).then(|| serde_json::from_slice::<Marked<T>>(text));
    marked.and_then(Result::ok).map(|marked| marked.resume).ok_or(Broken("a text about resuming was not understood"))
}

/// What a text is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Message,
    /// It was about messages, and is dealt with.
    Taken,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    own: Window,
    window: Window,
    /// Our messages that the peer has not taken yet, as far as it said.
    kept: VecDeque<Utf8Bytes>,
    kept_bytes: u64,
    /// How many of ours it has taken: the number of the first that is kept.
    acknowledged: u64,
    /// Which of the kept ones is the next for the socket of the moment.
    next: usize,
    received: u64,
    /// How many of the peer's messages our side has taken, and said that it has.
    taken: u64,
    told: u64,
    taken_bytes: u64,
    untaken_bytes: u64,
}

impl Ledger {
    pub(crate) fn new(own: Window, theirs: Window) -> Self {
        Self {
            own,
            window: own.and(theirs),
            kept: VecDeque::new(),
            kept_bytes: 0,
            acknowledged: 0,
            next: 0,
            received: 0,
            taken: 0,
            told: 0,
            taken_bytes: 0,
            untaken_bytes: 0,
        }
    }

    pub(crate) fn hello(&self, token: &str) -> Hello {
        Hello { token: Some(token.to_owned()), received: self.received, window: self.own }
    }

    /// The peer is on a new socket: what it has not received goes there.
    pub(crate) fn resume(&mut self, hello: &Hello) -> Result<(), Broken> {
        let received = hello.received.checked_sub(self.acknowledged).and_then(|next| usize::try_from(next).ok());
        self.next =
            received.filter(|next| *next <= self.kept.len()).ok_or(Broken("it received what was never sent"))?;
        self.window = self.own.and(hello.window);
        // What was told may have been lost with the socket.
        self.told = self.told.min(self.taken.saturating_sub(1));
        Ok(())
    }

    pub(crate) fn has_room(&self) -> bool {
        (self.kept.len() as u64) < self.window.messages && self.kept_bytes < self.window.bytes
    }

    pub(crate) fn keep(&mut self, message: Utf8Bytes) {
        self.kept_bytes += message.len() as u64;
        self.kept.push_back(message);
    }

    /// What the socket of the moment has not got yet.
    pub(crate) fn next(&self) -> Option<&Utf8Bytes> {
        self.kept.get(self.next)
    }

    pub(crate) fn sent(&mut self) {
        self.next += 1;
    }

    /// A text was read.
    pub(crate) fn read(&mut self, text: &[u8]) -> Result<Read, Broken> {
        if text.starts_with(MARK) {
            return self.on_taken(parse::<Taken>(text)?.taken).map(|()| Read::Taken);
        }
        self.received += 1;
        self.untaken_bytes += text.len() as u64;
        Ok(Read::Message)
    }

    /// Whether the peer has sent more than there was room for, on all its sockets: each may bring a window, since what was
    /// taken may be told late. `most` is the longest message.
    pub(crate) fn is_overrun(&self, most: usize) -> bool {
        self.received - self.taken > self.window.messages
            || self.untaken_bytes > self.window.bytes.saturating_add(most as u64)
    }

    fn on_taken(&mut self, taken: u64) -> Result<(), Broken> {
        let (was, most) = (self.acknowledged, self.acknowledged + self.next as u64);
        if taken < was || taken > most {
            return Err(Broken("it has taken what was never sent"));
        }
        for message in self.kept.drain(..(taken - was) as usize) {
            self.kept_bytes -= message.len() as u64;
        }
        self.next -= (taken - was) as usize;
        self.acknowledged = taken;
        Ok(())
    }

    /// Our side has taken a message.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.taken += 1;
        self.taken_bytes += bytes as u64;
        self.untaken_bytes -= bytes as u64;
    }

    /// What to tell of it: at once where it is much, and else at a beat.
    pub(crate) fn tell(&mut self, is_beat: bool) -> Option<Utf8Bytes> {
        let news = self.taken - self.told;
        let is_much = news >= (self.window.messages / 4).max(1) || self.taken_bytes >= self.window.bytes / 4;
        if news == 0 || !(is_much || is_beat) {
            return None;
        }
        (self.told, self.taken_bytes) = (self.taken, 0);
        Some(text(&Taken { taken: self.taken }))
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { messages: 8, bytes: 100 };

    fn ledger() -> Ledger {
        Ledger::new(WINDOW, WINDOW)
    }

    fn sending(count: usize) -> Ledger {
        let mut ledger = ledger();
        for number in 0..count {
            ledger.keep(number.to_string().into());
            ledger.sent();
        }
        ledger
    }

    fn hello(received: u64) -> Hello {
        Hello { token: None, received, window: WINDOW }
    }

    fn rest(ledger: &mut Ledger) -> Vec<String> {
        std::iter::from_fn(|| {
            let next = ledger.next()?.to_string();
            ledger.sent();
            Some(next)
        })
        .collect()
    }

    #[test]
    fn what_was_not_received_is_sent_again_in_order() {
        let mut ledger = sending(4);
        ledger.resume(&hello(2)).unwrap();
        assert_eq!(rest(&mut ledger), ["2", "3"]);
        // What was taken is never sent again, and what was received is not until it is asked for.
        assert_eq!(ledger.read(br#"{"resume":{"taken":3}}"#), Ok(Read::Taken));
        ledger.resume(&hello(3)).unwrap();
        assert_eq!(rest(&mut ledger), ["3"]);
        ledger.resume(&hello(4)).unwrap();
        assert_eq!(rest(&mut ledger), [""; 0]);
    }

    #[test]
    fn nobody_has_received_or_taken_what_was_never_sent_or_gives_back_what_it_took() {
        let mut ledger = sending(4);
        ledger.keep("4".into());
        assert!(ledger.resume(&hello(6)).is_err());
        assert!(ledger.read(br#"{"resume":{"taken":5}}"#).is_err(), "the fifth has not left");
        ledger.read(br#"{"resume":{"taken":3}}"#).unwrap();
        assert!(ledger.resume(&hello(2)).is_err());
        assert!(ledger.read(br#"{"resume":{"taken":2}}"#).is_err());
        assert!(ledger.resume(&hello(u64::MAX)).is_err());
    }

    #[test]
    fn what_is_kept_is_bounded_by_number_and_bytes_of_whoever_keeps_less() {
        let mut ledger = Ledger::new(WINDOW, Window { messages: 2, bytes: u64::MAX });
        ledger.keep("x".into());
        assert!(ledger.has_room());
        ledger.keep("x".into());
        assert!(!ledger.has_room());
        let mut ledger = self::ledger();
        ledger.keep("x".repeat(100).into());
        assert!(!ledger.has_room());
        let nothing = Window { messages: 0, bytes: 0 };
        assert!(Ledger::new(nothing, nothing).has_room(), "one message always goes");
    }

    #[test]
    fn what_was_taken_is_told_at_a_quarter_of_the_window_and_at_each_beat() {
        let mut ledger = ledger();
        let take = |ledger: &mut Ledger, text: &str| {
            assert_eq!(ledger.read(text.as_bytes()), Ok(Read::Message));
            ledger.took(text.len());
        };
        assert_eq!(ledger.tell(true), None);
        take(&mut ledger, "x");
        assert_eq!(ledger.tell(false), None);
        assert_eq!(ledger.tell(true).as_deref(), Some(r#"{"resume":{"taken":1}}"#));
        take(&mut ledger, "x");
        take(&mut ledger, "x");
        assert_eq!(ledger.tell(false).as_deref(), Some(r#"{"resume":{"taken":3}}"#));
        take(&mut ledger, &"x".repeat(25));
        assert_eq!(ledger.tell(false).as_deref(), Some(r#"{"resume":{"taken":4}}"#));
        // It may have been lost on the way.
        ledger.resume(&hello(0)).unwrap();
        assert_eq!(ledger.tell(true).as_deref(), Some(r#"{"resume":{"taken":4}}"#));
    }

    #[test]
    fn more_than_there_is_room_for_is_too_much() {
        let mut ledger = ledger();
        for _ in 0..8 {
            ledger.read(b"x").unwrap();
        }
        assert!(!ledger.is_overrun(10));
        ledger.read(b"x").unwrap();
        assert!(ledger.is_overrun(10));
        let mut ledger = self::ledger();
        ledger.read(&[b'x'; 110]).unwrap();
        assert!(!ledger.is_overrun(10));
        ledger.read(b"x").unwrap();
        assert!(ledger.is_overrun(10));
    }

    #[test]
    fn what_is_no_hello_is_told_from_one() {
        let good = Hello { token: Some("t".into()), received: 3, window: WINDOW };
        let text = good.to_text();
        assert_eq!(&*text, r#"{"resume":{"token":"t","received":3,"messages":8,"bytes":100}}"#);
        assert_eq!(Hello::parse(text.as_bytes()), Ok(good));
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"resume":{}}"#,
            r#"{"resume":{"token":1,"received":0,"messages":1,"bytes":1}}"#,
            r#"{"resume":{"token":null,"received":-1,"messages":1,"bytes":1}}"#,
            r#" {"resume":{"token":null,"received":0,"messages":1,"bytes":1}}"#,
            r#"{"resume":{"taken":1}}"#,
            "",
        ] {
            assert!(Hello::parse(text.as_bytes()).is_err(), "{text}");
        }
        let long = Hello { token: Some("t".repeat(MOST)), received: 3, window: WINDOW };
        assert!(Hello::parse(long.to_text().as_bytes()).is_err());
    }
}
