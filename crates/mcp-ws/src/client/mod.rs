mod dial;
mod renewal;

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_core::{
    BoxFuture, Error, ErrorKind, Limits,
    client::{Backoff, Connector, Credentials, Duplex, IntoTransport},
};
use url::Url;

use crate::{
    AUTH_SUBPROTOCOL,
    client::{
        dial::{Dial, Line},
        renewal::Return,
    },
    socket::{
        Resume, Socket,
        ledger::{Hello, Window},
    },
};

/// A server to be spoken to over WebSocket.
///
/// Redirects are not followed. The subprotocol `mcp` is offered. A server that picks another is not connected to. One that
/// picks none is, at the cost of a second TCP connection (and TLS handshake): its first WebSocket is dropped before
/// anything is said, and the upgrade is made again without an offer. Such a server sees two upgrades for each connection
/// of the client.
///
/// ```no_run
/// # async fn example() -> Result<(), mcp_core::Error> {
/// let client = mcp_core::Client::connect(mcp_ws::Ws::new("ws://127.0.0.1:8080/mcp")).await?;
/// # client.disconnect().await; Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a server is spoken to by connecting to it"]
pub struct Ws {
    url: String,
    headers: HeaderMap,
    credentials: Option<Arc<dyn Credentials>>,
    /// A secret.
    token: Option<String>,
    keep_alive: KeepAlive,
    reconnect: Option<Backoff>,
    resume: Option<Backoff>,
    #[cfg(feature = "tls")]
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Ws {
    /// The server at `url`, which begins with `ws://`, or `wss://` with the feature `tls`; `http` and `https` mean the
    /// same. A URL with a user or a password in it is refused when it is connected to: credentials go into a
    /// [`header`](Self::header).
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: HeaderMap::new(),
            credentials: None,
            token: None,
            keep_alive: KeepAlive::OfLimits,
            reconnect: None,
            resume: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Adds a header to the upgrade.
    pub fn header(mut self, name: HeaderName, mut value: HeaderValue) -> Self {
        // It may be a credential, which no debug output shall show.
        value.set_sensitive(true);
        self.headers.append(name, value);
        self
    }

    /// Asks `credentials` for headers before every upgrade, and again, up to three times, where the server refuses what they
    /// gave: with 401, or with 403 and a challenge. They take the place of a [`header`](Self::header) of the same name.
    /// `mcp-auth` has some that log in.
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// Sends a token as the subprotocol `mcp.auth.TOKEN`, as draft SEP-1288 has it, for servers that do not look for it in an
    /// `Authorization` [`header`](Self::header), which is the better place: what is between may log this one. A token that
    /// has other characters than a subprotocol may have, as `/` and `=`, is refused when it is connected with. The server
    /// has to pick the subprotocol `mcp`.
    pub fn subprotocol_auth(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sets how often the server is pinged; `None`: never. One of which nothing at all was heard for three times as long,
    /// four times at the latest, is taken for dead, and pending calls fail. Default:
    /// [`Limits::keep_alive`](mcp_core::Limits), 15 s.
    pub fn keep_alive(mut self, every: impl Into<Option<Duration>>) -> Self {
        self.keep_alive = KeepAlive::Set(every.into());
        self
    }

    /// Connects anew, as `backoff` says, when the connection is lost: a new session in the legacy era, and streams of
    /// changes are asked for again. Calls that were pending fail, as they may have been done. Default: what is lost is
    /// lost.
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.reconnect = Some(backoff);
        self
    }

    /// Goes on with the connection on another socket, where the server can (subprotocol `mcp.resume`), when the socket is
    /// lost: no message is lost or comes twice, and calls only take longer. `backoff` should try for about as long as the
    /// server keeps a connection, 30 s unless it says otherwise. With [`reconnect`](Self::reconnect), what could not be
    /// resumed is connected anew. Default: off.
    pub fn resume(mut self, backoff: Backoff) -> Self {
        self.resume = Some(backoff);
        self
    }

    /// Speaks TLS by this configuration, as with a certificate authority of one's own or a client's certificate; without
    /// one, the server's certificate must come from an authority that the web trusts. Has no effect on `ws://`. Whether
    /// it offers protocols by ALPN is up to it; `http/1.1` is the only one that works.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, config: Arc<rustls::ClientConfig>) -> Self {
        self.tls = Some(config);
        self
    }
}

