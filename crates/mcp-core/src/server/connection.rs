//! Server path 1 of 11 (shared wires): one loop a connection, whatever the wire. After: `crates/mcp-jsonrpc/src/decode/mod.rs`.
//!
//! Its frames come from a `FrameSource` of `wire.rs`, in bytes from `mcp-stdio` or whatever wire it is. Steps 2 to 10 are
//! called from here, and the last one takes what they have queued.

use std::{
    collections::VecDeque,
    future::pending,
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, atomic::AtomicU64},
    task::Poll,
    time::Duration,
};

use futures_util::FutureExt;
use mcp_jsonrpc::{Bytes, Frame, Inbound, Malformed, Message, Notification, Request, RequestId};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Arrival, Error, ErrorKind, Farewell, Fault, FrameSink, FrameSource, Reply, Server, Wire,
    deadline::deadline,
    lock::lock,
    mailbox::Mailbox,
    method::{Listen, Method, Ping, notification},
    observer::{CloseReason, ConnectionEvent, Direction, Role},
    server::{
        Answer, Peer, accept, batch,
        batch::Gathering,
        inflight::InFlight,
        legacy::{Aside, Session},
        outlet::{Outlet, Queued},
    },
    sync::atomic::{AtomicBool, Ordering},
    wire,
};

/// Serves one connection to its end: the peer's end of input, or a failure of the wire.
///
/// Calls that run when the input ends may finish within [`Limits::shutdown_grace`](crate::Limits). Dropping the future ends
/// the connection and every call on it.
///
/// # Errors
/// [`ErrorKind::TransportError`] when the wire fails.
pub async fn serve<W: Wire>(server: Server, wire: W) -> Result<(), Error> {
    serve_peer(server, wire, Peer::new()).await
}

/// The same, for whoever `peer` says is at the other end.
///
/// # Errors
/// As [`serve`].
pub async fn serve_peer<W: Wire>(server: Server, wire: W, peer: Peer) -> Result<(), Error> {
    serve_until(server, wire, peer, None, pending()).await
}

/// The same until `ending`, at the latest: from then on nothing more is read, what runs may finish within
/// [`Limits::shutdown_grace`](crate::Limits), and what is queued is written. With `idle`, also until no message has come for
/// so long while no request ran and nothing was listened to. Either is an end in good order, and the wire tells the peer why,
/// if it can.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use mcp_core::{Server, implementation, memory, server::{Peer, serve_until}};
/// use tokio_util::sync::CancellationToken;
///
/// let (server, ending) = (Server::builder(implementation!()).build(), CancellationToken::new());
/// let (_client, wire) = memory();
/// let serving = serve_until(server, wire, Peer::new(), None, ending.clone().cancelled_owned());
/// ending.cancel();
/// serving.await.unwrap();
/// # });
/// ```
///
/// # Errors
/// As [`serve`].
pub async fn serve_until<W: Wire>(
    server: Server,
    wire: W,
    peer: Peer,
    idle: Option<Duration>,
    ending: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let (source, mut sink) = wire.split();
    let grace = server.limits().shutdown_grace;
    let mut opened = server.0.core.observers.opened(ConnectionEvent { role: Role::Server, transport: W::KIND });
    let mut connection = Connection::new(server, W::KIND, peer, sink.writes());
    connection.idle = idle;
    let (outbox, farewell) = (connection.outbox.clone(), connection.farewell.clone());
    let mut writing = std::pin::pin!(async {
        let written = wire::write(&outbox, &mut sink, |queued| queued.frame).await;
        if let Some(why) = farewell.get() {
            sink.because(*why);
        }
        // Why it failed may be what the peer is still to be told.
        written.and(sink.close().await)
    });
    let mut reading = std::pin::pin!(connection.read(source, ending));
    // Both run in this task; what is ready when reading pauses leaves in one write.
    let (read, written) = tokio::select! {
        biased;
        read = &mut reading => match &read {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => (read, Ok(())),
            // What is queued may still be written, but whoever reads nothing does not hold the server.
            _ => (read, timeout(grace, writing).await.unwrap_or_else(|_| lost())),
        },
        written = &mut writing => (Ok(()), written),
    };
    let ended = match read.and(written) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
        ended => ended.map_err(|error| Error::caused(ErrorKind::TransportError, "the connection failed", error)),
    };
    opened.close(&match (&ended, farewell.get()) {
        (Err(error), _) => CloseReason::Failed(error),
        (Ok(()), Some(Farewell::Idle)) => CloseReason::Expired,
        (Ok(()), Some(Farewell::GoingAway)) => CloseReason::Local,
        (Ok(()), None) => CloseReason::Peer,
    });
    ended
}

