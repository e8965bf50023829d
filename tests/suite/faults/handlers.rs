//! Handlers that go wrong: whoever called is told so, or is let go once they give it up; others are served meanwhile, and
//! nothing is left behind.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_core::{
    Client, Context, Error, ErrorKind, Limits, Prompt, Resource, ResourceTemplate, Revision, Server, Tool, ToolError,
    client::CallOptions,
    implementation,
    types::{CompleteParams, Completion},
};
use mcp_http::{Http, Routes};
use mcp_test::HttpServer;
use mcp_ws::{Ws, WsLayer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    PATIENCE,
    gauge::{ABOUT_TASKS, CONNECTIONS, Gauge, HANDLERS, REQUESTS, Running},
};
use crate::{duplex::Wire, report, server::until};

/// The longest message that the clients take, and what is longer.
const MESSAGE_BYTES: usize = 64 << 10;
const TOO_MUCH: usize = 4 * MESSAGE_BYTES;

/// What a handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    PanicsAtOnce,
    PanicsLater,
    PanicsAsItIsDropped,
    NeverEnds,
    /// It is over, but has left a task that goes on telling of progress.
    GoesOnBehindItsEnd,
    /// It has a limit of its own.
    TakesTooLong,
    AnswersTooMuch,
    AllocatesMuch,
    HoldsItsThread,
    /// It has a thread for it, and does not look whether it was cancelled.
    Blocks,
}

impl Wrong {
    const ALL: [Self; 10] = [
        Self::PanicsAtOnce,
        Self::PanicsLater,
        Self::PanicsAsItIsDropped,
        Self::NeverEnds,
        Self::GoesOnBehindItsEnd,
        Self::TakesTooLong,
        Self::AnswersTooMuch,
        Self::AllocatesMuch,
        Self::HoldsItsThread,
        Self::Blocks,
    ];

    fn name(self) -> String {
        format!("{self:?}")
    }

    /// What the caller is told; nothing where all is well in the end.
    fn told(self, wire: Wire) -> Option<ErrorKind> {
        match self {
            // RFC 6455 has no way to go on behind a message that is too long.
            Self::AnswersTooMuch if wire == Wire::Ws => Some(ErrorKind::TransportClosed),
            Self::PanicsAtOnce | Self::PanicsLater => Some(ErrorKind::InternalError),
            Self::PanicsAsItIsDropped | Self::NeverEnds | Self::Blocks => Some(ErrorKind::RequestCancelled),
            Self::TakesTooLong => Some(ErrorKind::HandlerFailed),
            Self::AnswersTooMuch => Some(ErrorKind::ProtocolInvalid),
            Self::GoesOnBehindItsEnd | Self::AllocatesMuch | Self::HoldsItsThread => None,
        }
    }
}

/// Whose handler it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feature {
    Tool,
    Task,
    Prompt,
    Resource,
    Template,
    Completion,
}

impl Feature {
    const ALL: [Self; 6] = [Self::Tool, Self::Task, Self::Prompt, Self::Resource, Self::Template, Self::Completion];

    /// Whether there is such a handler in that revision.
    fn may_go(self, wrong: Wrong, revision: Revision) -> bool {
        match (self, wrong) {
            (Self::Task, _) => revision == Revision::LATEST,
            // Only tools have limits of their own, and threads.
            (Self::Tool, _) => true,
            (_, wrong) => !matches!(wrong, Wrong::TakesTooLong | Wrong::Blocks),
        }
    }

    async fn ask(self, client: &Client, wrong: Wrong, options: CallOptions) -> Result<String, Error> {
        let name = wrong.name();
        match self {
            Self::Tool => client.call_with(&name, json!({}), options).await,
            Self::Task => client.call_with(&format!("task {name}"), json!({}), options).await,
            Self::Prompt => client.get_prompt_with(&name, json!({}), options).await.map(|_| name),
            Self::Resource => client.read_resource_with(&format!("x:{name}"), options).await.map(|_| name),
            Self::Template => client.read_resource_with(&format!("y:{name}"), options).await.map(|_| name),
            Self::Completion => {
                let completed = client.complete_with(CompleteParams::prompt("completed", name, ""), options).await;
                completed.map(|completion| completion.values.concat())
            }
        }
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a secret");
    }
}

/// Ends what blocks.
#[derive(Clone, Default)]
struct Release(Arc<AtomicBool>);

