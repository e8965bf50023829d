use std::{error::Error, fmt};

/// Why a test fails, in words for its reader. `Debug` prints the same words, so that `unwrap` reads well.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure for that reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// The same, and where it happened.
    #[must_use]
    pub(crate) fn at(self, place: impl fmt::Display) -> Self {
        Self(format!("{place}: {self}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Failure {}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for Failure {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}
