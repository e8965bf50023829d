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
use tokio_util::sync::CancellationToken;

use crate::{
    Blame, Era, Error, ErrorKind, Limits, Revision,
    client::{
        Incoming, Outgoing, Replies, Transport,
        attention::Attention,
        input::Input,
        legacy,
        modern::Modern,
        remote::{Passing, Whose},
        result,
    },
    deadline::deadline,
    head::meta_key,
    method::{CallTool, Complete, Method},
    observer::{ConnectionEvent, Direction, Observed, Observers, Outcome, Role},
    types::{LogLevel, Progress, TraceContext},
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
    pub(super) timeout: Option<Duration>,
    pub(super) at_most: Option<Duration>,
    progress: Option<Box<dyn FnMut(Progress) + Send>>,
    pub(super) cancel: Option<CancellationToken>,
    /// Further members of `_meta`.
    meta: Vec<(Raw, Raw)>,
    /// Whether the server is asked, whatever is kept of an earlier answer.
    pub(super) is_fresh: bool,
    /// From which level on a modern server is to say what it does.
    pub(super) log_level: Option<LogLevel>,
    /// What [`Outgoing::mirrored`] is to be.
    pub(super) mirrored: Vec<(ByteString, ByteString)>,
    /// What a modern server may ask about this call, if not what the client says.
    pub(super) capabilities: Option<Raw>,
    /// Who is asked what a legacy server asks about this call.
    pub(super) whose: Whose,
}

impl CallOptions {
    /// As the client's limits say, telling nobody of progress.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long to wait for the reply without hearing of progress. Default: [`Limits::request_timeout`].
    ///
    /// The time that this client takes to answer what the server asks meanwhile does not count; a modern server asks between
    /// one request and the next, each of which has this long. So has each request about the task that a call becomes: that
    /// the server answers for it is as good as progress.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long to wait at most, with progress and questions; for a task that is awaited, from when the call became one.
    /// Default: [`Limits::request_timeout_max`], or the [`timeout`](Self::timeout) where that is longer.
    pub fn at_most(mut self, at_most: Duration) -> Self {
        self.at_most = Some(at_most);
        self
    }

    /// Hears of progress, in order. It runs while the call is awaited and must not block.
    pub fn on_progress(mut self, hear: impl FnMut(Progress) + Send + 'static) -> Self {
        self.progress = Some(Box::new(hear));
        self
    }

    /// Asks the server, even where an answer is kept that is still good ([`ClientBuilder::cache`](crate::ClientBuilder::cache)).
    pub fn fresh(mut self) -> Self {
        self.is_fresh = true;
        self
    }

    /// How long to wait without hearing of progress, and at most.
    pub(super) fn patience(&self, limits: &Limits) -> (Duration, Duration) {
        let patience = self.timeout.unwrap_or(limits.request_timeout);
        (patience, self.at_most.unwrap_or(limits.request_timeout_max.max(patience)))
    }

    /// Gives the call up when `token` fires, as dropping its future does: the server is told, and the call fails with
    /// [`ErrorKind::RequestCancelled`].
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Sends a member of `_meta` with it, in place of one of that name. What the client says there itself stays as it is.
    ///
    /// # Errors
    /// When the value cannot be written as JSON, or the key belongs to the protocol.
    ///
    /// Specification: *Overview, `_meta`*.
    pub fn meta(mut self, key: &str, value: impl Serialize) -> Result<Self, Error> {
        let invalid = |message: &str| Error::new(ErrorKind::InvalidParams, message).blaming(Blame::Caller);
        if meta_key::is_reserved(key) {
            return Err(invalid("the key belongs to the protocol"));
        }
        self.push_meta(key, &value).map_err(|_| invalid("the value cannot be written as JSON"))?;
        Ok(self)
    }

    /// What somebody else said of the call; what is the protocol's own stays behind.
    pub(super) fn pass_meta(&mut self, key: &str, value: &Raw) {
        if !meta_key::is_reserved(key) {
            // It was JSON before.
            let _ = self.push_meta(key, value);
        }
    }

    fn push_meta(&mut self, key: &str, value: &impl Serialize) -> Result<(), serde_json::Error> {
        let (key, value) = (Raw::encode(key)?, Raw::encode(value)?);
        self.meta.retain(|(given, _)| *given != key);
        self.meta.push((key, value));
        Ok(())
    }

    /// Says which trace the call is part of.
    pub fn trace(mut self, trace: &TraceContext) -> Self {
        // A text can always be written.
        let _ = trace.members().try_for_each(|(key, value)| self.push_meta(key, &value));
        self
    }

