//! What is true of a program before it runs: how many crates it is built from, its size, and how long a build takes.
//!
//! Small programs on our crates and on the peers' are written into a temporary folder, and cargo tells.

mod programs;
mod workspace;

use anyhow::{Context, Result};

use crate::facts::{
    programs::{CRATES, PROGRAMS, Program},
    workspace::Workspace,
};

/// One figure, of which less is better.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) row: &'static str,
    /// What the program can do, and on which crates it stands.
    pub(crate) who: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The most that this project claims for it.
    pub(crate) claim: Option<f64>,
}

/// Measures the rows `crates`, `binary` and `cold-build`, as far as they are asked for. It fails when a program cannot
/// be resolved or built, ours or a peer's.
pub(crate) fn measure(which: &[&'static str]) -> Result<Vec<Fact>> {
    if which.is_empty() {
        return Ok(Vec::new());
    }
    let workspace = Workspace::write(PROGRAMS)?;
    let mut facts = Vec::new();
    for &row in which {
        eprintln!("{row}: {} …", about(row));
        for program in PROGRAMS {
            let figures = figures(row, program, &workspace);
            let figures = figures.with_context(|| format!("the row `{row}`: {}", program.who()))?;
            facts.extend(figures.into_iter().map(|(value, unit)| Fact {
                row,
                who: program.who(),
                value,
                unit,
                claim: program.claim(unit),
            }));
        }
    }
    Ok(facts)
}

/// What a row's figures are, in a line.
pub(crate) fn about(row: &str) -> &'static str {
    match row {
        "crates" => "crates in the tree of normal dependencies, our own or the peer's among them",
        "binary" => "a server with one tool, stripped, in cargo's release profile",
        _ => "the same server and all that it depends on, built from nothing but sources",
    }
}

/// What a row says of a program: nothing, or a figure, or two.
fn figures(row: &str, program: &Program, workspace: &Workspace) -> Result<Vec<(f64, &'static str)>> {
    match row {
        "crates" => Ok(vec![(workspace.crates(program)? as f64, CRATES)]),
        "binary" if program.serves() => Ok(vec![(workspace.binary(program)? as f64 / MIB, "MiB")]),
        "cold-build" if program.is_cold => workspace.cold_build(program),
        _ => Ok(Vec::new()),
    }
}

const MIB: f64 = 1024.0 * 1024.0;
