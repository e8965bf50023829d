//! What happens, told to whoever wants to count, measure or log it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_jsonrpc::{ByteString, RequestId};
use tokio::time::Instant;

use crate::{Error, ErrorKind, Exchange, Revision, contained::contained};

/// Hears of what a server or a client does: for metrics, traces and audit logs.
///
/// Every function does nothing unless it is written. They are called in the task that does the work, so they must be
/// quick and must not block. One that panics harms nothing but itself. What nobody hears of and is an error is logged,
/// at the level DEBUG.
///
/// ```
/// use std::{sync::atomic::{AtomicU64, Ordering}, time::Duration};
/// use mcp_core::{Server, implementation, observer::{Observer, Outcome, RequestEvent}};
///
/// #[derive(Default)]
/// struct Failures(AtomicU64);
///
/// impl Observer for Failures {
///     fn request_completed(&self, _: &RequestEvent<'_>, outcome: Outcome, _: Duration) {
///         if outcome != Outcome::Completed {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let server = Server::builder(implementation!()).observer(Failures::default()).build();
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A request begins: one that came in, or one that goes out.
    fn request_started(&self, request: &RequestEvent<'_>) {
        let _ = request;
    }

    /// A request is over. Each that was started is completed once, with the time between.
    fn request_completed(&self, request: &RequestEvent<'_>, outcome: Outcome, took: Duration) {
        let _ = (request, outcome, took);
    }

    /// A notification came in or goes out.
    fn notification(&self, notification: &NotificationEvent<'_>) {
        let _ = notification;
    }

    /// A connection is there: a shared wire, or what a client has over HTTP between connecting and disconnecting.
    fn connection_opened(&self, connection: &ConnectionEvent) {
        let _ = connection;
    }

    /// A connection is gone.
    fn connection_closed(&self, connection: &ConnectionEvent, reason: &CloseReason<'_>) {
        let _ = (connection, reason);
    }

    /// Something that is no request's failed: a message that cannot be read, an answer that cannot be sent, a connection that
    /// does not come about.
    fn transport_error(&self, connection: &ConnectionEvent, error: &Error) {
        let _ = (connection, error);
    }
}

/// Nobody: it hears of everything and does nothing.
impl Observer for () {}

/// Which side tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A server.
    Server,
    /// A client.
    Client,
}

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Direction {
    /// It came in.
    Incoming,
    /// It goes out.
    Outgoing,
}

/// A request. `Debug` does not show its name, which may be a URI with arguments in it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct RequestEvent<'a> {
    /// Where it happens.
    pub connection: ConnectionEvent,
    /// Whether it is served here, or asked from here.
    pub direction: Direction,
    /// The method.
    pub method: &'a str,
    /// The parameter `name` or `uri`, where there is one: the tool that is called, for example.
    pub name: Option<&'a str>,
    /// The id.
    pub id: &'a RequestId,
    /// The revision that is spoken, once that is known.
    pub revision: Option<Revision>,
}

impl fmt::Debug for RequestEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestEvent")
            .field("connection", &self.connection)
            .field("direction", &self.direction)
            .field("method", &self.method)
            .field("id", &self.id)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// A notification.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct NotificationEvent<'a> {
    /// Where it happens.
    pub connection: ConnectionEvent,
    /// Whether it came in or goes out.
    pub direction: Direction,
    /// The method.
    pub method: &'a str,
}

/// A connection, or what stands for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ConnectionEvent {
    /// Which side tells.
    pub role: Role,
    /// What the messages go over: `stdio`, `http`, `http+sse`, `websocket`, `memory`, what a transport of a user's own calls itself,
    /// or `none` for messages that came by themselves.
    pub transport: &'static str,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// With a result.
    Completed,
    /// With a result that says that the tool failed (`isError`).
    ToolFailed,
    /// With an error of this code.
    Error {
        /// The JSON-RPC code.
        code: i64,
    },
    /// Without an answer, for this reason. A client's.
    Failed {
        /// What went wrong.
        kind: ErrorKind,
    },
    /// It was given up: cancelled, or its connection is gone.
    Cancelled,
}

/// Why a connection closed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum CloseReason<'a> {
    /// The peer ended it in good order.
    Peer,
    /// This side ended it.
    Local,
    /// Nothing was heard of the peer for as long as it may be quiet: a session, or a connection with an idle limit.
    Expired,
    /// It failed, or the peer read nothing for too long.
    Failed(&'a Error),
}

