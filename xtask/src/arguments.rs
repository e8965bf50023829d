//! The words after a command's name. A command states which flags it knows, `--flag` or `--flag VALUE`, and with
//! `NAME...` that it takes names too; any other word is an error.

use crate::error::{Error, Result};

/// How a command states that it takes names.
const NAMES: &str = "NAME...";

/// The flags that were given, each one that the command knows, and the names.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    flags: Vec<(String, Option<String>)>,
    names: Vec<String>,
}

impl Arguments {
    /// Checks `words` against what `command` knows.
    pub(crate) fn read(command: &str, known: &[&str], words: &[String]) -> Result<Self> {
        let mut arguments = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if known.contains(&NAMES) && !word.starts_with('-') {
                arguments.names.push(word.clone());
                continue;
            }
            let Some(flag) = known.iter().find(|flag| name(flag) == word) else {
                return Err(Error::new(unknown(command, known, word)));
            };
            let value = if takes_value(flag) { Some(value(command, flag, rest.next())?) } else { None };
            arguments.flags.push((word.clone(), value));
        }
        Ok(arguments)
    }

    /// Whether `flag` was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(given, _)| given == flag)
    }

    /// What was given after `flag`.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        self.flags.iter().find(|(given, _)| given == flag)?.1.as_deref()
    }

    /// The words that belong to no flag.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

fn value(command: &str, flag: &str, next: Option<&String>) -> Result<String> {
    next.cloned().ok_or_else(|| Error::new(format!("`{command}` knows `{flag}`, but got no value")))
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
        let arguments = read(&["--smoke", "--rounds", "7"]).unwrap();
        assert_eq!((arguments.value("--rounds"), arguments.has("--smoke")), (Some("7"), true));
        assert_eq!(read(&["--smoke"]).unwrap().value("--rounds"), None);
        assert_eq!(read(&["--rounds"]).unwrap_err().to_string(), "`bench` knows `--rounds N`, but got no value");
        assert!(read(&["7"]).is_err());
    }

    #[test]
    fn names_stand_wherever_they_are_taken() {
        let words = ["http", "--only", "ws", "stdio"].map(str::to_owned);
        let arguments = Arguments::read("bench", &["NAME...", "--only ROWS"], &words).unwrap();
        assert_eq!(arguments.names().collect::<Vec<_>>(), ["http", "stdio"]);
        assert_eq!(arguments.value("--only"), Some("ws"));
        assert!(Arguments::read("bench", &["NAME..."], &["--fast".to_owned()]).is_err(), "a flag is no name");
    }
}
