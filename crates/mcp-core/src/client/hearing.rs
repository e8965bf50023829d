//! What a client hears of changes, whoever listens; and what a legacy server was asked to tell.
//!
//! Specification: *Subscriptions*; *2025-11-25, Resources, Subscriptions*.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use arc_swap::ArcSwapOption;
use mcp_jsonrpc::Notification;
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::{
    BoxFuture, Client, Error,
    client::{ListenEnd, cache::Cache},
    hub::{Hub, Listener, Subject},
    lock::lock,
    method::{Subscribe, Unsubscribe, notification},
    types::{LogLevel, NotificationFilter, ResourceParams},
};

/// What one client hears, whoever listens.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(super) hub: Arc<Hub>,
    cache: Option<Cache>,
    /// The resources that somebody listens to, whom a legacy server would have to be told of again.
    uris: Mutex<HashMap<String, Wanted>>,
    /// What the server was told, or is told with each call.
    log_level: ArcSwapOption<LogLevel>,
    /// Whoever changes what a legacy server tells of, one after the other.
    turn: AsyncMutex<()>,
    end: watch::Sender<Option<ListenEnd>>,
}

/// A resource that somebody listens to.
#[derive(Debug, Default)]
struct Wanted {
    /// How many do.
    by: usize,
    /// Whether the server was told.
    is_told: bool,
    /// Whom to tell that it does not tell of it any more.
    ends: Vec<Weak<watch::Sender<Option<ListenEnd>>>>,
}

impl Listening {
    pub(crate) fn new(cache: Option<Cache>) -> Self {
        let (hub, uris, log_level, turn) = Default::default();
        Self { hub, cache, uris, log_level, turn, end: watch::Sender::new(None) }
    }

    /// The server says that something has changed.
    pub(crate) fn heard(&self, subject: &Subject) {
        if let Some(cache) = &self.cache {
            cache.changed(subject);
        }
        let uris = lock(&self.uris);
        mark(&self.hub, uris.keys(), subject);
    }

    /// Nothing more is heard. The first reason stands, but what is lost may come back, and what was ended here does not.
    pub(crate) fn end(&self, end: ListenEnd) {
        self.end.send_if_modified(|known| {
            let is_news = known.is_none() || matches!((&known, &end), (Some(ListenEnd::Lost(_)), ListenEnd::Local));
            if is_news {
                *known = Some(end);
            }
            is_news
        });
    }

    /// There is a session again, in which what was lost may be listened to anew.
    pub(crate) fn begin_anew(&self) {
        self.end.send_if_modified(|end| matches!(end, Some(ListenEnd::Lost(_))) && end.take().is_some());
    }

    /// What level the server was told, or is told with each call.
    pub(crate) fn keep_log_level(&self, level: LogLevel) {
        self.log_level.store(Some(Arc::new(level)));
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.log_level.load().as_deref().copied()
    }

    /// What a session that was begun anew has to be told.
    pub(crate) fn session(&self) -> (Vec<String>, Option<LogLevel>) {
        let uris = lock(&self.uris);
        let told = uris.iter().filter(|(_, wanted)| wanted.is_told);
        (told.map(|(uri, _)| uri.clone()).collect(), self.log_level())
    }

    /// Anything may have changed while there was no session.
    pub(crate) fn everything_changed(&self) {
        let uris = lock(&self.uris).keys().map(|uri| Subject::Resource(uri.as_str().into())).collect::<Vec<_>>();
        for subject in [Subject::Tools, Subject::Prompts, Subject::Resources].into_iter().chain(uris) {
            self.heard(&subject);
        }
    }

    pub(super) fn ending(&self, mut own: watch::Receiver<Option<ListenEnd>>) -> BoxFuture<'static, ListenEnd> {
        let mut all = self.end.subscribe();
        Box::pin(async move {
            tokio::select! {
                biased;
                Some(end) = told(&mut all) => end,
                Some(end) = told(&mut own) => end,
                // The client holds both, so neither is gone.
                else => ListenEnd::Local,
            }
        })
    }
}

/// Waits until an end is told; none if nobody can tell any more.
async fn told(end: &mut watch::Receiver<Option<ListenEnd>>) -> Option<ListenEnd> {
    end.wait_for(Option::is_some).await.ok()?.clone()
}

