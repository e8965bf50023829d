//! What is told of a run: a table on the terminal, and a page with a chart where one is asked for.

mod chart;
mod machine;
mod page;
mod table;

use std::path::Path;

use anyhow::{Context, Result};
use bench::Who;

use self::table::Line;
use crate::{
    contest::{Outcome, Results},
    facts::Fact,
    rows::{Claim, Row},
    settings::{Guest, Settings},
    statistics::short,
};

/// What came of all rows so far.
pub(crate) struct Report {
    sections: Vec<Section>,
    facts: Vec<Fact>,
    /// How long a round was, and how many there were.
    rounds: (f64, usize),
    /// Who was measured, with versions.
    versions: Vec<String>,
}

/// One row, and what came of it.
struct Section {
    row: &'static Row,
    results: Results,
    /// Why there are none, where there are none.
    skipped: Option<String>,
}

impl Report {
    pub(crate) fn new(settings: &Settings) -> Self {
        let rounds = (settings.time.as_secs_f64(), settings.rounds);
        let versions = versions(include_str!("../../Cargo.lock"), &settings.guests);
        Self { sections: Vec::new(), facts: Vec::new(), rounds, versions }
    }

    /// Adds what came of a row.
    pub(crate) fn add(&mut self, row: &'static Row, results: Results) {
        self.sections.push(Section { row, results, skipped: None });
    }

    /// Adds a row that cannot be measured here.
    pub(crate) fn skip(&mut self, row: &'static Row, why: String) {
        eprintln!("  {} is left out: {why}", row.name);
        self.sections.push(Section { row, results: Results::default(), skipped: Some(why) });
    }

    /// Adds what is true of programs before they run.
    pub(crate) fn add_facts(&mut self, facts: Vec<Fact>) {
        self.facts.extend(facts);
    }

    /// For the terminal.
    pub(crate) fn text(&self) -> String {
        let lines = self.sections.iter().flat_map(Section::lines);
        let lines: Vec<Line> = lines.chain(fact_lines(&self.facts)).collect();
        let notes = self.sections.iter().flat_map(Section::notes).map(|note| note + "\n").collect::<String>();
        format!(
            "{}\n{notes}{}\n{}.\nQuote ratios of one run, never rates: what they are is in bench/README.md.\n",
            table::text(&lines),
            self.medians(),
            self.versions.join(", ")
        )
    }

    /// Writes the page and its chart into a folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let write = |name: &str, text: String| {
            std::fs::write(folder.join(name), text).with_context(|| format!("writing {name} into {}", folder.display()))
        };
        write("benchmarks.md", page::render(self))?;
        write("benchmarks.svg", chart::render(&self.sections))
    }

    fn medians(&self) -> String {
        let (seconds, rounds) = self.rounds;
        format!("Medians of rounds ({rounds}) of {seconds} s.")
    }
}

impl Section {
    /// A line a contestant.
    fn lines(&self) -> Vec<Line> {
        let lines = self.results.outcomes.iter().enumerate();
        lines.map(|(index, outcome)| self.line(if index == 0 { self.row.name } else { "" }, outcome)).collect()
    }

    fn line(&self, name: &str, outcome: &Outcome) -> Line {
        let (row, median) = (self.row, outcome.values.median());
        let ratio = self.ratio(outcome);
        #[expect(clippy::cast_precision_loss, reason = "no process has 2^53 KiB")]
        let peak = outcome.peak_memory.map(|kib| format!("{:.1}", kib as f64 / 1024.0));
        Line {
            row: name.to_owned(),
            contestant: outcome.label.clone(),
            median: format!("{} {}", short(median), row.unit().name()),
            spread: format!("{:.0} %", outcome.values.spread()),
            ours_is: ratio.map(|ratio| format!("{} ×", short(ratio))).unwrap_or_default(),
            claim: claims(row, outcome, ratio).join("; "),
            cpu: outcome.cpu.map(|cpu| format!("{cpu:.1}")).unwrap_or_default(),
            peak: peak.unwrap_or_default(),
            allocations: outcome.allocations.map(|count| format!("{count:.0}")).unwrap_or_default(),
        }
    }

    /// How many times better ours is than another.
    fn ratio(&self, outcome: &Outcome) -> Option<f64> {
        let ours = self.results.outcomes.iter().find(|outcome| outcome.who == Who::Ours)?;
        (outcome.who != Who::Ours).then(|| self.row.unit().ratio(ours.values.median(), outcome.values.median()))
    }

    /// Who or what is missing.
    fn notes(&self) -> Vec<String> {
        let skipped = self.skipped.iter().map(|why| format!("{} is left out: {why}", self.row.name));
        let guests = self.results.left_out.iter();
        let guests = guests.map(|(label, why)| format!("{label} is left out of {}: {why}", self.row.name));
        skipped.chain(guests).collect()
    }
}

/// A line a fact.
fn fact_lines(facts: &[Fact]) -> Vec<Line> {
    let before = std::iter::once("").chain(facts.iter().map(|fact| fact.row));
    facts.iter().zip(before).map(|(fact, before)| fact_line(fact, fact.row != before)).collect()
}

