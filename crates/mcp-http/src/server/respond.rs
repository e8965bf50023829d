//! How a call is answered: as JSON from within the connection's own task, or as a stream from the first notification on.

use std::{pin::pin, sync::Arc};

use axum::response::Response;
use mcp_core::{
    Exchange, Reply, Server,
    server::{Answer, NotificationStream},
};
use tokio::{task::AbortHandle, time::sleep};

use crate::server::{accept_header::Wanted, refuse, routes::Endpoint, sse};

/// Runs a call. Dropping the future, as hyper does when the client goes, cancels it.
pub(super) async fn respond(endpoint: &Endpoint, wanted: Wanted, mut exchange: Exchange) -> Response {
    let server = &endpoint.server;
    if !(endpoint.streaming && wanted.may_stream()) {
        return refuse::reply(server, &server.call(exchange).await);
    }
    let stream = exchange.progress_token().is_some().then(|| NotificationStream::new(server.limits()));
    if let Some(stream) = &stream {
        stream.attach(&mut exchange);
    }
    let mut answer = server.call(exchange);
    match first(&mut answer, stream.as_ref(), server).await {
        First::Reply(reply) => match stream.filter(|stream| !stream.is_empty()) {
            Some(stream) => finished(server, stream, &reply),
            None if wanted.answers_json() => refuse::reply(server, &reply),
            None => finished(server, NotificationStream::new(server.limits()), &reply),
        },
        First::Notification | First::Quiet => {
            let stream = stream.unwrap_or_else(|| NotificationStream::new(server.limits()));
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

async fn first(answer: &mut Answer, stream: Option<&NotificationStream>, server: &Server) -> First {
    let notification = async {
        match stream {
            Some(stream) => stream.ready().await,
            None => std::future::pending().await,
        }
    };
    // The timer is not even set where the first poll brings the reply.
    tokio::select! {
        biased;
        reply = answer => First::Reply(reply),
        () = notification => First::Notification,
        () = sleep(server.limits().quiet) => First::Quiet,
    }
}

/// All is there already: no task is needed.
fn finished(server: &Server, stream: NotificationStream, reply: &Reply) -> Response {
    stream.finish(server.encode(reply));
    sse::response(sse::events(Arc::new(stream), (), server.limits().quiet))
}

/// The call goes on in a task of its own, so that a slow reader delays the stream and not the handler. The task ends with
/// the stream's reader.
fn streaming(server: &Server, stream: NotificationStream, answer: Answer) -> Response {
    let stream = Arc::new(stream);
    let task = tokio::spawn({
        let (server, stream) = (server.clone(), stream.clone());
        async move {
            let mut stalled = pin!(stream.stalled(server.limits().stall));
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
    let task = AbortOnDrop(task.abort_handle());
    sse::response(sse::events(stream, task, server.limits().quiet))
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
