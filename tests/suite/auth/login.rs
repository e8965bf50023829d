//! The user's part of it, and answers that are none.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use mcp_auth::{AuthError, ClientCredentials, Key, MemoryStore, OAuth, TokenStore as _, Url};
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
    let (other, store) = (ClientCredentials::public("of another"), Arc::new(MemoryStore::default()));
    let user = user().store(Arc::clone(&store)).client("https://other.example", other).client(site.origin(), known);
    let user = user.build().unwrap();
    user.log_in(&site.url()).await.unwrap();
    let client = over_http(&site, MODERN, &user).await.unwrap();
    call(&client, "free").await.unwrap();
    assert_eq!((site.asked("/register").len(), site.asked("/authorize").len()), (0, 1));
    assert_eq!(site.asked("/authorize")[0].parameters["client_id"], "known");
    assert_eq!(site.asked("/token")[0].parameters["client_secret"], "secret");
    let kept = store.load(&Key::new(site.origin(), site.url())).await.unwrap().unwrap().client;
    assert_eq!((kept.id.as_str(), kept.secret), ("known", None), "the user keeps the secret");
    site.expire();
    call(&client, "free").await.unwrap();
    assert_eq!((site.refreshes(), site.asked("/token")[1].parameters["client_secret"].as_str()), (1, "secret"));
}

#[tokio::test]
async fn of_several_authorization_servers_the_one_that_knows_the_client_is_asked() {
    let (first, second) = (Site::start(Setup::default()).await, Site::start(Setup::default()).await);
    first.name([&first.origin(), &second.origin()]);
    let user = user().client(second.origin(), ClientCredentials::public("known")).build().unwrap();
    user.log_in(&first.url()).await.unwrap();
    assert_eq!((first.consents().len(), second.asked("/authorize")[0].parameters["client_id"].as_str()), (0, "known"));
}

#[tokio::test]
async fn a_server_that_goes_to_another_authorization_server_is_followed_and_nothing_is_taken_there() {
    let (first, second) = (Site::start(Setup::default()).await, Site::start(Setup::default()).await);
    let user = credentials();
    let client = over_http(&first, MODERN, &user).await.unwrap();
    call(&client, "free").await.unwrap();
    first.name([&second.origin()]);
    first.expire();
    // Its tokens are none to the first server; what counts is who was asked for them, and for what.
    call(&client, "free").await.unwrap_err();
    assert_eq!((first.refreshes(), second.asked("/register").len(), second.consents().len()), (0, 1, 1));
    assert_eq!(second.asked("/token")[0].parameters["grant_type"], "authorization_code");
}

#[tokio::test]
async fn calls_that_wait_for_a_login_that_fails_share_its_failure() {
    let site = Site::start(Setup::default()).await;
    let (shown, comes) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, wakes) = (Arc::clone(&shown), Arc::clone(&comes));
    let credentials = with_opener(move |_| {
        counted.fetch_add(1, SeqCst);
        let comes = Arc::clone(&wakes);
        async move {
            comes.notified().await;
            Err(AuthError::Denied("the user has no time".to_owned()).into())
        }
    });
    let url = site.url();
    let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(credentials.log_in(&url))).collect();
    // Each has begun to wait.
    for waits in &mut waiting {
        assert!(futures_util::poll!(waits).is_pending());
    }
    comes.notify_one();
    for error in futures_util::future::join_all(waiting).await {
        assert!(matches!(AuthError::of(&error.unwrap_err()), Some(AuthError::Denied(_))));
    }
    assert_eq!(shown.load(SeqCst), 1);
    comes.notify_one();
    credentials.log_in(&url).await.unwrap_err();
    assert_eq!(shown.load(SeqCst), 2, "whoever comes later asks anew");
}

#[tokio::test]
async fn a_client_that_the_server_has_forgotten_is_registered_anew() {
    let refuses = [("refresh_token", "invalid_client")].into();
    let site = Site::start(Setup { refuses, ..Setup::default() }).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    site.expire();
    call(&client, "free").await.unwrap();
    assert_eq!((site.refreshes(), site.asked("/register").len(), site.consents().len()), (1, 2, 2));
}

#[tokio::test]
async fn a_refresh_that_the_server_does_not_give_is_replaced_by_a_login() {
    let refuses = [("refresh_token", "unauthorized_client")].into();
    let site = Site::start(Setup { refuses, ..Setup::default() }).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    site.expire();
    call(&client, "free").await.unwrap();
    assert_eq!((site.asked("/register").len(), site.consents().len()), (1, 2));
}

#[tokio::test]
async fn a_server_that_is_down_does_not_end_a_login() {
    let refuses = [("refresh_token", "temporarily_unavailable")].into();
    let site = Site::start(Setup { refuses, ..Setup::default() }).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    site.expire();
    let error = call(&client, "free").await.unwrap_err();
    assert!(matches!(AuthError::of(&error), Some(AuthError::Server(_))), "{error:?}");
    assert_eq!(site.consents().len(), 1);
}
