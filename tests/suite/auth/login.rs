//! The user's part of it, and answers that are none.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use mcp_auth::{AuthError, ClientCredentials, OAuth, Url};
use mcp_core::{Error, Limits};
use mcp_http::{Http, reqwest};
use tokio::sync::Notify;

use super::{MODERN, Setup, Site, call, credentials, over_http, user};

async fn refused(setup: Setup) -> String {
    let site = Site::start(setup).await;
    let error = over_http(&site, MODERN, &credentials()).await.unwrap_err();
    assert!(matches!(AuthError::of(&error), Some(AuthError::Mismatch(_))), "{error:?}");
    assert_eq!(site.asked("/token").len(), 0, "the code was sent somewhere");
    error.to_string()
}

#[tokio::test]
async fn an_answer_of_another_authorization_server_is_not_taken() {
    for other in ["{origin}/other", "{origin}/"] {
        let why = refused(Setup { answers_as: Some(other), ..Setup::default() }).await;
        assert!(why.contains("another authorization server"), "{why}");
    }
}

#[tokio::test]
async fn an_answer_that_should_say_whose_it_is_has_to() {
    let why = refused(Setup { answers_as: Some(""), ..Setup::default() }).await;
    assert!(why.contains("which authorization server"), "{why}");
}

fn with_opener<F>(opener: impl Fn(Url) -> F + Send + Sync + 'static) -> OAuth
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    OAuth::builder("Test", opener).patience(Duration::from_secs(60)).build().unwrap()
}

#[tokio::test]
async fn an_answer_to_another_login_does_not_end_this_one() {
    let site = Site::start(Setup::default()).await;
    let credentials = with_opener(|url| async move {
        let (_, back) = url.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap();
        for forged in ["?code=forged&state=guessed", "?code=forged", "?error=access_denied", "/elsewhere"] {
            let status = reqwest::get(format!("{back}{forged}")).await.unwrap().status();
            assert_eq!(status, 404, "{forged}");
        }
        reqwest::get(url).await.unwrap();
        Ok(())
    });
    let client = over_http(&site, MODERN, &credentials).await.unwrap();
    assert_eq!(call(&client, "free").await.unwrap(), "free");
    assert_eq!(site.asked("/token").len(), 1);
}

#[tokio::test]
async fn nobody_is_waited_for_longer_than_the_user_said() {
    let site = Site::start(Setup::default()).await;
    let credentials = OAuth::builder("Test", |_| async { Ok(()) }).patience(Duration::from_millis(1)).build().unwrap();
    let error = over_http(&site, MODERN, &credentials).await.unwrap_err();
    assert_eq!(AuthError::of(&error), Some(&AuthError::TooLate(0)), "{error:?}");
}

#[tokio::test]
async fn a_login_goes_on_when_the_call_that_began_it_has_ended() {
    let site = Site::start(Setup::default()).await;
    let comes = Arc::new(Notify::new());
    let (wakes, shown) = (Arc::clone(&comes), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&shown);
    let credentials = with_opener(move |url| {
        let comes = Arc::clone(&wakes);
        counted.fetch_add(1, SeqCst);
        async move {
            comes.notified().await;
            reqwest::get(url).await.unwrap();
            Ok(())
        }
    });
    let mut limits = Limits::default();
    limits.request_timeout = Duration::from_millis(200);
    let http = Http::new(site.url()).credentials(credentials.clone());
    let early = mcp_core::Client::builder(mcp_core::implementation!()).limits(limits).connect(http).await;
    assert_eq!(early.unwrap_err().kind(), mcp_core::ErrorKind::Timeout);
    comes.notify_one();
    let client = over_http(&site, MODERN, &credentials).await.unwrap();
    assert_eq!(call(&client, "free").await.unwrap(), "free");
    assert_eq!((shown.load(SeqCst), site.consents().len()), (1, 1));
}

#[tokio::test]
async fn who_is_known_already_is_not_registered() {
    let site = Site::start(Setup::default()).await;
    let mut known = ClientCredentials::secret("known", "secret");
    known.method = Some("client_secret_post".to_owned());
    let other = ClientCredentials::public("of another");
    let user = user().client("https://other.example", other).client(site.origin(), known).build().unwrap();
    user.log_in(&site.url()).await.unwrap();
    let client = over_http(&site, MODERN, &user).await.unwrap();
    call(&client, "free").await.unwrap();
    assert_eq!((site.asked("/register").len(), site.asked("/authorize").len()), (0, 1));
    assert_eq!(site.asked("/authorize")[0].parameters["client_id"], "known");
    assert_eq!(site.asked("/token")[0].parameters["client_secret"], "secret");
}
