//! What a handler does once, though it runs again in each round.

use std::pin::pin;

use mcp_jsonrpc::Raw;
use serde::{Serialize, de::DeserializeOwned};

use super::replay::{Replay, Round, over};
use crate::{
    ToolError,
    sync::{
        lock,
        thread::{self, ThreadId},
    },
};

/// Something that is being done.
#[derive(Debug, Default)]
pub(super) struct Doing {
    /// Which thread polls it just now.
    polled_on: Option<ThreadId>,
    /// It waits for an answer of the client itself, so it cannot end before the round does.
    asks: bool,
}

impl Round {
    /// Whether the handler must not be dropped yet.
    pub(super) fn is_held(&self) -> bool {
        self.doing.values().any(|doing| !doing.asks)
    }

    /// A question was asked on this thread: by what is polled on it, if anything is.
    pub(super) fn release_what_asks(&mut self) {
        let here = Some(thread::current().id());
        self.doing.values_mut().filter(|doing| doing.polled_on == here).for_each(|doing| doing.asks = true);
    }
}

impl Replay {
    /// Does something, unless it was done in an earlier round. While it is being done the round does not end: the handler
    /// would be dropped in the middle of it, and begin it again in the next one.
    pub(crate) async fn once<T, E, Fut>(&self, key: &str, what: impl FnOnce() -> Fut) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
        Fut: Future<Output = Result<T, E>>,
    {
        let value = match self.begin(key)? {
            Begun::Before(value) => value,
            Begun::Now(deed) => {
                let value = Raw::encode(&deed.poll_to_end(what()).await.map_err(Into::into)?)?;
                deed.remember(value.clone());
                value
            }
        };
        // What does not read is still done, and must not be done again.
        let unreadable = |_| ToolError::new(format!("What was done under the key `{key}` cannot be read back"));
        value.decode().map_err(unreadable)
    }

    fn begin<'a>(&'a self, key: &'a str) -> Result<Begun<'a>, ToolError> {
        let mut round = lock(&self.round);
        if round.is_over {
            return Err(over());
        }
        if let Some(done) = self.before.once.get(key) {
            round.once.insert(key.to_owned(), done.clone());
            return Ok(Begun::Before(done.clone()));
        }
        round.doing.insert(key.to_owned(), Doing::default());
        Ok(Begun::Now(Deed { replay: self, key }))
    }
}

enum Begun<'a> {
    /// It was done in an earlier round, and this came of it.
    Before(Raw),
    /// It is being done.
    Now(Deed<'a>),
}

/// Something that is being done, until this is dropped.
struct Deed<'a> {
    replay: &'a Replay,
    key: &'a str,
}

impl Deed<'_> {
    async fn poll_to_end<F: Future>(&self, what: F) -> F::Output {
        let mut what = pin!(what);
        std::future::poll_fn(|cx| {
            self.is_polled_on(Some(thread::current().id()));
            let polled = what.as_mut().poll(cx);
            self.is_polled_on(None);
            polled
        })
        .await
    }

    fn is_polled_on(&self, thread: Option<ThreadId>) {
        if let Some(doing) = lock(&self.replay.round).doing.get_mut(self.key) {
            doing.polled_on = thread;
        }
    }

    fn remember(self, value: Raw) {
        lock(&self.replay.round).once.insert(self.key.to_owned(), value);
    }
}

/// The round may end now.
impl Drop for Deed<'_> {
    fn drop(&mut self) {
        let mut round = lock(&self.replay.round);
        round.doing.remove(self.key);
        let is_waited_for = round.is_waiting();
        drop(round);
        if is_waited_for {
            self.replay.runner.wake();
        }
    }
}
