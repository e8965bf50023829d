//! Sessions of the legacy era over HTTP: who they belong to, how long they live, and what is sent to them.
//!
//! The routes know of them only that there may be some. `post.rs`, `get.rs` and `delete.rs` beside this file answer requests
//! within one; `live/` is what of a session is in this process, `channel.rs` one of its streams, `reader.rs` whoever reads
//! that, and `call.rs` a call that may outlive its connection.

mod call;
mod channel;
mod delete;
mod get;
mod http_sse;
mod live;
mod post;
mod reader;

use std::{
    collections::HashMap,
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub(super) use delete::delete;
pub(super) use get::get;
use http::HeaderMap;
pub(super) use http_sse::routes as http_sse_routes;
use live::{Kept, Live};
use mcp_core::{
    Limits, Server,
    observer::CloseReason,
    server::{Aside, Peer, Session},
    store::{EventLog, MemoryEventLog, MemorySessions, SessionId, SessionStore},
};
use mcp_jsonrpc::{Bytes, Notification, Raw};
pub(super) use post::{batch, message, request};
use tokio::{runtime::Handle, time::sleep};

use crate::{
    headers::MCP_SESSION_ID,
    server::{refusal::Refusal, single},
};

/// How long whoever pushes waits for whoever reads: as long as it takes to come to it, where that is done at all.
const BRIEFLY: Duration = Duration::from_millis(100);

/// The legacy sessions of a server over HTTP: a handle to count, list and end them, and to push messages to them. Cloning is
/// cheap, and all clones are one.
///
/// ```
/// # let server = mcp_core::Server::builder(mcp_core::implementation!()).build();
/// let routes = mcp_http::Routes::new(server);
/// let sessions = routes.sessions().cloned().expect("routes have sessions unless told otherwise");
/// let app = routes.into_router();
/// assert_eq!(sessions.count(), 0);
/// # let _: axum::Router = app;
/// ```
///
/// Their bounds are in [`Limits`]. Specification: *2025-11-25, Transports, Session Management*.
#[derive(Clone)]
pub struct Sessions(Arc<Inner>);

struct Inner {
    server: Server,
    store: Box<dyn SessionStore>,
    log: Box<dyn EventLog>,
    /// What of them is in this process, and those that have ended until the store has let them go.
    live: Mutex<HashMap<SessionId, Arc<Live>>>,
    /// What waits for somebody to read it.
    unsent: Arc<MemoryEventLog>,
    /// Whether a task looks for what has expired.
    is_swept: AtomicBool,
}

impl Sessions {
    /// Sessions in the memory of this process.
    #[must_use]
    pub fn new(server: &Server) -> Self {
        let limits = server.limits();
        Self::with_stores(server, MemorySessions::new(limits.sessions), MemoryEventLog::new(limits))
    }

    /// Sessions that are kept elsewhere.
    #[must_use]
    pub fn with_stores(server: &Server, store: impl SessionStore, log: impl EventLog) -> Self {
        Self(Arc::new(Inner {
            server: server.clone(),
            store: Box::new(store),
            log: Box::new(log),
            live: Mutex::default(),
            unsent: Arc::new(MemoryEventLog::new(server.limits())),
            is_swept: AtomicBool::new(false),
        }))
    }

    /// How many sessions are in this process.
    #[must_use]
    pub fn count(&self) -> usize {
        self.live().values().filter(|live| !live.has_ended()).count()
    }

    /// The sessions that are in this process, in any order.
    #[must_use]
    pub fn ids(&self) -> Vec<SessionId> {
        self.live().values().filter(|live| !live.has_ended()).map(|live| live.id).collect()
    }

    /// Ends a session, with all that runs and all streams of it; false if there is none. One that is in this process ends
    /// though its store fails, which is then asked again until it lets it go.
    pub async fn end(&self, id: SessionId) -> bool {
        let live = self.live().get(&id).cloned();
        match live {
            Some(live) => self.close(&live, CloseReason::Local).await.unwrap_or(true),
            None => self.remove(id).await.unwrap_or(false),
        }
    }

    /// Sends a notification to a session that belongs to none of its calls; false if the session is not in this process. It
    /// goes out on one stream, the latest that the client has opened with GET, or waits for one.
    pub async fn push(&self, id: SessionId, method: &str, params: Option<Raw>) -> bool {
        let live = self.live().get(&id).cloned();
        let Some(live) = live else { return false };
        let frame = mcp_jsonrpc::Message::Notification(Notification::new(method, params)).encode();
        let is_taken = self.say(&live, frame).await;
        if is_taken {
            self.tell(method);
        }
        is_taken
    }

    /// Whether a client may open streams with GET.
    pub(super) fn have_streams(&self) -> bool {
        self.limits().session_streams > 0
    }

    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Live>>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self) -> &Limits {
        self.0.server.limits()
    }

    fn log(&self) -> &dyn EventLog {
        &*self.0.log
    }

    /// Tells observers of a notification.
    fn tell(&self, method: &str) {
        self.0.server.notified("http", method);
    }

    /// Holds off the end of a session; false if it has ended.
    async fn renew(&self, live: &Arc<Live>) -> bool {
        match self.0.store.touch(live.id, live.ttl(self.limits())).await {
            Ok(true) => true,
            Ok(false) => {
                let _ = self.close(live, CloseReason::Expired).await;
                false
            }
            // A store that does not answer ends nothing.
            Err(error) => {
                tracing::warn!(?error, "a session could not be renewed");
                true
            }
        }
    }

    /// Keeps what has changed of a session.
    async fn save(&self, live: &Live) {
        if let Some(record) = live.record()
            && let Err(error) = self.0.store.save(live.id, record).await
        {
            tracing::warn!(?error, "a session's record could not be kept");
        }
    }

    /// Makes a session of a handshake that succeeded; `None` where there is no room.
    async fn mint(&self, session: Arc<Session>, peer: &Peer) -> Result<Option<SessionId>, mcp_core::Error> {
        let (id, principal) = (SessionId::random(), digest(peer));
        let Some(record) = session.record(principal) else { return Ok(None) };
        // In the store first: what lives here and not there has ended.
        if !self.0.store.create(id, record, live::ttl(self.limits(), false)).await? {
            return Ok(None);
        }
        let live = self.bring_to_life(id, principal, session);
        self.live().insert(id, live.clone());
        live.opened(self.0.server.opened("http"));
        self.sweep();
        Ok(Some(id))
    }

    /// What of a session is in this process; what belongs to no call of it goes out on its streams.
    fn bring_to_life(&self, id: SessionId, principal: Option<[u8; 32]>, session: Arc<Session>) -> Arc<Live> {
        let live = Arc::new(Live::new(id, principal, session, self.0.unsent.clone(), self.limits()));
        let (sessions, aside) = (Arc::downgrade(&self.0), Arc::downgrade(&live));
        live.session.set_aside(move |message| match (sessions.upgrade().map(Sessions), aside.upgrade()) {
            (Some(sessions), Some(live)) => sessions.say_aside(live, message),
            _ => false,
        });
        live
    }

    /// Sends what a call has no stream for; false where nobody will hear it.
    fn say_aside(self, live: Arc<Live>, message: Aside) -> bool {
        let frame = match message {
            Aside::Question(frame) if live.is_listened_to(self.limits()) => frame,
            Aside::Notice(frame) if self.have_streams() => frame,
            _ => return false,
        };
        // A call may be dropped where there is no runtime any more.
        let Ok(runtime) = Handle::try_current() else { return false };
        runtime.spawn(async move { self.say(&live, frame).await });
        true
    }

    /// Sends what belongs to no call; false if the session has ended. Whoever says it is not held up by whoever reads.
    async fn say(&self, live: &Live, frame: Bytes) -> bool {
        match live.route(frame) {
            Ok((channel, frame)) => {
                channel.send(self.log(), frame, false, BRIEFLY).await;
                true
            }
            Err(Kept(is_kept)) => is_kept,
        }
    }

    /// The session that a request names. It may have ended, and only be kept until the store has let it go.
    async fn find(&self, headers: &HeaderMap, peer: &Peer) -> Result<Arc<Live>, Refusal> {
        let id = match single::text(headers, &MCP_SESSION_ID) {
            None => return Err(Refusal::NoSession),
            Some(text) => SessionId::parse(text).ok_or(Refusal::Gone)?,
        };
        let principal = digest(peer);
        let live = self.live().get(&id).cloned();
        match live {
            // Another's is like one that is not there, and is not held.
            Some(live) if live.principal != principal => Err(Refusal::Gone),
            Some(live) => Ok(live),
            None => self.restore(id, principal).await,
        }
    }

    /// A session that another process has begun.
    async fn restore(&self, id: SessionId, principal: Option<[u8; 32]>) -> Result<Arc<Live>, Refusal> {
        let limits = self.limits();
        let ttl = live::ttl(limits, true);
        let record = match self.0.store.load_and_touch(id, principal, ttl).await {
            Ok(record) => record.ok_or(Refusal::Gone)?,
            Err(error) => {
                tracing::warn!(?error, "a session could not be looked up");
                return Err(Refusal::Unavailable);
            }
        };
        let session = Session::restore(&self.0.server, &record).ok_or(Refusal::Gone)?;
        let restored = self.bring_to_life(id, principal, Arc::new(session));
        let live = self.live().entry(id).or_insert_with(|| restored.clone()).clone();
        if Arc::ptr_eq(&live, &restored) {
            // Not under the lock: observers may look at the sessions.
            live.opened(self.0.server.opened("http"));
        }
        self.sweep();
        Ok(live)
    }

    /// Ends a session at once; false if the store had none such any more.
    async fn close(&self, live: &Live, reason: CloseReason<'_>) -> Result<bool, mcp_core::Error> {
        live.close(&reason);
        self.remove(live.id).await
    }

    /// Removes what is kept of a session that has ended. Where that fails or is cut off, `sweep` does it again; till then what
    /// is left here keeps the session from being restored.
    async fn remove(&self, id: SessionId) -> Result<bool, mcp_core::Error> {
        let removed = self.0.store.remove(id).await;
        if let Err(error) = &removed {
            tracing::warn!(?error, "a session's record could not be dropped");
        }
        let was_there = removed?;
        if let Err(error) = self.log().forget(id).await {
            tracing::warn!(?error, "a session's events could not be dropped");
        }
        self.live().remove(&id);
        Ok(was_there)
    }

    /// What `work` comes to. The session is held as long as that takes.
    async fn hold<T>(&self, live: &Arc<Live>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep(live.pause(self.limits())) => {
                    self.renew(live).await;
                }
            }
        }
    }

    /// Ends the streams for what belongs to no request; clients open no new ones where the server stops.
    pub(super) fn hang_up(&self) {
        self.live().values().for_each(|live| live.hang_up());
    }

    /// Ends all that runs in this process. Sessions that are kept elsewhere live on there.
    pub(super) fn close_all(&self) {
        let all: Vec<_> = self.live().drain().map(|(_, live)| live).collect();
        all.iter().for_each(|live| live.end());
    }

    /// One task for all sessions ends those that expire, for as long as there are any.
    fn sweep(&self) {
        if self.0.is_swept.swap(true, Ordering::SeqCst) {
            return;
        }
        let limits = self.limits();
        let shortest = limits.session_idle.min(limits.session_provisional);
        let pause = (shortest / 4).clamp(Duration::from_millis(250), Duration::from_secs(15));
        tokio::spawn(sweep(Arc::downgrade(&self.0), pause));
    }
}

