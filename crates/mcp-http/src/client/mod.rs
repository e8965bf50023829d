//! Client path 4 of 5 (HTTP): each request is a POST. Before: `crates/mcp-core/src/client/modern/mod.rs` | `crates/mcp-core/src/client/legacy/mod.rs`. After: `crates/mcp-http/src/client/read.rs`.

mod read;
mod sse;

#[cfg(fuzzing)]
pub(crate) use sse::fuzz as fuzz_events;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use mcp_core::{
    Blame, BoxFuture, Era, Error, ErrorKind, Limits, Revision,
    client::{Agreed, Inbox, Incoming, IntoTransport, Outgoing, Replies, Transport},
    method::{Initialize, Method},
    shown,
};
use read::{Reading, ReplyStream};
use reqwest::{Response, Url, redirect};
use tokio::{sync::watch, time::timeout};

use crate::headers::{MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, encode_value};

/// A server to be spoken to over Streamable HTTP.
///
/// Connections are pooled. Redirects are followed within the origin where they keep method and body (307, 308), and no
/// others.
///
/// ```no_run
/// # async fn example() -> Result<(), mcp_core::Error> {
/// let client = mcp_core::Client::connect(mcp_http::Http::new("http://127.0.0.1:8080/mcp")).await?;
/// # client.disconnect().await; Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a server is spoken to by connecting to it"]
pub struct Http {
    url: String,
    headers: HeaderMap,
    client: Option<reqwest::Client>,
}

impl Http {
    /// The server at `url`, which names its MCP endpoint. A user and a password in it are sent as `Authorization: Basic`,
    /// unless a [`header`](Self::header) of that name is given.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: HeaderMap::new(), client: None }
    }

    /// Adds a header to every request.
    pub fn header(mut self, name: HeaderName, mut value: HeaderValue) -> Self {
        // It may be a credential, which no debug output and no HTTP/2 table shall keep.
        value.set_sensitive(true);
        self.headers.append(name, value);
        self
    }

    /// Uses this client instead of one of its own; its rules on redirects are its own too.
    pub fn client(mut self, client: reqwest::Client) -> Self {
        self.client = Some(client);
        self
    }
}

impl IntoTransport for Http {
    type Transport = HttpTransport;

    fn into_transport(self, limits: &Limits) -> Result<HttpTransport, Error> {
        let client = match self.client {
            Some(client) => client,
            None => pooled()?,
        };
        Ok(HttpTransport(Arc::new(Endpoint {
            client,
            url: parse(&self.url)?,
            headers: self.headers,
            limits: limits.clone(),
            state: Mutex::default(),
            closed: watch::Sender::new(false),
        })))
    }
}

/// The URL may hold a secret, so the error does not show it.
fn parse(url: &str) -> Result<Url, Error> {
    let invalid = |why: &str| Error::new(ErrorKind::InvalidParams, format!("the server's URL is no good: {why}"));
    let url = Url::parse(url).map_err(|error| invalid(&error.to_string()))?;
    if matches!(url.scheme(), "http" | "https") {
        Ok(url)
    } else {
        Err(invalid("it must begin with http:// or https://"))
    }
}

fn pooled() -> Result<reqwest::Client, Error> {
    let policy = redirect::Policy::custom(|attempt| {
        let keeps_the_request = matches!(attempt.status().as_u16(), 307 | 308);
        let same_origin = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
        if keeps_the_request && same_origin && attempt.previous().len() < 10 {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let failed = |error| Error::caused(ErrorKind::TransportError, "no HTTP client can be made", error);
    reqwest::Client::builder()
        .redirect(policy)
        .tcp_nodelay(true)
        .build()
        .map_err(|error| failed(error).blaming(Blame::Local))
}

/// The transport that [`Http`] describes.
#[derive(Clone)]
pub struct HttpTransport(Arc<Endpoint>);

struct Endpoint {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    limits: Limits,
    state: Mutex<State>,
    /// Becomes true, once.
    closed: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    inbox: Option<Inbox>,
    /// What the server called the session, in the legacy era.
    session: Option<HeaderValue>,
    /// What is spoken, once that is agreed on.
    revision: Option<Revision>,
}

/// URL, headers and session may all be secrets.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").finish_non_exhaustive()
    }
}

impl Transport for HttpTransport {
    fn open(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), Error>> {
        self.0.state().inbox = Some(inbox);
        Box::pin(std::future::ready(Ok(())))
    }

    fn request(&self, out: Outgoing) -> Replies {
        let cancel = CancelOnDrop::new(&self.0, &out);
        let asked = Asked { endpoint: self.0.clone(), stage: Stage::Unsent(out), cancel };
        Replies::new(stream::unfold(asked, |mut asked| async move { Some((asked.next().await?, asked)) }))
    }

    fn send(&self, out: Outgoing) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let response = self.0.post(&out).await?;
            // Whatever the body is, nothing in it is an answer.
            if response.status().is_success() { Ok(()) } else { Err(read::refused(response).await) }
        })
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn kind(&self) -> &'static str {
        "http"
    }

    fn agreed(&self, to: &Agreed) {
        self.0.state().revision = Some(to.revision);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let state = std::mem::take(&mut *self.0.state());
            self.0.closed.send_replace(true);
            if let Some(session) = state.session {
                let mut ended = self
                    .0
                    .client
                    .delete(self.0.url.clone())
                    .headers(self.0.headers.clone())
                    .header(MCP_SESSION_ID, session);
                if let Some(revision) = state.revision {
                    ended = ended.header(MCP_PROTOCOL_VERSION, revision.as_str());
                }
                // A server that is gone, or keeps sessions to itself, needs no telling.
                let _ = ended.timeout(FAREWELL).send().await;
            }
        })
    }
}

