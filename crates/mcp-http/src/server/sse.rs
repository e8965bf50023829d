//! Server-sent events, as they are written.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use futures_core::Stream;
use http::{HeaderName, HeaderValue, header};
use mcp_core::{
    server::CallStream,
    store::{LoggedEvent, StreamId},
};
use mcp_jsonrpc::Bytes;
use tokio::time::timeout;

/// What keeps a connection alive on which nothing happens.
pub(super) const COMMENT: &[u8] = b": keep-alive\n\n";

/// How long a client of a legacy session waits before it comes back, in milliseconds.
const RETRY_MS: u32 = 1000;

/// The events of a call to its end; where none comes for `quiet`, a comment keeps the connection alive. `keep` lives as
/// long as somebody reads.
pub(super) fn events<K: Send + 'static>(
    stream: Arc<CallStream>,
    keep: K,
    quiet: Duration,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    futures_util::stream::unfold((stream, keep), move |(stream, keep)| async move {
        let chunk = match timeout(quiet, stream.next()).await {
            Ok(frame) => event(&frame?, None),
            Err(_) => Bytes::from_static(COMMENT),
        };
        Some((Ok(chunk), (stream, keep)))
    })
}

/// A frame is one line, so it is one `data` field. Events of a session have an id, by which the stream is resumed.
pub(super) fn event(frame: &Bytes, id: Option<(StreamId, u64)>) -> Bytes {
    let id = id.map(|(stream, seq)| format!("id: {}\n", LoggedEvent::id(stream, seq))).unwrap_or_default();
    [id.as_bytes(), b"event: message\ndata: ", frame, b"\n\n"].concat().into()
}

/// An event without a message: from here on a stream can be resumed, after a pause.
///
/// Specification: *2025-11-25, Transports, Sending Messages to the Server*.
pub(super) fn priming(stream: StreamId, seq: u64) -> Bytes {
    format!("id: {}\nretry: {RETRY_MS}\ndata: \n\n", LoggedEvent::id(stream, seq)).into()
}

/// Specification: *Streamable HTTP, Receiving Messages*.
pub(super) fn response(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Or a proxy might hold events back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
