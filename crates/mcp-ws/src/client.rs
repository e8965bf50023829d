use std::fmt;
#[cfg(feature = "tls")]
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use mcp_core::{
    Blame, BoxFuture, Error, ErrorKind, Limits,
    client::{Connector, Duplex, IntoTransport},
    shown,
};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream,
    tungstenite::{
        Error as WsError,
        error::{ProtocolError, SubProtocolError, UrlError},
        handshake::client::generate_key,
    },
};
use url::Url;

use crate::{SUBPROTOCOL, Socket, socket::config};

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

/// URL and headers may be secrets.
impl fmt::Debug for Ws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ws").finish_non_exhaustive()
    }
}

impl IntoTransport for Ws {
    type Transport = Duplex<Target>;

    fn into_transport(self, limits: &Limits) -> Result<Self::Transport, Error> {
        let target = Target {
            url: parse(&self.url)?,
            headers: self.headers,
            limits: limits.clone(),
            #[cfg(feature = "tls")]
            tls: self.tls,
        };
        Ok(Duplex::new(target, limits))
    }
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
    url: Url,
    headers: HeaderMap,
    limits: Limits,
    #[cfg(feature = "tls")]
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

impl Connector for Target {
    type Wire = Socket<MaybeTlsStream<TcpStream>>;

    fn connect(&self) -> BoxFuture<'_, Result<Self::Wire, Error>> {
        Box::pin(async {
            let patience = self.limits.request_timeout;
            let silence = || format!("no WebSocket came about within {} ms", patience.as_millis());
            timeout(patience, self.open()).await.map_err(|_| Error::new(ErrorKind::Timeout, silence()))?
        })
    }
}

impl Target {
    async fn open(&self) -> Result<Socket<MaybeTlsStream<TcpStream>>, Error> {
        match self.upgrade(true).await {
            // To browsers that is no subprotocol and no failure; the library that we use takes it for one.
            Err(WsError::Protocol(ProtocolError::SecWebSocketSubProtocolError(SubProtocolError::NoSubProtocol))) => {
                self.upgrade(false).await.map_err(failed)
            }
            outcome => outcome.map_err(failed),
        }
    }

    async fn upgrade(&self, offers_subprotocol: bool) -> Result<Socket<MaybeTlsStream<TcpStream>>, WsError> {
        let stream = TcpStream::connect(self.address()?).await?;
        stream.set_nodelay(true)?;
        let (request, config) = (self.request(offers_subprotocol)?, config(self.limits.message_bytes));
        #[cfg(feature = "tls")]
        let upgraded = {
            let tls = tokio_tungstenite::Connector::Rustls(self.tls.clone().map_or_else(of_the_web, Ok)?);
            tokio_tungstenite::client_async_tls_with_config(request, stream, Some(config), Some(tls)).await?
        };
        #[cfg(not(feature = "tls"))]
        let upgraded = {
            let stream = MaybeTlsStream::Plain(stream);
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await?
        };
        Ok(Socket::client(upgraded.0))
    }

    fn address(&self) -> Result<(&str, u16), WsError> {
        let host = self.url.host_str().ok_or(UrlError::NoHostName)?;
        let port = self.url.port_or_known_default().ok_or(UrlError::UnsupportedUrlScheme)?;
        // An IPv6 address stands in brackets in a URL, and nowhere else.
        Ok((host.trim_start_matches('[').trim_end_matches(']'), port))
    }

    fn request(&self, offers_subprotocol: bool) -> Result<Request<()>, WsError> {
        let mut request = Request::get(self.url.as_str()).body(())?;
        let headers = request.headers_mut();
        let host = self.url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
        headers.insert(header::HOST, HeaderValue::try_from(host).map_err(http::Error::from)?);
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::try_from(generate_key()).map_err(http::Error::from)?);
        if offers_subprotocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
        }
        headers.extend(self.headers.clone());
        Ok(request)
    }
}

fn failed(error: WsError) -> Error {
    match error {
        WsError::Http(response) => refused(&response),
        WsError::Io(_) | WsError::Protocol(ProtocolError::HandshakeIncomplete) => {
            Error::caused(ErrorKind::TransportError, "the connection failed before it was a WebSocket", cause(error))
        }
        error => {
            let error = Error::caused(ErrorKind::ProtocolInvalid, "the server does not speak WebSocket", cause(error));
            error.blaming(Blame::Peer)
        }
    }
}

/// What an error wraps, where it does: its own words and those of its cause are the same, and would be told twice.
fn cause(error: WsError) -> Box<dyn std::error::Error + Send + Sync> {
    match error {
        WsError::Io(error) => error.into(),
        WsError::Protocol(error) => error.into(),
        WsError::Url(error) => error.into(),
        WsError::HttpFormat(error) => error.into(),
        error => error.into(),
    }
}

/// The server answered as to any other request.
fn refused(response: &Response<Option<Vec<u8>>>) -> Error {
    let status = response.status().as_u16();
    let body = response.body().as_deref().unwrap_or_default();
    let body = shown(&String::from_utf8_lossy(&body[..body.len().min(1024)]));
    let (kind, blame) = match status {
        401 => (ErrorKind::Unauthorized, Blame::Caller),
        _ => (ErrorKind::TransportError, Blame::Peer),
    };
    let challenges = response.headers().get_all(header::WWW_AUTHENTICATE).iter();
    let challenges = challenges.map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned()).collect();
    let message = format!("the server answered the upgrade with status {status}: {body}");
    Error::new(kind, message).with_status(status).with_challenges(challenges).blaming(blame)
}

/// Made once; the roots are those of the web.
#[cfg(feature = "tls")]
fn of_the_web() -> Result<Arc<rustls::ClientConfig>, WsError> {
    use std::sync::LazyLock;

    use rustls::{ClientConfig, RootCertStore, crypto::ring};

    static CONFIG: LazyLock<Result<Arc<ClientConfig>, rustls::Error>> = LazyLock::new(|| {
        let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        // Named, since what a process has installed as its default may be nothing, which panics.
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?;
        Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    });
    CONFIG.clone().map_err(|error| std::io::Error::other(error).into())
}
