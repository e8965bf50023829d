//! Client path 4 of 5 (shared wires): one task a connection, whatever the wire. Before: `crates/mcp-core/src/client/modern/mod.rs` | `crates/mcp-core/src/client/legacy/mod.rs`. After: `crates/mcp-core/src/client/result.rs`.

use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_jsonrpc::{Bytes, Frame, Inbound, Malformed, MalformedKind, Message, Notification, RequestId, decode};
use tokio::task::JoinHandle;

use crate::{
    Blame, BoxFuture, Error, ErrorKind, FrameSink, FrameSource, Limits, Wire,
    client::{Agreed, Backoff, Inbox, Incoming, Outgoing, Replies, Transport, about_request},
    head::cancelled,
    lock::lock,
    mailbox::Mailbox,
    method::{Initialize, Listen, Method, notification},
    observer::{CloseReason, ConnectionEvent, Direction, Observers, Opened, Role},
    pending::Pending,
    wire,
};

/// What opens a shared wire. It is asked once for each connection: again where a server has to be connected to anew to
/// speak another era.
pub trait Connector: Send + Sync + 'static {
    /// What is opened.
    type Wire: Wire;

    /// Opens the wire, anew each time.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn connect(&self) -> BoxFuture<'_, Result<Self::Wire, Error>>;

    /// Tells that both sides agree what to speak on the wire that was opened last: it will not be opened anew for that.
    fn agreed(&self) {}

    /// How to come back when the wire is lost that both sides agreed on; not at all, unless it says so.
    fn recovery(&self) -> Option<Backoff> {
        None
    }
}

/// The connector of a wire that is there already, and cannot be opened anew. A server that hangs up on a client of another
/// era than its own is not found out over it: name the revisions that it speaks then
/// ([`ClientBuilder::revisions`](crate::ClientBuilder::revisions)).
#[derive(Debug)]
pub struct OneWire<W>(Mutex<Option<W>>);

impl<W: Wire> OneWire<W> {
    /// The connector of `wire`.
    pub fn new(wire: W) -> Self {
        Self(Mutex::new(Some(wire)))
    }
}

impl<W: Wire> Connector for OneWire<W> {
    type Wire = W;

    fn connect(&self) -> BoxFuture<'_, Result<W, Error>> {
        let gone = || Error::new(ErrorKind::TransportClosed, "the wire has ended, and cannot be opened anew");
        let wire = lock(&self.0).take().ok_or_else(gone);
        Box::pin(std::future::ready(wire))
    }
}

/// A transport over a shared wire.
#[derive(Debug)]
pub struct Duplex<C> {
    connector: C,
    limits: Limits,
    link: Mutex<Option<Arc<Link>>>,
}

/// One connection.
#[derive(Debug)]
struct Link {
    outbox: Mailbox<Outbound>,
    pending: Mutex<Pending<Arc<Waiter>>>,
    limits: Limits,
    /// What observers are told that it is.
    connection: ConnectionEvent,
    observers: Observers,
    /// Why it ended, for whoever asks something of it later.
    cause: OnceLock<String>,
    driver: Mutex<Option<JoinHandle<()>>>,
}

/// A message that is to be written.
#[derive(Debug)]
struct Outbound {
    /// Who waits for the answer to a request.
    waiter: Option<Arc<Waiter>>,
    frame: Bytes,
}

impl Outbound {
    /// The message, as it leaves: from now on nobody can tell whether the server has got it.
    fn leave(self) -> Bytes {
        if let Some(waiter) = &self.waiter {
            waiter.is_sent.store(true, Ordering::Relaxed);
        }
        self.frame
    }

    fn is_for(&self, waiter: &Arc<Waiter>) -> bool {
        self.waiter.as_ref().is_some_and(|own| Arc::ptr_eq(own, waiter))
    }
}

/// Who waits for what comes back for one request.
#[derive(Debug)]
struct Waiter {
    incoming: Mailbox<Result<Incoming, Error>>,
    /// It is `subscriptions/listen`, which is read at once whatever comes.
    listens: bool,
    is_sent: AtomicBool,
}