/// Its peer does not take what it was told last, and nobody waits for that any longer.
fn lost() -> io::Result<()> {
    tracing::debug!("a connection ended with messages that its peer did not take");
    Ok(())
}

/// With the connection its session ends, whatever its handlers have left running.
impl Drop for Connection {
    fn drop(&mut self) {
        self.session.end();
    }
}

struct Connection {
    server: Server,
    session: Arc<Session>,
    outbox: Arc<Mailbox<Queued>>,
    in_flight: Arc<Mutex<InFlight<Stop>>>,
    tasks: JoinSet<()>,
    /// What is listened to takes no place of a call.
    listening: JoinSet<()>,
    /// Fires when the input has ended.
    closing: CancellationToken,
    /// What came while as much as may run was running.
    waiting: VecDeque<(Request, Destination)>,
    /// How many bytes of messages that is.
    waiting_bytes: usize,
    /// The number of the next call.
    next: u64,
    /// What observers are told that the wire is.
    kind: &'static str,
    /// Who is at the other end.
    peer: Peer,
    /// How often the wire took something, where it counts that.
    writes: Option<Arc<AtomicU64>>,
    /// How long nothing may happen.
    idle: Option<Duration>,
    /// Why this side ends it, once it does.
    farewell: Arc<OnceLock<Farewell>>,
}

/// Where an answer goes.
#[derive(Clone)]
enum Destination {
    /// Straight out.
    Connection,
    /// To those of the other requests of its batch.
    Batch(Arc<Gathering>),
}

/// How a call is stopped.
#[derive(Debug)]
struct Stop {
    task: AbortHandle,
    /// What its outlet asks before it queues anything, where it has one.
    over: Option<Arc<AtomicBool>>,
}

impl Stop {
    fn now(self) {
        // The task may be running this very moment, and ends only where it awaits something.
        is_over(self.over.as_deref());
        self.task.abort();
    }
}

/// From here on a call tells of no progress, whatever its handler has left running.
fn is_over(over: Option<&AtomicBool>) {
    if let Some(over) = over {
        over.store(true, Ordering::SeqCst);
    }
}

/// What the loop waits for.
enum Event {
    Frame(Frame),
    Finished,
    Changed,
    End,
    Idle,
}

impl Connection {
    fn new(server: Server, kind: &'static str, peer: Peer, writes: Option<Arc<AtomicU64>>) -> Self {
        let (outbox, session) = (Arc::new(Mailbox::new(server.limits())), Arc::<Session>::default());
        session.set_aside({
            let outbox: Arc<Mailbox<Queued>> = outbox.clone();
            move |(Aside::Question(frame) | Aside::Notice(frame))| outbox.reply(frame)
        });
        Self {
            outbox,
            server,
            session,
            in_flight: Arc::default(),
            tasks: JoinSet::new(),
            listening: JoinSet::new(),
            closing: CancellationToken::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            next: 0,
            kind,
            peer,
            writes,
            idle: None,
            farewell: Arc::default(),
        }
    }

    async fn read(&mut self, mut source: impl FrameSource, ending: impl Future<Output = ()>) -> io::Result<()> {
        let farewell = self.farewell.clone();
        // Wherever reading waits, it may be dropped without losing anything that it has taken.
        let read = tokio::select! {
            biased;
            () = ending => {
                let _ = farewell.set(Farewell::GoingAway);
                Ok(())
            }
            read = self.read_to_end(&mut source) => read,
        };
        if read.is_ok() {
            self.finish().await;
        }
        self.tasks.shutdown().await;
        self.listening.shutdown().await;
        self.outbox.close();
        read
    }

    async fn read_to_end(&mut self, source: &mut impl FrameSource) -> io::Result<()> {
        let mut turns = wire::Turns::default();
        loop {
            turns.next().await;
            match self.event(source).await? {
                Event::Frame(frame) => self.on_frame(frame).await,
                Event::Finished => self.start_waiting().await,
                Event::Changed => self.on_change(),
                Event::End => return Ok(()),
                Event::Idle => {
                    let _ = self.farewell.set(Farewell::Idle);
                    return Ok(());
                }
            }
            self.settled().await?;
        }
    }

