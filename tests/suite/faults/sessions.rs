//! Sessions behind a network that does one thing wrong: what a call asks and answers, and the stream for what belongs to no
//! call, come back as `docs/http.md` says; nobody is asked for another, and nothing is left of a session.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use mcp_core::{
    Client, Context, Limits, ResourceTemplate, Revision, Server, Tool, ToolError,
    client::{Changed, Subscription},
    implementation,
    server::form,
    types::{ElicitParams, ElicitResult},
    uri_template::Variables,
};
use mcp_http::{Http, Routes, Sessions};
use mcp_test::HttpServer;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    PATIENCE, judge,
    proxy::{Fault, Plan, Proxy},
};
use crate::{report, server::until};

/// How long a client waits where nothing tells it that nothing comes.
const TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
struct Mark {
    mark: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Heard {
    heard: String,
}

/// How often each call ran, and how many run now.
#[derive(Clone, Default)]
struct Calls {
    runs: Arc<Mutex<HashMap<u64, u64>>>,
    running: Arc<AtomicI64>,
}

impl Calls {
    fn of(&self, mark: u64) -> u64 {
        self.runs.lock().unwrap().get(&mark).copied().unwrap_or_default()
    }

    fn begin(&self, mark: u64) -> Running {
        *self.runs.lock().unwrap().entry(mark).or_default() += 1;
        self.running.fetch_add(1, Ordering::SeqCst);
        Running(self.running.clone())
    }
}

/// Counts a call for as long as it runs.
struct Running(Arc<AtomicI64>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Asks which mark it is about.
async fn ask(context: Context, Mark { mark }: Mark) -> Result<String, ToolError> {
    let _running = context.state::<Calls>()?.begin(mark);
    let answer: Heard = context.elicit("mark", form(format!("mark {mark}"))).await?;
    Ok(answer.heard)
}

fn server(calls: &Calls) -> Server {
    let (idle, answer) = (Duration::from_secs(5), Duration::from_secs(15));
    let limits = Limits::default().session_idle(idle).session_lease(idle).question_timeout(answer);
    let read = async |_: Context, _: Variables| Ok::<_, ToolError>("text");
    Server::builder(implementation!())
        .limits(limits)
        .state(calls.clone())
        .tool(Tool::new("ask", ask))
        .template(ResourceTemplate::new("x:{mark}", "x", read))
        .build()
}

/// A server with sessions, for all runs.
struct Host {
    server: Server,
    sessions: Sessions,
    calls: Calls,
    address: SocketAddr,
    next: AtomicU64,
    _served: HttpServer,
}

impl Host {
    async fn start() -> Self {
        let calls = Calls::default();
        let server = server(&calls);
        let routes = Routes::new(server.clone());
        let sessions = routes.sessions().unwrap().clone();
        let served = HttpServer::start_router(routes.into_router()).await;
        Self { server, sessions, calls, address: served.address(), next: AtomicU64::new(0), _served: served }
    }

    async fn connect(&self, address: SocketAddr, patience: Duration) -> Result<Client, mcp_core::Error> {
        let limits = Limits::default().request_timeout(patience).probe_timeout(patience);
        let hear = async |question: ElicitParams| ElicitResult::accept(json!({ "heard": question.message }));
        let client = Client::builder(implementation!()).revisions([Revision::LATEST_LEGACY]).limits(limits);
        client.on_elicit(hear).connect(Http::new(format!("http://{address}/mcp"))).await
    }

    /// A call whose question and answer are its own, and that runs once.
    async fn call(&self, client: &Client, plan: Plan) -> Result<(), String> {
        let mark = self.next.fetch_add(1, Ordering::Relaxed);
        let outcome = client.call::<String>("ask", json!({ "mark": mark })).await;
        let runs = self.calls.of(mark);
        match outcome {
            _ if runs > 1 => Err(format!("it ran {runs} times")),
            Ok(answer) if answer == format!("mark {mark}") && runs == 1 => Ok(()),
            Ok(answer) => Err(format!("{answer} for {mark}, which ran {runs} times")),
            // Where the answer to a question is lost, the handler is told so.
            Err(error) if error.kind() == mcp_core::ErrorKind::HandlerFailed && !plan.fault.is_harmless() => Ok(()),
            Err(error) => judge(plan, error),
        }
    }

    /// That a resource has changed is heard, or that it cannot be.
    async fn change(&self, changes: &mut Subscription, uri: &str, plan: Plan) -> Result<(), String> {
        self.server.resource_updated(uri);
        let heard = async {
            loop {
                match changes.next().await {
                    Some(Changed::Resource(changed)) => break changed == uri,
                    // In a session that was begun anew, everything may have changed.
                    Some(_) => {}
                    None => break changes.ended().is_some() && !plan.fault.is_harmless(),
                }
            }
        };
        match tokio::time::timeout(patience(plan), heard).await {
            Ok(true) => Ok(()),
            // Nobody can tell a stream that says nothing from one on which nothing comes.
            Err(_) if [Fault::Stall, Fault::Duplicate].contains(&plan.fault) => Ok(()),
            other => Err(format!("{other:?}: of the change, nothing was heard")),
        }
    }

    async fn run(&self, plan: Plan) -> Result<(), String> {
        let proxy = Proxy::before(self.address, plan).await;
        let client = match self.connect(proxy.address, patience(plan)).await {
            Ok(client) => client,
            Err(error) => return judge(plan, error),
        };
        let uri = format!("x:{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.call(&client, plan).await?;
        match client.subscribe(&uri).await {
            Ok(mut changes) => self.change(&mut changes, &uri, plan).await?,
            Err(error) => judge(plan, error)?,
        }
        self.call(&client, plan).await?;
        client.disconnect().await;
        Ok(())
    }
}

fn patience(plan: Plan) -> Duration {
    // What stalls, or says what it did not say, ends by time alone.
    if [Fault::Stall, Fault::Duplicate].contains(&plan.fault) { TIMEOUT } else { PATIENCE }
}

/// A client has its handshake, its calls and its stream on the first connections that it makes.
fn plans(fault: Fault) -> Vec<Plan> {
    const REACH: usize = 2000;
    const STEP: usize = 211;
    let plan = move |at| (0..6).map(move |which| Plan { fault, connection: which / 2, is_upwards: which % 2 == 0, at });
    // What is doubled on its way to the server is asked for twice: no server can tell.
    (0..REACH)
        .step_by(STEP)
        .flat_map(plan)
        .filter(|plan| !(plan.is_upwards && plan.fault == Fault::Duplicate))
        .collect()
}

/// A client that comes by another way calls all the time.
async fn goes_on(host: &Host, direct: &Client) -> String {
    let harmless = Plan { fault: Fault::Delay, connection: 0, is_upwards: true, at: 0 };
    loop {
        if let Err(why) = host.call(direct, harmless).await {
            break why;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn hold(fault: Fault) {
    let host = Host::start().await;
    let direct = host.connect(host.address, PATIENCE).await.unwrap();
    let plans = plans(fault);
    let one = async |plan: &Plan| {
        let outcome = tokio::time::timeout(2 * PATIENCE, host.run(*plan)).await;
        outcome.unwrap_or_else(|_| Err("it never ended".to_owned())).err().map(|why| format!("{plan:?}: {why}"))
    };
    let runs = stream::iter(plans.iter().map(one)).buffer_unordered(16).filter_map(std::future::ready);
    let failures: Vec<String> = tokio::select! {
        failures = runs.collect() => failures,
        why = goes_on(&host, &direct) => panic!("whoever comes by another way: {why}"),
    };
    let cells = [
        ("fault", format!("{fault:?}, with questions and changes")),
        ("wire", format!("HTTP, {}", Revision::LATEST_LEGACY)),
        ("tried", plans.len().to_string()),
        ("survived", (plans.len() - failures.len()).to_string()),
    ];
    report::row("Faults", cells);
    assert!(failures.is_empty(), "{failures:#?}");
    direct.disconnect().await;
    until("no session is left", async || host.sessions.count() == 0).await;
    until("no call is left", async || host.calls.running.load(Ordering::SeqCst) == 0).await;
}

/// A test for each fault.
macro_rules! faults {
    ($($name:ident: $fault:ident;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            hold(Fault::$fault).await;
        })*
    };
}

faults! {
    a_session_whose_bytes_come_one_by_one: Split;
    a_session_whose_bytes_are_delayed: Delay;
    a_session_whose_bytes_come_twice: Duplicate;
    a_session_whose_connections_are_cut: Truncate;
    a_session_whose_connections_are_reset: Reset;
    a_session_whose_connections_are_half_closed: HalfClose;
    a_session_whose_connections_stall: Stall;
}
