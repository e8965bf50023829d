//! What a user says about a server, and the transport that it makes.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_core::{
    Blame, BoxFuture, Error, ErrorKind, Limits,
    client::{Credentials, IntoTransport},
};
use reqwest::{StatusCode, Url, redirect};

use super::{
    HttpTransport,
    target::{Target, UserHeaders},
};
use crate::defaults::DEFAULT_CALLS_AT_ONCE;

/// A server to be spoken to over Streamable HTTP, or, where it knows no better, over the transport of 2024-11-05.
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
    headers: UserHeaders,
    credentials: Option<Arc<dyn Credentials>>,
    client: Option<reqwest::Client>,
    calls: usize,
}

impl Http {
    /// The server at `url`, which names its MCP endpoint. A user and a password in it are sent as `Authorization: Basic`,
    /// unless a [`header`](Self::header) of that name is given.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: UserHeaders::default(),
            credentials: None,
            client: None,
            calls: DEFAULT_CALLS_AT_ONCE,
        }
    }

    /// Adds a header to every request. Headers that are the protocol's own (`Content-Type`, `Accept`, `Last-Event-ID`, all
    /// that begin with `Mcp-`) are not a user's to give, and left out.
    pub fn header(mut self, name: HeaderName, mut value: HeaderValue) -> Self {
        // It may be a credential, which no debug output and no HTTP/2 table shall keep.
        value.set_sensitive(true);
        self.headers.fixed.append(name, value);
        self
    }

    /// Asks `headers` for headers before every request, as for a token that expires. They take the place of a
    /// [`header`](Self::header) of the same name. If it fails, so does the request, with that error.
    ///
    /// It is asked for each HTTP request by itself, so what takes long should be kept. What it gives goes nowhere but to
    /// the server's own origin.
    ///
    /// ```no_run
    /// use mcp_http::{Http, http::{HeaderMap, HeaderValue, header::AUTHORIZATION}};
    ///
    /// # async fn fresh_token() -> Result<String, mcp_core::Error> { Ok(String::new()) }
    /// let server = Http::new("https://mcp.example.com/mcp").headers_with(|| async {
    ///     let token = fresh_token().await?;
    ///     let value = HeaderValue::try_from(format!("Bearer {token}"))
    ///         .map_err(|error| mcp_core::Error::caused(mcp_core::ErrorKind::InvalidParams, "a bad token", error))?;
    ///     Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
    /// });
    /// ```
    pub fn headers_with<F>(mut self, headers: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<HeaderMap, Error>> + Send + 'static,
    {
        let asked = move || -> BoxFuture<'static, Result<HeaderMap, Error>> { Box::pin(headers()) };
        self.headers.asked = Some(Arc::new(asked));
        self
    }

    /// Asks `credentials` for headers before every request, and again, up to three times a request, where the server refuses
    /// what they gave: with 401, or with 403 and a challenge. They take the place of other headers of the same name, and go
    /// nowhere but to the server's own origin. `mcp-auth` has some that log in.
    ///
    /// A call waits meanwhile, and its time runs.
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// How many calls are under way at once; more wait their turn, and their time runs meanwhile. At least 1. Default
    /// [`DEFAULT_CALLS_AT_ONCE`].
    ///
    /// In HTTP/1.1 each needs a connection of its own until it is answered. Notifications, answers to the server and streams
    /// that are listened to ([`Limits::subscriptions`]) are not counted, so that nothing waits for a call that waits for it.
    pub fn calls_at_once(mut self, calls: usize) -> Self {
        self.calls = calls;
        self
    }

    /// Makes the HTTP client as `builder` says, which is where proxies, certificates and such are set. What it says of
    /// redirects does not count: they could carry the headers of a user to another origin.
    ///
    /// A `timeout` in it bounds every response, and so the streams that stay open; [`Limits::request_timeout`] bounds calls.
    ///
    /// ```
    /// use mcp_http::{Http, reqwest};
    ///
    /// # fn example() -> Result<(), mcp_core::Error> {
    /// let client = reqwest::Client::builder().user_agent("mine").no_proxy();
    /// let server = Http::new("https://mcp.example.com/mcp").client_with(client)?;
    /// # drop(server); Ok(()) }
    /// # example().unwrap();
    /// ```
    ///
    /// # Errors
    /// When no client can be made of it.
    pub fn client_with(mut self, builder: reqwest::ClientBuilder) -> Result<Self, Error> {
        let invalid = |error| Error::caused(ErrorKind::InvalidParams, "no HTTP client can be made of that", error);
        self.client = Some(made(builder).map_err(invalid)?);
        Ok(self)
    }
}

/// URL and headers may be secrets.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl IntoTransport for Http {
    type Transport = HttpTransport;

    fn into_transport(self, limits: &Limits) -> Result<HttpTransport, Error> {
        let client = match self.client {
            Some(client) => client,
            None => pooled()?,
        };
        let url = parse(&self.url)?;
        let target =
            Target { client, url, headers: self.headers, credentials: self.credentials, limits: limits.clone() };
        Ok(HttpTransport::new(target, self.calls))
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
    let failed = |error| Error::caused(ErrorKind::TransportError, "no HTTP client can be made", error);
    made(reqwest::Client::builder().tcp_nodelay(true)).map_err(|error| failed(error).blaming(Blame::Local))
}

/// Redirects are ours to follow: none to another origin, so that credentials stay where they belong, and none from `https`
/// to `http`.
fn made(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, reqwest::Error> {
    const MOST: usize = 10;
    let within = redirect::Policy::custom(|attempt| {
        let follows = attempt.previous().last().is_some_and(|from| keeps(attempt.status(), from, attempt.url()));
        if follows && attempt.previous().len() < MOST { attempt.follow() } else { attempt.stop() }
    });
    builder.redirect(within).build().map_err(reqwest::Error::without_url)
}

/// Whether a redirect is to the same origin, and to the same request there.
fn keeps(status: StatusCode, from: &Url, to: &Url) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) && from.origin() == to.origin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_keeps_the_request_and_the_origin_or_is_none() {
        let from = Url::parse("https://host/mcp").unwrap();
        for (to, expected) in [
            ("https://host/mcp/", true),
            ("https://host:443/elsewhere?a=b", true),
            ("http://host/mcp", false),
            ("http://host:443/mcp", false),
            ("https://host:8443/mcp", false),
            ("https://other/mcp", false),
            ("https://sub.host/mcp", false),
            ("https://host@other/mcp", false),
            ("file:///mcp", false),
        ] {
            let to = Url::parse(to).unwrap();
            for status in 300..310 {
                let keeps = keeps(StatusCode::from_u16(status).unwrap(), &from, &to);
                assert_eq!(keeps, expected && matches!(status, 307 | 308), "{status} {to}");
            }
        }
    }
}
