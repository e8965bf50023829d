//! The flags after a command's name. A command states which it knows; any other word is an error.

use crate::error::{Error, Result};

/// The flags that were given, each one that the command knows.
#[derive(Debug)]
pub(crate) struct Arguments {
    given: Vec<String>,
}

impl Arguments {
    /// Checks `words` against the flags that `command` knows.
    pub(crate) fn read(command: &str, known: &[&str], words: &[String]) -> Result<Self> {
        match words.iter().find(|word| !known.contains(&word.as_str())) {
            Some(word) if known.is_empty() => Err(Error::new(format!("`{command}` takes no flags, but got `{word}`"))),
            Some(word) => Err(Error::new(format!("`{command}` knows {}, but got `{word}`", known.join(", ")))),
            None => Ok(Self { given: words.to_vec() }),
        }
    }

    /// Whether `flag` was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.given.iter().any(|given| given == flag)
    }
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
}
