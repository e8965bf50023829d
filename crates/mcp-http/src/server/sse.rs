//! Server-sent events, as they are written.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use futures_core::Stream;
use http::{HeaderName, HeaderValue, header};
use mcp_core::server::CallStream;
use mcp_jsonrpc::Bytes;
use tokio::time::timeout;

/// The events of a call to its end; where none comes for `quiet`, a comment keeps the connection alive. `keep` lives as
/// long as somebody reads.
pub(super) fn events<K: Send + 'static>(
    stream: Arc<CallStream>,
    keep: K,
    quiet: Duration,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    futures_util::stream::unfold((stream, keep), move |(stream, keep)| async move {
        let chunk = match timeout(quiet, stream.next()).await {
            Ok(frame) => event(&frame?),
            Err(_) => Bytes::from_static(b": keep-alive\n\n"),
        };
        Some((Ok(chunk), (stream, keep)))
    })
}

/// A frame is one line, so it is one `data` field.
fn event(frame: &Bytes) -> Bytes {
    [b"event: message\ndata: ".as_slice(), frame, b"\n\n"].concat().into()
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
