//! `allocations WORK CONTESTANT`: how often one call in process allocates. A program of its own, as whatever counts
//! allocations slows them down.

use anyhow::{Context, Result};
use bench::{
    Who,
    load::{
        Effort, Score,
        call::Work,
        decode::{self, Size},
        float, memory,
    },
};

/// How many calls the first of two passes has; the second has twice as many. Of so few, only the first is read wholly.
const CALLS: u64 = 500;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [work, who] = words.as_slice() else { anyhow::bail!("usage: allocations WORK CONTESTANT") };
    let contestants = [Who::Ceiling, Who::Ours, Who::SerdeJson, Who::Value, Who::Rmcp, Who::TowerMcp];
    let who = contestants.into_iter().find(|known| known.name() == who).context("no such contestant")?;
    // What a process does once, and nobody counts.
    run(work, who, Effort::Calls(1))?;
    // What each pass does once, as making the server, is in both.
    let count = count(work, who, 2 * CALLS)?.saturating_sub(count(work, who, CALLS)?);
    println!("{:.1}", float(count) / float(CALLS));
    Ok(())
}

fn count(work: &str, who: Who, calls: u64) -> Result<u64> {
    let mut done = Ok(());
    let counted = allocation_counter::measure(|| done = run(work, who, Effort::Calls(calls)).map(drop));
    done.map(|()| counted.count_total)
}

fn run(work: &str, who: Who, effort: Effort) -> Result<Score> {
    match work {
        "in-process" => memory::direct(who, Work::Add, effort),
        "list-700-direct" => memory::direct(who, Work::List(700), effort),
        "pair" => memory::pair(who, effort),
        "decode-small" => decode::drive(who, Size::Small, effort),
        "decode-large" => decode::drive(who, Size::Large, effort),
        other => anyhow::bail!("no work `{other}`"),
    }
}
