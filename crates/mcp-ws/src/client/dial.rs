//! How a socket comes about, from the name of the server to the first words on it.

use std::{fmt, future::poll_fn, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use mcp_core::{
    Blame, Error, ErrorKind, Limits, Secrets,
    client::{Credentials, DPOP_NONCE, MAX_REFUSALS, Refusal, Target},
    shown,
};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream,
    tungstenite::{
        Error as WsError,
        error::{ProtocolError, SubProtocolError, UrlError},
        handshake::client::generate_key,
        protocol::Role,
    },
};
use url::Url;

use crate::{
    AUTH_SUBPROTOCOL, RESUME_SUBPROTOCOL, SUBPROTOCOL,
    socket::{
        Counted, End, Link, config,
        ledger::{Broken, Hello},
    },
};

/// What a client's sockets run on.
pub(crate) type Line = MaybeTlsStream<Counted<TcpStream>>;

/// All that it takes to open a socket.
pub(super) struct Dial {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    /// The subprotocol with a token in it, a secret.
    pub(super) auth: Option<String>,
    pub(super) resumes: bool,
    pub(super) keep_alive: Option<Duration>,
    pub(super) limits: Limits,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial").finish_non_exhaustive()
    }
}

/// What the server picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Picked {
    Resume,
    Plain,
}

impl Dial {
    /// A socket, and what the server said first where both sides resume; then `hello` was said before.
    pub(super) async fn dial(&self, hello: &Hello) -> Result<(Link<Line>, Option<Hello>), Error> {
        let patience = self.limits.request_timeout;
        let silence = || format!("no WebSocket came about within {} ms", patience.as_millis());
        timeout(patience, self.open(hello)).await.map_err(|_| Error::new(ErrorKind::Timeout, silence()))?
    }

    async fn open(&self, hello: &Hello) -> Result<(Link<Line>, Option<Hello>), Error> {
        let (mut link, picked) = self.socket().await?;
        let hello = match picked {
            Picked::Plain => None,
            Picked::Resume => {
                hello.token.iter().for_each(|token| link.add_secret(token));
                let theirs = greet(&mut link, hello).await?;
                theirs.token.iter().for_each(|token| link.add_secret(token));
                Some(theirs)
            }
        };
        Ok((link, hello))
    }

    async fn socket(&self) -> Result<(Link<Line>, Picked), Error> {
        let Some(credentials) = &self.credentials else { return self.socket_with(&self.headers).await };
        let target = self.target();
        let mut sent = credentials.headers(&target, None).await?;
        let mut before = 0;
        loop {
            let error = match self.socket_with(&self.headers_with(&sent)?).await {
                Err(error) if wants_credentials(&error) && before < MAX_REFUSALS => error,
                outcome => return outcome,
            };
            let status = error.status().unwrap_or_default();
            let refusal = Refusal::new(status, error.challenges(), &sent).after(before);
            let better = credentials.headers(&target, Some(&refusal)).await;
            sent = better.map_err(|own| own.with_status(status).with_challenges(error.challenges().to_vec()))?;
            before += 1;
        }
    }

