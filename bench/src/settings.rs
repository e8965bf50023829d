//! What the program is told.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail, ensure};

use crate::rows::{ROWS, Row};

/// A round in a smoke test: long enough for an answer of everybody.
const SMOKE: Duration = Duration::from_millis(200);

/// How to measure, and what.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The program `everything-server`.
    pub(crate) server: PathBuf,
    /// How long a round of one contestant takes.
    pub(crate) time: Duration,
    pub(crate) rounds: usize,
    only: Option<String>,
}

impl Settings {
    /// Reads `--server PATH [--seconds N] [--rounds N] [--only ROW] [--smoke]`.
    pub(crate) fn read(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut settings = Self { server: PathBuf::new(), time: Duration::from_secs(2), rounds: 3, only: None };
        let mut words = words.into_iter();
        while let Some(flag) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{flag}` needs a value"));
            match flag.as_str() {
                "--server" => settings.server = value()?.into(),
                "--seconds" => settings.time = seconds(&value()?)?,
                "--rounds" => settings.rounds = rounds(&value()?)?,
                "--only" => settings.only = Some(row(value()?)?),
                "--smoke" => (settings.time, settings.rounds) = (SMOKE, 1),
                _ => bail!("`{flag}` is not known"),
            }
        }
        ensure!(
            !settings.server.as_os_str().is_empty(),
            "`--server PATH` is needed: start this with `cargo xtask bench`"
        );
        Ok(settings)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(|row| self.only.as_deref().is_none_or(|only| only == row.name))
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

fn row(name: String) -> Result<String> {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    ensure!(names.contains(&name.as_str()), "there is no row `{name}`, but {}", names.join(", "));
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Settings> {
        Settings::read(["--server", "server"].into_iter().chain(words.split_whitespace()).map(str::to_owned))
    }

    #[test]
    fn each_flag_is_heard() {
        let settings = read("--seconds 0.5 --rounds 7 --only stdio").unwrap();
        assert_eq!((settings.time, settings.rounds), (Duration::from_millis(500), 7));
        assert_eq!(settings.rows().map(|row| row.name).collect::<Vec<_>>(), ["stdio"]);
        assert_eq!(read("").unwrap().rows().count(), ROWS.len());
        assert_eq!(read("--smoke").unwrap().rounds, 1);
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        for words in ["--seconds", "--seconds 0", "--seconds soon", "--rounds 0", "--only tea", "--fast"] {
            assert!(read(words).is_err(), "{words}");
        }
    }
}
