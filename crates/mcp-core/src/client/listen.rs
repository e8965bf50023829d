//! Hearing of changes: on a stream of its own in the modern era, in the legacy one after `resources/subscribe` or unasked.
//!
//! Specification: *Subscriptions*; *2025-11-25, Resources, Subscriptions*.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_util::{FutureExt, StreamExt};
use mcp_jsonrpc::{Notification, Raw};
use tokio::{
    sync::{Mutex as AsyncMutex, oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    BoxFuture, Client, Era, Error, ErrorKind,
    client::{CallOptions, Incoming, Replies, cache::Cache, call::Ask, result},
    hub::{Hub, Listener, Subject},
    lock::lock,
    method::{Listen, Subscribe, Unsubscribe, notification},
    types::{ListenParams, LogLevel, NotificationFilter, ResourceParams, ServerCapabilities},
};

/// Something that a server says has changed. Any number of changes before it is read are one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Changed {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and of templates.
    Resources,
    /// What the resource of that URI holds, or something that lies below it.
    Resource(String),
}

/// Why nothing more is heard.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ListenEnd {
    /// This side has ended it.
    Local,
    /// The server has ended it in good order.
    Graceful,
    /// The connection was lost, or the server failed. Changes may have been missed; listening anew is the caller's choice.
    Lost(Arc<Error>),
}

/// Changes as they are heard of, until it is dropped; see [`Client::listen`].
#[must_use = "nothing is heard once it is dropped"]
pub struct Subscription {
    client: Client,
    acknowledged: NotificationFilter,
    listener: Listener,
    /// Why it ends, once it does.
    ending: BoxFuture<'static, ListenEnd>,
    end: Option<ListenEnd>,
    /// What reads a modern server's stream.
    pump: Option<AbortOnDrop>,
    /// The resources that a legacy server was asked to tell of.
    uris: Vec<String>,
}

impl Subscription {
    /// What the server agreed to tell of, which may be less than was asked for.
    #[must_use]
    pub fn acknowledged(&self) -> &NotificationFilter {
        &self.acknowledged
    }

    /// The next change; `None` once nothing more is heard.
    pub async fn next(&mut self) -> Option<Changed> {
        StreamExt::next(self).await
    }

    /// Why nothing more is heard, once [`next`](Self::next) has said so.
    #[must_use]
    pub fn ended(&self) -> Option<&ListenEnd> {
        self.end.as_ref()
    }

    /// Listens anew to what the server agreed to, after the connection was lost.
    ///
    /// # Errors
    /// As [`Client::listen`].
    pub async fn again(&mut self) -> Result<Self, Error> {
        self.client.listen(self.acknowledged.clone()).await
    }

    /// Listens no more. Dropping it does the same, without waiting for the server to be told.
    pub async fn close(&mut self) {
        self.listener.close();
        self.end.get_or_insert(ListenEnd::Local);
        self.pump.take();
        // One by one: what is not told when this is given up is told when it is dropped.
        while let Some(uri) = self.uris.pop() {
            self.client.listening().unwant(&uri);
            unsubscribe(&self.client, uri).await;
        }
    }
}

