//! The table.

use crate::{
    contest::Outcome,
    rows::{Row, Who},
    statistics::{rate, ratio},
};

const HEADER: [&str; 6] = ["row", "contestant", "calls/s", "spread", "ours is", "peak MiB"];

/// The columns of words; the others are numbers and stand to the right.
const WORDS: usize = 2;

/// The table so far.
pub(crate) struct Report {
    lines: Vec<[String; 6]>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { lines: vec![HEADER.map(str::to_owned)] }
    }

    /// Adds what came of a row, a line a contestant.
    pub(crate) fn add(&mut self, row: &Row, outcomes: &[Outcome]) {
        let ours = outcomes.iter().find(|outcome| outcome.who == Who::Ours).map(|outcome| outcome.rates.median());
        self.lines.push(Default::default());
        for (index, outcome) in outcomes.iter().enumerate() {
            let name = if index == 0 { row.name } else { "" };
            self.lines.push(line(name, outcome, ours));
        }
    }

    pub(crate) fn render(&self) -> String {
        let width = |column: usize| self.lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(width);
        let rows = self.lines.iter().map(|line| {
            let cells = line.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
                if column < WORDS { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        });
        rows.collect()
    }
}

fn line(row: &str, outcome: &Outcome, ours: Option<f64>) -> [String; 6] {
    let median = outcome.rates.median();
    let compared = match ours {
        Some(ours) if outcome.who != Who::Ours => format!("{} ×", ratio(ours, median)),
        _ => String::new(),
    };
    #[expect(clippy::cast_precision_loss, reason = "no process has 2^53 KiB")]
    let peak = outcome.peak_memory.map_or(String::new(), |kib| format!("{:.1}", kib as f64 / 1024.0));
    [row.to_owned(), outcome.label.clone(), rate(median), format!("{:.0} %", outcome.rates.spread()), compared, peak]
}

/// The versions of the peers, from the lock file that this program was built by.
pub(crate) fn versions(lock: &str) -> String {
    let version = |name: &str| {
        let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{name}\"")))?;
        entry.lines().find_map(|line| line.strip_prefix("version = "))
    };
    let peers = ["rmcp", "tower-mcp"].map(|name| format!("{name} {}", version(name).unwrap_or("?").trim_matches('"')));
    peers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rows::ROWS, statistics::Rates};

    fn outcome(who: Who, label: &str, rate: f64, peak_memory: Option<u64>) -> Outcome {
        Outcome { who, label: label.to_owned(), rates: Rates::new(vec![rate]), peak_memory }
    }

    #[test]
    fn each_contestant_has_a_line_and_ours_is_compared_with_it() {
        let mut report = Report::new();
        let outcomes = [
            outcome(Who::Ceiling, "ceiling", 100_000.0, Some(2048)),
            outcome(Who::Ours, "ours", 50_000.0, Some(4096)),
            outcome(Who::Rmcp, "rmcp", 400.0, None),
        ];
        report.add(&ROWS[0], &outcomes);
        assert_eq!(
            report.render(),
            "row   contestant  calls/s  spread  ours is  peak MiB\n\
             \n\
             http  ceiling        100k     0 %   0.50 ×       2.0\n      \
                   ours            50k     0 %                4.0\n      \
                   rmcp            400     0 %    125 ×\n"
        );
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"rmcp\"\nversion = \"3.11.4\"\n\n[[package]]\nname = \"rmcp-macros\"\nversion = \"1.0.0\"\n";
        assert_eq!(versions(lock), "rmcp 3.11.4, tower-mcp ?");
    }
}
