//! What of a session is in this process is four short lists: calls, streams, who waits for a turn, and what waits for a
//! reader.

use std::collections::VecDeque;

use super::*;
use crate::model::{Random, rows};

const MOST_CALLS: usize = 2;
const MOST_WAITING: usize = 3;
const MOST_BYTES: usize = 40;
const MOST_STREAMS: usize = 2;

#[derive(Debug)]
enum Step {
    Begin(RequestId),
    Cancel(RequestId),
    Finish(usize),
    Turn(usize),
    Leave(usize),
    Listen,
    Rejoin(usize),
    Detach(usize),
    HangUp,
    Say(u32),
    Read,
    End,
}

impl Step {
    fn draw(random: &mut Random, number: u32) -> Self {
        // Over HTTP an id may be in flight more than once.
        let id = random.one_of::<RequestId>(&[1u64.into(), "1".into()]);
        match random.below(32) {
            0..=4 => Self::Begin(id),
            5..=6 => Self::Cancel(id),
            7..=9 => Self::Finish(random.below(4)),
            10..=13 => Self::Turn(random.below(30)),
            14..=17 => Self::Leave(random.below(4)),
            18..=20 => Self::Listen,
            21 => Self::Rejoin(random.below(12)),
            22..=24 => Self::Detach(random.below(4)),
            25 => Self::HangUp,
            26..=28 => Self::Say(number),
            29..=30 => Self::Read,
            _ if random.below(8) == 0 => Self::End,
            _ => Self::Read,
        }
    }
}

/// A stream for what belongs to no call, and its reader.
struct Stream {
    channel: Arc<Channel>,
    reader: Option<u64>,
}

#[derive(Default)]
struct Model {
    has_ended: bool,
    /// Those that run, and whether they were cancelled.
    calls: Vec<(Call, bool)>,
    /// Those that have their turn, and those that wait for it, with their bytes.
    turns: Vec<Turn>,
    waiting: Vec<(Turn, usize)>,
    /// In the order in which they began.
    streams: Vec<Stream>,
    unsent: VecDeque<u32>,
}

impl Model {
    fn read(&self) -> usize {
        self.streams.iter().filter(|stream| stream.reader.is_some()).count()
    }

    fn turn(&mut self, live: &Arc<Live>, bytes: usize, limits: &Limits) {
        let waiting: usize = self.waiting.iter().map(|(_, bytes)| bytes).sum();
        match live.turn(bytes, limits) {
            Some(turn @ Turn::Now(_)) => {
                assert!(self.turns.len() < MOST_CALLS);
                self.turns.push(turn);
            }
            Some(turn) => {
                assert!(self.turns.len() == MOST_CALLS && self.waiting.len() < MOST_WAITING && waiting < MOST_BYTES);
                self.waiting.push((turn, bytes));
            }
            None => assert!(self.waiting.len() == MOST_WAITING || waiting >= MOST_BYTES),
        }
    }

    /// The oldest streams that nobody reads make room, so that a few of them are left.
    fn listen(&mut self, live: &Live, limits: &Limits) {
        let opened = live.try_open_standalone(limits);
        assert_eq!(opened.is_some(), self.read() < MOST_STREAMS);
        let Some((channel, reader)) = opened else { return };
        while self.streams.len() - self.read() >= LOST_STREAMS {
            let oldest = self.streams.iter().position(|stream| stream.reader.is_none());
            oldest.map(|oldest| self.streams.remove(oldest));
        }
        self.streams.push(Stream { channel, reader: Some(reader) });
    }

    fn rejoin(&mut self, live: &Live, place: usize, limits: &Limits) {
        let room = self.read() < MOST_STREAMS;
        let Some(stream) = self.streams.get_mut(place) else { return };
        let rejoined = live.try_rejoin(stream.channel.id, limits);
        assert_eq!(rejoined.is_some(), stream.reader.is_some() || room);
        if let Some((channel, reader)) = rejoined.flatten() {
            assert!(Arc::ptr_eq(&channel, &stream.channel) && stream.reader != Some(reader));
            stream.reader = Some(reader);
        }
    }

