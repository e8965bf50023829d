//! What came of all that was tried.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use mcp_suite::{Error, ErrorKind};

/// What came of one try.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The answer was the right one.
    Answered,
    /// It was given up, and ended so.
    Cancelled,
    /// It failed as it had to.
    Failed,
    /// Nothing came in time.
    Unanswered(String),
    /// What came was not right.
    Wrong(String),
}

impl Outcome {
    /// Answered, if that is what was to come.
    pub(crate) fn is(got: impl PartialEq<String> + std::fmt::Debug, expected: impl Into<String>) -> Self {
        let expected = expected.into();
        if got == expected { Self::Answered } else { Self::Wrong(cut(format!("{got:?} and not {expected:?}"))) }
    }

    /// Answered, if so; what it is about is told else.
    pub(crate) fn so(is_right: bool, about: impl std::fmt::Debug) -> Self {
        if is_right { Self::Answered } else { Self::Wrong(cut(format!("{about:?}"))) }
    }

    /// Failed, if it failed so.
    pub(crate) fn fails<T: std::fmt::Debug>(result: Result<T, Error>, kind: ErrorKind, words: &str) -> Self {
        match result {
            Err(error) if error.kind() == kind && error.to_string().contains(words) => Self::Failed,
            Err(error) => Self::from(error),
            Ok(result) => Self::Wrong(cut(format!("it did not fail: {result:?}"))),
        }
    }

    /// The same where connections are lost: a call may fail by that.
    pub(crate) fn where_wires_are_cut(error: Error) -> Self {
        match error.kind() {
            ErrorKind::TransportClosed | ErrorKind::TransportError => Self::Failed,
            _ => Self::from(error),
        }
    }
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Timeout => Self::Unanswered(error.to_string()),
            _ => Self::Wrong(cut(format!("{error:?}"))),
        }
    }
}

fn cut(words: String) -> String {
    if words.chars().count() <= 300 { words } else { words.chars().take(300).chain("…".chars()).collect() }
}

/// How often what came of one kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) cancelled: u64,
    pub(crate) failed: u64,
    pub(crate) unanswered: u64,
    pub(crate) wrong: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.cancelled += other.cancelled;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.wrong += other.wrong;
    }

    /// What was begun and has not come to any end.
    pub(crate) fn open(&self) -> u64 {
        self.sent - (self.answered + self.cancelled + self.failed + self.unanswered + self.wrong)
    }
}

/// All counts, by kind of work, and the first complaints in words.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<(BTreeMap<&'static str, Counts>, Vec<String>)>);

/// So many complaints say enough.
const COMPLAINTS: usize = 20;

impl Tally {
    /// Begins something.
    pub(crate) fn begin(&self, kind: &'static str) {
        self.with(|counts, _| counts.entry(kind).or_default().sent += 1);
    }

    /// Ends it. `at` says where it happened.
    pub(crate) fn end(&self, kind: &'static str, at: &str, outcome: Outcome) {
        self.with(|counts, complaints| {
            let counts = counts.entry(kind).or_default();
            let (count, words) = match outcome {
                Outcome::Answered => (&mut counts.answered, None),
                Outcome::Cancelled => (&mut counts.cancelled, None),
                Outcome::Failed => (&mut counts.failed, None),
                Outcome::Unanswered(words) => (&mut counts.unanswered, Some(words)),
                Outcome::Wrong(words) => (&mut counts.wrong, Some(words)),
            };
            *count += 1;
            if let Some(words) = words.filter(|_| complaints.len() < COMPLAINTS) {
                complaints.push(format!("{kind} over {at}: {words}"));
            }
        });
    }

    /// By kind.
    pub(crate) fn kinds(&self) -> BTreeMap<&'static str, Counts> {
        self.with(|counts, _| counts.clone())
    }

    /// All together.
    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.kinds().into_values().for_each(|counts| total.add(counts));
        total
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.with(|_, complaints| complaints.clone())
    }

    fn with<R>(&self, with: impl FnOnce(&mut BTreeMap<&'static str, Counts>, &mut Vec<String>) -> R) -> R {
        let (counts, complaints) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        with(counts, complaints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_counted_once_and_complaints_are_told() {
        let tally = Tally::default();
        for _ in 0..4 {
            tally.begin("add");
        }
        tally.end("add", "ws", Outcome::is("3".to_owned(), "3"));
        tally.end("add", "ws", Outcome::is("3".to_owned(), "4"));
        tally.end("add", "ws", Error::new(ErrorKind::Timeout, "late").into());
        let total = tally.total();
        assert_eq!((total.sent, total.answered, total.wrong, total.unanswered, total.open()), (4, 1, 1, 1, 1));
        assert_eq!(tally.complaints()[0], r#"add over ws: "3" and not "4""#);
    }

    #[test]
    fn a_lost_connection_is_a_failure_only_where_wires_are_cut() {
        let lost = || Error::new(ErrorKind::TransportClosed, "gone");
        assert!(matches!(Outcome::where_wires_are_cut(lost()), Outcome::Failed));
        assert!(matches!(Outcome::from(lost()), Outcome::Wrong(_)));
        assert!(matches!(Outcome::where_wires_are_cut(Error::new(ErrorKind::Timeout, "late")), Outcome::Unanswered(_)));
    }
}
