//! The page: the same form in every run, so that what differs is what was measured.

use super::{Report, Section, fact_lines, machine, table};
use crate::{
    facts::{self, Fact},
    rows::Group,
};

const TITLE: &str = "# Benchmarks\n\n";

const HOW: &str = "\
Written by `cargo xtask bench`; [bench/README.md](../bench/README.md) says how it measures, who the contestants are, and
who is left out of which row. Run it yourself: it needs half an hour.

![For each row, how many times better ours is than each contestant](benchmarks.svg)

";

const CAVEATS: &str = "\
## How to read this

- **Quote ratios, never rates.** `ours is 4 ×` means four times better than that contestant: more calls, or fewer
  milliseconds or bytes. A rate tells more about the machine than about a server.
- The load needs a core. Where it shares two cores with the server, what it costs itself makes all contestants more alike.
  *CPU µs* is what the server's process, or in the rows of clients the client's, had of a core for each call, whatever
  the load costs: the fairest figure on few cores.
- *spread* is how far the lowest and the highest round are apart. Beyond some 20 % something else ran.
- The ceiling is the least that a program can do on a wire, and checks nothing that a server has to check.
- *claim* is what this project wants to reach, whether it does or not.
- A load in one place says nothing about networks, disks, or handlers that do something.

";

pub(super) fn render(report: &Report) -> String {
    let groups: String = Group::ALL.into_iter().map(|group| grouped(group, &report.sections)).collect();
    format!("{TITLE}{HOW}{}{CAVEATS}{groups}{}", about(report), before(&report.facts)).trim_end().to_owned() + "\n"
}

fn about(report: &Report) -> String {
    let lines = [format!("date: {}", machine::today())].into_iter().chain(machine::lines());
    let lines = lines.chain([format!("versions: {}", report.versions.join(", ")), report.medians()]);
    lines.map(|line| format!("- {line}\n")).collect::<String>() + "\n"
}

fn grouped(group: Group, sections: &[Section]) -> String {
    let sections: Vec<&Section> = sections.iter().filter(|section| section.row.group() == group).collect();
    if sections.is_empty() {
        return String::new();
    }
    let about: String =
        sections.iter().map(|section| format!("- `{}`: {}\n", section.row.name, section.row.about)).collect();
    let lines: Vec<table::Line> = sections.iter().flat_map(|section| section.lines()).collect();
    let notes: String = sections.iter().flat_map(|section| section.notes()).map(|note| format!("- {note}\n")).collect();
    let notes = if notes.is_empty() { notes } else { format!("\n{notes}") };
    format!("## {}\n\n{about}\n{}{notes}\n", group.title(), table::markdown(&lines))
}

/// What is told of programs before they run.
fn before(facts: &[Fact]) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let mut rows: Vec<&str> = facts.iter().map(|fact| fact.row).collect();
    rows.dedup();
    let about: String = rows.into_iter().map(|row| format!("- `{row}`: {}\n", facts::about(row))).collect();
    format!("## Before they run\n\n{about}\n{}\n", table::markdown(&fact_lines(facts)))
}

#[cfg(test)]
mod tests {
    use bench::Who;

    use super::*;
    use crate::{
        report::tests::{outcome, section},
        settings::Settings,
    };

    #[test]
    fn what_is_told_of_builds_comes_last_and_only_if_there_is_something() {
        let fact = Fact { row: "crates", who: "ours".to_owned(), value: 50.0, unit: "crates", claim: Some(55.0) };
        let page = before(&[fact]);
        assert!(
            page.contains("- `crates`: ") && page.contains("| crates | ours | 50 crates | ≤ 55 crates: met |"),
            "{page}"
        );
        assert_eq!(before(&[]), "");
    }

    #[test]
    fn each_group_has_its_rows_explained_and_those_without_rows_are_not_there() {
        let mut report = Report::new(&Settings::default());
        report.sections.push(section("stdio", vec![outcome(Who::Ours, "ours", 5.0)]));
        report.sections[0].results.left_out.push(("node".to_owned(), "it ended".to_owned()));
        let page = render(&report);
        assert!(page.contains("## Over stdio\n\n- `stdio`: a legacy call"), "{page}");
        assert!(
            page.contains("| stdio | ours | 5.00 calls/s |") && page.contains("- node is left out of stdio: it ended")
        );
        assert!(!page.contains("## Over HTTP"));
    }
}
