//! The HTTP+SSE transport of 2024-11-05, for clients that know no other: a stream of events for what the server says, and a
//! second path for what the client does. Together they are one shared wire, and served like any other.
//!
//! Specification: *2024-11-05, Transports, HTTP with SSE*.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    extract::{OriginalUri, Request, State},
    response::Response,
    routing,
};
use futures_core::Stream;
use http::request::Parts;
use mcp_core::{
    FrameSink, FrameSource, Limits, Wire,
    server::{Peer, serve_peer},
    store::SessionId,
};
use mcp_jsonrpc::{Bytes, Frame};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::server::{accept_header, endpoint::Endpoint, guard, peer, post, refusal::Refusal, sse};

/// How many messages wait on their way into one connection, within [`Limits::queue_bytes`].
const WAITING: usize = 64;

/// What both paths share.
#[derive(Clone)]
struct Door {
    endpoint: Arc<Endpoint>,
    /// Where clients post to.
    messages: Arc<str>,
    connections: Arc<Connections>,
}

/// Who is connected.
#[derive(Default)]
struct Connections(Mutex<HashMap<SessionId, Connection>>);

#[derive(Clone)]
struct Connection {
    principal: Option<[u8; 32]>,
    inbox: mpsc::Sender<Posted>,
    /// The bytes that may still wait.
    room: Arc<Semaphore>,
}

/// A message on its way in, and the room that it takes.
struct Posted {
    message: Bytes,
    _room: OwnedSemaphorePermit,
}

impl Connection {
    /// Puts a message into the inbox, once there is room for it; false where the connection has ended.
    async fn take(&self, message: Bytes, most: usize) -> bool {
        // One that is longer than all of the room comes alone.
        let bytes = u32::try_from(message.len().min(most)).unwrap_or(u32::MAX);
        let Ok(room) = self.room.clone().acquire_many_owned(bytes).await else { return false };
        self.inbox.send(Posted { message, _room: room }).await.is_ok()
    }
}