    /// It goes to who came last of those that read, unless something waits to be read before it.
    fn say(&mut self, live: &Live, number: u32) {
        let last = self.streams.iter().rev().find(|stream| stream.reader.is_some());
        match live.route(number.to_string().into()) {
            Ok((channel, _)) => {
                assert!(!self.has_ended && self.unsent.is_empty());
                assert!(last.is_some_and(|last| Arc::ptr_eq(&last.channel, &channel)));
            }
            Err(Kept(is_kept)) => {
                assert!(is_kept != self.has_ended && (self.has_ended || last.is_none() || !self.unsent.is_empty()));
                self.unsent.extend(is_kept.then_some(number));
            }
        }
    }

    fn cancel(&mut self, live: &Live, id: &RequestId) {
        live.cancel(id);
        // What began before the session ended is not its any more.
        self.calls.iter_mut().filter(|(call, _)| call.id == *id).for_each(|(_, is_cancelled)| *is_cancelled = true);
    }

    fn end(&mut self, live: &Live) {
        live.end();
        *self = Self { has_ended: true, turns: std::mem::take(&mut self.turns), ..Self::default() };
    }

    fn step(&mut self, step: Step, live: &Arc<Live>, limits: &Limits) {
        match step {
            Step::Begin(id) => self.calls.push((live.begin(&id), false)),
            Step::Cancel(id) => self.cancel(live, &id),
            Step::Finish(place) if place < self.calls.len() => drop(self.calls.remove(place)),
            Step::Turn(bytes) => self.turn(live, bytes, limits),
            Step::Leave(place) if place < self.waiting.len() => drop(self.waiting.remove(place)),
            Step::Leave(_) => drop(self.turns.pop()),
            Step::Listen => self.listen(live, limits),
            Step::Rejoin(place) => self.rejoin(live, place, limits),
            Step::Detach(place) => {
                let Some(stream) = self.streams.get_mut(place) else { return };
                let Some(reader) = stream.reader.take() else { return };
                assert!(stream.channel.detach(reader) && !stream.channel.detach(reader));
            }
            Step::HangUp => {
                live.hang_up();
                self.streams.iter_mut().for_each(|stream| stream.reader = None);
            }
            Step::Say(number) => self.say(live, number),
            Step::Read => {
                let first = self.unsent.pop_front().map(|number| number.to_string());
                assert_eq!(live.next_unsent(), first.map(Bytes::from));
            }
            Step::End => self.end(live),
            Step::Finish(_) => {}
        }
    }

    fn check(&self, live: &Live) {
        assert!(self.calls.iter().all(|(call, is_cancelled)| call.cancelled.is_cancelled() == *is_cancelled));
        let state = live.state();
        assert_eq!(state.calls.values().map(Vec::len).sum::<usize>(), self.calls.len());
        let bytes = self.waiting.iter().map(|(_, bytes)| bytes).sum::<usize>();
        assert_eq!((state.waiting, state.waiting_bytes), (self.waiting.len(), bytes));
        let standalone = state.standalone.iter().map(|channel| (channel.id, channel.is_read()));
        let streams = self.streams.iter().map(|stream| (stream.channel.id, stream.reader.is_some()));
        assert!(standalone.eq(streams));
        assert_eq!(live.unsent.is_empty_of(live.id), self.unsent.is_empty());
    }
}

#[test]
fn a_session_is_its_calls_its_streams_and_what_waits() {
    let limits = Limits::default().in_flight(MOST_CALLS).waiting(MOST_WAITING).queue_bytes(MOST_BYTES);
    let limits = limits.session_streams(MOST_STREAMS);
    rows(|random| {
        let unsent = Arc::new(MemoryEventLog::new(&limits));
        let live = Arc::new(Live::new(SessionId::random(), None, Arc::default(), unsent, &limits));
        let mut model = Model::default();
        for number in 0..80 {
            let next = Step::draw(random, number);
            random.does(&next);
            model.step(next, &live, &limits);
            model.check(&live);
        }
    });
}
