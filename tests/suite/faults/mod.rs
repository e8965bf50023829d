//! A network that does one thing wrong, at many places: who is answered, with what, and how often things are done.

mod clocks;
mod floods;
mod gauge;
mod handlers;
mod killed;
mod proxy;
mod sessions;
mod streams;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use mcp_core::{
    Client, ClientBuilder, Context, Error, ErrorKind, Limits, Revision, Server, Tool, ToolError,
    client::{Backoff, CallOptions},
    implementation,
};
use mcp_http::{Http, Routes};
use mcp_stdio::{Lines, serve_lines};
use mcp_test::HttpServer;
use mcp_ws::{Ws, WsLayer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::report;
use proxy::{Fault, Plan, Proxy, SPLIT, relay_streams};

/// How long anything may take, whatever goes wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a client waits that is not answered. Only what stalls takes that long.
const TIMEOUT: Duration = Duration::from_millis(400);

/// What runs of the tool `mark` were counted, by their mark.
#[derive(Clone, Default)]
struct Marks(Arc<Mutex<HashMap<u64, u64>>>);

impl Marks {
    fn of(&self, mark: u64) -> u64 {
        self.0.lock().unwrap().get(&mark).copied().unwrap_or_default()
    }
}

#[derive(Deserialize, JsonSchema)]
struct Mark {
    mark: u64,
}

/// A server whose tool tells of progress, and counts how often it ran for each mark.
fn server(marks: &Marks) -> Server {
    let marks = marks.clone();
    let mark = move |context: Context, Mark { mark }: Mark| {
        let marks = marks.clone();
        async move {
            *marks.0.lock().unwrap().entry(mark).or_default() += 1;
            context.progress(1.0, Some(1.0), format!("mark {mark}")).await;
            Ok::<_, ToolError>(mark)
        }
    };
    Server::builder(implementation!()).tool(Tool::new("mark", mark)).build()
}

/// A way to the server, with the fault on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Http,
    Ws,
    /// A WebSocket that is dialled again, and goes on where it was lost.
    WsResumed,
    Lines,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Ws => "WebSocket",
            Self::WsResumed => "WebSocket, resumed",
            Self::Lines => "lines",
        }
    }
}

/// A server on HTTP and WebSocket, for all runs of a test.
struct Host {
    server: Server,
    marks: Marks,
    address: SocketAddr,
    next: AtomicU64,
    _served: HttpServer,
}

impl Host {
    async fn start() -> Self {
        let marks = Marks::default();
        let server = server(&marks);
        let router = Routes::new(server.clone()).into_router().layer(WsLayer::new(server.clone()));
        let served = HttpServer::start_router(router).await;
        Self { server, marks, address: served.address(), next: AtomicU64::new(0), _served: served }
    }

    async fn connect(&self, way: Way, plan: Plan, client: ClientBuilder) -> (Result<Client, Error>, Option<Proxy>) {
        if way == Way::Lines {
            let ((here, near), (far, there)) = (tokio::io::duplex(4096), tokio::io::duplex(4096));
            tokio::spawn(relay_streams(near, far, plan));
            let (reader, writer) = tokio::io::split(there);
            tokio::spawn(serve_lines(self.server.clone(), reader, writer));
            let (reader, writer) = tokio::io::split(here);
            return (client.connect(Lines::new(reader, writer, Limits::default().message_bytes)).await, None);
        }
        let proxy = Proxy::before(self.address, plan).await;
        let ws = || Ws::new(format!("ws://{}/mcp", proxy.address));
        let client = match way {
            Way::Ws => client.connect(ws()).await,
            Way::WsResumed => client.connect(ws().resume(Backoff::default())).await,
            _ => client.connect(Http::new(format!("http://{}/mcp", proxy.address))).await,
        };
        (client, Some(proxy))
    }

