//! What the program is told.

use std::{path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use bench::Who;

use crate::rows::{ROWS, Row};

/// A round in a smoke test: long enough for an answer of everybody.
const SMOKE: Duration = Duration::from_millis(200);

/// Rows that are no speeds: what a build brings along.
pub(crate) const FACTS: [&str; 3] = ["crates", "binary", "cold-build"];

/// How to measure, and what.
#[derive(Debug)]
pub(crate) struct Settings {
    /// How long a round of one contestant takes.
    pub(crate) time: Duration,
    pub(crate) rounds: usize,
    /// How many sessions are left idle.
    pub(crate) sessions: usize,
    /// How many listeners hear of a change.
    pub(crate) listeners: usize,
    /// Peers that were brought along.
    pub(crate) guests: Vec<Guest>,
    /// Where the report is written to, beside the terminal.
    pub(crate) write: Option<PathBuf>,
    is_smoke: bool,
    /// All of them, if there are none.
    only: Vec<String>,
}

/// A peer whose program is not of this package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guest {
    pub(crate) who: Who,
    pub(crate) command: Vec<String>,
}

impl Guest {
    /// What it says of itself.
    pub(crate) fn version(&self) -> String {
        let output = Command::new(&self.command[0]).args(&self.command[1..]).arg("version").output();
        let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        said.ok().filter(|said| !said.is_empty()).unwrap_or_else(|| "no version told".to_owned())
    }
}

impl Settings {
    /// Reads `[ROW…] [--only ROW,…] [--seconds N] [--rounds N] [--smoke] [--peer KIND=COMMAND]… [--write DIR]`.
    pub(crate) fn read(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut settings = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--seconds" => settings.time = seconds(&value()?)?,
                "--rounds" => settings.rounds = rounds(&value()?)?,
                "--only" => settings.add_rows(&value()?)?,
                "--peer" => settings.guests.push(guest(&value()?)?),
                "--write" => settings.write = Some(value()?.into()),
                "--smoke" => settings.make_smoke(),
                flag if flag.starts_with('-') => bail!("`{flag}` is not known"),
                row => settings.add_rows(row)?,
            }
        }
        Ok(settings)
    }

    fn make_smoke(&mut self) {
        (self.is_smoke, self.time, self.rounds) = (true, SMOKE, 1);
        (self.sessions, self.listeners) = (100, 50);
    }

    fn add_rows(&mut self, names: &str) -> Result<()> {
        for name in names.split(',') {
            let mut known = ROWS.iter().map(|row| row.name).chain(FACTS);
            if !known.any(|known| known == name) {
                let names: Vec<&str> = ROWS.iter().map(|row| row.name).chain(FACTS).collect();
                bail!("there is no row `{name}`, but {}", names.join(", "));
            }
            self.only.push(name.to_owned());
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(|row| self.wants(row.name))
    }

    /// Those of [`FACTS`] that are asked for. A smoke test has none: they are no answers, and take minutes.
    pub(crate) fn facts(&self) -> Vec<&'static str> {
        FACTS.into_iter().filter(|fact| !self.is_smoke && self.wants(fact)).collect()
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(2),
            rounds: 3,
            sessions: 10_000,
            listeners: 1000,
            guests: Vec::new(),
            write: None,
            is_smoke: false,
            only: Vec::new(),
        }
    }
}

fn seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().with_context(|| format!("`{text}` is no number of seconds"))?;
    ensure!((0.01..=600.0).contains(&seconds), "a round takes from 0.01 to 600 s");
    Ok(Duration::from_secs_f64(seconds))
}

fn rounds(text: &str) -> Result<usize> {
    let rounds = text.parse().with_context(|| format!("`{text}` is no number of rounds"))?;
    ensure!((1..=1000).contains(&rounds), "there are 1 to 1000 rounds");
    Ok(rounds)
}

fn guest(text: &str) -> Result<Guest> {
    let (kind, command) = text.split_once('=').with_context(|| format!("`{text}` is no KIND=COMMAND"))?;
    let who = [Who::TurboMcp, Who::Node, Who::Python].into_iter().find(|who| who.name() == kind);
    let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    ensure!(!command.is_empty(), "`{text}` has no command");
    Ok(Guest { who: who.with_context(|| format!("`{kind}` is none of turbomcp, node, python"))?, command })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Settings> {
        Settings::read(words.split_whitespace().map(str::to_owned))
    }

    fn rows(words: &str) -> Vec<&'static str> {
        read(words).unwrap().rows().map(|row| row.name).collect()
    }

    #[test]
    fn each_flag_is_heard() {
        let settings = read("--seconds 0.5 --rounds 7 --write docs").unwrap();
        assert_eq!((settings.time, settings.rounds), (Duration::from_millis(500), 7));
        assert_eq!(settings.write, Some("docs".into()));
        let smoke = read("--smoke").unwrap();
        assert_eq!((smoke.rounds, smoke.sessions, smoke.listeners), (1, 100, 50));
    }

    #[test]
    fn rows_are_named_with_the_flag_and_without() {
        assert_eq!(rows("--only stdio,ws http"), ["http", "stdio", "ws"]);
        assert_eq!(rows("").len(), ROWS.len());
        let facts = read("crates").unwrap();
        assert_eq!((facts.facts(), facts.rows().count()), (vec!["crates"], 0));
        assert_eq!(read("--smoke").unwrap().facts(), [] as [&str; 0]);
    }

    #[test]
    fn a_guest_is_a_kind_and_a_command() {
        let words = ["--peer".to_owned(), "node=/usr/bin/node server.js".to_owned()];
        let guests = Settings::read(words).unwrap().guests;
        assert_eq!(guests, [Guest { who: Who::Node, command: vec!["/usr/bin/node".into(), "server.js".into()] }]);
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        for words in ["--seconds", "--seconds 0", "--seconds soon", "--rounds 0", "--only tea", "tea", "--fast"] {
            assert!(read(words).is_err(), "{words}");
        }
        for words in ["--peer", "--peer node", "--peer node=", "--peer rmcp=server"] {
            assert!(read(words).is_err(), "{words}");
        }
    }
}
