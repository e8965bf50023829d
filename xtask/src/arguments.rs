//! The flags after a command's name. A command states which it knows, `--flag` or `--flag VALUE`; any other word is an
//! error.

use crate::error::{Error, Result};

/// The flags that were given, each one that the command knows.
#[derive(Debug)]
pub(crate) struct Arguments {
    given: Vec<String>,
}

impl Arguments {
    /// Checks `words` against the flags that `command` knows.
    pub(crate) fn read(command: &str, known: &[&str], words: &[String]) -> Result<Self> {
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let Some(flag) = known.iter().find(|flag| name(flag) == word) else {
                return Err(Error::new(unknown(command, known, word)));
            };
            if takes_value(flag) && rest.next().is_none() {
                return Err(Error::new(format!("`{command}` knows `{flag}`, but got no value")));
            }
        }
        Ok(Self { given: words.to_vec() })
    }

    /// All that was given, as it was given: for a program that it is handed on to.
    pub(crate) fn words(&self) -> &[String] {
        &self.given
    }

    /// Whether `flag` was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.given.iter().any(|given| given == flag)
    }

    /// What was given after `flag`.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        let place = self.given.iter().position(|given| given == flag)?;
        self.given.get(place + 1).map(String::as_str)
    }
}

fn unknown(command: &str, known: &[&str], word: &str) -> String {
    if known.is_empty() {
        return format!("`{command}` takes no flags, but got `{word}`");
    }
    format!("`{command}` knows {}, but got `{word}`", known.join(", "))
}

/// `--rounds` of `--rounds N`.
fn name(flag: &str) -> &str {
    flag.split_once(' ').map_or(flag, |(name, _value)| name)
}

fn takes_value(flag: &str) -> bool {
    flag.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Arguments> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Arguments::read("test", &["--skip-npm"], &words)
    }

    #[test]
    fn a_known_flag_is_seen_and_a_missing_one_is_not() {
        assert!(read(&["--skip-npm"]).unwrap().has("--skip-npm"));
        assert!(!read(&[]).unwrap().has("--skip-npm"));
    }

    #[test]
    fn a_mistyped_flag_is_an_error_that_names_the_right_ones() {
        let message = read(&["--skipnpm"]).unwrap_err().to_string();
        assert_eq!(message, "`test` knows --skip-npm, but got `--skipnpm`");
    }

    #[test]
    fn a_flag_with_a_value_takes_the_next_word() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            Arguments::read("bench", &["--rounds N", "--smoke"], &words)
        };
        assert_eq!(read(&["--rounds", "7", "--smoke"]).unwrap().words(), ["--rounds", "7", "--smoke"]);
        assert_eq!(read(&["--smoke", "--rounds", "7"]).unwrap().value("--rounds"), Some("7"));
        assert_eq!(read(&["--smoke"]).unwrap().value("--rounds"), None);
        assert_eq!(read(&["--rounds"]).unwrap_err().to_string(), "`bench` knows `--rounds N`, but got no value");
        assert!(read(&["7"]).is_err());
    }
}
