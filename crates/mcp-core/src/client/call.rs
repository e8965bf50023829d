//! Client path 2 of 5: one request from its parameters to its response, which is awaited here too. Before: `crates/mcp-core/src/client/api.rs`. After: `crates/mcp-core/src/client/modern/mod.rs` | `crates/mcp-core/src/client/legacy/mod.rs`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use mcp_jsonrpc::{ByteString, Notification, Raw, Request, RequestId, Response};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use crate::{
    Era, Error, ErrorKind, Limits, Revision,
    client::{Incoming, Outgoing, Replies, Transport, legacy, modern::Modern, result},
    deadline::deadline,
    method::Method,
    observer::{ConnectionEvent, Direction, Observed, Observers, Outcome, Role},
    types::Progress,
};

/// How one call is to be made.
///
/// ```
/// use std::time::Duration;
///
/// let options = mcp_core::client::CallOptions::new()
///     .timeout(Duration::from_secs(5))
///     .on_progress(|progress| println!("{} of {:?}", progress.progress, progress.total));
/// ```
#[derive(Default)]
#[must_use]
pub struct CallOptions {
    timeout: Option<Duration>,
    at_most: Option<Duration>,
    progress: Option<Box<dyn FnMut(Progress) + Send>>,
    /// What [`Outgoing::mirrored`] is to be.
    mirrored: Vec<(ByteString, ByteString)>,
}

impl CallOptions {
    /// As the client's limits say, telling nobody of progress.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long to wait for the reply without hearing of progress. Default: [`Limits::request_timeout`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long to wait at most, with progress. Default: [`Limits::request_timeout_max`].
    pub fn at_most(mut self, at_most: Duration) -> Self {
        self.at_most = Some(at_most);
        self
    }

    /// Hears of progress, in order. It runs while the call is awaited and must not block.
    pub fn on_progress(mut self, hear: impl FnMut(Progress) + Send + 'static) -> Self {
        self.progress = Some(Box::new(hear));
        self
    }
}

impl std::fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("at_most", &self.at_most)
            .finish_non_exhaustive()
    }
}

/// What is said around each request.
#[derive(Debug, Clone)]
pub(crate) enum Speech {
    /// Who asks, in every request.
    Modern(Modern),
    /// Before the handshake: no revision is agreed on yet.
    Handshake,
    /// After it.
    Legacy(Revision),
}

impl Speech {
    pub(crate) fn revision(&self) -> Option<Revision> {
        match self {
            Self::Modern(modern) => Some(modern.revision()),
            Self::Handshake => None,
            Self::Legacy(revision) => Some(*revision),
        }
    }

    pub(crate) fn era(&self) -> Era {
        self.revision().map_or(Era::Legacy, Revision::era)
    }

    fn meta(&self, progress_token: Option<&RequestId>) -> String {
        match self {
            Self::Modern(modern) => modern.meta(progress_token),
            Self::Handshake | Self::Legacy(_) => legacy::meta(progress_token),
        }
    }
}

/// Makes calls over a transport.
pub(crate) struct Caller {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) limits: Limits,
    pub(crate) observers: Observers,
    next_id: AtomicU64,
}

impl Caller {
    pub(crate) fn new(transport: Arc<dyn Transport>, limits: Limits, observers: Observers) -> Self {
        Self { transport, limits, observers, next_id: AtomicU64::new(0) }
    }

    /// What observers are told that it is.
    pub(crate) fn connection(&self) -> ConnectionEvent {
        ConnectionEvent { role: Role::Client, transport: self.transport.kind() }
    }

    /// Calls a method; `name` is the parameter of that name, or `uri`, where the method has one.
    pub(crate) async fn call<M: Method>(
        &self,
        speech: &Speech,
        params: &M::Params,
        name: Option<ByteString>,
        options: CallOptions,
    ) -> Result<M::Result, Error> {
        let response = self.respond::<M>(speech, params, name, options).await?;
        result::read::<M>(response, speech.era())
    }