    /// Has a modern server tell, from that level on, what it does; a legacy one is told once, with
    /// [`Client::set_log_level`](crate::Client::set_log_level). It comes to whoever
    /// [`ClientBuilder::on_log`](crate::ClientBuilder::on_log) names.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
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

    /// The members of `_meta`.
    fn meta(&self, progress_token: Option<&RequestId>, options: &CallOptions) -> String {
        let own = match self {
            Self::Modern(modern) => {
                modern.meta(progress_token, options.log_level, options.capabilities.as_ref().map(Raw::as_str))
            }
            Self::Handshake | Self::Legacy(_) => legacy::meta(progress_token),
        };
        options.meta.iter().fold(own, |mut meta, (key, value)| {
            let comma = if meta.is_empty() { "" } else { "," };
            meta.extend([comma, key.as_str(), ":", value.as_str()]);
            meta
        })
    }
}

/// What is asked for.
pub(crate) struct Ask<'a, P> {
    pub(crate) params: &'a P,
    /// The parameter `name` or `uri`, where the method has one.
    pub(crate) name: Option<ByteString>,
    /// What earlier rounds have led to.
    pub(crate) input: Input,
}

impl<'a, P> Ask<'a, P> {
    pub(crate) fn new(params: &'a P) -> Self {
        Self { params, name: None, input: Input::default() }
    }

    pub(crate) fn named(params: &'a P, name: &str) -> Self {
        Self { name: Some(name.into()), ..Self::new(params) }
    }
}

/// Makes calls over a transport.
pub(crate) struct Caller {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) limits: Limits,
    pub(crate) observers: Observers,
    /// Whose the questions of a legacy server are.
    pub(crate) passing: Arc<Passing>,
    pub(super) attention: Arc<Attention>,
    next_id: AtomicU64,
}

impl Caller {
    pub(crate) fn new(transport: Arc<dyn Transport>, limits: Limits, observers: Observers) -> Self {
        let passing = Arc::new(Passing::new(limits.request_timeout));
        Self { transport, limits, observers, passing, attention: Arc::default(), next_id: AtomicU64::new(0) }
    }

    /// What observers are told that it is.
    pub(crate) fn connection(&self) -> ConnectionEvent {
        ConnectionEvent { role: Role::Client, transport: self.transport.kind() }
    }

    /// Calls a method that asks nothing before it answers.
    pub(crate) async fn call<M: Method>(&self, speech: &Speech, params: &M::Params) -> Result<M::Result, Error> {
        let ask = Ask::new(params);
        let response = self.respond::<M>(speech, &ask, &mut CallOptions::new()).await?;
        result::read::<M>(response, speech.era())
    }

