//! Layers around a server: a time limit, a bound on what runs at once, who may call what, and a record of what was done.
//!
//! They work on every wire, since they sit between accepting a request and answering it. Run it with
//! `cargo run -p mcp-suite --example layers`.

use std::{
    future::{Future, Ready, ready},
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, future::Either};
use mcp_suite::{Exchange, Fault, Reply, Server, ServerBuilder, Tool, ToolError, implementation};
use tower::{
    BoxError, Layer, Service, ServiceExt as _, limit::ConcurrencyLimitLayer, timeout::TimeoutLayer, util::Oneshot,
};

/// What somebody is told who may not call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// That there is no such tool; it is not listed either.
    Hidden,
    /// That they may not call it.
    Refused,
}

/// Whether a caller may call the tool of that name.
type Rule = dyn Fn(&Exchange, &str) -> bool + Send + Sync;

/// Lets callers call only what they may.
#[derive(Clone)]
struct Authorize {
    may: Arc<Rule>,
    denied: Denied,
}

impl Authorize {
    /// `may` says whether a caller may call the tool of that name.
    fn new(denied: Denied, may: impl Fn(&Exchange, &str) -> bool + Send + Sync + 'static) -> Self {
        Self { may: Arc::new(may), denied }
    }

    /// Puts it into a server: as a layer, and as a filter where what is denied is hidden.
    fn protect(self, builder: ServerBuilder) -> ServerBuilder {
        let may = self.may.clone();
        let builder = match self.denied {
            Denied::Hidden => builder.tool_filter(move |exchange, tool| may(exchange, &tool.definition().name)),
            Denied::Refused => builder,
        };
        builder.layer(self)
    }

    fn check(&self, exchange: &Exchange) -> Result<(), Fault> {
        match exchange.name() {
            Some(name) if exchange.method() == "tools/call" && !(self.may)(exchange, name) => Err(match self.denied {
                Denied::Hidden => Fault::unknown_tool(name),
                Denied::Refused => Fault::InvalidParams("this tool is not for you".into()),
            }),
            _ => Ok(()),
        }
    }
}

impl<S> Layer<S> for Authorize {
    type Service = Authorized<S>;

    fn layer(&self, inner: S) -> Authorized<S> {
        Authorized { rules: self.clone(), inner }
    }
}

/// What [`Authorize`] makes of a service.
#[derive(Clone)]
struct Authorized<S> {
    rules: Authorize,
    inner: S,
}

impl<S> Service<Exchange> for Authorized<S>
where
    S: Service<Exchange, Response = Reply, Error = BoxError>,
{
    type Response = Reply;
    type Error = BoxError;
    type Future = Either<S::Future, Ready<Result<Reply, BoxError>>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange) -> Self::Future {
        match self.rules.check(&exchange) {
            Ok(()) => self.inner.call(exchange).left_future(),
            Err(fault) => ready(Err(fault.into())).right_future(),
        }
    }
}

/// What is recorded of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its place among all.
    pub(crate) sequence: u64,
    /// Who asked.
    pub(crate) principal: Option<String>,
    /// What was asked for, and of what.
    pub(crate) method: String,
    /// The tool, prompt or resource.
    pub(crate) name: Option<String>,
    /// The code of the error that it was answered with.
    pub(crate) error: Option<i64>,
    /// How long it took.
    pub(crate) took: Duration,
}

/// Records every request that is answered.
#[derive(Clone)]
struct Audit(Arc<dyn Fn(Entry) + Send + Sync>);

impl Audit {
    /// `record` keeps what happened.
    fn new(record: impl Fn(Entry) + Send + Sync + 'static) -> Self {
        Self(Arc::new(record))
    }
}

impl<S> Layer<S> for Audit {
    type Service = Audited<S>;

    fn layer(&self, inner: S) -> Audited<S> {
        Audited { audit: self.clone(), inner }
    }
}

/// What [`Audit`] makes of a service.
#[derive(Clone)]
struct Audited<S> {
    audit: Audit,
    inner: S,
}

impl<S> Service<Exchange> for Audited<S>
where
    S: Service<Exchange, Response = Reply, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Reply;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange) -> Self::Future {
        let (audit, start, revision) = (self.audit.clone(), Instant::now(), exchange.revision());
        let mut entry = Entry {
            sequence: exchange.sequence(),
            principal: exchange.principal().map(|principal| principal.id().to_owned()),
            method: exchange.method().to_owned(),
            name: exchange.name().or(exchange.uri()).map(str::to_owned),
            error: None,
            took: Duration::ZERO,
        };
        let answer = self.inner.call(exchange);
        Box::pin(async move {
            let outcome = answer.await;
            let fault = match &outcome {
                Ok(reply) => reply.fault(),
                Err(error) => Some(error.downcast_ref::<Fault>().unwrap_or(&Fault::Internal)),
            };
            entry.error = fault.map(|fault| fault.to_error(revision).code);
            entry.took = start.elapsed();
            (audit.0)(entry);
            outcome
        })
    }
}

/// Puts a layer around tool calls alone: a ping, or a list, is not to wait for them.
#[derive(Clone)]
struct ForCalls<L>(L);

impl<L: Layer<S>, S: Clone> Layer<S> for ForCalls<L> {
    type Service = CallsThrough<L::Service, S>;

    fn layer(&self, inner: S) -> Self::Service {
        CallsThrough { layered: self.0.layer(inner.clone()), bare: inner }
    }
}

/// What [`ForCalls`] makes of a service.
#[derive(Clone)]
struct CallsThrough<L, S> {
    layered: L,
    bare: S,
}

impl<L, S> Service<Exchange> for CallsThrough<L, S>
where
    L: Service<Exchange, Response = Reply, Error = BoxError> + Clone,
    S: Service<Exchange, Response = Reply, Error = BoxError> + Clone,
{
    type Response = Reply;
    type Error = BoxError;
    type Future = Either<Oneshot<L, Exchange>, Oneshot<S, Exchange>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        // Which of the two has to be ready is known with the request.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, exchange: Exchange) -> Self::Future {
        if exchange.method() == "tools/call" {
            self.layered.clone().oneshot(exchange).left_future()
        } else {
            self.bare.clone().oneshot(exchange).right_future()
        }
    }
}

/// A server with all four; the layer that is added last is met first.
pub(crate) fn layered(
    builder: ServerBuilder,
    denied: Denied,
    record: impl Fn(Entry) + Send + Sync + 'static,
) -> Server {
    let may = |exchange: &Exchange, tool: &str| exchange.principal().is_some() || !tool.starts_with("admin.");
    let builder =
        builder.layer(TimeoutLayer::new(Duration::from_secs(10))).layer(ForCalls(ConcurrencyLimitLayer::new(4)));
    Authorize::new(denied, may).protect(builder).layer(Audit::new(record)).build()
}

async fn greet() -> Result<&'static str, ToolError> {
    Ok("Good day")
}

#[tokio::main]
async fn main() {
    for denied in [Denied::Hidden, Denied::Refused] {
        let tools = [Tool::new("greet", greet), Tool::new("admin.reset", greet)];
        let builder = tools.into_iter().fold(Server::builder(implementation!()), ServerBuilder::tool);
        let server = layered(builder, denied, |entry| println!("{entry:?}"));
        for tool in ["greet", "admin.reset"] {
            let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#);
            let answer = server.handle(call).await.unwrap_or_default();
            println!("{}", String::from_utf8_lossy(&answer));
        }
    }
}
