//! Where requests go, and what is in the head of each.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use mcp_core::{
    BoxFuture, Era, Error, ErrorKind, Limits, Secrets,
    client::{Credentials, DPOP_NONCE, MAX_REFUSALS, Outgoing, Refusal, Target as Asking},
    method::{Initialize, Method as _},
    shown,
};
use mcp_jsonrpc::Bytes;
use reqwest::{Response, Url};

use super::{legacy::Session, refused};
use crate::headers::{LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX, MCP_PROTOCOL_VERSION, encode_value};

/// A server's address, and all that requests to it have in common.
pub(super) struct Target {
    pub(super) client: reqwest::Client,
    pub(super) url: Url,
    pub(super) headers: UserHeaders,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    pub(super) limits: Limits,
}

/// A response, and what of its request is nobody else's to read.
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) sent: Sent,
}

/// What a server knows of this side that errors must not repeat: the headers that are marked as sensitive, and the URL.
pub(super) struct Sent {
    headers: Vec<HeaderValue>,
    url: Url,
}

impl Sent {
    fn new(headers: &HeaderMap, url: &Url) -> Self {
        Self { headers: headers.values().filter(|value| value.is_sensitive()).cloned().collect(), url: url.clone() }
    }

    pub(super) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        self.headers.iter().for_each(|value| secrets.add_header(&String::from_utf8_lossy(value.as_bytes())));
        secrets.add_url(self.url.as_str());
        secrets
    }
}

/// The headers that a user adds.
#[derive(Clone, Default)]
pub(super) struct UserHeaders {
    pub(super) fixed: HeaderMap,
    pub(super) asked: Option<Arc<Asked>>,
}

type Asked = dyn Fn() -> BoxFuture<'static, Result<HeaderMap, Error>> + Send + Sync;

impl UserHeaders {
    async fn current(&self) -> Result<HeaderMap, Error> {
        let mut headers = self.fixed.clone();
        if let Some(asked) = &self.asked {
            let mut more = asked().await?;
            more.values_mut().for_each(|value| value.set_sensitive(true));
            headers.extend(more);
        }
        let own: Vec<_> = headers.keys().filter(|name| is_the_protocols(name)).cloned().collect();
        for name in own {
            headers.remove(name);
        }
        Ok(headers)
    }
}

/// A user's word on these would contradict the message, or claim a session that is another's.
fn is_the_protocols(name: &HeaderName) -> bool {
    const OWN: [HeaderName; 5] =
        [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::ACCEPT, LAST_EVENT_ID];
    name.as_str().starts_with("mcp-") || OWN.contains(name)
}

impl Target {
    /// Sends a request with these headers beside the user's.
    pub(super) async fn send(&self, method: Method, own: HeaderMap) -> Result<Answer, Error> {
        self.carry(method, self.url.clone(), own, Bytes::new()).await
    }

    /// Posts a message to the endpoint.
    pub(super) async fn post(&self, out: &Outgoing, session: &Session) -> Result<Answer, Error> {
        self.post_to(self.url.clone(), out, session).await
    }

    /// Posts a message elsewhere on the same origin.
    pub(super) async fn post_to(&self, url: Url, out: &Outgoing, session: &Session) -> Result<Answer, Error> {
        let answer = self.carry(Method::POST, url, headers_of(out, session)?, out.frame.clone()).await?;
        if refused::wants_credentials(&answer.response) { Err(refused::refused(answer).await) } else { Ok(answer) }
    }

    /// Sends a request, with better credentials where those that it had are refused.
    async fn carry(&self, method: Method, url: Url, own: HeaderMap, body: Bytes) -> Result<Answer, Error> {
        let Some(credentials) = &self.credentials else {
            return self.carry_once(method, url, HeaderMap::new(), own, body).await;
        };
        let endpoint = bare(&self.url);
        let bare = bare(&url);
        let asking = Asking::new(&endpoint, method.as_str(), &bare);
        let mut sent = credentials.headers(&asking, None).await?;
        let mut before = 0;
        loop {
            let given = of_credentials(&sent)?;
            let answer = self.carry_once(method.clone(), url.clone(), given, own.clone(), body.clone()).await?;
            if let Some(nonce) = answer.response.headers().get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok()) {
                credentials.nonce(&asking, nonce);
            }
            // Whoever says farewell does not log in for it.
            if !refused::wants_credentials(&answer.response) || before == MAX_REFUSALS || method == Method::DELETE {
                return Ok(answer);
            }
            let response = answer.response;
            let (status, challenges) = (response.status().as_u16(), refused::challenges(&response));
            drain(response);
            let refusal = Refusal::new(status, &challenges, &sent).after(before);
            let better = credentials.headers(&asking, Some(&refusal)).await;
            sent = better.map_err(|error| error.with_status(status).with_challenges(challenges.clone()))?;
            before += 1;
        }
    }

    async fn carry_once(
        &self,
        method: Method,
        url: Url,
        credentials: HeaderMap,
        own: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, Error> {
        let mut headers = self.headers.current().await?;
        headers.extend(credentials);
        headers.extend(own);
        let sent = Sent::new(&headers, &url);
        let request = self.client.request(method, url).headers(headers);
        let request = if body.is_empty() { request } else { request.body(body) };
        let response = request.send().await.map_err(|error| refused::failed("the request could not be sent", error))?;
        Ok(Answer { response, sent })
    }
}

/// A URL without the user and the password in it, which are sent as a header.
fn bare(url: &Url) -> String {
    let mut url = url.clone();
    // These cannot fail for a URL that has a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

fn of_credentials(given: &[(String, String)]) -> Result<HeaderMap, Error> {
    let unfit = |error: http::Error| {
        Error::caused(ErrorKind::InvalidParams, "what the credentials gave cannot be a header", error)
    };
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| unfit(error.into()))?;
        let mut value = HeaderValue::from_str(value).map_err(|error| unfit(error.into()))?;
        value.set_sensitive(true);
        if !is_the_protocols(&name) {
            headers.append(name, value);
        }
    }
    Ok(headers)
}

/// Specification: *Streamable HTTP, Request Metadata*.
fn headers_of(out: &Outgoing, session: &Session) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    if let Some(revision) = out.revision {
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
    }
    if is_modern(out) {
        mirror(&mut headers, out)?;
    } else if carries_session(out) {
        headers.extend(session.header());
    }
    Ok(headers)
}

fn is_modern(out: &Outgoing) -> bool {
    out.revision.is_some_and(|revision| revision.era() == Era::Modern)
}

/// Whether a session is named with it, where there is one. `initialize` begins one and is in none.
pub(super) fn carries_session(out: &Outgoing) -> bool {
    !is_modern(out) && !out.calls(Initialize::NAME)
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

/// Reads the rest of a response, so that its connection can be used again. One that goes on is let go: a new connection
/// costs less than waiting for it.
pub(super) fn drain(mut response: Response) {
    const PATIENCE: Duration = Duration::from_secs(1);
    const MOST: usize = 64 << 10;
    if response.content_length() == Some(0) {
        return;
    }
    let drained = async move {
        let mut rest = MOST;
        while let Ok(Some(chunk)) = response.chunk().await {
            rest = rest.saturating_sub(chunk.len());
            if rest == 0 {
                return;
            }
        }
    };
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(tokio::time::timeout(PATIENCE, drained));
    }
}
