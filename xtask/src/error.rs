//! What a command fails with: one message for the terminal and the exit code.

use std::fmt;

/// The result of everything here that can fail.
pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

/// A message for the person at the terminal, and the code to exit with.
#[derive(Debug)]
pub(crate) struct Error {
    message: String,
    code: u8,
}

impl Error {
    /// An error that exits with 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// The same error with another exit code: that of a program whose result is passed on.
    pub(crate) fn exiting_with(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// What the process exits with.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Says what was being done when a cause came up.
pub(crate) trait Doing<T> {
    /// Turns the cause into an [`Error`] that reads `{what}: {cause}`.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error::new(format!("{}: {cause}", what())))
    }
}