/// How many bytes wait on their way into one connection.
fn room(limits: &Limits) -> usize {
    limits.queue_bytes.min(Semaphore::MAX_PERMITS).min(u32::MAX as usize)
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The two routes: one to listen at, one to post to.
pub(crate) fn routes(endpoint: Arc<Endpoint>, listen: &str, messages: &str) -> Router {
    let door = Door { endpoint, messages: messages.into(), connections: Arc::default() };
    Router::new().route(listen, routing::get(connect)).route(messages, routing::post(take)).with_state(door)
}

/// Opens a connection, whose first event says where to post to.
async fn connect(State(door): State<Door>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if let Err(refusal) = guard::check(&door.endpoint, &parts) {
        return refusal.answer(None);
    }
    if !accept_header::wanted(&parts.headers).is_ok_and(accept_header::Wanted::may_stream) {
        return Refusal::NoEventStream.answer(None);
    }
    let server = &door.endpoint.server;
    let messages = format!("{}{}", nested_in(&parts), door.messages);
    let (peer, _) = peer::of(parts);
    let (inbox, incoming) = mpsc::channel(WAITING);
    // What waits to go out waits in the connection's own queue, which is bounded.
    let (outgoing, outbox) = mpsc::channel(1);
    let id = SessionId::random();
    {
        let mut connections = door.connections.lock();
        if connections.len() >= server.limits().sessions {
            return Refusal::Full.answer(None);
        }
        let room = Arc::new(Semaphore::new(room(server.limits())));
        connections.insert(id, Connection { principal: super::digest(&peer), inbox, room });
    }
    let wire = SseWire { incoming: Posts { incoming, stopping: door.endpoint.stopping.clone() }, outgoing };
    let open = Open { id, connections: door.connections.clone() };
    let serving = tokio::spawn(serve(door.endpoint.clone(), wire, peer));
    let first = format!("event: endpoint\ndata: {messages}?sessionId={id}\n\n");
    let listening = Listening { outbox, _serving: AbortOnDropHandle::new(serving), _open: open };
    sse::response(listening.into_events(first.into(), server.limits().keep_alive))
}

/// What stands before our paths where a router has them below one of its own.
fn nested_in(parts: &Parts) -> &str {
    let original = parts.extensions.get::<OriginalUri>();
    original.and_then(|original| original.path().strip_suffix(parts.uri.path())).unwrap_or_default()
}

async fn serve(endpoint: Arc<Endpoint>, wire: SseWire, peer: Peer) {
    if let Err(error) = serve_peer(endpoint.server.clone(), wire, peer).await {
        tracing::debug!(?error, "a connection over HTTP+SSE ended");
    }
}

/// Takes a message for a connection; what is answered to it goes out there.
async fn take(State(door): State<Door>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(refusal) = guard::check(&door.endpoint, &parts) {
        return refusal.answer(None);
    }
    if let Err(refusal) = post::readable(&parts.headers) {
        return refusal.answer(None);
    }
    let Some(connection) = connection(&door, &parts) else {
        return Refusal::NoConnection.answer(None);
    };
    let limits = door.endpoint.server.limits();
    let body = match post::read(body, limits, false).await {
        Ok(body) => body,
        Err(refusal) => return refusal.answer(None),
    };
    match timeout(limits.stall_timeout, connection.take(body, room(limits))).await {
        Ok(true) => post::accepted(),
        Ok(false) => Refusal::NoConnection.answer(None),
        Err(_) => Refusal::Stalled.answer(None),
    }
}

/// Another's is like one that is not there.
fn connection(door: &Door, parts: &Parts) -> Option<Connection> {
    let query = parts.uri.query()?;
    let id = query.split('&').find_map(|pair| pair.strip_prefix("sessionId=")).and_then(SessionId::parse)?;
    let principal = parts.extensions.get::<mcp_core::Principal>().map(mcp_core::Principal::digest);
    door.connections.lock().get(&id).filter(|connection| connection.principal == principal).cloned()
}

/// The wire between a listening GET and the POSTs that name it.
struct SseWire {
    incoming: Posts,
    outgoing: mpsc::Sender<Bytes>,
}

impl Wire for SseWire {
    const KIND: &'static str = "http+sse";
    type Source = Posts;
    type Sink = Events;

    fn split(self) -> (Posts, Events) {
        (self.incoming, Events(Some(self.outgoing)))
    }
}

struct Posts {
    incoming: mpsc::Receiver<Posted>,
    stopping: CancellationToken,
}

/// Where the server stops, the input ends: what runs may finish, and whoever only listens is hung up on.
impl FrameSource for Posts {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        tokio::select! {
            biased;
            posted = self.incoming.recv() => Ok(posted.map(|posted| Frame::Line(posted.message))),
            () = self.stopping.cancelled() => Ok(None),
        }
    }
}

struct Events(Option<mpsc::Sender<Bytes>>);

impl FrameSink for Events {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        for frame in frames.drain(..) {
            let Some(outgoing) = &self.0 else { return Err(io::ErrorKind::BrokenPipe.into()) };
            outgoing.send(frame).await.map_err(|_| io::ErrorKind::ConnectionAborted)?;
        }
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0 = None;
        Ok(())
    }
}

/// Whoever listens: the connection lives as long as this does.
struct Listening {
    outbox: mpsc::Receiver<Bytes>,
    _serving: AbortOnDropHandle<()>,
    _open: Open,
}

impl Listening {
    fn into_events(
        self,
        first: Bytes,
        quiet: std::time::Duration,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
        futures_util::stream::unfold((self, Some(first)), move |(mut listening, first)| async move {
            let chunk = match first {
                Some(first) => first,
                None => tokio::select! {
                    biased;
                    frame = listening.outbox.recv() => sse::event(&frame?, None),
                    () = sleep(quiet) => Bytes::from_static(sse::COMMENT),
                },
            };
            Some((Ok(chunk), (listening, None)))
        })
    }
}

/// An entry among the connections.
struct Open {
    id: SessionId,
    connections: Arc<Connections>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.id);
    }
}
