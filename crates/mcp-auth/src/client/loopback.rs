//! The port of this machine that a user comes back to from a login.
//!
//! Specification: *Authorization Response Validation*; *RFC 8252, Loopback Interface Redirection*; *RFC 9207*.

use std::{io, time::Duration};

use mcp_core::Secrets;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

use super::{discovery::ServerMetadata, error::AuthError, tokens::OAuthError};

const CALLBACK: &str = "/callback";

/// How long the request of a browser may take, and how long its head may be.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_HEAD: usize = 16 << 10;

/// A port that is listened on, and its URL.
pub(super) struct Loopback {
    listener: TcpListener,
    pub(super) uri: String,
}

impl Loopback {
    /// Listens on that port, or on any where it is 0.
    pub(super) async fn bind(port: u16) -> Result<Self, AuthError> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(local)?;
        let port = listener.local_addr().map_err(local)?.port();
        Ok(Self { listener, uri: format!("http://127.0.0.1:{port}{CALLBACK}") })
    }

    /// Listens where `uri` says.
    pub(super) async fn at(uri: &str) -> Option<Self> {
        let port = Url::parse(uri).ok()?.port()?;
        Self::bind(port).await.ok().filter(|bound| bound.uri == uri)
    }

    /// Waits for the answer to the login of that state, and gives its code; what else comes by is told that it is none.
    pub(super) async fn code(&self, state: &str, server: &ServerMetadata) -> Result<String, AuthError> {
        loop {
            let (mut stream, _) = self.listener.accept().await.map_err(local)?;
            let Ok(Some(answer)) = timeout(PATIENCE, head(&mut stream)).await else { continue };
            if !is_answer(&answer, state) {
                say(&mut stream, "404 Not Found", "This is no answer to a login that is under way.").await;
                continue;
            }
            let outcome = code(&answer, server);
            match &outcome {
                Ok(_) => say(&mut stream, "200 OK", "You are logged in, and can close this page.").await,
                Err(_) => say(&mut stream, "400 Bad Request", "The login failed. You can close this page.").await,
            }
            return outcome;
        }
    }
}

fn local(error: io::Error) -> AuthError {
    AuthError::Local(error.to_string())
}

fn is_answer(url: &Url, state: &str) -> bool {
    url.path() == CALLBACK && value(url, "state").as_deref() == Some(state)
}

/// Nothing in an answer counts before it is known whose it is.
fn code(answer: &Url, server: &ServerMetadata) -> Result<String, AuthError> {
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
        value(answer, "state").iter().for_each(|state| sent.add(state));
        return Err(OAuthError { error, error_description }.without(&sent).into_error());
    }
    value(answer, "code").ok_or(AuthError::Mismatch("it has no code"))
}

fn value(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(other, _)| other == name).map(|(_, value)| value.into_owned())
}

/// What a browser asks for; nothing where that is no GET.
async fn head(stream: &mut TcpStream) -> Option<Url> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 2048];
        let count = stream.read(&mut chunk).await.ok()?;
        if count == 0 || head.len() + count > LONGEST_HEAD {
            return None;
        }
        head.extend_from_slice(&chunk[..count]);
    }
    asked(&head)
}

fn asked(head: &[u8]) -> Option<Url> {
    let head = String::from_utf8_lossy(head);
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

/// The request by which a browser comes back.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    let Some(url) = asked(data) else { return };
    let server = ServerMetadata::named("https://as.example");
    if is_answer(&url, "state")
        && let Err(error) = code(&url, &server)
    {
        assert!(error.to_string().len() < 4096, "{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(query: &str, says_iss: bool) -> Result<String, AuthError> {
        let mut server = ServerMetadata::named("https://as.example");
        server.authorization_response_iss_parameter_supported = says_iss;
        let head = format!("GET /callback?{query} HTTP/1.1\r\n\r\n");
        fuzz(head.as_bytes());
        code(&asked(head.as_bytes()).unwrap(), &server)
    }

    #[test]
    fn an_answer_is_of_the_authorization_server_that_was_asked_to_the_byte() {
        for (query, says_iss, expected) in [
            ("code=c&iss=https://as.example", true, true),
            ("code=c&iss=https://as.example", false, true),
            ("code=c&iss=https://as.example/", false, false),
            ("code=c&iss=https%3A%2F%2FAS.example", false, false),
            ("code=c&iss=", false, false),
            ("code=c", false, true),
            ("code=c", true, false),
            ("iss=https://as.example", true, false),
        ] {
            let answer = answered(query, says_iss);
            assert_eq!(answer.is_ok(), expected, "{query} {answer:?}");
            assert!(expected || matches!(answer, Err(AuthError::Mismatch(_))), "{answer:?}");
        }
    }

    #[test]
    fn what_an_answer_says_of_an_error_counts_only_once_it_is_known_whose_it_is() {
        let forged = answered("error=access_denied&error_description=evil&iss=https://evil", false);
        assert!(matches!(forged, Err(AuthError::Mismatch(_))), "{forged:?}");
        let denied = answered("error=access_denied&error_description=no%0Away", false);
        assert!(
            matches!(&denied, Err(AuthError::Denied(words)) if words.starts_with("access_denied: no")),
            "{denied:?}"
        );
    }

    #[test]
    fn what_is_no_answer_to_the_login_is_none() {
        let url = |text: &str| Url::parse(&format!("http://127.0.0.1:1{text}")).unwrap();
        for (text, expected) in [
            ("/callback?state=s", true),
            ("/callback?state=other", false),
            ("/callback", false),
            ("/elsewhere?state=s", false),
            ("/callback?state=other&state=s", false),
        ] {
            assert_eq!(is_answer(&url(text), "s"), expected, "{text}");
        }
        for head in ["POST /callback?state=s HTTP/1.1\r\n\r\n", "", "GET", "GET http://[ HTTP/1.1\r\n\r\n"] {
            assert!(asked(head.as_bytes()).is_none(), "{head}");
        }
    }
}
