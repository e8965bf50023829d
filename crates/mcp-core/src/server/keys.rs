//! The keys that a run of a handler has used: each names one question, and one thing that is done once.

use std::{collections::BTreeSet, sync::Mutex};

use crate::{ToolError, lock::lock};

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    Question,
    Once,
}

#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<BTreeSet<(Use, String)>>);

/// A key that is taken, until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    keys: &'a Keys,
    entry: (Use, &'a str),
}

impl Keys {
    /// Takes a key, or fails if it is taken.
    pub(crate) fn take<'a>(&'a self, for_what: Use, key: &'a str) -> Result<Taken<'a>, ToolError> {
        if lock(&self.0).insert((for_what, key.to_owned())) {
            return Ok(Taken { keys: self, entry: (for_what, key) });
        }
        Err(names_two(for_what, key))
    }
}

/// The failure of a handler that uses a key for something else.
pub(crate) fn names_two(for_what: Use, key: &str) -> ToolError {
    let what = match for_what {
        Use::Question => "questions",
        Use::Once => "things that are done once",
    };
    ToolError::new(format!("The key `{key}` names two {what}"))
}

impl Taken<'_> {
    /// Leaves it taken to the end of the run.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

/// What came to nothing may be tried again under its key.
impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let (for_what, key) = self.entry;
        lock(&self.keys.0).remove(&(for_what, key.to_owned()));
    }
}
