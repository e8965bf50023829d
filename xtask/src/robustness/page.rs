//! `docs/robustness.md`: what was tried, and what held.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::corpus::Fault;
use crate::error::{Doing, Result};
use crate::robustness::Tests;
use crate::robustness::rows::{Rows, Table};
use crate::{fuzz, soak, workspace};

const PATH: &str = "docs/robustness.md";

const BEGINNING: &str = "\
# Robustness

What was done to break it, and what held. `cargo xtask robustness` runs the tests below and writes this page; do not edit
it. No peer, network or handler is to make this implementation lose a request, mix up two callers, leak a secret, hang,
grow without bound or fall over.
";

const CORPUS: &str = "
## Faults of others

Failures that were met in other implementations, as [the corpus](../tests/corpus.txt) has them; those whose number begins
with D, in the Rust SDK that most people use. A *check* is a conversation with one input in one revision
([cases](../tests/suite/cases)), or a test function; a *run* is a check on one wire. Every fault has at least four
checks: itself, and neighbours in another era, on the other side, of another size or shape.

";

/// What stands above the table of that name.
const WORDS: &[(&str, &str)] = &[
    (
        "Faults",
        "A proxy between our two sides that cuts, delays, doubles and splits: one fault a run, at places 53 to 79 bytes apart in
either direction; and processes that are killed. *Survived* is a run in which each call was answered rightly or ended
with a typed error, and none ran twice.",
    ),
    (
        "Overload",
        "A server in a process of its own, past the limits that are in play. The peak is that of its resident memory above
the idle level.",
    ),
    (
        "Handlers",
        "Handlers that panic, hang, block, answer too much or leave something behind, one of each for every feature that has
handlers, while another client is served. *Survived* is one whose caller was told what it was, or was let go, and of which
nothing was left.",
    ),
    (
        "Floods",
        "Peers that ask for more than a limit allows, or say what nobody asked for. What is over the limit is refused, others are
served meanwhile, and all that was held is given back.",
    ),
    (
        "Isolation",
        "Clients that all use the same ids and tokens of progress, at once and in random order. Every message that one
of them gets is held to its content.",
    ),
    (
        "Secrets",
        "Words planted where secrets are, and looked for, in every form that a message may give them, in logs of every level,
in errors and in `Debug` output.",
    ),
];

const FUZZING: &str = "
## Fuzzing

What the long runs of the [fuzz targets](../fuzz) came to in all, and how many edges of the control flow the last one
reached. `cargo xtask fuzz --long` adds to it.

";

const MODELS: &str = "
## Models

A structure with rules is held to a simple model of itself: a list, and each rule a line. Each row of operations is drawn
from its number, and after each operation the two are compared, in what they answer and in what they keep. A failure
prints the row's number, which `SEED=` runs again, and the operations up to it.

";

/// Which structures are held to a model, to which one, and how much is tried.
const MODELED: &[[&str; 4]] = &[
    ["requests that wait for their answer (`pending.rs`)", "a list of who waits", "1000", "40"],
    ["calls that run (`inflight.rs`)", "a list of calls with numbers, each of which ends once", "1000", "59"],
    ["sessions in memory (`store/sessions.rs`)", "a table of who lives until when, and whose", "1000", "60"],
    [
        "events in memory (`store/event_log`)",
        "one list of what came, less what number, bytes, age and the bytes of all leave no room for",
        "1000",
        "80",
    ],
    ["changes (`hub`)", "a queue for each listener, and how often it is woken", "1000", "80"],
    ["what leaves a connection (`mailbox`)", "a bounded list, some of which must not be lost", "1000", "80"],
    ["a legacy session over HTTP (`mcp-http`, `live`)", "its calls, streams, turns, and what waits", "1000", "80"],
    [
        "a WebSocket that is resumed (`mcp-ws`, `ledger`)",
        "two lists: what each side said is what the other reads, however often the socket is cut",
        "1000",
        "120",
    ],
    ["tasks in memory (`store/tasks.rs`)", "records with versions that several change at once", "200", "300"],
    ["a task, as its client sees it", "its status, message and open questions", "60", "60"],
    ["a connection with calls and cancellations", "each request has one answer, unless it was cancelled", "22", "250"],
];