/// How often the server is pinged.
#[derive(Debug, Clone, Copy)]
enum KeepAlive {
    OfLimits,
    Set(Option<Duration>),
}

/// URL, headers and the token may be secrets.
impl fmt::Debug for Ws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ws").finish_non_exhaustive()
    }
}

impl IntoTransport for Ws {
    type Transport = Duplex<Target>;

    fn into_transport(self, limits: &Limits) -> Result<Self::Transport, Error> {
        let keep_alive = match self.keep_alive {
            KeepAlive::OfLimits => Some(limits.keep_alive),
            KeepAlive::Set(every) => every,
        };
        let dial = Dial {
            url: parse(&self.url)?,
            headers: self.headers,
            credentials: self.credentials,
            auth: self.token.as_deref().map(auth).transpose()?,
            resumes: self.resume.is_some(),
            keep_alive,
            limits: limits.clone(),
            #[cfg(feature = "tls")]
            tls: self.tls,
        };
        Ok(Duplex::new(Target { dial: Arc::new(dial), reconnect: self.reconnect, resume: self.resume }, limits))
    }
}

/// The subprotocol with the token in it. The error does not show it.
fn auth(token: &str) -> Result<String, Error> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if token.is_empty() || !token.bytes().all(is_fit) {
        let message = "the token has characters that a subprotocol may not have: send it in a header";
        return Err(Error::new(ErrorKind::InvalidParams, message));
    }
    Ok(format!("{AUTH_SUBPROTOCOL}{token}"))
}

/// The URL may hold a secret, so the error does not show it.
fn parse(url: &str) -> Result<Url, Error> {
    let invalid = |why: &str| Error::new(ErrorKind::InvalidParams, format!("the server's URL is no good: {why}"));
    let mut url = Url::parse(url).map_err(|error| invalid(&error.to_string()))?;
    let scheme = match url.scheme() {
        "ws" | "http" => "ws",
        "wss" | "https" if cfg!(feature = "tls") => "wss",
        "wss" | "https" => return Err(invalid("the feature `tls` is not on")),
        _ => return Err(invalid("it must begin with ws:// or wss://")),
    };
    // The library would drop them without a word.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("it holds credentials, which belong into a header"));
    }
    url.set_scheme(scheme).map_err(|()| invalid("its scheme cannot be changed"))?;
    // A fragment is nobody's but the client's own.
    url.set_fragment(None);
    Ok(url)
}

/// Where [`Ws`] connects to, each time.
pub struct Target {
    dial: Arc<Dial>,
    reconnect: Option<Backoff>,
    resume: Option<Backoff>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

impl Connector for Target {
    type Wire = Socket<Line>;

    fn connect(&self) -> BoxFuture<'_, Result<Self::Wire, Error>> {
        Box::pin(async {
            let own = Window::of(&self.dial.limits);
            let (link, hello) = self.dial.dial(&Hello { token: None, received: 0, window: own }).await?;
            let resume = hello.zip(self.resume).and_then(|(Hello { token, window, .. }, backoff)| {
                let token = token?;
                let renewal = Return::new(self.dial.clone(), backoff);
                Some(Resume::new(own, window, token, self.dial.limits.message_bytes, Box::new(renewal)))
            });
            Ok(Socket::new(link, resume))
        })
    }

    fn recovery(&self) -> Option<Backoff> {
        self.reconnect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c108_a_token_is_never_shown_and_one_that_does_not_fit_is_refused() {
        let ws = Ws::new("ws://127.0.0.1/").subprotocol_auth("SECRET");
        assert!(!format!("{ws:?}").contains("SECRET"));
        assert!(!format!("{:?}", ws.into_transport(&Limits::default()).unwrap()).contains("SECRET"));
        for token in ["", "SECRET=", "SECRET/", "SECRET, mcp", "SECRET ", "SECRET\r\n"] {
            let error =
                Ws::new("ws://127.0.0.1/").subprotocol_auth(token).into_transport(&Limits::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidParams);
            assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
        }
    }
}