/// Everybody who hears of something; mostly nobody.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Arc<Vec<Arc<dyn Observer>>>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer) {
        let observers = self.0.get_or_insert_default();
        Arc::make_mut(observers).push(Arc::new(observer));
    }

    fn tell(&self, tell: impl Fn(&dyn Observer)) {
        for observer in self.0.iter().flat_map(|observers| observers.iter()) {
            if contained(|| tell(&**observer)).is_err() {
                tracing::error!("an observer panicked");
            }
        }
    }

    /// Whether somebody wants to hear, so that what is told need be made.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// What is to be told of a request, if anybody wants to hear.
    pub(crate) fn observed(&self, observed: impl FnOnce() -> Observed) -> Option<Observed> {
        (!self.is_empty()).then(observed)
    }

    /// A request begins; it is completed by what is returned, at the latest when that is dropped.
    pub(crate) fn start(&self, request: Observed) -> Arc<Watch> {
        self.tell(|observer| observer.request_started(&request.event()));
        Arc::new(Watch { observers: self.clone(), request, start: Instant::now(), is_over: AtomicBool::new(false) })
    }

    /// A request that begins and ends in one.
    pub(crate) fn answered(&self, request: Option<Observed>, outcome: impl FnOnce() -> Outcome) {
        if let Some(request) = request {
            self.start(request).complete(outcome());
        }
    }

    pub(crate) fn notification(&self, connection: ConnectionEvent, direction: Direction, method: &str) {
        self.tell(|observer| observer.notification(&NotificationEvent { connection, direction, method }));
    }

    pub(crate) fn opened(&self, connection: ConnectionEvent) -> Opened {
        self.tell(|observer| observer.connection_opened(&connection));
        Opened { observers: self.clone(), connection, is_closed: false }
    }

    /// An error that is no request's. Nobody to hear of it is what the log is for.
    pub(crate) fn error(&self, connection: ConnectionEvent, error: impl FnOnce() -> Error) {
        self.failed(connection, &error());
    }

    pub(crate) fn failed(&self, connection: ConnectionEvent, error: &Error) {
        if self.is_empty() {
            tracing::debug!(transport = connection.transport, ?error, "something went wrong on a connection");
        }
        self.tell(|observer| observer.transport_error(&connection, error));
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.0.as_ref().map_or(0, |observers| observers.len()))
    }
}

/// What a [`RequestEvent`] borrows.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) connection: ConnectionEvent,
    pub(crate) direction: Direction,
    pub(crate) method: ByteString,
    pub(crate) name: Option<ByteString>,
    pub(crate) id: RequestId,
    pub(crate) revision: Option<Revision>,
}

impl Observed {
    pub(crate) fn incoming(method: ByteString, id: RequestId, connection: ConnectionEvent) -> Self {
        Self { connection, direction: Direction::Incoming, method, name: None, id, revision: None }
    }

    /// What is known once a request was accepted.
    pub(crate) fn exchange(exchange: &Exchange) -> Self {
        let observed = Self::incoming(exchange.method.clone(), exchange.id.clone(), exchange.connection);
        let name = exchange.head.name.clone().or(exchange.head.uri.clone());
        Self { name, revision: Some(exchange.revision), ..observed }
    }

    fn event(&self) -> RequestEvent<'_> {
        RequestEvent {
            connection: self.connection,
            direction: self.direction,
            method: &self.method,
            name: self.name.as_deref(),
            id: &self.id,
            revision: self.revision,
        }
    }
}

/// A request that was started, and is completed when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    observers: Observers,
    request: Observed,
    start: Instant,
    is_over: AtomicBool,
}

impl Watch {
    /// Tells how the request ended, once.
    pub(crate) fn complete(&self, outcome: Outcome) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            let took = self.start.elapsed();
            self.observers.tell(|observer| observer.request_completed(&self.request.event(), outcome, took));
        }
    }

    /// Tells of a notification that goes out about the request.
    pub(crate) fn notification(&self, method: &str) {
        self.observers.notification(self.request.connection, Direction::Outgoing, method);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.complete(Outcome::Cancelled);
    }
}

/// A connection that was opened, and is closed when this is dropped.
#[derive(Debug)]
#[must_use = "it is closed when this is dropped"]
pub struct Opened {
    observers: Observers,
    connection: ConnectionEvent,
    is_closed: bool,
}

impl Opened {
    /// Closes it, once.
    pub fn close(&mut self, reason: &CloseReason<'_>) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        if let CloseReason::Failed(error) = reason
            && self.observers.is_empty()
        {
            tracing::debug!(transport = self.connection.transport, ?error, "a connection failed");
        }
        self.observers.tell(|observer| observer.connection_closed(&self.connection, reason));
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.close(&CloseReason::Local);
    }
}