impl<C: Connector> Duplex<C> {
    /// A transport that opens its wire with `connector`.
    pub fn new(connector: C, limits: &Limits) -> Self {
        Self { connector, limits: limits.clone(), link: Mutex::default() }
    }

    /// What opens the wire.
    #[must_use]
    pub fn connector(&self) -> &C {
        &self.connector
    }

    fn link(&self) -> Option<Arc<Link>> {
        lock(&self.link).clone()
    }
}

impl<C: Connector> Transport for Duplex<C> {
    fn open(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            // It ends in order, for which the connector may wait.
            if let Some(old) = self.link() {
                old.end();
            }
            let wire = self.connector.connect().await?;
            let link = Arc::new(Link {
                outbox: Mailbox::new(&self.limits),
                pending: Mutex::default(),
                limits: self.limits.clone(),
                connection: ConnectionEvent { role: Role::Client, transport: C::Wire::KIND },
                observers: inbox.observers.clone(),
                cause: OnceLock::new(),
                driver: Mutex::default(),
            });
            // It has nothing to say any more of what is there from now on.
            if let Some(old) = lock(&self.link).take() {
                old.abort();
            }
            inbox.found();
            let opened = inbox.observers.opened(link.connection);
            let driver = tokio::spawn(drive(link.clone(), wire, inbox, opened));
            *lock(&link.driver) = Some(driver);
            *lock(&self.link) = Some(link);
            Ok(())
        })
    }

    fn request(&self, out: Outgoing) -> Replies {
        match (self.link(), out.id.clone()) {
            (Some(link), Some(id)) => link.request(out, id),
            _ => Replies::new(futures_util::stream::iter([Err(Error::not_connected())])),
        }
    }

    fn send(&self, out: Outgoing) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let link = self.link().ok_or_else(Error::not_connected)?;
            if link.put(None, out.frame).await { Ok(()) } else { Err(link.closed().unsent()) }
        })
    }

    fn kind(&self) -> &'static str {
        C::Wire::KIND
    }

    fn agreed(&self, _: &Agreed) {
        self.connector.agreed();
    }

    fn recovery(&self) -> Option<Backoff> {
        self.connector.recovery()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(link) = lock(&self.link).take() else { return };
            link.end();
            let driver = lock(&link.driver).take();
            if let Some(driver) = driver {
                // It ends by itself; that it was aborted is as good.
                let _ = driver.await;
            }
        })
    }
}

impl<C> Drop for Duplex<C> {
    fn drop(&mut self) {
        if let Some(link) = lock(&self.link).take() {
            link.end();
        }
    }
}

impl Link {
    fn request(self: Arc<Self>, out: Outgoing, id: RequestId) -> Replies {
        let (incoming, listens) = (Mailbox::new(&self.limits), out.calls(Listen::NAME));
        let waiter = Arc::new(Waiter { incoming, listens, is_sent: AtomicBool::new(false) });
        let cancel = out.to_cancel().filter(|_| !out.calls(Initialize::NAME)).map(|cancel| cancel.frame);
        let asked = Asked { link: self, id, waiter, unsent: Some(out.frame), cancel, is_queued: false };
        Replies::new(futures_util::stream::unfold(asked, |mut asked| async move { Some((asked.next().await?, asked)) }))
    }

    /// Queues a message once there is room; false once the connection is closed.
    async fn put(&self, waiter: Option<Arc<Waiter>>, frame: Bytes) -> bool {
        let bytes = frame.len();
        self.outbox.put(Outbound { waiter, frame }, bytes).await
    }

    /// Whoever waits is told why it is in vain. What has not left yet never will, so that it can be said that it has not.
    fn fail_pending(&self) {
        let waiters = lock(&self.pending).close();
        self.outbox.retain(|queued| queued.waiter.is_none());
        for waiter in waiters {
            let is_sent = waiter.is_sent.load(Ordering::Relaxed);
            waiter.settle(Err(if is_sent { self.closed() } else { self.closed().unsent() }));
        }
    }