/// The handler of everything.
fn go(context: Context, wrong: Wrong) -> impl Future<Output = Result<String, ToolError>> {
    assert_ne!(wrong, Wrong::PanicsAtOnce, "a secret");
    async move {
        let _running = Running::of(&context)?;
        match wrong {
            Wrong::PanicsLater => {
                tokio::task::yield_now().await;
                panic!("a secret")
            }
            Wrong::PanicsAsItIsDropped => {
                let _bomb = Bomb;
                std::future::pending().await
            }
            Wrong::GoesOnBehindItsEnd => {
                tokio::spawn(async move {
                    for step in 0..200_u8 {
                        context.progress(step.into(), None, "a secret").await;
                        tokio::task::yield_now().await;
                    }
                });
                Ok(String::new())
            }
            Wrong::AnswersTooMuch => Ok("x".repeat(TOO_MUCH)),
            Wrong::AllocatesMuch => {
                let much = vec![1_u8; 64 << 20];
                tokio::task::yield_now().await;
                Ok(much.len().to_string())
            }
            Wrong::HoldsItsThread => {
                std::thread::sleep(Duration::from_millis(50));
                Ok(String::new())
            }
            Wrong::PanicsAtOnce | Wrong::NeverEnds | Wrong::TakesTooLong | Wrong::Blocks => {
                std::future::pending().await
            }
        }
    }
}