async fn sweep(sessions: Weak<Inner>, pause: Duration) {
    loop {
        sleep(pause).await;
        let Some(sessions) = sessions.upgrade().map(Sessions) else { return };
        sessions.log().sweep();
        sessions.0.unsent.sweep();
        let (ended, live): (Vec<_>, Vec<_>) = sessions.live().values().cloned().partition(|live| live.has_ended());
        for ended in ended {
            let _ = sessions.remove(ended.id).await;
        }
        let alive = match sessions.0.store.ids().await {
            Ok(alive) => alive.into_iter().collect::<std::collections::HashSet<_>>(),
            Err(error) => {
                tracing::warn!(?error, "the sessions that live could not be listed");
                continue;
            }
        };
        for live in live.into_iter().filter(|live| !alive.contains(&live.id)) {
            // One that was made in between is not in the list.
            if !sessions.0.store.touch(live.id, live.ttl(sessions.limits())).await.unwrap_or(true) {
                let _ = sessions.close(&live, CloseReason::Expired).await;
            }
        }
        let all = sessions.live();
        if all.is_empty() {
            sessions.0.is_swept.store(false, Ordering::SeqCst);
            return;
        }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("count", &self.count()).finish_non_exhaustive()
    }
}

fn digest(peer: &Peer) -> Option<[u8; 32]> {
    peer.who().map(mcp_core::Principal::digest)
}
