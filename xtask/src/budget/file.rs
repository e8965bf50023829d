//! `tests/budget/budget.txt`: conditions, `NAME: FACT`, and costs, a line a function, so that a diff shows what changed.

use std::path::PathBuf;

use crate::budget::Cost;
use crate::budget::conditions::Conditions;
use crate::error::{Doing, Error, Result};
use crate::workspace;

const FILE: &str = "tests/budget/budget.txt";

const INTRODUCTION: &str = "\
# What a call of each hot function may cost. `cargo xtask budget` compares, and with --write writes this file anew;
# CONTRIBUTING.md says when. Measured under these conditions:
";

/// What a call of each function costs, and the conditions that this was measured under.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) conditions: Conditions,
    pub(super) costs: Vec<Cost>,
}

impl Budget {
    pub(super) fn read() -> Result<Self> {
        let text = std::fs::read_to_string(path()).doing(|| format!("reading {FILE}"))?;
        Self::parse(&text)
    }

    pub(super) fn write(&self) -> Result {
        std::fs::write(path(), self.render()).doing(|| format!("writing {FILE}"))?;
        println!("wrote {FILE}: commit it with the change that it is for");
        Ok(())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut budget = Self::default();
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        for line in lines {
            match line.split_once(": ") {
                Some((name, fact)) => budget.conditions.0.push((name.to_owned(), fact.to_owned())),
                None => budget.costs.push(cost(line)?),
            }
        }
        Ok(budget)
    }

    fn render(&self) -> String {
        let facts = self.conditions.0.iter().map(|(name, fact)| format!("{name}: {fact}\n"));
        let header = format!("\n# {:<22} {:>12} {:>12} {:>12}\n", "function", "instructions", "allocations", "bytes");
        let costs = self.costs.iter().map(|Cost { function, instructions, allocations, bytes }| {
            format!("{function:<24} {instructions:>12} {allocations:>12} {bytes:>12}\n")
        });
        std::iter::once(INTRODUCTION.to_owned()).chain(facts).chain([header]).chain(costs).collect()
    }
}

fn path() -> PathBuf {
    workspace::root().join(FILE)
}

fn cost(line: &str) -> Result<Cost> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse().doing(|| format!("{FILE}: `{word}` in `{line}`"));
    match words[..] {
        [function, instructions, allocations, bytes] => Ok(Cost {
            function: function.to_owned(),
            instructions: number(instructions)?,
            allocations: number(allocations)?,
            bytes: number(bytes)?,
        }),
        _ => Err(Error::new(format!("{FILE}: `{line}` is no function with three numbers"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let cost =
            |function: &str| Cost { function: function.to_owned(), instructions: 7000, allocations: 3, bytes: 99 };
        let conditions = Conditions(vec![("compiler".to_owned(), "rustc 1.2 (3: 4)".to_owned())]);
        let budget = Budget { conditions, costs: vec![cost("decode"), cost("a-name-that-is-wider-than-its-column")] };
        assert_eq!(Budget::parse(&budget.render()).unwrap(), budget);
    }

    #[test]
    fn a_line_that_is_nothing_is_an_error_and_not_left_out() {
        for line in ["decode 1 2", "decode 1 2 3 4", "decode 1 2 three"] {
            assert!(Budget::parse(line).is_err(), "{line}");
        }
    }
}
