use std::time::Duration;

use mcp_jsonrpc::DecodeLimits;
use tokio::sync::Semaphore;

/// Every bound that the crates of this family keep, with its default.
///
/// ```
/// let limits = mcp_core::Limits::default().in_flight(8).message_bytes(64 * 1024);
/// assert_eq!(limits.in_flight, 8);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message, HTTP body or SSE event, in bytes. Default 4 MiB.
    pub message_bytes: usize,
    /// How deep arrays and objects in a message may nest. Default 128.
    pub nesting: usize,
    /// The longest request id or progress token, in bytes of JSON text. Default 256.
    pub id_bytes: usize,
    /// The longest pagination cursor that a server takes, in bytes. Default 1 KiB.
    pub cursor_bytes: usize,
    /// The most messages in a batch (2025-03-26 only). Default 64.
    pub batch: usize,
    /// Requests of the peer that run at once on one shared wire, or in one legacy session; more wait their turn. At least 1.
    /// Default 64.
    pub in_flight: usize,
    /// Requests that wait on one shared wire, or in one legacy session; more are refused, and so are all while those that wait have more bytes than
    /// [`queue_bytes`](Self::queue_bytes). A server's. Default 1024.
    pub waiting: usize,
    /// Handlers of [`Tool::blocking`](crate::Tool::blocking) that run at once; more wait their turn. At least 1. A server's.
    /// Default 128.
    pub blocking: usize,
    /// The most messages queued for writing on one connection or stream. At least 1. Default 256.
    pub queue_messages: usize,
    /// The most bytes queued for writing on one connection or stream. At least 1. Default 4 MiB.
    pub queue_bytes: usize,
    /// The most resources that one legacy session is subscribed to. A server's. Default 1024.
    pub subscribed_uris: usize,
    /// The longest URI that a client listens to, in bytes. A server's. Default 4 KiB.
    pub uri_bytes: usize,
    /// The most streams that one principal listens to at once, and one shared wire; a client over HTTP keeps it too.
    /// Default 64.
    pub subscriptions: usize,
    /// The most streams that are listened to at once. A server's. Default 10,000.
    pub all_subscriptions: usize,
    /// The most legacy sessions of an HTTP server; a further `initialize` is 503. Also the most connections that are served in
    /// lines from one listener; a further one is closed. A server's. Default 10,000.
    pub sessions: usize,
    /// How long a session lives without a request, an open call or an open stream. A server's. Default 1 h.
    pub session_idle: Duration,
    /// How long a session lives that has only been initialized. A server's. Default 60 s.
    pub session_provisional: Duration,
    /// For how long an open call or stream holds its session each time it renews it, which it does three times as often.
    /// Where there are streams, no renewal is shorter. At least 10 ms. A server's. Default 15 s.
    pub session_lease: Duration,
    /// The most bytes that a legacy client says of itself in `initialize`, its `clientInfo` and its `capabilities` together,
    /// which its session keeps. A server's. Default 16 KiB.
    pub client_bytes: usize,
    /// The most streams that a session has open for what belongs to no request; a further GET is 409, and with 0 every GET is
    /// 405. A server's. Default 1.
    pub session_streams: usize,
    /// The most events kept of a session, for clients that lost their connection or have not opened a stream yet. A server's.
    /// Default 1024.
    pub session_events: usize,
    /// The most bytes of events kept of a session, but for the newest event. A server's. Default 1 MiB.
    pub session_event_bytes: usize,
    /// The most bytes of events kept of all sessions; as many again may wait for streams to be opened. Over it, the session
    /// that keeps most makes room. A server's. Default 256 MiB.
    pub all_event_bytes: usize,
    /// How long events are kept. A server's. Default 5 min.
    pub session_event_age: Duration,
    /// The most entries in one page of a list. At least 1. Default 1000.
    pub page_size: usize,
    /// The most pages that a client follows in one list. Default 1000.
    pub max_pages: usize,
    /// The most bytes of all pages that a client follows in one list. Default 64 MiB.
    pub list_bytes: usize,
    /// How long a client waits for a reply without hearing of progress. Default 30 s.
    pub request_timeout: Duration,
    /// How long a client waits for a reply at most, with progress. Default 10 min.
    pub request_timeout_max: Duration,
    /// How long a client waits for an answer to its first question before it takes a server for a legacy one, on wires
    /// without statuses. Default 5 s.
    pub probe_timeout: Duration,
    /// How long a tool may run, be it in its call or as a task. Default: as long as it likes.
    pub handler_timeout: Option<Duration>,
    /// How long a handler waits for the client's answer to a question. A server's. Default 10 min.
    pub question_timeout: Duration,
    /// The longest `requestState`, in bytes. A server's. Default 16 KiB.
    pub request_state_bytes: usize,
    /// How long a `requestState` is good; one that is good for over a minute longer than that, as a clock that was ahead has made
    /// it, is refused. A server's. Default 10 min.
    pub request_state_ttl: Duration,
    /// How often one call asks a modern client for input. A server's. Default 10.
    pub input_rounds: u32,
    /// The most tasks that one principal has at once, and those that nobody is known to have; beyond it the oldest that has
    /// ended is forgotten. A server's. Default 1000.
    pub tasks: usize,
    /// The most tasks at once, where they are kept in memory; beyond it the caller's oldest that has ended is forgotten. A
    /// server's. Default 10,000.
    pub all_tasks: usize,
    /// The most bytes of all tasks, where they are kept in memory: results, messages, questions and answers, and 1 KiB at
    /// least for each. One task has no more than [`message_bytes`](Self::message_bytes). A server's. Default 256 MiB.
    pub task_bytes: usize,
    /// How long a task is kept from when it began, at most; then its handler is dropped, and its result is gone. A server's. Default 1 h.
    pub task_ttl: Duration,
    /// How often clients are told to ask for a task. A server's. Default 1 s.
    pub task_poll_interval: Duration,
    /// How long an HTTP call may be quiet before it becomes a stream with keep-alives, and how often a WebSocket is pinged.
    /// Default 15 s.
    pub keep_alive: Duration,
    /// How long a peer may leave what is for it unread: then the call of an HTTP stream is ended, and a shared wire whose
    /// answers are over their bounds. Also how long the body of an HTTP request may take, and how long its head: an HTTP
    /// connection that is answering nothing ends when no whole head has come for so long. A server's. Default 60 s.
    pub stall_timeout: Duration,
    /// How long calls may finish after the input of their shared wire has ended. A server's. Default 10 s.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let decode = DecodeLimits::default();
        Self {
            message_bytes: 4 << 20,
            nesting: decode.depth,
            id_bytes: decode.id,
            cursor_bytes: 1 << 10,
            batch: decode.batch,
            in_flight: 64,
            waiting: 1024,
            blocking: 128,
            queue_messages: 256,
            queue_bytes: 4 << 20,
            subscribed_uris: 1024,
            uri_bytes: 4 << 10,
            subscriptions: 64,
            all_subscriptions: 10_000,
            sessions: 10_000,
            session_idle: Duration::from_secs(3600),
            session_provisional: Duration::from_secs(60),
            session_lease: Duration::from_secs(15),
            client_bytes: 16 << 10,
            session_streams: 1,
            session_events: 1024,
            session_event_bytes: 1 << 20,
            all_event_bytes: 256 << 20,
            session_event_age: Duration::from_secs(300),
            page_size: 1000,
            max_pages: 1000,
            list_bytes: 64 << 20,
            request_timeout: Duration::from_secs(30),
            request_timeout_max: Duration::from_secs(600),
            probe_timeout: Duration::from_secs(5),
            handler_timeout: None,
            question_timeout: Duration::from_secs(600),
            request_state_bytes: 16 << 10,
            request_state_ttl: Duration::from_secs(600),
            input_rounds: 10,
            tasks: 1000,
            all_tasks: 10_000,
            task_bytes: 256 << 20,
            task_ttl: Duration::from_secs(3600),
            task_poll_interval: Duration::from_secs(1),
            keep_alive: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// A setter by value for each field.
macro_rules! setters {
    ($($field:ident: $type:ty),* $(,)?) => {
        impl Limits {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
}

setters! {
    message_bytes: usize, nesting: usize, id_bytes: usize, cursor_bytes: usize, batch: usize, in_flight: usize,
    waiting: usize, blocking: usize, queue_messages: usize, queue_bytes: usize, subscribed_uris: usize, uri_bytes: usize, subscriptions: usize, all_subscriptions: usize, sessions: usize, session_idle: Duration, session_provisional: Duration,
    session_lease: Duration, client_bytes: usize, session_streams: usize, session_events: usize, session_event_bytes: usize,
    all_event_bytes: usize, session_event_age: Duration, page_size: usize, max_pages: usize, list_bytes: usize, request_timeout: Duration,
    request_timeout_max: Duration, probe_timeout: Duration, handler_timeout: Option<Duration>, question_timeout: Duration, request_state_bytes: usize, request_state_ttl: Duration, input_rounds: u32, tasks: usize, all_tasks: usize, task_bytes: usize, task_ttl: Duration, task_poll_interval: Duration, keep_alive: Duration, stall_timeout: Duration,
    shutdown_grace: Duration,
}

impl Limits {
    /// The bounds that concern decoding.
    #[must_use]
    pub fn decode(&self) -> DecodeLimits {
        let mut limits = DecodeLimits::default();
        (limits.depth, limits.id, limits.batch) = (self.nesting, self.id_bytes, self.batch);
        limits
    }

    /// The same, with 1 in place of every 0 with which nothing could ever move, and no more turns than can be counted.
    pub(crate) fn within_reason(mut self) -> Self {
        for bound in [
            &mut self.in_flight,
            &mut self.blocking,
            &mut self.queue_messages,
            &mut self.queue_bytes,
            &mut self.page_size,
        ] {
            *bound = (*bound).max(1);
        }
        for turns in [&mut self.in_flight, &mut self.blocking] {
            *turns = (*turns).min(Semaphore::MAX_PERMITS);
        }
        self.session_lease = self.session_lease.max(Duration::from_millis(10));
        self
    }
}
