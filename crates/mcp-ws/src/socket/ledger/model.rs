//! Two sides and the sockets between them, which are cut at any place: each side gets what the other has sent, once and in
//! order, and neither keeps more than the window.

use super::*;
use crate::model::{Random, rows};

#[derive(Debug)]
enum Step {
    /// A side has something to say, of that size.
    Say(usize, usize),
    /// It writes the next of what it keeps.
    Write(usize),
    /// It reads a text.
    Read(usize),
    /// What it read is taken.
    Take(usize),
    /// It tells of what it took.
    Tell(usize, bool),
    /// The socket is lost with all that is on it, and both are on another one.
    Cut,
}

impl Step {
    fn draw(random: &mut Random) -> Self {
        let side = random.one_of(&[0, 1]);
        match random.below(20) {
            0..=3 => Self::Say(side, random.below(30)),
            4..=8 => Self::Write(side),
            9..=13 => Self::Read(side),
            14..=16 => Self::Take(side),
            17..=18 => Self::Tell(side, random.below(2) == 0),
            _ => Self::Cut,
        }
    }
}

#[derive(Debug)]
struct Side {
    ledger: Ledger,
    window: Window,
    /// What is on its way to it.
    socket: VecDeque<Utf8Bytes>,
    /// All that it has ever said, and read.
    said: Vec<String>,
    read: Vec<String>,
    taken: usize,
}

impl Side {
    fn new(own: Window, theirs: Window) -> Self {
        let [said, read] = Default::default();
        Self { ledger: Ledger::new(own, theirs), window: own, socket: VecDeque::new(), said, read, taken: 0 }
    }

    /// Whatever is told of messages is no news of one.
    fn read(&mut self, most: usize) {
        let Some(text) = self.socket.pop_front() else { return };
        match self.ledger.read(text.as_bytes()).expect("an honest peer breaks nothing") {
            Read::Message => self.read.push(text.to_string()),
            Read::Taken => assert!(text.starts_with(r#"{"resume":"#)),
        }
        assert!(!self.ledger.is_overrun(most), "an honest peer keeps to the window");
    }

    fn take(&mut self) {
        if let Some(message) = self.read.get(self.taken) {
            self.ledger.took(message.len());
            self.taken += 1;
        }
    }

    fn hello(&self) -> Hello {
        self.ledger.hello("t")
    }
}

const LONGEST: usize = 40;

struct Connection([Side; 2]);

impl Connection {
    fn say(&mut self, side: usize, bytes: usize) {
        let side = &mut self.0[side];
        if side.ledger.has_room() {
            let message = format!("{}:{}", side.said.len(), "x".repeat(bytes));
            side.ledger.keep(message.as_str().into());
            side.said.push(message);
        }
    }

    fn write(&mut self, side: usize) {
        if let Some(next) = self.0[side].ledger.next().cloned() {
            self.0[side].ledger.sent();
            self.0[1 - side].socket.push_back(next);
        }
    }

    fn tell(&mut self, side: usize, is_beat: bool) {
        let told = self.0[side].ledger.tell(is_beat);
        self.0[1 - side].socket.extend(told);
    }

    fn cut(&mut self) {
        let hellos = [1, 0].map(|other: usize| self.0[other].hello());
        for (side, hello) in self.0.iter_mut().zip(hellos) {
            side.socket.clear();
            side.ledger.resume(&hello).expect("an honest peer has received what was sent");
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Say(side, bytes) => self.say(side, bytes),
            Step::Write(side) => self.write(side),
            Step::Read(side) => self.0[side].read(LONGEST),
            Step::Take(side) => self.0[side].take(),
            Step::Tell(side, is_beat) => self.tell(side, is_beat),
            Step::Cut => self.cut(),
        }
    }

    fn check(&self) {
        for (side, other) in [(0, 1), (1, 0)].map(|(side, other): (usize, usize)| (&self.0[side], &self.0[other])) {
            assert!(side.said.starts_with(&other.read), "{:?} is not what was said: {:?}", other.read, side.said);
            let kept: u64 = side.ledger.kept.iter().map(|message| message.len() as u64).sum();
            assert_eq!(side.ledger.kept_bytes, kept);
            // What nobody has taken is still kept, since it may have to be sent again.
            assert!(side.ledger.acknowledged <= other.taken as u64);
            assert_eq!(side.ledger.acknowledged as usize + side.ledger.kept.len(), side.said.len());
            assert!(side.ledger.kept.len() as u64 <= side.window.messages.max(1));
        }
    }

    /// Nothing is cut any more: whatever was said arrives, and is kept no longer.
    fn settle(&mut self) {
        self.cut();
        for _ in 0..20 {
            for side in [0, 1] {
                self.write(side);
                self.0[1 - side].read(LONGEST);
                self.0[1 - side].take();
                self.tell(1 - side, true);
                self.0[side].read(LONGEST);
            }
        }
        self.check();
        for (side, other) in [(0, 1), (1, 0)].map(|(side, other): (usize, usize)| (&self.0[side], &self.0[other])) {
            assert!(side.said == other.read && side.ledger.kept.is_empty(), "{side:?}");
        }
    }
}

#[test]
fn whatever_is_cut_each_side_gets_what_the_other_said_once_and_in_order() {
    rows(|random| {
        let windows =
            [(); 2].map(|()| Window { messages: random.below(6) as u64, bytes: 1 + random.below(100) as u64 });
        let [a, b] = windows;
        let mut connection = Connection([Side::new(a, b), Side::new(b, a)]);
        for _ in 0..120 {
            let next = Step::draw(random);
            random.does(&next);
            connection.step(&next);
            connection.check();
        }
        random.does("settle");
        connection.settle();
    });
}