    /// The response as it came.
    pub(crate) async fn respond<M: Method>(
        &self,
        speech: &Speech,
        params: &M::Params,
        name: Option<ByteString>,
        mut options: CallOptions,
    ) -> Result<Response, Error> {
        let id = RequestId::from(self.next_id.fetch_add(1, Ordering::Relaxed));
        // Only tools take long enough to tell of progress, which holds off the time-out too.
        let progress_token = (M::NAME == crate::method::CallTool::NAME).then_some(&id);
        let params = compose(params, &speech.meta(progress_token))?;
        let frame = mcp_jsonrpc::Message::Request(Request::new(id.clone(), M::NAME, Some(params))).encode();
        let out = Outgoing {
            frame,
            id: Some(id),
            method: Some(ByteString::from_static(M::NAME)),
            name,
            revision: speech.revision(),
            mirrored: std::mem::take(&mut options.mirrored),
        };
        let watch = self.observers.observed(|| observed(self.connection(), &out));
        let watch = watch.map(|observed| self.observers.start(observed));
        let outcome = self.await_response(self.transport.request(out), options).await;
        if let Some(watch) = watch {
            watch.complete(judged(&outcome));
        }
        outcome
    }

    /// Leaving early drops `replies`, and that cancels the request.
    async fn await_response(&self, mut replies: Replies, mut options: CallOptions) -> Result<Response, Error> {
        let patience = options.timeout.unwrap_or(self.limits.request_timeout);
        let start = Instant::now();
        let end = deadline(start, options.at_most.unwrap_or(self.limits.request_timeout_max.max(patience)));
        let mut until = deadline(start, patience).min(end);
        loop {
            match timeout_at(until, replies.next()).await {
                Err(_) => return Err(timed_out(start.elapsed())),
                Ok(None) => return Err(Error::new(ErrorKind::TransportClosed, "the stream ended before the response")),
                Ok(Some(Err(error))) => return Err(error),
                Ok(Some(Ok(Incoming::Response(response)))) => return Ok(response),
                Ok(Some(Ok(Incoming::Notification(notification)))) => {
                    until = deadline(Instant::now(), patience).min(end);
                    self.observers.notification(self.connection(), Direction::Incoming, &notification.method);
                    options.hear(&notification);
                }
            }
        }
    }
}

impl CallOptions {
    pub(crate) fn mirroring(mut self, mirrored: Vec<(ByteString, ByteString)>) -> Self {
        self.mirrored = mirrored;
        self
    }

    fn hear(&mut self, notification: &Notification) {
        let progress = notification.params.as_ref().and_then(|params| params.decode().ok());
        if let (Some(hear), Some(progress)) = (&mut self.progress, progress) {
            hear(progress);
        }
    }
}

fn observed(connection: ConnectionEvent, out: &Outgoing) -> Observed {
    Observed {
        connection,
        direction: Direction::Outgoing,
        method: out.method.clone().unwrap_or_default(),
        name: out.name.clone(),
        id: out.id.clone().unwrap_or_else(|| "".into()),
        revision: out.revision,
    }
}

/// How a request ended, as observers are told.
fn judged(outcome: &Result<Response, Error>) -> Outcome {
    match outcome {
        Ok(Response { outcome: Ok(result), .. }) => match result.member("isError") {
            Some(is_error) if is_error.as_str() == "true" => Outcome::ToolFailed,
            _ => Outcome::Completed,
        },
        Ok(Response { outcome: Err(error), .. }) => Outcome::Error { code: error.code },
        Err(error) => Outcome::Failed { kind: error.kind() },
    }
}

fn timed_out(after: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("no reply came within {} ms; the request was cancelled", after.as_millis()))
}

/// Parameters with `_meta` put in front, whose members are `meta`.
fn compose(params: &impl Serialize, meta: &str) -> Result<Raw, Error> {
    let invalid = |error| Error::caused(ErrorKind::InvalidParams, "the parameters cannot be written as JSON", error);
    let params = Raw::encode(params).map_err(invalid)?;
    if meta.is_empty() {
        return Ok(params);
    }
    let members = params.as_str().strip_prefix('{').unwrap_or("}");
    let comma = if members == "}" { "" } else { "," };
    Ok(Raw::assume_valid(format!(r#"{{"_meta":{{{meta}}}{comma}{members}"#).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_goes_in_front() {
        for (params, meta, expected) in [
            (serde_json::json!({}), "", "{}"),
            (serde_json::json!({}), r#""m":1"#, r#"{"_meta":{"m":1}}"#),
            (serde_json::json!({"a": 1}), r#""m":1"#, r#"{"_meta":{"m":1},"a":1}"#),
        ] {
            assert_eq!(compose(&params, meta).unwrap().as_str(), expected);
        }
    }
}