impl Stream for Subscription {
    type Item = Changed;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Changed>> {
        if self.end.is_none() && self.listener.poll_changed(cx).is_pending() {
            self.end = Some(ready!(self.ending.poll_unpin(cx)));
        }
        // What was heard before the end is told still.
        match self.listener.next() {
            Some(subject) => Poll::Ready(Some(subject.into())),
            None if self.end.is_some() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut self.uris);
        uris.iter().for_each(|uri| self.client.listening().unwant(uri));
        if let (false, Ok(runtime)) = (uris.is_empty(), tokio::runtime::Handle::try_current()) {
            let client = self.client.clone();
            runtime.spawn(async move {
                for uri in uris {
                    unsubscribe(&client, uri).await;
                }
            });
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("acknowledged", &self.acknowledged)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl From<Subject> for Changed {
    fn from(subject: Subject) -> Self {
        match subject {
            Subject::Tools => Self::Tools,
            Subject::Prompts => Self::Prompts,
            Subject::Resources => Self::Resources,
            Subject::Resource(uri) => Self::Resource(uri.to_string()),
        }
    }
}

/// What one client hears, whoever listens.
#[derive(Debug)]
pub(crate) struct Listening {
    hub: Arc<Hub>,
    cache: Option<Cache>,
    session: Mutex<Session>,
    /// Whoever changes what a legacy server tells of, one after the other.
    turn: AsyncMutex<()>,
    end: watch::Sender<Option<ListenEnd>>,
}

/// What a legacy server keeps for this client, and would have to be told again.
#[derive(Debug, Default)]
struct Session {
    uris: HashMap<String, Wanted>,
    log_level: Option<LogLevel>,
}

/// A resource that somebody listens to.
#[derive(Debug, Default)]
struct Wanted {
    /// How many do.
    by: usize,
    /// Whether the server was told.
    is_told: bool,
}

impl Listening {
    pub(crate) fn new(cache: Option<Cache>) -> Self {
        let (hub, session, turn) = Default::default();
        Self { hub, cache, session, turn, end: watch::Sender::new(None) }
    }

    /// The server says something on its own; false if that is no change of anything.
    pub(crate) fn heard(&self, notification: &Notification) -> bool {
        let Some(subject) = subject(notification) else { return false };
        if let Some(cache) = &self.cache {
            cache.changed(&subject);
        }
        let session = lock(&self.session);
        mark(&self.hub, session.uris.keys(), &subject);
        true
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

    /// What level a legacy server was told.
    pub(crate) fn keep_log_level(&self, level: LogLevel) {
        lock(&self.session).log_level = Some(level);
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        lock(&self.session).log_level
    }

    /// What a session that was begun anew has to be told.
    pub(crate) fn session(&self) -> (Vec<String>, Option<LogLevel>) {
        let session = lock(&self.session);
        let told = session.uris.iter().filter(|(_, wanted)| wanted.is_told);
        (told.map(|(uri, _)| uri.clone()).collect(), session.log_level)
    }

    /// Anything may have changed while there was no session.
    pub(crate) fn everything_changed(&self) {
        let uris =
            lock(&self.session).uris.keys().map(|uri| Subject::Resource(uri.as_str().into())).collect::<Vec<_>>();
        for subject in [Subject::Tools, Subject::Prompts, Subject::Resources].into_iter().chain(uris) {
            if let Some(cache) = &self.cache {
                cache.changed(&subject);
            }
            self.hub.changed(&subject);
        }
    }

    fn ending(&self, own: Option<watch::Receiver<Option<ListenEnd>>>) -> BoxFuture<'static, ListenEnd> {
        let mut all = self.end.subscribe();
        Box::pin(async move {
            let own = async {
                match own {
                    Some(mut own) => told(&mut own).await,
                    None => None,
                }
            };
            tokio::select! {
                biased;
                Some(end) = told(&mut all) => end,
                Some(end) = own => end,
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

/// What a notification says has changed.
fn subject(notification: &Notification) -> Option<Subject> {
    match &*notification.method {
        notification::TOOLS_CHANGED => Some(Subject::Tools),
        notification::PROMPTS_CHANGED => Some(Subject::Prompts),
        notification::RESOURCES_CHANGED => Some(Subject::Resources),
        notification::RESOURCE_UPDATED => {
            let uri = notification.params.as_ref()?.member("uri")?.to_string_value().ok()?;
            Some(Subject::Resource((&*uri).into()))
        }
        _ => None,
    }
}

/// Marks what has changed, and those of `uris` that it lies below.
///
/// Specification: *2025-11-25, Resources, Subscriptions; schema, `ResourceUpdatedNotification`*.
fn mark<'a>(hub: &Hub, uris: impl IntoIterator<Item = &'a String>, subject: &Subject) {
    hub.changed(subject);
    let Subject::Resource(changed) = subject else { return };
    for uri in uris.into_iter().filter(|uri| lies_below(changed, uri)) {
        hub.changed(&Subject::Resource(uri.as_str().into()));
    }
}

/// Whether a URI names a part of what another one names.
pub(super) fn lies_below(uri: &str, parent: &str) -> bool {
    let rest = uri.strip_prefix(parent);
    rest.is_some_and(|rest| !rest.is_empty() && (parent.ends_with('/') || rest.starts_with(['/', '?', '#'])))
}

fn listener(hub: &Arc<Hub>, filter: &NotificationFilter) -> Listener {
    let listener = hub.listener();
    filter.subjects().for_each(|subject| listener.listen(subject));
    listener
}

impl Client {
    /// Hears of changes, from now on: of what `filter` says, as far as the server agrees. A legacy server is asked for each
    /// resource, with `resources/subscribe`.
    ///
    /// ```
    /// use mcp_core::{Client, client::Changed, types::NotificationFilter};
    ///
    /// # async fn example(client: Client) -> Result<(), mcp_core::Error> {
    /// let mut changes = client.listen(NotificationFilter::new().tools().resource("file:///log")).await?;
    /// while let Some(change) = changes.next().await {
    ///     match change {
    ///         Changed::Tools => drop(client.tools().await?),
    ///         Changed::Resource(uri) => drop(client.read_resource(&uri).await?),
    ///         _ => {}
    ///     }
    /// }
    /// println!("{:?}", changes.ended());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the server refuses, or does not say in time what it agrees to.
    ///
    /// Specification: *Subscriptions*; *2025-11-25, Resources, Subscriptions*.
    pub async fn listen(&self, filter: NotificationFilter) -> Result<Subscription, Error> {
        match self.revision().era() {
            Era::Modern => self.listen_to_stream(filter).await,
            Era::Legacy => self.listen_in_session(filter).await,
        }
    }

    /// Hears when what a resource holds changes; see [`listen`](Self::listen).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where the server does not tell of that resource; otherwise as [`listen`](Self::listen).
    pub async fn subscribe(&self, uri: &str) -> Result<Subscription, Error> {
        let subscription = self.listen(NotificationFilter::new().resource(uri)).await?;
        // It holds nothing that was not asked for.
        if subscription.acknowledged.resource_subscriptions.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "the server does not tell of changes of that resource"));
        }
        Ok(subscription)
    }

    async fn listen_to_stream(&self, filter: NotificationFilter) -> Result<Subscription, Error> {
        let (caller, params) = (self.caller(), ListenParams { notifications: filter });
        let out = caller.compose::<Listen>(self.speech(), &Ask::new(&params), &CallOptions::new())?;
        let (hub, end) = (Arc::<Hub>::default(), watch::Sender::new(None));
        let ending = self.listening().ending(Some(end.subscribe()));
        let (tell, told) = oneshot::channel();
        let pump = Pump { replies: caller.transport.request(out), hub, listening: self.listening().clone() };
        // It reads from the first moment on, however slowly this is polled.
        let pump = AbortOnDrop(tokio::spawn(pump.run(params.notifications, tell, end)));
        let first = timeout(caller.limits.request_timeout, told).await;
        let first =
            first.map_err(|_| Error::new(ErrorKind::Timeout, "the server did not say what it agrees to tell"))?;
        let (acknowledged, listener) = first.map_err(|_| cut())??;
        let client = self.clone();
        Ok(Subscription { client, acknowledged, listener, ending, end: None, pump: Some(pump), uris: Vec::new() })
    }

    async fn listen_in_session(&self, filter: NotificationFilter) -> Result<Subscription, Error> {
        let mut acknowledged = offered(self.server_capabilities(), filter);
        let wanted = std::mem::take(&mut acknowledged.resource_subscriptions);
        let listening = self.listening();
        let mut subscription = Subscription {
            client: self.clone(),
            listener: listener(&listening.hub, &acknowledged),
            acknowledged,
            ending: listening.ending(None),
            end: None,
            pump: None,
            uris: Vec::new(),
        };
        for uri in wanted {
            // Before the server is asked, so that nothing is missed; and taken back with the subscription.
            subscription.uris.push(uri.clone());
            listening.want(&uri);
            subscription.listener.listen(Subject::Resource(uri.as_str().into()));
            match listening.subscribe(self, &uri).await {
                Ok(()) => subscription.acknowledged.resource_subscriptions.push(uri),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    subscription.listener.ignore(&Subject::Resource(uri.as_str().into()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(subscription)
    }
}

impl Listening {
    /// Somebody more listens to a resource.
    fn want(&self, uri: &str) {
        lock(&self.session).uris.entry(uri.to_owned()).or_default().by += 1;
    }

    /// Has a legacy server tell of a resource, if it does not yet.
    async fn subscribe(&self, client: &Client, uri: &str) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let is_told = |session: &Session| session.uris.get(uri).is_some_and(|wanted| wanted.is_told);
        if is_told(&lock(&self.session)) {
            return Ok(());
        }
        client.request::<Subscribe>(&ResourceParams { uri: uri.to_owned() }).await?;
        if let Some(wanted) = lock(&self.session).uris.get_mut(uri) {
            wanted.is_told = true;
        }
        Ok(())
    }

    /// Somebody less does.
    fn unwant(&self, uri: &str) {
        if let Some(wanted) = lock(&self.session).uris.get_mut(uri) {
            wanted.by = wanted.by.saturating_sub(1);
        }
    }

    /// Has a legacy server tell no more of a resource, if nobody listens to it any more.
    async fn unsubscribe(&self, client: &Client, uri: String) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let is_last = {
            let mut session = lock(&self.session);
            let is_unwanted = session.uris.get(&uri).is_some_and(|wanted| wanted.by == 0);
            is_unwanted && session.uris.remove(&uri).is_some_and(|unwanted| unwanted.is_told)
        };
        if is_last && self.end.borrow().is_none() {
            client.request::<Unsubscribe>(&ResourceParams { uri }).await?;
        }
        Ok(())
    }
}

/// Takes back what a subscription has asked a legacy server for.
async fn unsubscribe(client: &Client, uri: String) {
    if let Err(error) = client.listening().unsubscribe(client, uri).await {
        tracing::debug!(%error, "a server would not forget a subscription");
    }
}

/// Reads up to what the server agrees to; none if it has ended by then.
async fn acknowledgement(replies: &mut Replies) -> Result<Option<NotificationFilter>, Error> {
    loop {
        match replies.next().await {
            Some(Ok(Incoming::Notification(notification))) if notification.method == notification::ACKNOWLEDGED => {
                let params = notification.params.as_ref().and_then(|params| params.decode::<ListenParams>().ok());
                let invalid =
                    || Error::new(ErrorKind::ProtocolInvalid, "what the server agrees to does not have its shape");
                return params.map(|params| Some(params.notifications)).ok_or_else(invalid);
            }
            Some(Ok(Incoming::Notification(notification))) if notification.method == notification::CANCELLED => {
                return Ok(None);
            }
            Some(Ok(Incoming::Notification(_))) => {}
            Some(Ok(Incoming::Response(response))) => {
                return result::read::<Listen>(response, Era::Modern).map(|_| None);
            }
            Some(Err(error)) => return Err(error),
            None => return Err(cut()),
        }
    }
}

/// What a subscription begins with.
type Begun = (NotificationFilter, Listener);

/// Takes down what has changed, at once, so that neither the server nor the connection waits for whoever listens.
struct Pump {
    replies: Replies,
    hub: Arc<Hub>,
    listening: Arc<Listening>,
}

impl Pump {
    async fn run(
        mut self,
        asked: NotificationFilter,
        begun: oneshot::Sender<Result<Begun, Error>>,
        end: watch::Sender<Option<ListenEnd>>,
    ) {
        let (acknowledged, is_over) = match acknowledgement(&mut self.replies).await {
            Ok(Some(theirs)) => (asked.within(theirs), false),
            Ok(None) => (NotificationFilter::default(), true),
            // Where nobody waits for it any more, nobody need know.
            Err(error) => return drop(begun.send(Err(error))),
        };
        let uris = acknowledged.resource_subscriptions.clone();
        let listener = listener(&self.hub, &acknowledged);
        if begun.send(Ok((acknowledged, listener))).is_ok() {
            end.send_replace(Some(if is_over { ListenEnd::Graceful } else { self.read(&uris).await }));
        }
    }

    async fn read(&mut self, uris: &[String]) -> ListenEnd {
        loop {
            match self.replies.next().await {
                Some(Ok(Incoming::Notification(notification))) => {
                    if notification.method == notification::CANCELLED {
                        return ListenEnd::Graceful;
                    }
                    if let Some(subject) = subject(&notification) {
                        self.listening.heard(&notification);
                        mark(&self.hub, uris, &subject);
                    }
                }
                Some(Ok(Incoming::Response(response))) => match result::read::<Listen>(response, Era::Modern) {
                    Ok(_) => return ListenEnd::Graceful,
                    Err(error) => return ListenEnd::Lost(error.into()),
                },
                Some(Err(error)) => return ListenEnd::Lost(error.into()),
                None => return ListenEnd::Lost(cut().into()),
            }
        }
    }
}

/// A task that ends with this.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn cut() -> Error {
    Error::new(ErrorKind::TransportClosed, "the stream of changes ended without a word")
}

/// What of it a legacy server tells.
fn offered(capabilities: &ServerCapabilities, asked: NotificationFilter) -> NotificationFilter {
    let says = |capability: &Option<Raw>, member: &str| {
        capability.as_ref().and_then(|raw| raw.member(member)).is_some_and(|value| value.as_str() == "true")
    };
    let (tools, prompts, resources) = (&capabilities.tools, &capabilities.prompts, &capabilities.resources);
    let subscribes = says(resources, "subscribe");
    NotificationFilter {
        tools_list_changed: asked.tools_list_changed && says(tools, "listChanged"),
        prompts_list_changed: asked.prompts_list_changed && says(prompts, "listChanged"),
        resources_list_changed: asked.resources_list_changed && says(resources, "listChanged"),
        resource_subscriptions: if subscribes { asked.resource_subscriptions } else { Vec::new() },
    }
}
