//! `fuzz/record.txt`: how long each target ran in all its long runs, how often, and how much of the code it reached at last.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::error::{Doing, Error, Result};
use crate::workspace;

const PATH: &str = "fuzz/record.txt";

const BEGINNING: &str =
    "# What the long runs came to: target, seconds and executions in all, edges reached by the last one.\n";

/// One run, or several added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) seconds: u64,
    pub(crate) executions: u64,
    /// Edges of the control flow that were reached.
    pub(crate) edges: u64,
}

/// The runs by target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Record(pub(crate) BTreeMap<String, Run>);

impl Record {
    /// Reads it; where there is none, nothing has run.
    pub(crate) fn read() -> Result<Self> {
        let path = workspace::root().join(PATH);
        if !path.exists() {
            return Ok(Self::default());
        }
        Self::parse(&std::fs::read_to_string(path).doing(|| format!("reading {PATH}"))?)
    }

    fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let run = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [target, seconds, executions, edges] => {
                let number = |text: &str| text.parse().map_err(|_| Error::new(format!("{PATH}: `{line}`")));
                let run = Run { seconds: number(seconds)?, executions: number(executions)?, edges: number(edges)? };
                Ok((target.to_owned(), run))
            }
            _ => Err(Error::new(format!("{PATH}: `{line}` is no line of it"))),
        };
        lines.map(run).collect::<Result<_>>().map(Self)
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, target: &str, run: &Run) {
        let all = self.0.entry(target.to_owned()).or_default();
        all.seconds += run.seconds;
        all.executions += run.executions;
        all.edges = run.edges;
    }

    /// Writes it.
    pub(crate) fn write(&self) -> Result {
        std::fs::write(workspace::root().join(PATH), self.render()).doing(|| format!("writing {PATH}"))
    }

    fn render(&self) -> String {
        let mut text = BEGINNING.to_owned();
        for (target, Run { seconds, executions, edges }) in &self.0 {
            let _ = writeln!(text, "{target} {seconds} {executions} {edges}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_and_read_back() {
        let mut record = Record::default();
        record.add("json", &Run { seconds: 1200, executions: 10, edges: 7 });
        record.add("json", &Run { seconds: 1200, executions: 5, edges: 8 });
        assert_eq!(record.0["json"], Run { seconds: 2400, executions: 15, edges: 8 });
        assert_eq!(Record::parse(&record.render()).unwrap(), record);
        assert!(Record::parse("json 1 2").is_err() && Record::parse("json a 2 3").is_err());
    }
}