    /// A peer that does not read its answers is not read from either. One that reads slowly is waited for, one that does
    /// not read is not.
    async fn settled(&self) -> io::Result<()> {
        let stall = self.server.limits().stall_timeout;
        let taken = || (self.outbox.reads(), self.writes.as_ref().map(|writes| writes.load(Ordering::Relaxed)));
        loop {
            let before = taken();
            match timeout(stall, self.outbox.settled()).await {
                Ok(()) => return Ok(()),
                Err(_) if taken() != before => {}
                Err(stalled) => return Err(stalled.into()),
            }
        }
    }

    async fn event(&mut self, source: &mut impl FrameSource) -> io::Result<Event> {
        let is_busy = !(self.tasks.is_empty() && self.listening.is_empty() && self.waiting.is_empty());
        let idle = self.idle.filter(|_| !is_busy);
        let changed = async {
            std::future::poll_fn(|cx| self.session.poll_changed(cx)).await;
            // Until there is room, further changes are one with those that wait.
            self.outbox.room().await;
        };
        tokio::select! {
            biased;
            Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => Ok(Event::Finished),
            Some(_) = self.listening.join_next(), if !self.listening.is_empty() => Ok(Event::Finished),
            () = changed => Ok(Event::Changed),
            frame = source.next() => Ok(frame?.map_or(Event::End, Event::Frame)),
            () = quiet(idle) => Ok(Event::Idle),
        }
    }

    fn on_change(&self) {
        if let Some(change) = self.session.next_change() {
            let connection = self.arrival().connection();
            self.server.0.core.observers.notification(connection, Direction::Outgoing, change.method);
            self.outbox.reply(change.frame);
        }
    }

    async fn on_frame(&mut self, frame: Frame) {
        let inbound = match frame {
            Frame::Line(bytes) => self.server.decode(bytes),
            Frame::TooLong(start) => Inbound::Malformed(self.server.too_long(&start)),
            _ => return,
        };
        match inbound {
            Inbound::One(message) => self.on_message(message, Destination::Connection).await,
            Inbound::Batch(items) => self.on_batch(items).await,
            Inbound::Malformed(malformed) => self.on_malformed(malformed, &Destination::Connection),
            _ => {}
        }
    }

    async fn on_message(&mut self, message: Message, to: Destination) {
        match message {
            Message::Request(request) => self.on_request(request, to).await,
            Message::Response(response) => {
                if !self.session.settle(response) {
                    tracing::debug!("a response to no question was dropped");
                }
            }
            message => {
                self.server.heed(&message, &self.arrival());
                if let Message::Notification(notification) = message {
                    self.on_notification(&notification);
                }
            }
        }
    }

    /// Each item is a message like any other, but for where its answer goes.
    async fn on_batch(&mut self, items: Vec<Result<Message, Malformed>>) {
        if !self.server.takes_batches(&self.arrival()) {
            return self.on_malformed(batch::not_taken(), &Destination::Connection);
        }
        let to = Destination::Batch(Arc::new(Gathering::new(self.outbox.clone())));
        for item in items {
            match item.and_then(batch::admit) {
                Ok(message) => self.on_message(message, to.clone()).await,
                Err(malformed) => self.on_malformed(malformed, &to),
            }
        }
    }

    fn on_malformed(&self, malformed: Malformed, to: &Destination) {
        self.send(&self.server.malformed(malformed, &self.arrival()), to);
    }

    async fn on_request(&mut self, request: Request, to: Destination) {
        let limits = self.server.limits();
        if self.in_flight().contains(&request.id) || self.waiting.iter().any(|(waiting, _)| waiting.id == request.id) {
            let why = "a request with this id is running";
            self.refuse(request, Fault::InvalidRequest(why.into()), &to);
        } else if self.tasks.len() < limits.in_flight || self.takes_at_once(&request) {
            self.start(request, to).await;
        } else if self.waiting.len() < limits.waiting && self.waiting_bytes < limits.queue_bytes {
            self.waiting_bytes += request.size();
            self.waiting.push_back((request, to));
        } else {
            self.refuse(request, Fault::Busy, &to);
        }
    }

    /// Whether the server is alive shows at once, however much it has to do; unless something holds up the pings as well.
    fn takes_at_once(&self, request: &Request) -> bool {
        Ping::is(request) && self.tasks.len() < self.server.limits().in_flight.saturating_mul(2)
    }

