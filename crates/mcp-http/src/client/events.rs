//! The events of one response.

use mcp_core::{Error, Limits};
use reqwest::Response;

use super::{
    refused::{failed, invalid},
    sse::{Event, EventDecoder},
    target::drain,
};

/// A response that is a stream of events.
pub(super) struct Events {
    response: Response,
    pub(super) decoder: EventDecoder,
}

/// Why there are no further events.
pub(super) enum Ended {
    /// The stream ended as it should.
    InOrder,
    /// The connection broke.
    Cut(Error),
    /// What comes is no stream of events that can be read.
    Unreadable(Error),
}

impl Events {
    pub(super) fn new(response: Response, limits: &Limits) -> Self {
        Self { response, decoder: EventDecoder::new(limits.message_bytes) }
    }

    /// The next event. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Event, Ended> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return event.map_err(|error| Ended::Unreadable(invalid(&error.to_string())));
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.decoder.feed(&chunk),
                Ok(None) => return Err(Ended::InOrder),
                Err(error) => return Err(Ended::Cut(failed("the stream failed", error))),
            }
        }
    }

    /// Nothing more is wanted of it, but that its connection can be used again.
    pub(super) fn finish(self) {
        drain(self.response);
    }
}