fn fact_line(fact: &Fact, is_first: bool) -> Line {
    let claim = fact.claim.map(|most| said(&format!("≤ {most} {}", fact.unit), fact.value <= most));
    Line {
        row: if is_first { fact.row.to_owned() } else { String::new() },
        contestant: fact.who.clone(),
        median: format!(
            "{} {}",
            if fact.value.fract() == 0.0 { fact.value.to_string() } else { short(fact.value) },
            fact.unit
        ),
        claim: claim.unwrap_or_default(),
        ..Line::default()
    }
}

/// What is claimed of this outcome, and whether it is so.
fn claims(row: &Row, outcome: &Outcome, ratio: Option<f64>) -> Vec<String> {
    let is_ours = outcome.who == Who::Ours;
    let claims = row.claims.iter().filter_map(|claim| match claim {
        Claim::Against(label, least) if *label == outcome.label => {
            Some(said(&format!("≥ {least}"), ratio.is_some_and(|ratio| ratio >= *least)))
        }
        Claim::AtMost(most) if is_ours => {
            Some(said(&format!("≤ {most} {}", row.unit().name()), outcome.values.median() <= *most))
        }
        Claim::Allocations(most) if is_ours => {
            let is_met = outcome.allocations.is_some_and(|count| count <= *most);
            Some(said(&format!("≤ {most} allocations"), is_met))
        }
        _ => None,
    });
    claims.collect()
}

fn said(claim: &str, is_met: bool) -> String {
    format!("{claim}: {}", if is_met { "met" } else { "not met" })
}

/// Who was measured, with the versions in the lock file that this program was built by, and what guests say of theirs.
fn versions(lock: &str, guests: &[Guest]) -> Vec<String> {
    let own = ["mcp-suite", "rmcp", "tower-mcp", "axum", "reqwest", "serde_json", "tokio"];
    let own = own.iter().map(|name| format!("{name} {}", version(lock, name)));
    own.chain(guests.iter().map(|guest| format!("{} ({})", guest.who, guest.version()))).collect()
}

/// The newest, where there are several.
fn version<'a>(lock: &'a str, name: &str) -> &'a str {
    let entry = lock.rsplit("[[package]]").find(|entry| entry.contains(&format!("name = \"{name}\"\n")));
    let version = entry.and_then(|entry| entry.lines().find_map(|line| line.strip_prefix("version = ")));
    version.unwrap_or("?").trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rows::ROWS, statistics::Values};

    pub(super) fn outcome(who: Who, label: &str, value: f64) -> Outcome {
        let values = Values::new(vec![value]);
        Outcome { who, label: label.to_owned(), values, cpu: None, peak_memory: None, allocations: None }
    }

    pub(super) fn section(name: &str, outcomes: Vec<Outcome>) -> Section {
        let row = ROWS.iter().find(|row| row.name == name).unwrap();
        Section { row, results: Results { outcomes, left_out: Vec::new() }, skipped: None }
    }

    fn claims_of(section: &Section) -> Vec<String> {
        section.lines().into_iter().map(|line| line.claim).collect()
    }

    #[test]
    fn ours_is_compared_with_each_and_claims_are_met_or_not() {
        let outcomes = vec![
            outcome(Who::Ceiling, "ceiling", 100_000.0),
            outcome(Who::Ours, "ours", 80_000.0),
            outcome(Who::Rmcp, "rmcp, JSON", 20_000.0),
        ];
        let section = section("http", outcomes);
        let ratios: Vec<String> = section.lines().into_iter().map(|line| line.ours_is).collect();
        assert_eq!(ratios, ["0.80 ×", "", "4.00 ×"]);
        assert_eq!(claims_of(&section), ["≥ 0.85: not met", "", "≥ 3.5: met"]);
    }

    #[test]
    fn what_is_claimed_of_ours_alone_stands_with_ours() {
        let idle = |bytes| section("idle", vec![outcome(Who::Ours, "ours", bytes), outcome(Who::Rmcp, "rmcp", 1.0)]);
        assert_eq!(claims_of(&idle(4000.0)), ["≤ 4096 bytes: met", ""]);
        assert_eq!(claims_of(&idle(5000.0)), ["≤ 4096 bytes: not met", ""]);
        let ours = Outcome { allocations: Some(21.0), ..outcome(Who::Ours, "ours", 1.0) };
        assert_eq!(claims_of(&section("in-process", vec![ours])), ["≤ 20 allocations: not met"]);
    }

    #[test]
    fn who_is_left_out_is_said_with_the_reason() {
        let mut section = section("http", Vec::new());
        section.results.left_out.push(("node".to_owned(), "refused".to_owned()));
        assert_eq!(section.notes(), ["node is left out of http: refused"]);
    }

    #[test]
    fn facts_are_lines_with_what_is_claimed_of_them() {
        let fact = |row, value, claim| Fact { row, who: "ours".to_owned(), value, unit: "crates", claim };
        let lines =
            fact_lines(&[fact("crates", 69.0, Some(55.0)), fact("crates", 62.0, None), fact("binary", 2.25, None)]);
        let told: Vec<[&str; 3]> =
            lines.iter().map(|line| [&line.row, &line.median, &line.claim].map(String::as_str)).collect();
        assert_eq!(
            told,
            [["crates", "69 crates", "≤ 55 crates: not met"], ["", "62 crates", ""], ["binary", "2.25 crates", ""]]
        );
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"rmcp-macros\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"rmcp\"\nversion = \"3.11.4\"\n";
        assert_eq!((version(lock, "rmcp"), version(lock, "tower-mcp")), ("3.11.4", "?"));
    }
}