    fn closed(&self) -> Error {
        let message = match self.cause.get() {
            Some(cause) => format!("the connection ended: {cause}"),
            None => "the connection is closed".to_owned(),
        };
        Error::new(ErrorKind::TransportClosed, message)
    }

    fn abort(&self) {
        if let Some(driver) = lock(&self.driver).take() {
            driver.abort();
        }
        self.end();
    }

    /// Nothing more is asked; the driver writes what is queued, and closes the wire.
    fn end(&self) {
        self.outbox.close();
        self.fail_pending();
    }

    async fn on_frame(&self, frame: Frame, inbox: &Inbox) {
        let bytes = match frame {
            Frame::Line(bytes) if bytes.len() <= self.limits.message_bytes => bytes,
            Frame::Line(start) | Frame::TooLong(start) => {
                let (most, limits) = (self.limits.message_bytes, self.limits.decode());
                return self.on_malformed(Malformed::too_long(&start, most, &limits), inbox);
            }
            _ => return,
        };
        match decode(bytes, &self.limits.decode()) {
            Inbound::One(message) => self.on_message(message, inbox).await,
            Inbound::Batch(items) => {
                for message in items.into_iter().flatten() {
                    self.on_message(message, inbox).await;
                }
            }
            Inbound::Malformed(malformed) => self.on_malformed(malformed, inbox),
            _ => {}
        }
    }

    async fn on_message(&self, message: Message, inbox: &Inbox) {
        match message {
            Message::Response(response) => {
                let waiter = response.id.as_ref().and_then(|id| lock(&self.pending).settle(id));
                match waiter {
                    Some(waiter) => waiter.settle(Ok(Incoming::Response(response))),
                    None => tracing::debug!("an answer to no pending request was dropped"),
                }
            }
            Message::Notification(notification) => self.on_notification(notification, inbox).await,
            request => inbox.deliver(request).await,
        }
    }

    async fn on_notification(&self, notification: Notification, inbox: &Inbox) {
        let bytes = notification.size();
        if notification.method == notification::PROGRESS {
            if let Some(waiter) = self.waiter_of(&notification) {
                // A slow reader loses progress, and delays nobody.
                waiter.incoming.offer(Ok(Incoming::Notification(notification)), bytes, |_| false, || true);
            }
        } else if let Some(waiter) = self.ended_by(&notification) {
            waiter.settle(Ok(Incoming::Notification(notification)));
        } else if let Some(waiter) = self.waiter_of(&notification).filter(|waiter| waiter.listens) {
            // Changes are lost by nobody.
            waiter.incoming.put(Ok(Incoming::Notification(notification)), bytes).await;
        } else {
            inbox.deliver(Message::Notification(notification)).await;
        }
    }

    /// Who listens on a stream of changes that the server tears down like that.
    ///
    /// Specification: *Cancellation*.
    fn ended_by(&self, notification: &Notification) -> Option<Arc<Waiter>> {
        let id = cancelled(notification, self.limits.id_bytes)?;
        let mut pending = lock(&self.pending);
        pending.peek(&id).filter(|waiter| waiter.listens)?;
        pending.settle(&id)
    }

    /// Servers print things that are no messages; only what names a pending request is more than a curiosity.
    fn on_malformed(&self, malformed: Malformed, inbox: &Inbox) {
        inbox.observers.error(self.connection, || unreadable(&malformed));
        let id = malformed.id.as_ref().filter(|_| malformed.kind != MalformedKind::Call);
        let waiter = id.and_then(|id| lock(&self.pending).settle(id));
        if let Some(waiter) = waiter {
            waiter.settle(Err(unreadable(&malformed)));
        }
    }

    /// Who waits for the request that a notification is about.
    fn waiter_of(&self, notification: &Notification) -> Option<Arc<Waiter>> {
        lock(&self.pending).peek(&about_request(notification, self.limits.id_bytes)?).cloned()
    }
}

fn unreadable(malformed: &Malformed) -> Error {
    let message = format!("malformed message: {}", malformed.error.message);
    Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer)
}

