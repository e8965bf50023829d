//! What the run is told besides passed and failed: rows for the tables of `docs/robustness.md`.
//!
//! `cargo xtask robustness` names the file in which it wants them; without it nothing is written.

use std::{fs::File, io::Write as _};

/// The environment variable that names the file.
const FILE: &str = "MCP_ROBUSTNESS_ROWS";

/// Adds a row to the table of that name: its cells, each under the head of its column.
pub(crate) fn row<const N: usize>(table: &str, cells: [(&str, String); N]) {
    let Some(path) = std::env::var_os(FILE) else { return };
    // An array: the columns stand in the order in which they are told.
    let line = serde_json::json!({ "table": table, "cells": cells.as_slice() }).to_string() + "\n";
    // One write at the end of the file, so that tests that run side by side leave whole lines.
    let mut file = File::options().create(true).append(true).open(path).expect("the file for the rows");
    file.write_all(line.as_bytes()).expect("a row is written");
}
