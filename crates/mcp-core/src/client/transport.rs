use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use mcp_jsonrpc::{ByteString, Bytes, Message, Notification, Raw, RequestId, Response, encode};
use tokio::sync::watch;

use crate::{
    BoxFuture, Error, Limits, Revision,
    client::Backoff,
    head::meta_key,
    mailbox::Mailbox,
    method::notification,
    observer::{ConnectionEvent, Observers, Role},
    shown::Size,
};

/// What a client speaks over. Users write their own; for a wire that both sides share, a
/// [`Connector`](crate::client::Connector) is less work. A boxed transport is one too, to choose it at run time.
pub trait Transport: Send + Sync + 'static {
    /// Connects. What the server sends on its own goes into `inbox`. May be called again after the connection was lost.
    ///
    /// # Errors
    /// When no connection can be made.
    fn open(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), Error>>;

    /// Sends a request. Dropping what is returned before its reply came cancels the request.
    fn request(&self, out: Outgoing) -> Replies;

    /// Sends a notification or a response; done once the other side has taken it, as far as the wire can tell.
    ///
    /// # Errors
    /// When it could not be sent.
    fn send(&self, out: Outgoing) -> BoxFuture<'_, Result<(), Error>>;

    /// Whether both sides share one wire, on which a server may meet an unknown method with silence. Default: yes.
    ///
    /// Elsewhere silence is a failure of the connection, and says nothing about the server's era.
    fn is_shared(&self) -> bool {
        true
    }

    /// What observers are told that it is. Default: `other`.
    fn kind(&self) -> &'static str {
        "other"
    }

    /// Tells what was agreed on.
    fn agreed(&self, to: &Agreed) {
        let _ = to;
    }

    /// How the client is to come back when a connection is lost that both sides agreed on: it [opens](Self::open) the
    /// transport anew. Default: not at all.
    fn recovery(&self) -> Option<Backoff> {
        None
    }

    /// Disconnects; calls that are pending fail. Doing it twice is doing it once.
    fn close(&self) -> BoxFuture<'_, ()>;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn open(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), Error>> {
        (**self).open(inbox)
    }

    fn request(&self, out: Outgoing) -> Replies {
        (**self).request(out)
    }

    fn send(&self, out: Outgoing) -> BoxFuture<'_, Result<(), Error>> {
        (**self).send(out)
    }

    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }

    fn kind(&self) -> &'static str {
        (**self).kind()
    }

    fn agreed(&self, to: &Agreed) {
        (**self).agreed(to);
    }

    fn recovery(&self) -> Option<Backoff> {
        (**self).recovery()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        (**self).close()
    }
}

/// What makes a transport: a transport itself, a server in memory, the description of a child process, …
pub trait IntoTransport {
    /// What it makes.
    type Transport: Transport;

    /// Makes a transport that keeps the client's limits.
    ///
    /// # Errors
    /// When the description is no good, as a URL that is none.
    fn into_transport(self, limits: &Limits) -> Result<Self::Transport, Error>;
}

impl<T: Transport> IntoTransport for T {
    type Transport = T;

    fn into_transport(self, _: &Limits) -> Result<T, Error> {
        Ok(self)
    }
}

/// A message on its way out. `Debug` says how long it is, and not what is in it, nor which arguments travel in headers.
#[derive(Clone)]
#[non_exhaustive]
pub struct Outgoing {
    /// The message as JSON text on one line.
    pub frame: Bytes,
    /// The request's id.
    pub id: Option<RequestId>,
    /// The method; none for a response.
    pub method: Option<ByteString>,
    /// The parameter `name` or `uri`, where the method has it.
    pub name: Option<ByteString>,
    /// The revision spoken, once it is known.
    pub revision: Option<Revision>,
    /// The arguments of a tool that travel in headers too, where the wire has headers: what follows `Mcp-Param-`, and
    /// the value, not encoded. Only in the modern era, and only of tools that the client has listed.
    pub mirrored: Vec<(ByteString, ByteString)>,
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing")
            .field("frame", &Size(&self.frame))
            .field("id", &self.id)
            .field("method", &self.method)
            .field("revision", &self.revision)
            .field("mirrored", &self.mirrored.len())
            .finish_non_exhaustive()
    }
}

impl Outgoing {
    /// A request, or the response to one, as the transport is to carry it.
    #[must_use]
    pub fn new(message: &Message, revision: Option<Revision>) -> Self {
        let (id, method) = match message {
            Message::Request(request) => (Some(request.id.clone()), Some(request.method.clone())),
            Message::Notification(notification) => (None, Some(notification.method.clone())),
            _ => (None, None),
        };
        Self { frame: message.encode(), id, method, name: None, revision, mirrored: Vec::new() }
    }

    pub(crate) fn notification(method: &'static str, params: Option<&Raw>, revision: Option<Revision>) -> Self {
        let frame = encode::notification(method, params);
        let method = Some(ByteString::from_static(method));
        Self { frame, id: None, method, name: None, revision, mirrored: Vec::new() }
    }

    /// Whether it calls that method.
    #[must_use]
    pub fn calls(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }

    /// The notification that this request is given up.
    ///
    /// Specification: *Cancellation*.
    #[must_use]
    pub fn to_cancel(&self) -> Option<Self> {
        let params = format!(r#"{{"requestId":{}}}"#, self.id.as_ref()?.as_json());
        let params = Raw::assume_valid(params.into());
        Some(Self::notification(notification::CANCELLED, Some(&params), self.revision))
    }
}

/// What both sides agreed on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Agreed {
    /// The revision that is spoken from now on.
    pub revision: Revision,
}

impl Agreed {
    /// An agreement on that revision.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self { revision }
    }
}

/// What comes back for one request, as a stream: notifications, and then the response.
pub struct Replies(Pin<Box<dyn Stream<Item = Result<Incoming, Error>> + Send>>);

/// What comes back for one request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Incoming {
    /// A notification about the request.
    Notification(Notification),
    /// The response; nothing comes after it.
    Response(Response),
}

impl Replies {
    /// Replies from a stream, which ends with the response or with an error.
    pub fn new(stream: impl Stream<Item = Result<Incoming, Error>> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }
}

impl Stream for Replies {
    type Item = Result<Incoming, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replies").finish_non_exhaustive()
    }
}

/// The request that a notification is about: a request's progress token is its id, and so is what names the stream of
/// changes that it opened.
///
/// `None` for notifications about no request, and where what names it is longer than `most` bytes.
///
/// Specification: *Progress*; *Subscriptions*.
#[must_use]
pub fn about_request(notification: &Notification, most: usize) -> Option<RequestId> {
    let params = notification.params.as_ref()?;
    let id = match &*notification.method {
        notification::PROGRESS => params.member(meta_key::PROGRESS_TOKEN)?,
        _ => params.member("_meta")?.member(meta_key::SUBSCRIPTION_ID)?,
    };
    RequestId::parse_shared(id, most).ok()
}

/// Where a transport puts what the server sends on its own: requests, and notifications about no request.
#[derive(Debug, Clone)]
pub struct Inbox {
    mailbox: Arc<Mailbox<(Message, Option<RequestId>)>>,
    /// Why nothing more comes in, once that is so.
    lost: Arc<watch::Sender<Option<Lost>>>,
    pub(crate) observers: Observers,
}

/// How a connection was lost.
#[derive(Debug, Clone)]
pub(crate) struct Lost {
    pub(crate) error: Arc<Error>,
    /// The server has said that it is done.
    pub(crate) in_order: bool,
}

impl Inbox {
    /// An empty inbox.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self::observed(limits, Observers::default())
    }

    /// The same, whose transport tells these observers of its connections.
    pub(crate) fn observed(limits: &Limits, observers: Observers) -> Self {
        let mailbox = Arc::new(Mailbox::new(&limits.clone().within_reason()));
        Self { mailbox, lost: Arc::new(watch::Sender::new(None)), observers }
    }

    /// Says that the connection was lost, and that nothing more comes in until it is opened anew. A transport that finds a
    /// way back by itself says nothing.
    pub fn lost(&self, error: Error) {
        self.lost_so(error, false);
    }

    pub(crate) fn lost_so(&self, error: Error, in_order: bool) {
        self.lost.send_replace(Some(Lost { error: Arc::new(error), in_order }));
    }

    /// Says that what was lost is there again, and messages come in. Anything may have changed meanwhile.
    pub fn found(&self) {
        self.lost.send_replace(None);
    }

    /// Whether the connection is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// Waits until there is a connection, again.
    pub(crate) async fn until_found(&self) {
        // The sender is part of `self`, so it cannot be gone.
        let _ = self.lost.subscribe().wait_for(Option::is_none).await;
    }

    /// Waits until the connection is lost.
    pub(crate) async fn until_lost(&self) -> Lost {
        let mut lost = self.lost.subscribe();
        let lost = lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone());
        match lost {
            Some(lost) => lost,
            // The sender is part of `self`, so it cannot be gone.
            None => std::future::pending().await,
        }
    }

    /// Hands a message to the client, after waiting for room.
    pub async fn deliver(&self, message: Message) {
        self.put(message, None).await;
    }

    /// The same for one that came with the answer to a request of the client's, and is about that one.
    pub async fn deliver_about(&self, request: &RequestId, message: Message) {
        self.put(message, Some(request.clone())).await;
    }

    async fn put(&self, message: Message, about: Option<RequestId>) {
        let bytes = message.size();
        self.mailbox.put((message, about), bytes).await;
    }

    /// Tells the client's observers, or the log, of an error that is no request's. `transport` is what the transport is called.
    pub fn error(&self, transport: &'static str, error: &Error) {
        self.observers.failed(ConnectionEvent { role: Role::Client, transport }, error);
    }

    /// The next message, which the client takes. Dropping the future loses nothing.
    pub async fn next(&self) -> Option<Message> {
        self.take().await.map(|(message, _)| message)
    }

    /// The same, with the request that it is about.
    pub(crate) async fn take(&self) -> Option<(Message, Option<RequestId>)> {
        self.mailbox.pop().await
    }
}
