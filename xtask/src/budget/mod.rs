//! `cargo xtask budget`: counts the instructions and allocations of the hot functions, and holds them to a file.
//!
//! The functions are in `tests/budget`, and so is the file. Counts, unlike times, are the same on a busy machine.

mod conditions;
mod file;
mod judge;
mod measure;

use crate::budget::conditions::Conditions;
use crate::budget::file::Budget;
use crate::budget::measure::Programs;
use crate::error::{Error, Result};

/// What a call of a function costs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cost {
    function: String,
    instructions: u64,
    allocations: u64,
    bytes: u64,
}

/// Measures the functions whose name contains `only`, and compares with the budget or writes it.
pub(crate) fn run(only: Option<&str>, write: bool) -> Result {
    if write && only.is_some() {
        return Err(Error::new("--write and --only exclude each other: the file has one measurement of all functions"));
    }
    let costs = Programs::build()?.measure(only)?;
    let measured = Budget { conditions: Conditions::here()?, costs };
    if write { measured.write() } else { judge::judge(&measured, &Budget::read()?, only) }
}
