//! The device flow: a user logs in on another device, with a code that this one shows.
//!
//! Specification: *RFC 8628*.

use std::{fmt, sync::Arc, time::Duration};

use mcp_core::{BoxFuture, Error};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::{asking::Asking, error::AuthError, registration::Use, store::Grant, tokens::Failed};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// How long to wait before the server is asked whether the user is done, where it does not say, and how much longer where it
/// says that it was asked too soon.
const PACE: Duration = Duration::from_secs(5);

/// What a user needs to log in on another device.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeviceCode {
    /// Where the user goes.
    pub verification_uri: Url,
    /// What the user enters there.
    pub user_code: String,
    /// The same place with the code entered, where there is such: for a QR code.
    pub verification_uri_complete: Option<Url>,
    /// How long the code is good for.
    pub expires_in: Duration,
}

/// It lets whoever reads it log in as this client.
impl fmt::Debug for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCode").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}

/// What shows a code to the user.
pub(super) type Shower = Arc<dyn Fn(DeviceCode) -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

#[derive(Deserialize)]
struct Answer {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

/// Has the user log in on another device.
pub(super) async fn login(asking: &Asking<'_>, show: &Shower, patience: Duration) -> Result<Grant, Failed> {
    let client = asking.client(Use::Device).await?;
    let scope = asking.scopes.join(" ");
    let mut parameters = vec![("resource", asking.found.resource.as_str())];
    if !scope.is_empty() {
        parameters.push(("scope", &scope));
    }
    let nowhere = || AuthError::Discovery("the authorization server lets nobody log in on another device".to_owned());
    let endpoint = asking.found.server.device_authorization_endpoint.as_deref().ok_or_else(nowhere)?;
    let begun: Answer = asking.as_client(&client).post(endpoint, &parameters).await?;
    let shown = show(read(asking, &begun)?);
    let patience = patience.min(Duration::from_secs(begun.expires_in));
    let pace = begun.interval.map_or(PACE, |seconds| Duration::from_secs(seconds.max(1)));
    let parameters = [("grant_type", GRANT_TYPE), ("device_code", &begun.device_code)];
    let granted = async {
        shown.await?;
        poll(pace, || asking.grant(&client, &parameters)).await
    };
    let Some(end) = Instant::now().checked_add(patience) else { return granted.await };
    timeout_at(end, granted).await.map_err(|_| AuthError::TooLate(patience.as_secs()))?
}

fn read(asking: &Asking<'_>, begun: &Answer) -> Result<DeviceCode, AuthError> {
    let complete = begun.verification_uri_complete.as_deref();
    Ok(DeviceCode {
        verification_uri: asking.fetch.allowed(&begun.verification_uri)?,
        user_code: begun.user_code.clone(),
        verification_uri_complete: complete.map(|url| asking.fetch.allowed(url)).transpose()?,
        expires_in: Duration::from_secs(begun.expires_in),
    })
}

/// Asks again and again, as slowly as the server wants, until it says yes or no.
async fn poll<T, F>(mut pace: Duration, mut ask: impl FnMut() -> F) -> Result<T, Failed>
where
    F: Future<Output = Result<T, Failed>>,
{
    loop {
        sleep(pace).await;
        match ask().await {
            Err(failed) if failed.is("authorization_pending") => {}
            Err(failed) if failed.is("slow_down") => pace += PACE,
            // A network that is gone for a moment does not end a login.
            Err(Failed::Other(error)) if matches!(AuthError::of(&error), Some(AuthError::Server(_))) => pace *= 2,
            outcome => return outcome,
        }
    }
}

/// What a device authorization endpoint answers.
#[cfg(fuzzing)]
pub(crate) fn fuzz(data: &[u8]) {
    let _ = serde_json::from_slice::<Answer>(data);
}

#[cfg(test)]
mod tests {
    use super::{super::tokens::OAuthError, *};

    fn refused(code: &str) -> Failed {
        Failed::Refused(OAuthError { error: code.to_owned(), error_description: String::new() })
    }

    /// When each answer was asked for, in seconds, and how it ended.
    async fn asked(answers: Vec<Result<u8, Failed>>) -> (Vec<u64>, Result<u8, Failed>) {
        let (start, mut times) = (Instant::now(), Vec::new());
        let mut answers = answers.into_iter();
        let outcome = poll(PACE, || {
            times.push(start.elapsed().as_secs());
            std::future::ready(answers.next().unwrap())
        });
        let outcome = outcome.await;
        (times, outcome)
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_asked_as_slowly_as_it_wants() {
        let gone = Failed::from(AuthError::Server("gone".to_owned()));
        let answers = vec![
            Err(refused("authorization_pending")),
            Err(refused("slow_down")),
            Err(refused("authorization_pending")),
            Err(gone),
            Ok(1),
        ];
        let (times, outcome) = asked(answers).await;
        assert_eq!(times, [5, 10, 20, 30, 50]);
        assert_eq!(outcome.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_no_is_the_end() {
        for code in ["access_denied", "expired_token", "invalid_grant"] {
            let (times, outcome) = asked(vec![Err(refused(code))]).await;
            assert_eq!(times, [5]);
            assert!(outcome.unwrap_err().is(code));
        }
    }

    #[test]
    fn nothing_shows_a_code() {
        let url = Url::parse("https://as/SECRET").unwrap();
        let code = DeviceCode {
            verification_uri: url.clone(),
            user_code: "SECRET".to_owned(),
            verification_uri_complete: Some(url),
            expires_in: Duration::from_secs(1),
        };
        assert_eq!(format!("{code:?}"), "DeviceCode { expires_in: 1s, .. }");
    }
}
