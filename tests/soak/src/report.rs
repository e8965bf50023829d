//! What a run came to, as tables and as the few lines that are kept.

use std::{
    fmt::Write as _,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::judge::{Facts, Verdict};

/// For whoever sits at the terminal.
pub(crate) fn print(facts: &Facts, verdicts: &[Verdict]) {
    println!(
        "\n{:<28} {:>9} {:>9} {:>9} {:>7} {:>10} {:>5}",
        "work", "sent", "answered", "cancelled", "failed", "unanswered", "wrong"
    );
    for (kind, counts) in facts.kinds.iter().chain([(&"all", &facts.total)]) {
        let unanswered = counts.unanswered + counts.open();
        println!(
            "{kind:<28} {:>9} {:>9} {:>9} {:>7} {unanswered:>10} {:>5}",
            counts.sent, counts.answered, counts.cancelled, counts.failed, counts.wrong
        );
    }
    for complaint in &facts.complaints {
        println!("  {complaint}");
    }
    println!();
    for Verdict { about, is_good, words } in verdicts {
        println!("{:<6} {about:<34} {words}", if *is_good { "ok" } else { "FAILED" });
    }
    println!("       peak RSS {} MiB", peak(facts));
    println!();
}

fn peak(facts: &Facts) -> u64 {
    facts.samples.iter().map(|sample| sample.server.rss).max().unwrap_or_default() >> 10
}

/// What is kept of a long run: a name and a value a line.
pub(crate) fn record(facts: &Facts, verdicts: &[Verdict]) -> String {
    let total = &facts.total;
    let served = facts.samples.last().map_or(0, |sample| sample.status.served);
    let mut record = String::new();
    let minutes = facts.time.as_secs_f64() / 60.0;
    let lines = [
        ("date", today()),
        ("minutes", format!("{minutes:.0}")),
        ("requests served", served.to_string()),
        ("tried by clients", total.sent.to_string()),
        ("answered", total.answered.to_string()),
        ("cancelled", total.cancelled.to_string()),
        ("failed as they must", total.failed.to_string()),
        ("unanswered", (total.unanswered + total.open()).to_string()),
        ("wrong", total.wrong.to_string()),
        ("peak RSS", format!("{} MiB", peak(facts))),
    ];
    let verdicts = verdicts.iter().filter(|verdict| verdict.about != "answers" && verdict.about != "work");
    let verdicts = verdicts.map(|verdict| (verdict.about, verdict.words.clone()));
    for (name, value) in lines.into_iter().chain(verdicts) {
        // Writing to a string cannot fail.
        let _ = writeln!(record, "{name}: {value}");
    }
    record
}

fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date of a day since 1970.
fn date(mut day: u64) -> (u64, usize, u64) {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, days) in months.into_iter().enumerate() {
        if day < days {
            return (year, month + 1, day + 1);
        }
        day -= days;
    }
    (year + 1, 1, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_818), (2026, 12, 31));
        assert_eq!(date(20_819), (2027, 1, 1));
    }
}