/// Who listens to that.
pub(crate) fn listener(hub: &Arc<Hub>, filter: &NotificationFilter) -> Listener {
    let listener = hub.listener();
    filter.subjects().for_each(|subject| listener.listen(subject));
    listener
}

/// What a notification says has changed.
pub(crate) fn subject(notification: &Notification) -> Option<Subject> {
    match &*notification.method {
        notification::TOOLS_CHANGED => Some(Subject::Tools),
        notification::PROMPTS_CHANGED => Some(Subject::Prompts),
        notification::RESOURCES_CHANGED => Some(Subject::Resources),
        notification::RESOURCE_UPDATED => {
            let uri = notification.params.as_ref()?.member("uri")?.to_string_value().ok()?;
            Some(Subject::Resource((&*uri).into()))
        }
        notification::TASK => {
            let id = notification.params.as_ref()?.member("taskId")?.to_string_value().ok()?;
            Some(Subject::Task((&*id).into()))
        }
        _ => None,
    }
}

/// Marks what has changed, and those of `uris` that it lies below.
///
/// Specification: *2025-11-25, Resources, Subscriptions; schema, `ResourceUpdatedNotification`*.
pub(crate) fn mark<'a>(hub: &Hub, uris: impl IntoIterator<Item = &'a String>, subject: &Subject) {
    hub.changed(subject);
    let Subject::Resource(changed) = subject else { return };
    for uri in uris.into_iter().filter(|uri| lies_below(changed, uri)) {
        hub.changed(&Subject::Resource(uri.as_str().into()));
    }
}

/// Whether a URI names a part of what another one names.
pub(crate) fn lies_below(uri: &str, parent: &str) -> bool {
    let rest = uri.strip_prefix(parent);
    rest.is_some_and(|rest| !rest.is_empty() && (parent.ends_with('/') || rest.starts_with(['/', '?', '#'])))
}

impl Listening {
    /// Somebody more listens to a resource.
    pub(super) fn want(&self, uri: &str, end: &Arc<watch::Sender<Option<ListenEnd>>>) {
        let mut uris = lock(&self.uris);
        let wanted = uris.entry(uri.to_owned()).or_default();
        wanted.by += 1;
        wanted.ends.retain(|end| end.strong_count() > 0);
        wanted.ends.push(Arc::downgrade(end));
    }

    /// A server that was begun anew does not tell of a resource.
    pub(super) fn refused(&self, uri: &str, error: Error) {
        let mut uris = lock(&self.uris);
        let Some(wanted) = uris.get_mut(uri) else { return };
        wanted.is_told = false;
        let error = Arc::new(error);
        for end in wanted.ends.drain(..).filter_map(|end| end.upgrade()) {
            end.send_replace(Some(ListenEnd::Lost(error.clone())));
        }
    }

    /// Has a legacy server tell of a resource, if it does not yet.
    pub(super) async fn subscribe(&self, client: &Client, uri: &str) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let is_told = lock(&self.uris).get(uri).is_some_and(|wanted| wanted.is_told);
        if is_told {
            return Ok(());
        }
        client.ask::<Subscribe>(&ResourceParams { uri: uri.to_owned() }).await?;
        if let Some(wanted) = lock(&self.uris).get_mut(uri) {
            wanted.is_told = true;
        }
        Ok(())
    }

    /// Somebody less does.
    pub(super) fn unwant(&self, uri: &str) {
        if let Some(wanted) = lock(&self.uris).get_mut(uri) {
            wanted.by = wanted.by.saturating_sub(1);
        }
    }

    /// Has a legacy server tell no more of a resource, if nobody listens to it any more.
    pub(super) async fn unsubscribe(&self, client: &Client, uri: String) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let is_last = {
            let mut uris = lock(&self.uris);
            let is_unwanted = uris.get(&uri).is_some_and(|wanted| wanted.by == 0);
            is_unwanted && uris.remove(&uri).is_some_and(|unwanted| unwanted.is_told)
        };
        if is_last && self.end.borrow().is_none() {
            client.ask::<Unsubscribe>(&ResourceParams { uri }).await?;
        }
        Ok(())
    }
}
