//! The server that is watched: the everything-server with short times, on all wires at once.

use std::{panic, path::Path, sync::Arc, time::Duration};

use mcp_suite::{
    Limits, Server, Tool, ToolError,
    http::{self, Routes, Sessions},
    origin::Hosts,
    stdio,
    store::MemoryTasks,
    ws::WsLayer,
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, UnixListener},
    runtime::Handle,
};
use tower_layer::Layer;

use crate::{
    HEAP, Result,
    counters::{Counters, SharedTasks, Status},
};

/// How long a resumable WebSocket is waited for.
const GRACE: Duration = Duration::from_secs(3);

/// As much as a machine that does other things as well keeps up with, and all of it over soon after its client is gone.
pub(crate) fn limits() -> Limits {
    let (short, long) = (Duration::from_secs(2), Duration::from_secs(5));
    Limits::default()
        .message_bytes(1 << 20)
        // Whoever reads nothing has no more than this, so that memory does not depend on how many do so at the moment.
        .queue_bytes(1 << 20)
        .session_idle(long)
        .session_provisional(short)
        .session_lease(short)
        .session_event_age(long)
        .keep_alive(short)
        .stall_timeout(long)
        .shutdown_grace(short)
        .question_timeout(long)
        .handler_timeout(Some(Duration::from_secs(20)))
        .task_ttl(Duration::from_secs(10))
        // As many are soon there, however fast the machine is, and so is the memory that they take.
        .tasks(400)
        .task_poll_interval(Duration::from_millis(50))
}

/// Serves until stdin ends. The first line on stdout names the address; each line on stdin is answered with a [`Status`].
pub(crate) async fn serve(socket: &Path) -> Result {
    panic::set_hook(Box::new(|_| {}));
    let (counters, limits) = (Counters::default(), limits());
    let tasks = SharedTasks(Arc::new(MemoryTasks::new(limits.all_tasks, limits.task_bytes)));
    let server =
        everything_server::builder(limits.clone()).observer(counters.clone()).task_store(tasks.clone()).build();
    let lines = UnixListener::bind(socket)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (bound, address) = (listener.local_addr()?, listener.local_addr()?.to_string());
    let hosts = Hosts::loopback().bound(bound);
    let routes = Routes::new(server.clone()).hosts(hosts.clone()).http_sse("/sse", "/messages");
    let sessions = routes.sessions().cloned().ok_or("there are no sessions")?;
    let service = WsLayer::new(server.clone()).resume(GRACE).hosts(hosts).layer(routes.into_service());
    tokio::select! {
        served = http::serve_service(service, listener, &limits) => Ok(served?),
        () = stdio::serve_listener(server.clone(), lines) => Ok(()),
        told = tell(&address, || status(&counters, &sessions, &tasks.0)) => told,
    }
}

fn status(counters: &Counters, sessions: &Sessions, tasks: &MemoryTasks) -> Status {
    Status {
        sessions: sessions.count(),
        kept: tasks.count(),
        tasks: Handle::current().metrics().num_alive_tasks(),
        heap: HEAP.allocated(),
        ..counters.status()
    }
}

async fn tell(address: &str, status: impl Fn() -> Status) -> Result {
    let (mut asked, mut stdout) = (BufReader::new(tokio::io::stdin()).lines(), tokio::io::stdout());
    stdout.write_all(format!("{address}\n").as_bytes()).await?;
    loop {
        stdout.flush().await?;
        if asked.next_line().await?.is_none() {
            return Ok(());
        }
        stdout.write_all(format!("{}\n", json!(status())).as_bytes()).await?;
    }
}

/// Serves one client over the process's streams, which can have the process killed.
pub(crate) async fn serve_stdio() -> Result {
    panic::set_hook(Box::new(|_| {}));
    Ok(stdio::serve(mortal()).await?)
}

fn mortal() -> Server {
    everything_server::builder(limits()).tool(Tool::new("die", die).describe("Ends the process at once")).build()
}

async fn die() -> std::result::Result<(), ToolError> {
    std::process::abort()
}
