//! Whether a run was as it should be.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    run::LONG,
    sample::{Phase, Sample},
    tally::Counts,
};

/// All that is known of a run. The first sample is from before the load.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) time: Duration,
    pub(crate) kinds: BTreeMap<&'static str, Counts>,
    pub(crate) total: Counts,
    pub(crate) complaints: Vec<String>,
    pub(crate) samples: Vec<Sample>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) about: &'static str,
    pub(crate) is_good: bool,
    pub(crate) words: String,
}

/// By how much the memory of the last third of the load may be off that of the middle third.
const DRIFT: f64 = 0.02;

pub(crate) fn judge(facts: &Facts) -> Vec<Verdict> {
    let Counts { unanswered, wrong, .. } = facts.total;
    let open = facts.total.open();
    let mut verdicts = vec![
        verdict("answers", wrong == 0 && open + unanswered == 0, {
            format!("{wrong} wrong, {unanswered} unanswered, {open} open")
        }),
        verdict("work", facts.kinds.values().all(|counts| counts.sent > counts.unanswered + counts.wrong), {
            format!("{} kinds, each came to a good end", facts.kinds.len())
        }),
        memory(facts),
    ];
    if let [start, .., end] = facts.samples.as_slice() {
        verdicts.push(allocated(start.status.heap, end.status.heap));
        let ends = start.counts().into_iter().zip(end.counts());
        verdicts.extend(
            ends.map(|((name, start), (_, end))| verdict(name, start == end, format!("{start}, and {end} at the end"))),
        );
    }
    verdicts
}

fn verdict(about: &'static str, is_good: bool, words: String) -> Verdict {
    Verdict { about, is_good, words }
}

fn memory(facts: &Facts) -> Verdict {
    let Some((middle, last)) = thirds(&facts.samples) else {
        return verdict("memory", false, "there are no samples".into());
    };
    let drift = last / middle - 1.0;
    let words =
        format!("RSS {:.1} MiB in the middle third, {:.1} MiB in the last ({:+.1} %)", middle, last, drift * 100.0);
    if facts.time < LONG {
        return verdict("memory", true, format!("{words}; not judged, as the run was short"));
    }
    verdict("memory", drift.abs() <= DRIFT, words)
}

/// What is made once and then kept, as rendered definitions, may stay.
const KEPT: usize = 1 << 20;

fn allocated(start: usize, end: usize) -> Verdict {
    let words = format!("{} KiB, and {} KiB at the end", start >> 10, end >> 10);
    verdict("allocated", end <= start + KEPT, words)
}

/// The mean RSS of the server in the middle and in the last third of the load, in MiB.
fn thirds(samples: &[Sample]) -> Option<(f64, f64)> {
    let load: Vec<u64> =
        samples.iter().filter(|sample| sample.phase == Phase::Load).map(|sample| sample.server.rss).collect();
    let third = load.len() / 3;
    let (middle, last) = (load.get(third..2 * third)?, load.get(2 * third..)?);
    Some((mean(middle)?, mean(last)?))
}

fn mean(kib: &[u64]) -> Option<f64> {
    let count = u32::try_from(kib.len()).ok().filter(|count| *count > 0)?;
    // No process has so many that a float could not count them.
    let sum: f64 = kib.iter().map(|kib| f64::from(u32::try_from(*kib).unwrap_or(u32::MAX))).sum();
    Some(sum / f64::from(count) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{counters::Status, sample::Client, system::Usage};

    fn sample(rss: u64) -> Sample {
        let server = Usage { rss, threads: 1, files: 1 };
        Sample { second: 0, phase: Phase::Load, server, status: Status::default(), client: Client::default() }
    }

    fn facts(memory: impl IntoIterator<Item = u64>) -> Facts {
        let samples = memory.into_iter().map(sample).collect();
        Facts { time: LONG, kinds: BTreeMap::new(), total: Counts::default(), complaints: Vec::new(), samples }
    }

    fn bad(facts: &Facts) -> Vec<&'static str> {
        judge(facts).iter().filter(|verdict| !verdict.is_good).map(|verdict| verdict.about).collect()
    }

    #[test]
    fn memory_may_grow_at_first_and_not_at_last() {
        assert_eq!(bad(&facts([100, 500, 1000, 1000, 1010, 1010])), [""; 0]);
        assert_eq!(bad(&facts([100, 500, 1000, 1000, 1030, 1040])), ["memory"]);
        assert_eq!(bad(&facts([100, 500, 1000, 1000, 950, 940])), ["memory"]);
        assert_eq!(bad(&facts([])), ["memory"]);
        let short = Facts { time: Duration::from_secs(20), ..facts([1, 1, 1, 1, 9, 9]) };
        assert_eq!(bad(&short), [""; 0]);
    }

    #[test]
    fn what_is_left_at_the_end_is_named() {
        let mut facts = facts([1000; 6]);
        let end = facts.samples.last_mut().unwrap();
        (end.status.sessions, end.server.files, end.status.heap) = (1, 2, KEPT + 1);
        assert_eq!(bad(&facts), ["allocated", "open files", "sessions"]);
    }

    #[test]
    fn answers_that_are_wrong_or_missing_are_bad_and_so_is_work_that_never_came_to_a_good_end() {
        let one = |counts: Counts| Facts { total: counts, ..facts([1000; 6]) };
        assert_eq!(bad(&one(Counts { sent: 1, answered: 1, ..Counts::default() })), [""; 0]);
        assert_eq!(bad(&one(Counts { sent: 1, ..Counts::default() })), ["answers"]);
        assert_eq!(bad(&one(Counts { sent: 1, wrong: 1, ..Counts::default() })), ["answers"]);
        let unanswered = Counts { sent: 1, unanswered: 1, ..Counts::default() };
        let kinds = [("calls", unanswered)].into();
        assert_eq!(bad(&Facts { kinds, ..one(unanswered) }), ["answers", "work"]);
    }
}
