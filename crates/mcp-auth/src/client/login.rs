//! The code flow: a user is sent to the authorization server, and comes back to a port of this machine.
//!
//! Specification: *Authorization, Authorization Flow Steps*; *Authorization Response Validation*; *RFC 8252*; *RFC 9207*.

use std::{io, sync::Arc, time::Duration};

use mcp_core::{BoxFuture, Error, Secrets};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

use super::{
    discovery::Discovered,
    error::AuthError,
    pkce::{Pkce, secret},
    registration::ClientRegistration,
    store::{ClientCredentials, Grant},
    tokens::{self, Failed, OAuthError},
};
use crate::fetch::Fetch;

/// What shows a URL to the user.
pub(super) type Opener = Arc<dyn Fn(Url) -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

const CALLBACK: &str = "/callback";

/// What a user's login takes.
pub(super) struct Login<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) found: &'a Discovered,
    pub(super) registration: &'a ClientRegistration,
    pub(super) opener: &'a Opener,
    pub(super) patience: Duration,
    pub(super) scopes: Vec<String>,
    /// What the server knew the client by before.
    pub(super) client: Option<ClientCredentials>,
}

/// What a login that is under way is known by.
struct Begun {
    state: String,
    pkce: Pkce,
    redirect_uri: String,
    client: ClientCredentials,
}

impl Login<'_> {
    pub(super) async fn run(self) -> Result<Grant, Error> {
        let pkce = Pkce::new(&self.found.server)?;
        let (listener, redirect_uri, client) = self.listen().await?;
        let begun = Begun { state: secret()?, pkce, redirect_uri, client };
        let url = self.url(&begun)?;
        let code = async {
            let answer = self.answer(&listener, &begun);
            tokio::pin!(answer);
            // The user may be back before the opener is done, as where it waits for a browser to be closed.
            tokio::select! {
                biased;
                code = &mut answer => return code.map_err(Error::from),
                opened = (self.opener)(url) => opened?,
            }
            answer.await.map_err(Error::from)
        };
        let code = timeout(self.patience, code).await;
        let code = code.map_err(|_| AuthError::TooLate(self.patience.as_secs()))??;
        self.redeem(&begun, &code).await
    }

    /// Listens where the client was registered for, or else anywhere, and registers for that.
    async fn listen(&self) -> Result<(TcpListener, String, ClientCredentials), AuthError> {
        if let Some(client) = self.registration.of(&self.found.server) {
            let (listener, uri) = bind(0).await?;
            return Ok((listener, uri, client));
        }
        let known = self.client.clone().and_then(|client| Some((port_of(client.redirect_uri.as_deref()?)?, client)));
        if let Some((port, client)) = known
            && let Ok((listener, uri)) = bind(port).await
        {
            return Ok((listener, uri, client));
        }
        let (listener, uri) = bind(0).await?;
        let client = self.registration.register(self.fetch, &self.found.server, &uri).await?;
        Ok((listener, uri, client))
    }

    fn url(&self, begun: &Begun) -> Result<Url, AuthError> {
        let mut url = self.fetch.allowed(&self.found.server.authorization_endpoint)?;
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &begun.client.id)
            .append_pair("redirect_uri", &begun.redirect_uri)
            .append_pair("state", &begun.state)
            .append_pair("code_challenge", &begun.pkce.challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.found.resource);
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes.join(" "));
        }
        drop(query);
        Ok(url)
    }

    /// Waits for the answer to this login; what else comes by is told that it is none.
    async fn answer(&self, listener: &TcpListener, begun: &Begun) -> Result<String, AuthError> {
        loop {
            let (mut stream, _) = listener.accept().await.map_err(local)?;
            let Ok(Some(answer)) = timeout(Duration::from_secs(5), head(&mut stream)).await else { continue };
            let is_ours = answer.path() == CALLBACK && value(&answer, "state").as_deref() == Some(&begun.state);
            if !is_ours {
                say(&mut stream, "404 Not Found", "This is no answer to a login that is under way.").await;
                continue;
            }
            let outcome = self.code(&answer, begun);
            match &outcome {
                Ok(_) => say(&mut stream, "200 OK", "You are logged in, and can close this page.").await,
                Err(_) => say(&mut stream, "400 Bad Request", "The login failed. You can close this page.").await,
            }
            return outcome;
        }
    }

    /// Nothing in an answer counts before it is known whose it is.
    fn code(&self, answer: &Url, begun: &Begun) -> Result<String, AuthError> {
        let server = &self.found.server;
        match value(answer, "iss") {
            Some(issuer) if issuer != server.issuer => {
                return Err(AuthError::Mismatch("it is of another authorization server"));
            }
            None if server.authorization_response_iss_parameter_supported => {
                return Err(AuthError::Mismatch("it does not say which authorization server it is of"));
            }
            _ => {}
        }
        if let Some(error) = value(answer, "error") {
            let error_description = value(answer, "error_description").unwrap_or_default();
            let mut sent = Secrets::default();
            sent.add(&begun.state);
            return Err(AuthError::Denied(OAuthError { error, error_description }.words(&sent)));
        }
        value(answer, "code").ok_or(AuthError::Mismatch("it has no code"))
    }

    async fn redeem(&self, begun: &Begun, code: &str) -> Result<Grant, Error> {
        let parameters = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &begun.redirect_uri),
            ("code_verifier", &begun.pkce.verifier),
        ];
        match tokens::ask(self.fetch, self.found, &begun.client, &parameters, (&self.scopes, None)).await {
            Ok(grant) => Ok(grant),
            Err(Failed::InvalidGrant) => Err(AuthError::Denied("the code was no good".to_owned()).into()),
            Err(Failed::Other(error)) => Err(error.into()),
        }
    }
}

async fn bind(port: u16) -> Result<(TcpListener, String), AuthError> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(local)?;
    let port = listener.local_addr().map_err(local)?.port();
    Ok((listener, format!("http://127.0.0.1:{port}{CALLBACK}")))
}

fn local(error: io::Error) -> AuthError {
    AuthError::Local(error.to_string())
}

fn port_of(uri: &str) -> Option<u16> {
    Url::parse(uri).ok()?.port()
}

fn value(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(other, _)| other == name).map(|(_, value)| value.into_owned())
}

/// What a browser asks for; nothing where that is no GET.
async fn head(stream: &mut TcpStream) -> Option<Url> {
    const MOST: usize = 16 << 10;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 2048];
        let count = stream.read(&mut chunk).await.ok()?;
        if count == 0 || head.len() + count > MOST {
            return None;
        }
        head.extend_from_slice(&chunk[..count]);
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    Url::parse("http://127.0.0.1").ok()?.join(target).ok()
}

/// Whoever closed the page need not read it.
async fn say(stream: &mut TcpStream, status: &str, words: &str) {
    let head = "Content-Type: text/plain; charset=utf-8\r\nReferrer-Policy: no-referrer\r\nConnection: close";
    let response = format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{words}", words.len());
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}