    /// Polls a call once before it gets a task of its own: most are answered by then.
    async fn start(&mut self, request: Request, to: Destination) {
        let (id, number) = (request.id.clone(), self.number());
        let mut exchange = match self.server.accept(request, self.arrival()) {
            Ok(exchange) => exchange,
            Err(reply) => return self.send(&reply, &to),
        };
        let listens = exchange.method() == Listen::NAME;
        if listens {
            if self.listening.len() >= self.server.limits().subscriptions {
                let reply = self.server.refuse(&exchange, Fault::Busy);
                return self.send(&reply, &to);
            }
            exchange.closing = Some(self.closing.clone());
        }
        let over = exchange.may_say().then(Arc::<AtomicBool>::default);
        if let Some(over) = over.clone() {
            exchange.outlet =
                Outlet::Mailbox { mailbox: self.outbox.clone(), call: Some(number), over, is_resumable: false };
        }
        let mut answer = self.server.call(exchange);
        match std::future::poll_fn(|cx| Poll::Ready(answer.poll_unpin(cx))).await {
            Poll::Ready(reply) => {
                is_over(over.as_deref());
                self.send(&reply, &to);
            }
            Poll::Pending => self.spawn(id, number, answer, over, to, listens),
        }
    }

    fn spawn(
        &mut self,
        id: RequestId,
        number: u64,
        answer: Answer,
        over: Option<Arc<AtomicBool>>,
        to: Destination,
        listens: bool,
    ) {
        self.in_flight().begin(id.clone(), number);
        let (server, outbox, in_flight) = (self.server.clone(), self.outbox.clone(), self.in_flight.clone());
        let tasks = if listens { &mut self.listening } else { &mut self.tasks };
        let task = tasks.spawn({
            let (id, over) = (id.clone(), over.clone());
            async move {
                let frame = server.encode(&answer.await);
                is_over(over.as_deref());
                let mut in_flight = lock(&in_flight);
                if in_flight.finish(&id, number) {
                    // Under the lock, so that a cancellation comes before or after, and not between.
                    to.send(&outbox, frame);
                }
            }
        });
        self.in_flight().stoppable(&id, number, Stop { task, over });
    }

    async fn start_waiting(&mut self) {
        while self.tasks.len() < self.server.limits().in_flight {
            let Some((request, to)) = self.waiting.pop_front() else { return };
            self.waiting_bytes -= request.size();
            self.start(request, to).await;
        }
    }

    fn on_notification(&mut self, notification: &Notification) {
        match &*notification.method {
            notification::CANCELLED => self.cancel(notification),
            // Requests are served from the answer to `initialize` on; only what the server tells on its own waits for it.
            notification::INITIALIZED => self.session.ready(),
            other => tracing::debug!(method = other, "a notification of no known kind was ignored"),
        }
    }

    /// After this, nothing of the call is written any more. What names no running request is ignored.
    ///
    /// Specification: *Cancellation*.
    fn cancel(&mut self, notification: &Notification) {
        let Some(id) = self.server.cancelled(notification) else { return };
        self.waiting.retain(|(request, _)| request.id != id);
        self.waiting_bytes = self.waiting.iter().map(|(request, _)| request.size()).sum();
        let cancelled = self.in_flight().cancel(&id);
        if let Some((number, stop)) = cancelled {
            if let Some(stop) = stop {
                stop.now();
            }
            self.outbox.retain(|queued| queued.call != Some(number));
        }
    }

    /// The input has ended: what runs may finish, within the grace.
    async fn finish(&mut self) {
        let until = deadline(Instant::now(), self.server.limits().shutdown_grace);
        // Whoever listens is told the end, while it may still hear it.
        self.closing.cancel();
        while let Ok(Some(_)) = timeout_at(until, self.listening.join_next()).await {}
        while !self.tasks.is_empty() {
            if timeout_at(until, self.tasks.join_next()).await.is_err() {
                tracing::debug!("calls outlived their connection's grace and were cancelled");
                break;
            }
            self.start_waiting().await;
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn arrival(&self) -> Arrival<'_> {
        Arrival::duplex(&self.session, self.kind, &self.peer)
    }

    fn refuse(&self, request: Request, fault: Fault, to: &Destination) {
        self.send(&accept::refuse(&self.server.0.core, request, fault, self.arrival().connection()), to);
    }

    fn send(&self, reply: &Reply, to: &Destination) {
        to.send(&self.outbox, self.server.encode(reply));
    }

    fn in_flight(&self) -> MutexGuard<'_, InFlight<Stop>> {
        lock(&self.in_flight)
    }
}

/// Waits for as long as a connection may be idle, and for ever where that is not limited.
async fn quiet(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => pending().await,
    }
}

impl Destination {
    fn send(&self, outbox: &Mailbox<Queued>, frame: Bytes) {
        match self {
            Self::Connection => {
                outbox.reply(frame);
            }
            Self::Batch(gathering) => gathering.add(frame),
        }
    }
}