fn block(context: Context) -> Result<(), ToolError> {
    let _running = Running::of(&context)?;
    let release = context.state::<Release>()?;
    while !release.0.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn tool(name: String, wrong: Wrong) -> Tool {
    match wrong {
        Wrong::Blocks => Tool::blocking(name, block),
        Wrong::TakesTooLong => {
            Tool::new(name, move |context: Context| go(context, wrong)).timeout(Duration::from_millis(20))
        }
        _ => Tool::new(name, move |context: Context| go(context, wrong)),
    }
}

fn server(gauge: &Gauge, release: &Release) -> Server {
    let limits = Limits::default().task_poll_interval(Duration::from_millis(10));
    let mut builder = Server::builder(implementation!()).limits(limits).observer(gauge.clone());
    let mut completed = Prompt::new("completed", async |_, _| Ok("completed"));
    for wrong in Wrong::ALL {
        let name = wrong.name();
        completed = completed.complete(name.clone(), move |context, _, _| {
            let going = go(context, wrong);
            async move { Ok([going.await?].into_iter().collect::<Completion>()) }
        });
        builder = builder
            .tool(tool(name.clone(), wrong))
            .tool(tool(format!("task {name}"), wrong).task())
            .prompt(Prompt::new(name.clone(), move |context, _| go(context, wrong)))
            .resource(Resource::new(format!("x:{name}"), &*name, move |context| go(context, wrong)));
    }
    let read = |context: Context, variables: mcp_core::uri_template::Variables| {
        let name = variables.get("wrong").unwrap_or_default();
        let wrong = Wrong::ALL.into_iter().find(|wrong| wrong.name() == name).expect("what goes wrong");
        go(context, wrong)
    };
    let ok = Tool::new("ok", async || Ok::<_, ToolError>("ok"));
    builder
        .prompt(completed)
        .template(ResourceTemplate::new("y:{wrong}", "wrong", read))
        .tool(ok)
        .state(gauge.clone())
        .state(release.clone())
        .build()
}

/// One server on one wire, in one revision.
struct Host {
    wire: Wire,
    revision: Revision,
    server: Server,
    gauge: Gauge,
    release: Release,
    served: HttpServer,
}

impl Host {
    async fn start(wire: Wire, revision: Revision) -> Self {
        let (gauge, release) = (Gauge::default(), Release::default());
        let server = server(&gauge, &release);
        let router = Routes::new(server.clone()).into_router().layer(WsLayer::new(server.clone()));
        Self { wire, revision, server, gauge, release, served: HttpServer::start_router(router).await }
    }

    async fn connect(&self) -> Client {
        let limits = Limits::default().message_bytes(MESSAGE_BYTES).request_timeout(PATIENCE);
        let client = Client::builder(implementation!()).revisions([self.revision]).limits(limits).tasks();
        let connected = match self.wire {
            Wire::Memory => client.connect(self.server.clone()).await,
            Wire::Ws => client.connect(Ws::new(self.served.url().replace("http://", "ws://"))).await,
            _ => client.connect(Http::new(self.served.url())).await,
        };
        connected.unwrap()
    }

    /// A call that is given up once its handler runs, where nothing else ends it.
    async fn ask(&self, client: &Client, feature: Feature, wrong: Wrong) -> Result<String, Error> {
        let token = CancellationToken::new();
        let options = CallOptions::new().timeout(PATIENCE).cancel_with(token.clone());
        let looks = self.gauge.of(ABOUT_TASKS);
        // Who does not know yet that there is a task cannot call it off.
        let is_known = || feature != Feature::Task || self.gauge.of(ABOUT_TASKS) > looks;
        let give_up = async {
            if wrong.told(self.wire) == Some(ErrorKind::RequestCancelled) {
                until("the handler runs", async || self.gauge.of(HANDLERS) == 1 && is_known()).await;
                token.cancel();
            }
        };
        tokio::join!(feature.ask(client, wrong, options), give_up).0
    }

    /// One call of one client, which is served afterwards; what else came of it than what should.
    async fn run(&self, feature: Feature, wrong: Wrong) -> Result<(), String> {
        let client = self.connect().await;
        self.release.0.store(false, Ordering::SeqCst);
        let outcome = self.ask(&client, feature, wrong).await;
        self.release.0.store(true, Ordering::SeqCst);
        if outcome.as_ref().err().map(Error::kind) != wrong.told(self.wire) || format!("{outcome:?}").contains("secret")
        {
            return Err(format!("{outcome:?}"));
        }
        if wrong.told(self.wire) != Some(ErrorKind::TransportClosed) {
            let next = client.call::<String>("ok", json!({})).await;
            next.map_err(|error| format!("it is not served any more: {error:?}"))?;
        }
        // A task is called off behind the caller's back, which an end of the connection may cut off.
        until("its handler is gone", async || self.gauge.of(HANDLERS) == 0).await;
        client.disconnect().await;
        Ok(())
    }
}

/// Calls all the time, and is always answered.
async fn goes_on(other: &Client) -> Box<dyn Any> {
    loop {
        let answer = tokio::time::timeout(PATIENCE, other.call::<String>("ok", json!({}))).await;
        assert_eq!(answer.expect("an answer in time").unwrap(), "ok");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Every handler on that wire and in that revision, while another client is served.
async fn hold(wire: Wire, revision: Revision) {
    let host = Host::start(wire, revision).await;
    let other = host.connect().await;
    for wrong in Wrong::ALL {
        let mut failures = Vec::new();
        let features: Vec<_> = Feature::ALL.into_iter().filter(|feature| feature.may_go(wrong, revision)).collect();
        for feature in &features {
            let outcome = tokio::select! {
                outcome = tokio::time::timeout(PATIENCE, host.run(*feature, wrong)) => outcome,
                _ = goes_on(&other) => unreachable!("it has no end"),
            };
            let outcome = outcome.unwrap_or_else(|_| Err("it never ended".to_owned()));
            failures.extend(outcome.err().map(|why| format!("{wrong:?}, {feature:?}: {why}")));
            let what = format!("nothing of {wrong:?}, {feature:?} is left on {wire:?} in {revision}");
            until(&what, async || host.gauge.of(HANDLERS) == 0 && host.gauge.of(REQUESTS) == 0).await;
        }
        assert_eq!(other.call::<String>("ok", json!({})).await.unwrap(), "ok");
        let cells = [
            ("handler", wrong.name()),
            ("wire", format!("{}, {revision}", wire.name())),
            ("tried", features.len().to_string()),
            ("survived", (features.len() - failures.len()).to_string()),
        ];
        report::row("Handlers", cells);
        assert!(failures.is_empty(), "{wire:?} in {revision}: {failures:#?}");
    }
    other.disconnect().await;
    until("no connection is left", async || host.gauge.of(CONNECTIONS) == 0).await;
}

/// A test for each wire and era.
macro_rules! wires {
    ($($name:ident: $wire:ident $revision:ident;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            hold(Wire::$wire, Revision::$revision).await;
        })*
    };
}

wires! {
    handlers_that_go_wrong_in_memory_in_the_modern_era: Memory LATEST;
    handlers_that_go_wrong_in_memory_in_the_legacy_era: Memory LATEST_LEGACY;
    handlers_that_go_wrong_over_http_in_the_modern_era: Http LATEST;
    handlers_that_go_wrong_over_http_in_the_legacy_era: Http LATEST_LEGACY;
    handlers_that_go_wrong_over_websocket_in_the_modern_era: Ws LATEST;
    handlers_that_go_wrong_over_websocket_in_the_legacy_era: Ws LATEST_LEGACY;
}