impl Waiter {
    /// Nothing comes after this.
    fn settle(&self, outcome: Result<Incoming, Error>) {
        self.incoming.push(outcome, 0);
        self.incoming.close();
    }
}

/// Runs a connection to its end: until the server ends it, or until the outbox is closed and written.
async fn drive(link: Arc<Link>, wire: impl Wire, inbox: Inbox, mut opened: Opened) {
    let (mut source, mut sink) = wire.split();
    let ended = {
        let mut reading = std::pin::pin!(read(&link, &mut source, &inbox));
        tokio::select! {
            biased;
            ended = &mut reading => Some(ended),
            written = wire::write(&link.outbox, &mut sink, Outbound::leave) => match written {
                Ok(()) => None,
                // What is still to be read are answers, and at the end why nothing can be written.
                Err(error) => Some(tokio::time::timeout(LAST_WORDS, reading).await.unwrap_or(error)),
            },
            () = overdue(&link) => None,
        }
    };
    if let Some(cause) = ended {
        // It is told first, so that nobody hears less.
        let _ = link.cause.set(cause.to_string());
        inbox.lost_so(link.closed(), cause.kind() == io::ErrorKind::ConnectionAborted);
        link.outbox.close();
        link.fail_pending();
        let is_orderly = matches!(cause.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionAborted);
        let error = link.closed();
        opened.close(&if is_orderly { CloseReason::Peer } else { CloseReason::Failed(&error) });
    }
    tokio::select! {
        closed = sink.close() => if let Err(error) = closed {
            tracing::debug!(%error, "a connection did not close in order");
        },
        () = discard(&mut source) => {}
    }
}

/// What the server says to the end is read still: one that waits for its reader could not end in order.
async fn discard(source: &mut impl FrameSource) {
    while let Ok(Some(_)) = source.next().await {}
    std::future::pending().await
}

/// How long a server that takes nothing any more may go on saying something.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is still to be written when the client disconnects must not hold it up: the server may have stopped reading.
async fn overdue(link: &Link) {
    const FLUSH: Duration = Duration::from_secs(1);
    link.outbox.closed().await;
    tokio::time::sleep(FLUSH).await;
}

async fn read(link: &Link, source: &mut impl FrameSource, inbox: &Inbox) -> io::Error {
    let mut turns = wire::Turns::default();
    loop {
        turns.next().await;
        match source.next().await {
            Ok(Some(frame)) => link.on_frame(frame, inbox).await,
            Ok(None) => return io::ErrorKind::UnexpectedEof.into(),
            Err(error) => return error,
        }
    }
}

/// A request, and what comes back for it. When it is dropped before that, the server is told that nobody waits.
struct Asked {
    link: Arc<Link>,
    id: RequestId,
    waiter: Arc<Waiter>,
    unsent: Option<Bytes>,
    /// None for the handshake, which must not be cancelled.
    cancel: Option<Bytes>,
    is_queued: bool,
}

impl Asked {
    async fn next(&mut self) -> Option<Result<Incoming, Error>> {
        if let Some(frame) = self.unsent.take() {
            let is_open = lock(&self.link.pending).begin(self.id.clone(), self.waiter.clone());
            self.is_queued = is_open && self.link.put(Some(self.waiter.clone()), frame).await;
            if !self.is_queued {
                self.waiter.settle(Err(self.link.closed().unsent()));
            }
        }
        self.waiter.incoming.pop().await
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let waits = lock(&self.link.pending).settle(&self.id).is_some();
        // The connection may be waiting for room in it.
        self.waiter.incoming.close();
        // What was not written yet never will be, and needs no cancelling.
        let is_withdrawn = || self.link.outbox.retain(|queued| !queued.is_for(&self.waiter));
        if waits && self.is_queued && !is_withdrawn() {
            let Some(frame) = self.cancel.take() else { return };
            let bytes = frame.len();
            if self.link.outbox.push(Outbound { waiter: None, frame }, bytes) {
                self.link.observers.notification(self.link.connection, Direction::Outgoing, notification::CANCELLED);
            }
        }
    }
}
