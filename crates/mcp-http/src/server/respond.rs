//! Server path 11 of 11 (HTTP): a call runs and its answer leaves, as JSON from within the connection's own task, or as a stream from the first notification on. Before: `crates/mcp-jsonrpc/src/encode.rs`.

use std::{future::Future, pin::pin, sync::Arc};

use axum::response::Response;
use futures_util::future::poll_immediate;
use http::StatusCode;
use mcp_core::{
    Exchange, Fault, Reply, Server,
    server::{Answer, CallStream},
};
use mcp_jsonrpc::Bytes;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::server::{accept_header::Wanted, endpoint::Endpoint, reply, sse};

/// Runs a call. Dropping the future, as hyper does when the client goes, cancels it. It does not hold the exchange, which
/// is large.
pub(super) fn respond(endpoint: &Endpoint, wanted: Wanted, mut exchange: Exchange) -> impl Future<Output = Response> {
    let server = &endpoint.server;
    let stream = (wanted.may_stream() && exchange.may_notify()).then(|| CallStream::new(server.limits()));
    if let Some(stream) = &stream {
        stream.attach(&mut exchange);
    }
    answered(server, wanted, stream, server.call(exchange))
}

async fn answered(server: &Server, wanted: Wanted, stream: Option<CallStream>, mut answer: Answer) -> Response {
    // Most calls are answered by their first poll, and need no timer.
    let first = match poll_immediate(&mut answer).await {
        Some(reply) => First::Reply(reply),
        None if wanted.may_stream() => first(&mut answer, stream.as_ref(), server).await,
        None => First::Reply((&mut answer).await),
    };
    match (first, stream) {
        (First::Reply(reply), Some(stream)) if !stream.is_empty() => finished(server, stream, server.encode(&reply)),
        (First::Reply(reply), _) => at_once(server, wanted, &reply),
        (First::Notification | First::Quiet, stream) => {
            let stream = stream.unwrap_or_else(|| CallStream::new(server.limits()));
            streaming(server, stream, answer)
        }
    }
}

/// What comes first of a call.
enum First {
    Reply(Reply),
    Notification,
    /// Nothing, for so long that whatever lies between might give the connection up.
    Quiet,
}

async fn first(answer: &mut Answer, stream: Option<&CallStream>, server: &Server) -> First {
    let notification = async {
        match stream {
            Some(stream) => stream.ready().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        reply = answer => First::Reply(reply),
        () = notification => First::Notification,
        () = sleep(server.limits().keep_alive) => First::Quiet,
    }
}

/// A reply that nothing comes before.
pub(super) fn at_once(server: &Server, wanted: Wanted, answer: &Reply) -> Response {
    let mut response = frame(server, wanted, reply::status(answer), server.encode(answer));
    if let Some(fault @ Fault::InsufficientScope(_)) = answer.fault() {
        // How scopes are had is known to the layer that checks them, and to nothing here.
        response.extensions_mut().insert(fault.clone());
    }
    response
}

/// A frame as JSON, or as the one event of a stream. Only JSON can say by its status what went wrong.
pub(super) fn frame(server: &Server, wanted: Wanted, status: StatusCode, frame: Bytes) -> Response {
    if wanted.answers_json() || status != StatusCode::OK {
        return reply::json(status, frame);
    }
    finished(server, CallStream::new(server.limits()), frame)
}

/// All is there already: no task is needed.
fn finished(server: &Server, stream: CallStream, frame: Bytes) -> Response {
    stream.finish(frame);
    sse::response(sse::events(Arc::new(stream), (), server.limits().keep_alive))
}

/// The call goes on in a task of its own, so that a slow reader delays the stream and not the handler. The task ends with
/// the stream's reader.
fn streaming(server: &Server, stream: CallStream, answer: Answer) -> Response {
    let stream = Arc::new(stream);
    let task = tokio::spawn({
        let (server, stream) = (server.clone(), stream.clone());
        async move {
            let mut stalled = pin!(stream.stalled(server.limits().stall_timeout));
            tokio::select! {
                biased;
                reply = answer => stream.finish(server.encode(&reply)),
                () = &mut stalled => {
                    tracing::debug!("a stream that nobody read was given up, and its call cancelled");
                    stream.close();
                }
            }
        }
    });
    let task = AbortOnDropHandle::new(task);
    sse::response(sse::events(stream, task, server.limits().keep_alive))
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, extract::Request};
    use mcp_core::{Context, Tool, ToolError, implementation};
    use tokio::{runtime::Handle, task::yield_now};
    use tower::ServiceExt;

    use super::*;
    use crate::Routes;

    /// How many tasks live while this runs; it does not end with its first poll.
    async fn tasks(context: Context) -> Result<usize, ToolError> {
        context.progress(1.0, None, "begun");
        yield_now().await;
        yield_now().await;
        Ok(Handle::current().metrics().num_alive_tasks())
    }

    async fn call(meta: &str) -> (String, String) {
        let server = Server::builder(implementation!()).tool(Tool::new("tasks", tasks)).build();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"tasks","_meta":{{{meta}}}}}}}"#
        );
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(axum::body::Body::from(body))
            .unwrap();
        let response = Routes::new(server).stateless().into_router().oneshot(request).await.unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (kind, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_json_call_spawns_no_task_and_a_stream_spawns_one() {
        let (kind, body) = call("").await;
        assert_eq!(kind, "application/json");
        assert!(body.contains(r#""text":"0""#), "{body}");

        let (kind, body) = call(r#""progressToken":1"#).await;
        assert_eq!(kind, "text/event-stream");
        assert!(body.contains(r#""text":"1""#), "{body}");
    }
}
