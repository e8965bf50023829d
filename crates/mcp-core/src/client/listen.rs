//! Hearing of changes: on a stream of its own in the modern era, in the legacy one after `resources/subscribe` or unasked.
//!
//! Specification: *Subscriptions*; *2025-11-25, Resources, Subscriptions*.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_util::{FutureExt, StreamExt};
use mcp_jsonrpc::Raw;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    BoxFuture, Client, Era, Error, ErrorKind,
    client::{
        CallOptions,
        call::Ask,
        hearing::listener,
        modern::changes::{Opened, Pump, cut, silent},
    },
    hub::{Hub, Listener, Subject},
    method::Listen,
    shown::Elided,
    types::{ListenParams, NotificationFilter, ServerCapabilities},
};

/// Something that a server says has changed. Any number of changes before it is read are one.
#[derive(Clone, PartialEq, Eq)]
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
    /// The task of that id.
    Task(String),
}

impl fmt::Debug for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tools => f.write_str("Tools"),
            Self::Prompts => f.write_str("Prompts"),
            Self::Resources => f.write_str("Resources"),
            Self::Resource(uri) => f.debug_tuple("Resource").field(uri).finish(),
            Self::Task(id) => f.debug_tuple("Task").field(&Elided(id)).finish(),
        }
    }
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
    pump: Option<AbortOnDropHandle<()>>,
    /// The resources that a legacy server was asked to tell of.
    uris: Vec<String>,
    /// What says that it does not tell of one any more, for as long as this lives.
    #[expect(dead_code, reason = "held for whoever has it weakly")]
    refusal: Option<Arc<watch::Sender<Option<ListenEnd>>>>,
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
            Subject::Task(id) => Self::Task(id.to_string()),
        }
    }
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
        let patience = self.limits().request_timeout;
        loop {
            self.settled().await;
            let opened = self.open_stream(filter.clone())?;
            let session = opened.session;
            match self.listen_on(opened, filter.clone()).await {
                Err(error) if self.may_come_back(&error) => {
                    timeout(patience, self.renewed(session)).await.map_err(|_| silent())??;
                }
                outcome => return outcome,
            }
        }
    }

    async fn listen_on(&self, opened: Opened, filter: NotificationFilter) -> Result<Subscription, Error> {
        let (hub, end) = (Arc::<Hub>::default(), watch::Sender::new(None));
        let ending = self.listening().ending(end.subscribe());
        let (tell, told) = oneshot::channel();
        let pump = Pump { opened, hub, listening: self.listening().clone(), client: self.weak() };
        // It reads from the first moment on, however slowly this is polled.
        let pump = AbortOnDropHandle::new(tokio::spawn(pump.run(filter, tell, end)));
        let first = timeout(self.limits().request_timeout, told).await.map_err(|_| silent())?;
        let (acknowledged, listener) = first.map_err(|_| cut())??;
        let client = self.clone();
        Ok(Subscription {
            client,
            acknowledged,
            listener,
            ending,
            end: None,
            pump: Some(pump),
            uris: Vec::new(),
            refusal: None,
        })
    }

    /// Asks for a stream of changes.
    pub(super) fn open_stream(&self, filter: NotificationFilter) -> Result<Opened, Error> {
        let (caller, params) = (self.caller(), ListenParams { notifications: filter });
        let out = caller.compose::<Listen>(self.speech(), &Ask::new(&params), &CallOptions::new())?;
        let session = self.0.sessions.load(Ordering::Acquire);
        Ok(Opened { replies: caller.transport.request(out), session })
    }

    async fn listen_in_session(&self, filter: NotificationFilter) -> Result<Subscription, Error> {
        let mut acknowledged = offered(self.server_capabilities(), filter);
        let wanted = std::mem::take(&mut acknowledged.resource_subscriptions);
        if self.0.router.inbox().is_lost() && self.recovers() {
            // Nothing is asked of a server that is to tell of lists alone.
            self.weak().renew();
        }
        let listening = self.listening();
        let end = Arc::new(watch::Sender::new(None));
        let mut subscription = Subscription {
            client: self.clone(),
            listener: listener(&listening.hub, &acknowledged),
            acknowledged,
            ending: listening.ending(end.subscribe()),
            end: None,
            pump: None,
            uris: Vec::new(),
            refusal: Some(end.clone()),
        };
        for uri in wanted {
            // Before the server is asked, so that nothing is missed; and taken back with the subscription.
            subscription.uris.push(uri.clone());
            listening.want(&uri, &end);
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

/// Takes back what a subscription has asked a legacy server for.
async fn unsubscribe(client: &Client, uri: String) {
    if let Err(error) = client.listening().unsubscribe(client, uri).await {
        tracing::debug!(error = error.to_log(), "a server would not forget a subscription");
    }
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
        task_ids: Vec::new(),
    }
}