const LOOM: &str = "
What several threads share is run through every order of what they do, by [loom](https://docs.rs/loom)
(`cargo xtask loom`, the modules `orders`), with up to three interruptions where a thread need not be interrupted. No
wake-up is lost, and nothing is read twice or missed:

- `hub`: each change wakes who waits, is told once, and never before it can be seen; who leaves leaves nothing behind.
- `mailbox`: what is pushed is read, also beside the end; who waits for room, or for it to settle, is woken and keeps to
  the bound; nothing is left of a call that was given up while its handler still speaks.
- rounds of a modern call: a question from any thread is in the round that ends, or is refused; a round does not end in the
  middle of what is done once.
- a call that becomes a task: whoever polls it hears of that, and all who wait for it.
- a legacy session: a change is told once the client is ready, whichever comes first; over HTTP, nothing waits beside a
  reader, and nothing is left behind by the end.

`cargo xtask miri` runs all tests of `mcp-jsonrpc`, and of `mcp-core` those of heads, ids, the hub, and the first rows of
the models of pending and running calls and of mailboxes.
";

const SOAK: &str = "
## Soak

The last long run of `cargo xtask soak`: a server over HTTP, WebSocket and a Unix socket, and children over stdio, in both
eras, under mixed work and faults at once ([tests/soak](../tests/soak)). Every answer is held to its content. A call
*failed as it must* where it was meant to, or where its connection was cut under it. Counts are those before the load,
and those after it.

![The run over time](soak.svg)
";

/// Writes the page.
pub(crate) fn write(faults: &[Fault], tests: &BTreeMap<String, Tests>, rows: &Rows) -> Result {
    let path = workspace::root().join(PATH);
    let page = render(faults, tests, rows) + &modeled() + &fuzzed(&fuzz::Record::read()?) + &soaked(soak::record()?);
    std::fs::write(path, page).doing(|| format!("writing {PATH}"))?;
    println!("{PATH} is written");
    Ok(())
}

fn render(faults: &[Fault], tests: &BTreeMap<String, Tests>, rows: &Rows) -> String {
    let mut page = BEGINNING.to_owned() + CORPUS + &markdown(&corpus(faults, tests));
    for name in rows.tables() {
        let words = WORDS.iter().find(|(known, _)| *known == name).map_or("", |(_, words)| words);
        let _ = write!(page, "\n## {name}\n\n{words}\n\n{}", markdown(&rows.table(name)));
    }
    page
}

/// A row a structure.
fn modeled() -> String {
    let heads = ["structure", "model", "rows", "operations a row"].map(str::to_owned).to_vec();
    let rows = MODELED.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
    MODELS.to_owned() + &markdown(&Table { heads, rows }) + LOOM
}

/// A row a target.
fn fuzzed(record: &fuzz::Record) -> String {
    let row = |(target, run): (&String, &fuzz::Run)| {
        vec![target.clone(), (run.seconds / 60).to_string(), run.executions.to_string(), run.edges.to_string()]
    };
    let heads = ["target", "minutes", "executions", "edges"].map(str::to_owned).to_vec();
    FUZZING.to_owned() + &markdown(&Table { heads, rows: record.0.iter().map(row).collect() })
}

/// The last long run of `cargo xtask soak`, if there was one.
fn soaked(record: Vec<(String, String)>) -> String {
    if record.is_empty() {
        return String::new();
    }
    let rows = record.into_iter().map(|(name, value)| vec![name, value]).collect();
    let table = Table { heads: ["", "what came of it"].map(str::to_owned).to_vec(), rows };
    format!("{SOAK}\n{}", markdown(&table))
}

/// A row a fault, and their sum.
fn corpus(faults: &[Fault], tests: &BTreeMap<String, Tests>) -> Table {
    let nothing = Tests::default();
    let of = |fault: &Fault| tests.get(&fault.number).unwrap_or(&nothing);
    let mut rows: Vec<Vec<String>> = faults.iter().map(|fault| row(fault, of(fault))).collect();
    let sum = |count: fn(&Tests) -> usize| faults.iter().map(|fault| count(of(fault))).sum::<usize>().to_string();
    let failed = sum(|tests| tests.failed);
    let (checks, runs) = (sum(|tests| tests.checks), sum(|tests| tests.runs));
    let what = format!("all {}", faults.len());
    rows.push(vec![String::new(), String::new(), what, String::new(), checks, runs, verdict(&failed)]);
    let heads = ["", "side", "what holds", "as conversations on", "checks", "runs", "result"];
    Table { heads: heads.map(str::to_owned).to_vec(), rows }
}

fn row(fault: &Fault, tests: &Tests) -> Vec<String> {
    let Fault { number, side, words, .. } = fault;
    let result = if tests.runs == 0 { "not run".to_owned() } else { verdict(&tests.failed.to_string()) };
    let wires = tests.wires.join(", ");
    vec![number.clone(), side.clone(), words.clone(), wires, tests.checks.to_string(), tests.runs.to_string(), result]
}

fn verdict(failed: &str) -> String {
    if failed == "0" { "ok".to_owned() } else { format!("{failed} FAILED") }
}

fn markdown(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("{}|{}\n{rows}", line(&table.heads), "---|".repeat(table.heads.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robustness::rows;

    fn fault() -> Fault {
        Fault { line: 1, number: "C001".to_owned(), side: "server".to_owned(), words: "it holds".to_owned() }
    }

    #[test]
    fn a_fault_is_a_row_and_a_table_of_the_tests_a_section() {
        let tests = Tests { checks: 4, runs: 7, failed: 0, wires: vec!["memory".to_owned(), "http".to_owned()] };
        let rows = rows::parse(r#"{"table":"Overload","cells":[["overload","sessions"],["ratio","1.2"]]}"#).unwrap();
        let page = render(&[fault()], &[("C001".to_owned(), tests)].into(), &rows);
        assert!(page.contains("| C001 | server | it holds | memory, http | 4 | 7 | ok |"), "{page}");
        assert!(page.contains("| all 1 |  | 4 | 7 | ok |"), "{page}");
        assert!(page.ends_with("| overload | ratio |\n|---|---|\n| sessions | 1.2 |\n"), "{page}");
    }

    #[test]
    fn a_long_run_is_a_section_once_there_was_one() {
        assert_eq!(soaked(Vec::new()), "");
        let section = soaked(vec![("minutes".to_owned(), "30".to_owned())]);
        assert!(section.starts_with("\n## Soak\n") && section.ends_with("| minutes | 30 |\n"), "{section}");
    }

    #[test]
    fn what_failed_or_did_not_run_is_not_ok() {
        let rows = rows::parse("").unwrap();
        assert!(render(&[fault()], &BTreeMap::new(), &rows).contains("| 0 | 0 | not run |"));
        let tests = Tests { failed: 2, runs: 7, ..Tests::default() };
        let page = render(&[fault()], &[("C001".to_owned(), tests)].into(), &rows);
        assert!(page.contains("| it holds |  | 0 | 7 | 2 FAILED |"), "{page}");
    }
}
