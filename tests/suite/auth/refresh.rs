//! Tokens that end.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use futures_util::future::try_join_all;
use mcp_auth::{FileStore, Grant, Key, MemoryStore, OAuth, StoreLock, TokenStore};
use mcp_core::{BoxFuture, Error, Revision};

use super::{MODERN, Setup, Site, call, credentials, over_http, over_ws, user};

async fn share_one_refresh(revision: Revision, calls: usize) {
    let site = Site::start(Setup::default()).await;
    let client = over_http(&site, revision, &credentials()).await.unwrap();
    for round in 1..=2 {
        site.expire();
        try_join_all((0..calls).map(|_| call(&client, "free"))).await.unwrap();
        assert_eq!((site.refreshes(), site.consents().len()), (round, 1));
    }
}

#[tokio::test]
async fn c180_calls_that_are_refused_at_once_share_one_refresh() {
    share_one_refresh(MODERN, 10).await;
}

#[tokio::test]
async fn c180_they_do_in_a_session_which_goes_on() {
    share_one_refresh(Revision::V2025_11_25, 10).await;
}

#[tokio::test]
async fn c180_they_do_when_they_are_many() {
    share_one_refresh(MODERN, 100).await;
}

#[tokio::test]
async fn c180_connections_that_are_refused_at_once_share_one_login_and_one_refresh() {
    let site = Site::start(Setup::default()).await;
    let credentials = credentials();
    for round in 0..=1 {
        try_join_all((0..5).map(|_| over_ws(&site, &credentials))).await.unwrap();
        assert_eq!((site.refreshes(), site.consents().len()), (round, 1));
        site.expire();
    }
}

#[tokio::test]
async fn c180_processes_with_one_file_share_one_refresh() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(Setup::default()).await;
    let user = || user().store(FileStore::new(folder.path().join("logins"))).build().unwrap();
    let users: [OAuth; 5] = std::array::from_fn(|_| user());
    let clients = try_join_all(users.iter().map(|user| over_http(&site, MODERN, user))).await.unwrap();
    assert_eq!(site.consents().len(), 1);
    site.expire();
    try_join_all(clients.iter().map(|client| call(client, "free"))).await.unwrap();
    assert_eq!((site.refreshes(), site.consents().len()), (1, 1));
}

/// A store whose reader was slow: once it is told to, it gives what was there before, a single time.
#[derive(Default)]
struct Slow {
    store: Arc<MemoryStore>,
    stale: std::sync::Mutex<Option<Grant>>,
    deleted: AtomicBool,
}

impl TokenStore for Slow {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Grant>, Error>> {
        let stale = self.stale.lock().unwrap().take();
        match stale {
            Some(stale) => Box::pin(std::future::ready(Ok(Some(stale)))),
            None => self.store.load(key),
        }
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let is_end = new.is_none();
            let is_done = self.store.swap(key, expected, new).await?;
            self.deleted.fetch_or(is_done && is_end, SeqCst);
            Ok(is_done)
        })
    }

    /// As of a store that cannot lock.
    fn lock<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<StoreLock, Error>> {
        Box::pin(async { Ok(Box::new(()) as StoreLock) })
    }
}

async fn loses_a_race(revision: Revision, is_socket: bool) {
    let site = Site::start(Setup::default()).await;
    let store = Arc::new(Slow::default());
    let [one, two] = [0, 1].map(|_| user().store(Arc::clone(&store)).build().unwrap());
    let clients = (over_http(&site, revision, &one).await.unwrap(), over_http(&site, revision, &two).await.unwrap());
    // In a session, a call waits until the stream beside it has been asked for, which would be refused later on.
    for client in [&clients.0, &clients.1] {
        call(client, "free").await.unwrap();
    }
    let key = Key::new(site.origin(), site.url());
    let first = store.load(&key).await.unwrap();
    site.expire();
    call(&clients.0, "free").await.unwrap();
    let second = store.load(&key).await.unwrap();
    assert_ne!(first, second);
    *store.stale.lock().unwrap() = first;
    if is_socket {
        over_ws(&site, &two).await.unwrap();
    } else {
        call(&clients.1, "free").await.unwrap();
    }
    assert_eq!((site.refreshes(), site.consents().len()), (2, 1), "the loser tried, and nobody logged in again");
    assert_eq!(store.load(&key).await.unwrap(), second);
    assert!(!store.deleted.load(SeqCst));
}

#[tokio::test]
async fn c181_who_loses_a_race_takes_the_winners_tokens() {
    loses_a_race(MODERN, false).await;
}

#[tokio::test]
async fn c181_who_loses_it_in_a_session_does_too() {
    loses_a_race(Revision::V2025_11_25, false).await;
}

#[tokio::test]
async fn c181_who_loses_it_on_a_new_connection_does_too() {
    loses_a_race(MODERN, true).await;
}

#[tokio::test]
async fn c181_tokens_that_nobody_replaced_are_given_up_once() {
    let site = Site::start(Setup::default()).await;
    let store = Arc::new(Slow::default());
    let one = user().store(Arc::clone(&store)).build().unwrap();
    let client = over_http(&site, MODERN, &one).await.unwrap();
    site.expire();
    site.revoke();
    try_join_all((0..10).map(|_| call(&client, "free"))).await.unwrap();
    assert_eq!((site.refreshes(), site.consents().len()), (1, 2));
    assert!(store.deleted.load(SeqCst));
}

#[tokio::test]
async fn c177_a_refresh_names_the_resource_as_it_was_published() {
    let place = format!("{}/mcp", super::RESOURCE_METADATA);
    let site = Site::start(Setup::default().resource(&place, "{origin}", "{origin}")).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    site.expire();
    call(&client, "free").await.unwrap();
    let asked = site.asked("/token");
    assert_eq!(asked[1].parameters["grant_type"], "refresh_token");
    assert_eq!(asked[1].parameters["resource"], site.origin());
}

#[tokio::test]
async fn a_token_is_refreshed_while_the_metadata_cannot_be_had() {
    let site = Site::start(Setup::default()).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    site.fail(super::RESOURCE_METADATA);
    site.expire();
    call(&client, "free").await.unwrap();
    assert_eq!((site.refreshes(), site.consents().len()), (1, 1));
}
