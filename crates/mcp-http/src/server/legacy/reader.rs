//! Who reads a stream of a session: the body of one HTTP response.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_core::Stream;
use mcp_core::store::{LoggedEvent, StreamId};
use mcp_jsonrpc::Bytes;
use tokio::time::{Instant, sleep};

use super::{
    Sessions,
    channel::{Channel, Found},
    live::{self, Live},
};
use crate::server::sse;

pub(super) struct Reader {
    sessions: Sessions,
    live: Arc<Live>,
    channel: Arc<Channel>,
    number: u64,
    /// Whether it also reads what belongs to no call.
    is_standalone: bool,
    /// What is written first, and shows that the stream is there.
    first: Option<Bytes>,
    quiet_since: Instant,
}

impl Reader {
    /// The reader of that number.
    pub(super) fn new(sessions: &Sessions, live: &Arc<Live>, channel: &Arc<Channel>, number: u64) -> Self {
        let first = live.session.revision().map(|revision| {
            if revision.primes_streams() { sse::priming(channel.id, 0) } else { Bytes::from_static(sse::COMMENT) }
        });
        Self {
            sessions: sessions.clone(),
            live: live.clone(),
            channel: channel.clone(),
            number,
            is_standalone: live::is_standalone(channel.id),
            first,
            quiet_since: Instant::now(),
        }
    }

    /// Begins with a place, as some clients forget it.
    pub(super) fn behind(mut self, seq: u64) -> Self {
        if self.live.session.revision().is_some_and(|revision| revision.primes_streams()) {
            self.first = Some(sse::priming(self.channel.id, seq));
        }
        self
    }

    /// Without a first event, for streams that begin with a message in revisions that know no others.
    pub(super) fn unprimed(mut self) -> Self {
        self.first = self.first.take().filter(|first| first != sse::COMMENT);
        self
    }

    pub(super) fn into_events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
        futures_util::stream::unfold(self, |mut reader| async move { Some((Ok(reader.next().await?), reader)) })
    }

    async fn next(&mut self) -> Option<Bytes> {
        let chunk = match self.first.take() {
            Some(first) => first,
            None => self.next_event().await?,
        };
        self.quiet_since = Instant::now();
        Some(chunk)
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        let limits = self.sessions.limits();
        let pause = limits.keep_alive.min(self.live.pause(limits));
        loop {
            match self.channel.take(self.number) {
                Found::Event(event) => return Some(sse::event(&event.frame, Some((event.stream, event.seq)))),
                Found::End => return None,
                Found::Nothing => {
                    if let Some(comment) = self.wait(pause).await? {
                        return Some(comment);
                    }
                }
            }
        }
    }

    /// Waits for something to read; a comment where nothing comes for long, `None` at the end.
    async fn wait(&self, pause: Duration) -> Option<Option<Bytes>> {
        let changed = std::future::poll_fn(|cx| self.live.session.poll_changed(cx));
        tokio::select! {
            biased;
            () = self.live.ended.cancelled() => None,
            () = self.channel.readable(self.number) => Some(None),
            () = changed, if self.is_standalone => {
                // Not within the select, which might drop it half-way.
                self.tell_change().await;
                Some(None)
            }
            () = sleep(pause) => {
                if !self.sessions.renew(&self.live).await {
                    return None;
                }
                let is_quiet = self.quiet_since.elapsed() >= self.sessions.limits().keep_alive;
                Some(is_quiet.then(|| Bytes::from_static(sse::COMMENT)))
            }
        }
    }

    /// Something has changed, and is sent on this very stream.
    async fn tell_change(&self) {
        if let Some(change) = self.live.session.next_change() {
            self.sessions.tell(change.method);
            // It cannot wait for itself.
            self.channel.send(self.sessions.log(), change.frame, false, Duration::ZERO).await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.channel.detach(self.number);
        if self.is_standalone {
            self.live.lost();
        }
        self.live.detached();
    }
}

/// The rest of a stream that is over: what was missed, and the end.
pub(super) fn rest(
    stream: StreamId,
    missed: Vec<LoggedEvent>,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let chunk = move |event: LoggedEvent| Ok(sse::event(&event.frame, Some((stream, event.seq))));
    futures_util::stream::iter(missed.into_iter().map(chunk))
}
