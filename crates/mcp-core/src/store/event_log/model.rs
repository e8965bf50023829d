//! A log is one list of what came, in order, and each rule about what is kept is a line of the model.

use futures_util::FutureExt as _;

use super::*;
use crate::model::{Random, rows};

const MOST: usize = 6;
const MOST_BYTES: usize = 60;
const MOST_OF_ALL: usize = 100;
const AGE: Duration = Duration::from_secs(300);

#[derive(Debug)]
enum Step {
    Append { session: SessionId, event: LoggedEvent },
    After { session: SessionId, stream: StreamId, seq: u64 },
    Pop(SessionId),
    Forget(SessionId),
    Sweep,
    Pass(Duration),
}

impl Step {
    fn draw(random: &mut Random, sessions: &[SessionId], seq: u64) -> Self {
        let (session, stream) = (random.one_of(sessions), StreamId(random.below(2) as u64));
        match random.below(16) {
            0..=6 => {
                // Now and then more than one session may have, or all.
                let most = if random.below(8) == 0 { 120 } else { 40 };
                let bytes = random.below(most);
                let is_answer = random.below(3) == 0;
                Self::Append { session, event: LoggedEvent { stream, seq, is_answer, frame: "x".repeat(bytes).into() } }
            }
            7..=10 => {
                let stream = StreamId(random.below(3) as u64);
                Self::After { session, stream, seq: seq.saturating_sub(random.below(8) as u64) }
            }
            11..=12 => Self::Pop(session),
            13 if random.below(2) == 0 => Self::Forget(session),
            14 => Self::Sweep,
            _ => Self::Pass(AGE / 4),
        }
    }
}

#[derive(Debug, Clone)]
struct Kept {
    session: SessionId,
    event: LoggedEvent,
    at: Instant,
}

#[derive(Debug, Default)]
struct Model(Vec<Kept>);

impl Model {
    fn of(&self, session: SessionId) -> impl DoubleEndedIterator<Item = (usize, &Kept)> {
        self.0.iter().enumerate().filter(move |(_, kept)| kept.session == session)
    }

    fn bytes(&self, session: SessionId) -> usize {
        self.of(session).map(|(_, kept)| kept.event.frame.len()).sum()
    }

    fn forget_the_old(&mut self, session: SessionId) {
        self.0.retain(|kept| kept.session != session || kept.at.elapsed() < AGE);
    }

    /// The first that is no answer, but for the newest; else the first.
    fn make_room(&mut self, session: SessionId) {
        let places: Vec<usize> = self.of(session).map(|(place, _)| place).collect();
        let but_the_newest = &places[..places.len() - 1];
        let least = but_the_newest.iter().find(|place| !self.0[**place].event.is_answer);
        self.0.remove(*least.unwrap_or(&places[0]));
    }

    fn append(&mut self, session: SessionId, event: LoggedEvent) {
        self.0.push(Kept { session, event, at: Instant::now() });
        self.forget_the_old(session);
        while self.of(session).count() > 1 && (self.of(session).count() > MOST || self.bytes(session) > MOST_BYTES) {
            self.make_room(session);
        }
        while self.0.iter().map(|kept| kept.event.frame.len()).sum::<usize>() > MOST_OF_ALL {
            let largest = self.0.iter().map(|kept| (self.bytes(kept.session), kept.session)).max();
            largest.into_iter().for_each(|(_, session)| self.make_room(session));
        }
    }

    /// `None` where nothing of the stream is kept; nothing, where all that is kept was seen.
    fn after(&mut self, session: SessionId, stream: StreamId, seq: u64) -> Option<Vec<LoggedEvent>> {
        self.forget_the_old(session);
        let of_stream = self.of(session).map(|(_, kept)| &kept.event).filter(|event| event.stream == stream);
        let of_stream: Vec<LoggedEvent> = of_stream.cloned().collect();
        let is_known = !of_stream.is_empty();
        is_known.then(|| of_stream.into_iter().filter(|event| event.seq > seq).collect())
    }

    fn pop(&mut self, session: SessionId) -> Option<LoggedEvent> {
        self.forget_the_old(session);
        let first = self.of(session).next().map(|(place, _)| place);
        first.map(|place| self.0.remove(place).event)
    }

    /// What is kept is what the model keeps, and what is counted is what is kept.
    fn check(&self, log: &MemoryEventLog, sessions: &[SessionId]) {
        let logs = lock(&log.logs);
        for session in sessions {
            let kept: Vec<_> = self.of(*session).map(|(_, kept)| (&kept.event, kept.at)).collect();
            let log = logs.by_session.get(session);
            let really: Vec<_> = log.into_iter().flat_map(|log| &log.events).map(|(event, at)| (event, *at)).collect();
            assert_eq!(really, kept);
            assert_eq!(log.map(|log| log.bytes), (!kept.is_empty()).then(|| self.bytes(*session)));
        }
        let by_bytes = sessions.iter().filter(|session| self.of(**session).next().is_some());
        assert_eq!(logs.by_bytes, by_bytes.map(|session| (self.bytes(*session), *session)).collect());
        assert_eq!(logs.bytes, self.0.iter().map(|kept| kept.event.frame.len()).sum::<usize>());
    }
}

fn step(step: Step, log: &MemoryEventLog, model: &mut Model) {
    match step {
        Step::Append { session, event } => {
            log.append(session, event.clone()).now_or_never().unwrap().unwrap();
            model.append(session, event);
        }
        Step::After { session, stream, seq } => {
            let replayed = log.after(session, stream, seq).now_or_never().unwrap().unwrap();
            assert_eq!(replayed, model.after(session, stream, seq));
        }
        Step::Pop(session) => assert_eq!(log.pop(session), model.pop(session)),
        Step::Forget(session) => {
            log.forget(session).now_or_never().unwrap().unwrap();
            model.0.retain(|kept| kept.session != session);
        }
        Step::Sweep => {
            log.sweep();
            model.0.retain(|kept| kept.at.elapsed() < AGE);
        }
        Step::Pass(_) => {}
    }
}

#[test]
fn what_is_kept_is_what_the_rules_leave_of_what_came() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let limits = Limits::default().session_events(MOST).session_event_bytes(MOST_BYTES).all_event_bytes(MOST_OF_ALL);
    let limits = limits.session_event_age(AGE);
    rows(|random| {
        let _guard = runtime.enter();
        let (log, mut model) = (MemoryEventLog::new(&limits), Model::default());
        let sessions: Vec<_> = std::iter::repeat_with(SessionId::random).take(3).collect();
        for seq in 1..=80 {
            let next = Step::draw(random, &sessions, seq);
            random.does(&next);
            if let Step::Pass(time) = next {
                runtime.block_on(tokio::time::advance(time));
            }
            step(next, &log, &mut model);
            model.check(&log, &sessions);
            let kept = |session: &SessionId| model.of(*session).next().is_some();
            assert!(sessions.iter().all(|session| log.is_empty_of(*session) != kept(session)));
        }
    });
}
