//! What a response that is no reply says, in words.

use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use http::header;
use mcp_core::{Blame, Error, ErrorKind, Secrets, shown};
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use super::target::{Answer, drain};

/// Why a response is no reply: status, type, and how its body begins.
pub(super) async fn refused(answer: Answer) -> Error {
    let Answer { response, sent } = answer;
    let (status, kind, secrets) = (response.status().as_u16(), media_type(&response), sent.secrets());
    if let Some(origin) = points_to(&response, &secrets) {
        drain(response);
        let message = format!("the server answered {status} and points to {origin}, which is not followed");
        return Error::new(ErrorKind::TransportError, message).with_status(status);
    }
    let (challenges, wait) = (challenges(&response), retry_after(&response));
    let error = unexpected(status, &kind, &beginning(response).await, &secrets).with_challenges(challenges);
    match wait {
        Some(wait) => error.with_retry_after(wait),
        None => error,
    }
}

/// Where a redirect points: its origin alone, as the rest may hold a secret, be it that of the URL that was asked for.
fn points_to(response: &Response, secrets: &Secrets) -> Option<String> {
    let location = response.headers().get(header::LOCATION).filter(|_| response.status().is_redirection())?;
    let url = location.to_str().ok().and_then(|location| response.url().join(location).ok());
    Some(match url.map(|url| url.origin()) {
        Some(origin) if origin.is_tuple() => shown(&secrets.mask(&origin.ascii_serialization())),
        Some(_) => "what has no origin".to_owned(),
        None => "what is no URL".to_owned(),
    })
}

/// Whether the server wants credentials, or better ones: then that is the answer, whatever the body says.
pub(super) fn wants_credentials(response: &Response) -> bool {
    let status = response.status();
    status == StatusCode::UNAUTHORIZED
        || (status == StatusCode::FORBIDDEN && response.headers().contains_key(header::WWW_AUTHENTICATE))
}

/// What a proxy or a busy server says is about neither the request nor its method, whatever the body is.
pub(super) fn is_about_now(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502..=504)
}

/// The values of `WWW-Authenticate`, one a line.
pub(super) fn challenges(response: &Response) -> Vec<String> {
    let lines = response.headers().get_all(header::WWW_AUTHENTICATE);
    lines.iter().map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned()).collect()
}

pub(super) fn media_type(response: &Response) -> String {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// For how long a server that is busy wants to be left alone.
///
/// Specification: *RFC 9110, Retry-After*.
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
    let is_busy = matches!(response.status().as_u16(), 429 | 503);
    let value = response.headers().get(header::RETRY_AFTER).filter(|_| is_busy)?;
    read_retry_after(value.to_str().ok()?.trim(), SystemTime::now())
}

/// Seconds, or a date; one that is past is now.
fn read_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// How a body begins that may never end.
async fn beginning(mut response: Response) -> BytesMut {
    const PATIENCE: Duration = Duration::from_millis(250);
    let mut begun = BytesMut::new();
    while let Ok(Ok(Some(chunk))) = timeout(PATIENCE, response.chunk()).await {
        begun.extend_from_slice(&chunk[..chunk.len().min(EXCERPT)]);
        if begun.len() >= EXCERPT {
            drain(response);
            break;
        }
    }
    begun
}

/// How much of a body an error shows, in bytes.
const EXCERPT: usize = 200;

/// What a server repeats of the request's secrets is masked: whoever logs the error is not meant to have them.
pub(super) fn unexpected(status: u16, kind: &str, body: &[u8], secrets: &Secrets) -> Error {
    let excerpt = String::from_utf8_lossy(&body[..body.len().min(EXCERPT)]);
    let (kind, excerpt) = (shown(&secrets.mask(kind)), secrets.mask(&excerpt));
    let message = format!("the server answered {status} with \"{kind}\": {excerpt:?}");
    match status {
        401 => Error::new(ErrorKind::Unauthorized, message),
        200..300 => Error::new(ErrorKind::ProtocolInvalid, message),
        _ => Error::new(ErrorKind::TransportError, message).blaming(Blame::Peer),
    }
    .with_status(status)
}

/// The URL may hold a secret; what happened is in the causes.
pub(super) fn failed(what: &str, error: reqwest::Error) -> Error {
    let is_unsent = error.is_connect();
    let error = Error::caused(ErrorKind::TransportError, what, error.without_url());
    if is_unsent { error.unsent() } else { error }
}

pub(super) fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Mon, 30 Nov 2026 10:00:00 GMT").unwrap();
        for (value, expected) in [
            ("0", Some(0)),
            ("120", Some(120)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Mon, 30 Nov 2026 10:02:00 GMT", Some(120)),
            ("Monday, 30-Nov-26 10:02:00 GMT", Some(120)),
            ("Mon, 30 Nov 2026 09:00:00 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(read_retry_after(value, now), expected.map(Duration::from_secs), "{value}");
        }
    }
}