    /// What credentials are asked for: the request that is upgraded.
    fn target(&self) -> Target<'_> {
        Target::new(self.url.as_str(), "GET", self.url.as_str())
    }

    /// Hands on the nonce of a response, be it an upgrade or a refusal.
    fn hear_nonce(&self, headers: &HeaderMap) {
        let nonce = headers.get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok());
        if let Some((credentials, nonce)) = self.credentials.as_ref().zip(nonce) {
            credentials.nonce(&self.target(), nonce);
        }
    }

    /// The user's headers, and what the credentials gave.
    fn headers_with(&self, given: &[(String, String)]) -> Result<HeaderMap, Error> {
        let unfit = |error: http::Error| {
            Error::caused(ErrorKind::InvalidParams, "what the credentials gave cannot be a header", error)
        };
        let mut more = HeaderMap::new();
        for (name, value) in given {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| unfit(error.into()))?;
            let mut value = HeaderValue::from_str(value).map_err(|error| unfit(error.into()))?;
            value.set_sensitive(true);
            more.append(name, value);
        }
        let mut headers = self.headers.clone();
        headers.extend(more);
        Ok(headers)
    }

    async fn socket_with(&self, headers: &HeaderMap) -> Result<(Link<Line>, Picked), Error> {
        let secrets = self.secrets(headers);
        let failed = |error| failed(error, &secrets);
        let masked = |link: Link<Line>| link.with_secrets(secrets.clone());
        match self.upgrade(Some(&self.offers()), headers).await {
            // To browsers that is no subprotocol and no failure; the library that we use takes it for one.
            Err(WsError::Protocol(ProtocolError::SecWebSocketSubProtocolError(SubProtocolError::NoSubProtocol)))
                if self.auth.is_none() =>
            {
                Ok((masked(self.upgrade(None, headers).await.map_err(failed)?.0), Picked::Plain))
            }
            Err(error) => Err(failed(error)),
            Ok((link, picked)) => match picked.as_ref().map(HeaderValue::as_bytes) {
                Some(picked) if picked == RESUME_SUBPROTOCOL.as_bytes() => Ok((masked(link), Picked::Resume)),
                Some(picked) if picked == SUBPROTOCOL.as_bytes() => Ok((masked(link), Picked::Plain)),
                _ => {
                    let message = "the server picked a subprotocol that only tells it something";
                    Err(Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer))
                }
            },
        }
    }

    /// What an upgrade with these headers tells the server that errors must not repeat.
    fn secrets(&self, headers: &HeaderMap) -> Secrets {
        let mut secrets = Secrets::default();
        headers.values().for_each(|value| secrets.add_header(&String::from_utf8_lossy(value.as_bytes())));
        secrets.add_url(self.url.as_str());
        let token = self.auth.as_deref().and_then(|auth| auth.strip_prefix(AUTH_SUBPROTOCOL));
        token.into_iter().for_each(|token| secrets.add(token));
        secrets
    }

    fn offers(&self) -> String {
        let resume = self.resumes.then_some(RESUME_SUBPROTOCOL);
        resume.into_iter().chain([SUBPROTOCOL]).chain(self.auth.as_deref()).collect::<Vec<_>>().join(", ")
    }

    async fn upgrade(
        &self,
        offers: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(Link<Line>, Option<HeaderValue>), WsError> {
        let stream = TcpStream::connect(self.address()?).await?;
        stream.set_nodelay(true)?;
        let (stream, traffic) = Counted::new(stream);
        let (request, config) = (self.request(offers, headers)?, config(self.limits.message_bytes));
        #[cfg(feature = "tls")]
        let upgraded = {
            let tls = tokio_tungstenite::Connector::Rustls(self.tls.clone().map_or_else(of_the_web, Ok)?);
            tokio_tungstenite::client_async_tls_with_config(request, stream, Some(config), Some(tls)).await
        };
        #[cfg(not(feature = "tls"))]
        let upgraded = {
            let stream = MaybeTlsStream::Plain(stream);
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await
        };
        match &upgraded {
            Ok((_, response)) => self.hear_nonce(response.headers()),
            Err(WsError::Http(response)) => self.hear_nonce(response.headers()),
            Err(_) => {}
        }
        let (stream, response) = upgraded?;
        let picked = response.headers().get(header::SEC_WEBSOCKET_PROTOCOL).cloned();
        Ok((Link::new(stream, Role::Client, traffic, self.keep_alive), picked))
    }

    fn address(&self) -> Result<(&str, u16), WsError> {
        let host = self.url.host_str().ok_or(UrlError::NoHostName)?;
        let port = self.url.port_or_known_default().ok_or(UrlError::UnsupportedUrlScheme)?;
        // An IPv6 address stands in brackets in a URL, and nowhere else.
        Ok((host.trim_start_matches('[').trim_end_matches(']'), port))
    }

    fn request(&self, offers: Option<&str>, users: &HeaderMap) -> Result<Request<()>, WsError> {
        let mut request = Request::get(self.url.as_str()).body(())?;
        let headers = request.headers_mut();
        let host = self.url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
        headers.insert(header::HOST, HeaderValue::try_from(host).map_err(http::Error::from)?);
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::try_from(generate_key()).map_err(http::Error::from)?);
        if let Some(offers) = offers {
            let mut offers = HeaderValue::try_from(offers).map_err(http::Error::from)?;
            offers.set_sensitive(self.auth.is_some());
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, offers);
        }
        headers.extend(users.clone());
        Ok(request)
    }
}

/// Says which connection the socket is for, and hears which one it is.
async fn greet(link: &mut Link<Line>, hello: &Hello) -> Result<Hello, Error> {
    let ended = |end: End| {
        Error::caused(ErrorKind::TransportError, "the connection failed before it could be resumed", end.into_error())
    };
    link.put(hello.to_text()).map_err(ended)?;
    poll_fn(|cx| link.poll_flush(cx)).await.map_err(ended)?;
    let text = poll_fn(|cx| link.poll_text(cx)).await.map_err(ended)?;
    Hello::parse(&text).map_err(|Broken(why)| Error::new(ErrorKind::ProtocolInvalid, why).blaming(Blame::Peer))
}

/// Whether the server wants credentials, or better ones.
fn wants_credentials(error: &Error) -> bool {
    match error.status() {
        Some(401) => true,
        Some(403) => !error.challenges().is_empty(),
        _ => false,
    }
}

fn failed(error: WsError, secrets: &Secrets) -> Error {
    match error {
        WsError::Http(response) => refused(&response, secrets),
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
fn refused(response: &Response<Option<Vec<u8>>>, secrets: &Secrets) -> Error {
    let status = response.status().as_u16();
    let body = response.body().as_deref().unwrap_or_default();
    let body = shown(&secrets.mask(&String::from_utf8_lossy(&body[..body.len().min(1024)])));
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