    /// The response as it came.
    pub(crate) async fn respond<M: Method>(
        &self,
        speech: &Speech,
        ask: &Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Response, Error> {
        let out = self.compose::<M>(speech, ask, options)?;
        let watch = self.observers.observed(|| observed(self.connection(), &out));
        let watch = watch.map(|observed| self.observers.start(observed));
        let legacy = out.id.clone().filter(|_| speech.era() == Era::Legacy);
        let registered = legacy.map(|id| self.passing.register(id, options.whose.clone(), may_ask::<M>()));
        let outcome = self.await_response(self.transport.request(out), options).await;
        if let (Some(registered), false) = (registered, may_go_on(&outcome)) {
            registered.over();
        }
        if let Some(watch) = watch {
            watch.complete(judged(&outcome));
        }
        outcome
    }

    /// The request, under an id of its own.
    pub(crate) fn compose<M: Method>(
        &self,
        speech: &Speech,
        ask: &Ask<'_, M::Params>,
        options: &CallOptions,
    ) -> Result<Outgoing, Error> {
        let id = RequestId::from(self.next_id.fetch_add(1, Ordering::Relaxed));
        // Tools may take long, and what they tell of progress holds off the time-out too.
        let tells = M::NAME == CallTool::NAME || options.progress.is_some();
        let progress_token = tells.then_some(&id);
        let params = compose(ask.params, &speech.meta(progress_token, options), &ask.input)?;
        let frame = mcp_jsonrpc::Message::Request(Request::new(id.clone(), M::NAME, Some(params))).encode();
        Ok(Outgoing {
            frame,
            id: Some(id),
            method: Some(ByteString::from_static(M::NAME)),
            name: ask.name.clone(),
            revision: speech.revision(),
            mirrored: options.mirrored.clone(),
        })
    }

    /// Leaving early drops `replies`, and that cancels the request.
    async fn await_response(&self, mut replies: Replies, options: &mut CallOptions) -> Result<Response, Error> {
        let (patience, at_most) = options.patience(&self.limits);
        let start = Instant::now();
        let end = deadline(start, at_most);
        let mut until = deadline(start, patience).min(end);
        loop {
            match timeout_at(until, replies.next()).await {
                Err(_) => match self.attention.held_until().map(|held| deadline(held, patience).min(end)) {
                    Some(later) if later > until => until = later,
                    _ => return Err(timed_out(start.elapsed())),
                },
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
    fn hear(&mut self, notification: &Notification) {
        let progress = notification.params.as_ref().and_then(|params| params.decode().ok());
        if let (Some(hear), Some(progress)) = (&mut self.progress, progress) {
            hear(progress);
        }
    }
}

/// Whether the server may still work on a request that ended like that.
fn may_go_on(outcome: &Result<Response, Error>) -> bool {
    let kind = outcome.as_ref().err().map(Error::kind);
    matches!(kind, Some(ErrorKind::Timeout | ErrorKind::TransportClosed))
}

/// Whether servers ask while they answer it. One may want the roots to make a list, too; but lists are read unasked, and
/// just when a call has changed them, so that its questions would be unclear then.
fn may_ask<M: Method>() -> bool {
    M::MAY_ASK || M::NAME == Complete::NAME
}

fn observed(connection: ConnectionEvent, out: &Outgoing) -> Observed {
    Observed {
        connection,
        direction: Direction::Outgoing,
        method: out.method.clone().unwrap_or_default(),
        // What names a task may open it to whoever reads it.
        name: out.name.clone().filter(|_| !is_about_task(out)),
        id: out.id.clone().unwrap_or_else(|| "".into()),
        revision: out.revision,
    }
}

fn is_about_task(out: &Outgoing) -> bool {
    out.method.as_ref().is_some_and(|method| method.starts_with("tasks/"))
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

/// Parameters with what is the protocol's put in front: `_meta`, whose members are `meta`, and what earlier rounds led to.
fn compose(params: &impl Serialize, meta: &str, input: &Input) -> Result<Raw, Error> {
    let invalid = |error| Error::caused(ErrorKind::InvalidParams, "the parameters cannot be written as JSON", error);
    let params = Raw::encode(params).map_err(invalid)?;
    let [answers, state] = [&input.responses, &input.state].map(|raw| raw.as_ref().map_or("", Raw::as_str));
    let mut text = String::with_capacity(64 + meta.len() + answers.len() + state.len() + params.as_str().len());
    text.push('{');
    let mut put = |before: &str, member: &str, after: &str| {
        if !member.is_empty() {
            let comma = if text.len() > 1 { "," } else { "" };
            text.extend([comma, before, member, after]);
        }
    };
    put(r#""_meta":{"#, meta, "}");
    put(r#""inputResponses":"#, answers, "");
    put(r#""requestState":"#, state, "");
    put("", params.as_str().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default(), "");
    text.push('}');
    Ok(Raw::assume_valid(text.into()))
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
            assert_eq!(compose(&params, meta, &Input::default()).unwrap().as_str(), expected);
        }
        let input = Input { responses: Raw::parse("{}").ok(), state: Raw::parse(r#""s""#).ok() };
        let again = compose(&serde_json::json!({"a": 1}), "", &input).unwrap();
        assert_eq!(again.as_str(), r#"{"inputResponses":{},"requestState":"s","a":1}"#);
    }

    #[test]
    fn the_users_members_of_meta_stand_behind_the_clients() {
        let trace = TraceContext::new("00-1-2-01");
        let options = CallOptions::new().meta("x.y/z", 1).unwrap().trace(&trace);
        assert_eq!(Speech::Handshake.meta(None, &options), r#""x.y/z":1,"traceparent":"00-1-2-01""#);
        let legacy = Speech::Legacy(Revision::LATEST_LEGACY);
        let with_token = legacy.meta(Some(&7u64.into()), &options);
        assert_eq!(with_token, r#""progressToken":7,"x.y/z":1,"traceparent":"00-1-2-01""#);
        for reserved in ["progressToken", "io.modelcontextprotocol/clientInfo"] {
            assert_eq!(CallOptions::new().meta(reserved, 1).unwrap_err().blame(), Blame::Caller);
        }
    }
}