    /// One client, one fault, and three calls, the last of which may find that all is well again.
    async fn run(&self, way: Way, revision: Revision, plan: Plan) -> Result<(), String> {
        let patience = if plan.fault.is_harmless() { PATIENCE } else { TIMEOUT };
        let limits = Limits::default().request_timeout(patience).probe_timeout(patience);
        let mut builder = Client::builder(implementation!()).limits(limits);
        // A client of the modern era falls back where the first answer is mangled, as every client does by itself.
        if revision != Revision::LATEST {
            builder = builder.revisions([revision]);
        }
        let (client, _proxy) = self.connect(way, plan, builder).await;
        let client = match client {
            Ok(client) => client,
            Err(error) => return judge(plan, error),
        };
        for _ in 0..3 {
            let mark = self.next.fetch_add(1, Ordering::Relaxed);
            let progress = Arc::new(AtomicU64::new(0));
            let heard = progress.clone();
            let options = CallOptions::new().on_progress(move |told| {
                assert_eq!(told.message.as_deref(), Some(&*format!("mark {mark}")));
                heard.fetch_add(1, Ordering::Relaxed);
            });
            let outcome = client.call_with::<u64>("mark", json!({ "mark": mark }), options).await;
            let (runs, told) = (self.marks.of(mark), progress.load(Ordering::Relaxed));
            if runs > 1 || told > 1 {
                return Err(format!("it ran {runs} times, and {told} times there was progress"));
            }
            match outcome {
                Ok(answer) if answer == mark && runs == 1 => {}
                Ok(answer) => return Err(format!("{answer} for {mark}, which ran {runs} times")),
                Err(error) => judge(plan, error)?,
            }
        }
        client.disconnect().await;
        Ok(())
    }
}

/// An error must be of the connection or of what came over it, and there must be a reason for one.
fn judge(plan: Plan, error: Error) -> Result<(), String> {
    use ErrorKind::{ProtocolInvalid, Timeout, TransportClosed, TransportError};
    let is_typed = [ProtocolInvalid, Timeout, TransportClosed, TransportError].contains(&error.kind());
    if plan.fault.is_harmless() || !is_typed { Err(format!("{error:?}")) } else { Ok(()) }
}

/// Up to here there are bytes: more than a handshake and a call have in either direction.
const REACH: usize = 2600;

fn plans(fault: Fault) -> impl Iterator<Item = Plan> {
    // Prime steps, so that the places differ from fault to fault; the first is that of splits, which leave no byte out.
    let step = [SPLIT, 59, 61, 67, 71, 73, 79][Fault::ALL.iter().position(|other| *other == fault).unwrap()];
    let plan = move |at| [true, false].map(|is_upwards| Plan { fault, connection: 0, is_upwards, at });
    // What is doubled on its way to the server is asked for twice: no server can tell.
    (0..REACH).step_by(step).flat_map(plan).filter(|plan| !(plan.is_upwards && plan.fault == Fault::Duplicate))
}

/// Every fault at many places, in both directions, over that way and in that revision.
async fn hold(way: Way, revision: Revision) {
    let host = Host::start().await;
    for fault in Fault::ALL {
        let plans: Vec<Plan> = plans(fault).collect();
        let one = async |plan: &Plan| {
            let outcome = tokio::time::timeout(PATIENCE, host.run(way, revision, *plan)).await;
            outcome.unwrap_or_else(|_| Err("it never ended".to_owned())).err().map(|why| format!("{plan:?}: {why}"))
        };
        let runs = stream::iter(plans.iter().map(one)).buffer_unordered(16);
        let failures: Vec<String> = runs.filter_map(std::future::ready).collect().await;
        let cells = [
            ("fault", format!("{fault:?}")),
            ("wire", format!("{}, {revision}", way.name())),
            ("tried", plans.len().to_string()),
            ("survived", (plans.len() - failures.len()).to_string()),
        ];
        report::row("Faults", cells);
        assert!(failures.is_empty(), "{} in {revision}: {failures:#?}", way.name());
    }
    // Whoever comes by another way was served all the time.
    let direct = Client::connect(Http::new(format!("http://{}/mcp", host.address))).await.unwrap();
    let mark = host.next.fetch_add(1, Ordering::Relaxed);
    assert_eq!(direct.call::<u64>("mark", json!({ "mark": mark })).await.unwrap(), mark);
}

/// A test for each way and era.
macro_rules! ways {
    ($($name:ident: $way:ident $revision:ident;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            hold(Way::$way, Revision::$revision).await;
        })*
    };
}

ways! {
    http_in_the_modern_era: Http LATEST;
    http_in_the_legacy_era: Http LATEST_LEGACY;
    a_websocket_in_the_modern_era: Ws LATEST;
    a_websocket_in_the_legacy_era: Ws LATEST_LEGACY;
    a_websocket_that_is_resumed: WsResumed LATEST;
    lines_in_the_modern_era: Lines LATEST;
    lines_in_the_legacy_era: Lines LATEST_LEGACY;
}
