use std::{pin::Pin, sync::Arc};

use futures_core::Stream;
use futures_util::{StreamExt, future::BoxFuture};
use mcp_jsonrpc::{ByteString, Bytes, Message, Notification, Raw, RequestId, Response, encode};

use crate::{Error, Limits, Revision, mailbox::Mailbox, method::notification};

/// What a client speaks over. Users write their own; for a wire that both sides share, a
/// [`Connector`](crate::client::Connector) is less work.
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

    /// Tells what was agreed on.
    fn agreed(&self, to: &Agreed) {
        let _ = to;
    }

    /// Disconnects; calls that are pending fail. Doing it twice is doing it once.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// What makes a transport: a transport itself, a server in memory, the description of a child process, …
pub trait IntoTransport {
    /// The transport.
    type Transport: Transport;

    /// Makes it, with the client's limits.
    fn into_transport(self, limits: &Limits) -> Self::Transport;
}

impl<T: Transport> IntoTransport for T {
    type Transport = T;

    fn into_transport(self, _: &Limits) -> T {
        self
    }
}

/// A message on its way out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outgoing {
    /// The message as JSON text on one line.
    pub frame: Bytes,
    /// The request's id.
    pub id: Option<RequestId>,
    /// The method; none for a response.
    pub method: Option<&'static str>,
    /// The parameter `name` or `uri`, where the method has it.
    pub name: Option<ByteString>,
    /// The revision spoken, once it is known.
    pub revision: Option<Revision>,
}

impl Outgoing {
    pub(crate) fn notification(method: &'static str, params: Option<&Raw>, revision: Option<Revision>) -> Self {
        Self { frame: encode::notification(method, params), id: None, method: Some(method), name: None, revision }
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

/// What comes back for one request: notifications, and then the response.
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

    pub(crate) async fn next(&mut self) -> Option<Result<Incoming, Error>> {
        self.0.next().await
    }
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replies").finish_non_exhaustive()
    }
}

/// Where a transport puts what the server sends on its own: requests, and notifications about no request.
#[derive(Debug, Clone)]
pub struct Inbox(Arc<Mailbox<Message>>);

impl Inbox {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self(Arc::new(Mailbox::new(limits)))
    }

    /// Hands a message to the client, after waiting for room.
    pub async fn deliver(&self, message: Message) {
        self.0.room().await;
        let bytes = message.size();
        self.0.push(message, bytes);
    }

    pub(crate) async fn next(&self) -> Option<Message> {
        self.0.pop().await
    }
}