/// How long the end of a session may take.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(2);

/// A request, and how far it is.
struct Asked {
    endpoint: Arc<Endpoint>,
    stage: Stage,
    cancel: CancelOnDrop,
}

enum Stage {
    Unsent(Outgoing),
    Reading(ReplyStream),
    Done,
}

impl Asked {
    /// What comes back next; after anything but a notification, nothing does.
    async fn next(&mut self) -> Option<Result<Incoming, Error>> {
        let item = tokio::select! {
            biased;
            () = self.endpoint.until_closed() => Some(Err(Error::not_connected())),
            item = self.stage.next(&self.endpoint) => item,
        };
        if !matches!(item, Some(Ok(Incoming::Notification(_)))) {
            self.cancel.disarm();
            self.stage = Stage::Done;
        }
        item
    }
}

impl Stage {
    async fn next(&mut self, endpoint: &Endpoint) -> Option<Result<Incoming, Error>> {
        if let Self::Unsent(out) = self {
            match endpoint.exchange(out).await {
                Ok(replies) => *self = Self::Reading(replies),
                Err(error) => return Some(Err(error)),
            }
        }
        match self {
            Self::Reading(replies) => replies.next().await,
            Self::Unsent(_) | Self::Done => None,
        }
    }
}

impl Endpoint {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until_closed(&self) {
        // The sender is part of `self`, so it cannot be gone.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    async fn exchange(&self, out: &Outgoing) -> Result<ReplyStream, Error> {
        let response = self.post(out).await?;
        if out.calls(Initialize::NAME) && response.status().is_success() {
            self.state().session = response.headers().get(MCP_SESSION_ID).cloned();
        }
        let inbox = self.state().inbox.clone().ok_or_else(Error::not_connected)?;
        let reading = Reading { id: out.id.clone(), revision: out.revision, inbox, limits: self.limits.clone() };
        read::replies(response, reading).await
    }

    async fn post(&self, out: &Outgoing) -> Result<Response, Error> {
        let headers = self.headers_of(out)?;
        let sent = self.client.post(self.url.clone()).headers(headers).body(out.frame.clone()).send().await;
        let response = sent.map_err(|error| read::failed("the request could not be sent", error))?;
        if read::wants_credentials(&response) { Err(read::refused(response).await) } else { Ok(response) }
    }

    /// Specification: *Streamable HTTP, Request Metadata*.
    fn headers_of(&self, out: &Outgoing) -> Result<HeaderMap, Error> {
        self.state().inbox.as_ref().ok_or_else(Error::not_connected)?;
        let mut headers = self.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(revision) = out.revision {
            headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        if out.revision.is_some_and(|revision| revision.era() == Era::Modern) {
            mirror(&mut headers, out)?;
        } else if !out.calls(Initialize::NAME) {
            headers.extend(self.state().session.clone().map(|session| (MCP_SESSION_ID, session)));
        }
        Ok(headers)
    }
}

fn mirror(headers: &mut HeaderMap, out: &Outgoing) -> Result<(), Error> {
    let invalid = |error| Error::caused(ErrorKind::InvalidParams, "method or name cannot be a header", error);
    if let Some(method) = &out.method {
        headers.insert(MCP_METHOD, HeaderValue::from_str(method).map_err(invalid)?);
    }
    if let Some(name) = &out.name {
        headers.insert(MCP_NAME, HeaderValue::from_str(&encode_value(name)).map_err(invalid)?);
    }
    out.mirrored.iter().try_for_each(|(name, value)| mirror_argument(headers, name, value))
}

/// Specification: *Streamable HTTP, Custom Headers from Tool Parameters*.
fn mirror_argument(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), Error> {
    let message = || format!("no header can mirror an argument as `{}`", shown(name));
    let header = HeaderName::from_bytes(format!("{MCP_PARAM_PREFIX}{name}").as_bytes());
    let header = header.map_err(|error| Error::caused(ErrorKind::InvalidParams, message(), error))?;
    let value = HeaderValue::from_str(&encode_value(value));
    let value = value.map_err(|error| Error::caused(ErrorKind::InvalidParams, message(), error))?;
    headers.insert(header, value);
    Ok(())
}

/// In the legacy era a closed stream cancels nothing, so that the server has to be told.
///
/// Specification: *2025-11-25, Cancellation*.
struct CancelOnDrop(Option<(Arc<Endpoint>, Outgoing)>);

impl CancelOnDrop {
    fn new(endpoint: &Arc<Endpoint>, out: &Outgoing) -> Self {
        let needed = out.revision.is_some_and(|revision| revision.era() == Era::Legacy);
        Self(out.to_cancel().filter(|_| needed).map(|cancel| (endpoint.clone(), cancel)))
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some((endpoint, cancel)), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            // A server that does not even take this is told no more, and holds nothing here.
            tokio::select! {
                sent = timeout(endpoint.limits.request_timeout, endpoint.post(&cancel)) => if !matches!(sent, Ok(Ok(_))) {
                    tracing::debug!("a cancellation could not be sent");
                },
                () = endpoint.until_closed() => {}
            }
        });
    }
}
