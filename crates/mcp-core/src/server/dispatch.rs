//! Server path 6 of 11: the method table, and the future that a call is. Before: `crates/mcp-core/src/server/mod.rs` | `crates/mcp-core/src/server/layers.rs`. After: `crates/mcp-core/src/server/features/tools.rs`.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, CatchUnwind},
};
use mcp_jsonrpc::RequestId;
use tokio::time::Sleep;

use crate::{
    Fault, Reply, Revision,
    method::CoreMethod,
    server::{
        Core, Exchange,
        features::{completion, list, prompts, resources, tools},
        legacy, modern,
        reply::Body,
    },
};

/// Starts answering an exchange.
pub(super) fn dispatch(core: &Arc<Core>, exchange: Exchange) -> Call {
    let (id, revision) = (exchange.id.clone(), exchange.revision);
    let state = match start(core, exchange) {
        Ok(running) => running,
        Err(fault) => Running::Done(Some(Err(fault))),
    };
    Call { id, revision, state }
}

/// The method table.
fn start(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    let unknown = || Fault::MethodNotFound(exchange.method.clone());
    let method = CoreMethod::find(&exchange.method, exchange.revision.era()).ok_or_else(unknown)?;
    if let Some(fault) = &exchange.head.fault {
        return Err(fault.clone());
    }
    let body = match method {
        CoreMethod::Initialize => legacy::initialize(core, &exchange)?,
        CoreMethod::Ping => Body::default(),
        CoreMethod::Discover => modern::discover(core)?,
        _ if !core.offers(method) => return Err(unknown()),
        CoreMethod::ListTools => list::list(core, &exchange, "tools", &core.tools)?,
        CoreMethod::CallTool => return tools::call(core, exchange),
        CoreMethod::ListPrompts => list::list(core, &exchange, "prompts", &core.prompts)?,
        CoreMethod::GetPrompt => return prompts::get(core, exchange),
        CoreMethod::ListResources => list::list(core, &exchange, "resources", &core.resources)?,
        CoreMethod::ListResourceTemplates => list::list(core, &exchange, "resourceTemplates", &core.templates)?,
        CoreMethod::ReadResource => return resources::read(core, exchange),
        CoreMethod::Complete => return completion::complete(core, exchange),
    };
    Ok(Running::Done(Some(Ok(body))))
}

/// A call that is being answered. Dropping it cancels it.
#[must_use = "a call runs only while it is polled"]
pub(super) struct Call {
    id: RequestId,
    revision: Revision,
    state: Running,
}

/// How far a call is.
pub(crate) enum Running {
    /// Answered; taken once.
    Done(Option<Result<Body, Fault>>),
    /// A handler runs; its result is the method's already.
    Handler { future: Unwinding, timeout: Option<Timeout> },
}

/// A handler with all that its method does before and after it: one allocation a call.
pub(crate) type Handling = BoxFuture<'static, Result<Body, Fault>>;

type Unwinding = CatchUnwind<AssertUnwindSafe<Handling>>;

/// How long a handler may run, and what it comes to then.
pub(crate) struct Timeout {
    sleep: Pin<Box<Sleep>>,
    expired: fn(Duration, Revision) -> Result<Body, Fault>,
    after: Duration,
}

impl Core {
    /// How long a handler may run that has no limit of its own.
    pub(crate) fn handler_timeout(&self) -> Option<Timeout> {
        self.limits.handler_timeout.map(|after| Timeout::new(after, |_, _| Err(Fault::TimedOut)))
    }
}

impl Timeout {
    pub(crate) fn new(after: Duration, expired: fn(Duration, Revision) -> Result<Body, Fault>) -> Self {
        Self { sleep: Box::pin(tokio::time::sleep(after)), expired, after }
    }
}

impl Running {
    /// Starts a handler; a panic on the way to its future is caught as one within it is.
    pub(crate) fn start(timeout: Option<Timeout>, start: impl FnOnce() -> Handling) -> Self {
        let Ok(future) = catch_unwind(AssertUnwindSafe(start)) else { return Self::Done(Some(Err(panicked()))) };
        Self::Handler { future: AssertUnwindSafe(future).catch_unwind(), timeout }
    }

    fn poll(&mut self, revision: Revision, cx: &mut Context<'_>) -> Poll<Result<Body, Fault>> {
        let (future, timeout) = match self {
            Self::Done(outcome) => return Poll::Ready(outcome.take().unwrap_or(Err(Fault::Internal))),
            Self::Handler { future, timeout } => (future, timeout),
        };
        let outcome = match (future.poll_unpin(cx), timeout) {
            (Poll::Ready(outcome), _) => outcome.unwrap_or_else(|_| Err(panicked())),
            (Poll::Pending, None) => return Poll::Pending,
            (Poll::Pending, Some(timeout)) => {
                std::task::ready!(timeout.sleep.poll_unpin(cx));
                (timeout.expired)(timeout.after, revision)
            }
        };
        Poll::Ready(self.dispose().and(outcome))
    }

    /// Drops the handler's future, what it still holds with it: that may panic too.
    fn dispose(&mut self) -> Result<(), Fault> {
        let handler = std::mem::replace(self, Self::Done(None));
        catch_unwind(AssertUnwindSafe(|| drop(handler))).map_err(|_| panicked())
    }
}

/// What a panic said may hold anything, so it goes no further than the process's own panic hook.
pub(super) fn panicked() -> Fault {
    tracing::error!("a handler or a layer panicked; its caller gets an internal error");
    Fault::Internal
}

impl Future for Call {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let revision = self.revision;
        self.state.poll(revision, cx).map(|outcome| Reply::new(self.id.clone(), revision, outcome))
    }
}
