//! Server path 6 of 11: the method table, and the future that a call is. Before: `crates/mcp-core/src/server/mod.rs` | `crates/mcp-core/src/server/layers.rs`. After: `crates/mcp-core/src/server/features/tools.rs`.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use mcp_jsonrpc::RequestId;
use tokio::{task::unconstrained, time::Sleep};
use tracing::Span;

#[cfg(feature = "log-layer")]
use crate::server::log_layer;
use crate::{
    Fault, Reply, Revision,
    contained::{Contained, Panicked, contained},
    method::CoreMethod,
    server::{
        Core, Exchange, extension_methods,
        features::{completion, list, prompts, resources, tools},
        legacy, modern,
        reply::Body,
        task,
    },
};

/// Starts answering an exchange.
pub(super) fn dispatch(core: &Arc<Core>, exchange: Exchange) -> Call {
    let (id, revision) = (exchange.id.clone(), exchange.revision);
    #[cfg(feature = "log-layer")]
    let span = log_layer::span(&exchange);
    #[cfg(not(feature = "log-layer"))]
    let span = Span::none();
    // Filters, introducers, and the handler on the way to its future: what the user wrote may panic.
    let started = contained(|| span.in_scope(|| start(core, exchange)));
    let state = settled(started).unwrap_or_else(|fault| Running::Done(Some(Err(fault))));
    Call { id, revision, state, span }
}

/// The method table.
fn start(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    let Some(method) = CoreMethod::find(&exchange.method, exchange.revision.era()) else {
        return extension_methods::call(core, exchange);
    };
    if let Some(fault) = &exchange.head.fault {
        return Err(fault.clone());
    }
    let body = match method {
        CoreMethod::Initialize => legacy::initialize(core, exchange)?,
        CoreMethod::Ping => Body::default(),
        CoreMethod::Discover => modern::discover(core, &exchange)?,
        _ if !core.offers(method) => return Err(Fault::MethodNotFound(exchange.method)),
        CoreMethod::ListTools => list::list(core, &exchange, "tools", &core.tools, core.cache.tools)?,
        CoreMethod::CallTool => return tools::call(core, exchange),
        CoreMethod::ListPrompts => list::list(core, &exchange, "prompts", &core.prompts, core.cache.prompts)?,
        CoreMethod::GetPrompt => return prompts::get(core, exchange),
        CoreMethod::ListResources => list::list(core, &exchange, "resources", &core.resources, core.cache.resources)?,
        CoreMethod::ListResourceTemplates => {
            list::list(core, &exchange, "resourceTemplates", &core.templates, core.cache.templates)?
        }
        CoreMethod::ReadResource => return resources::read(core, exchange),
        CoreMethod::Listen => return modern::listen(core, exchange),
        CoreMethod::Subscribe => legacy::subscribe(core, &exchange)?,
        CoreMethod::Unsubscribe => legacy::unsubscribe(&exchange)?,
        CoreMethod::SetLevel => legacy::set_level(&exchange)?,
        CoreMethod::Complete => return completion::complete(core, exchange),
        CoreMethod::GetTask => return task::get(core, exchange),
        CoreMethod::UpdateTask => return task::update(core, exchange),
        CoreMethod::CancelTask => return task::cancel(core, exchange),
    };
    Ok(Running::Done(Some(Ok(body))))
}

/// A call that is being answered. Dropping it cancels it.
#[must_use = "a call runs only while it is polled"]
pub(super) struct Call {
    id: RequestId,
    revision: Revision,
    state: Running,
    /// What is logged within it is the call's.
    span: Span,
}

/// How far a call is.
pub(crate) enum Running {
    /// Answered; taken once.
    Done(Option<Result<Body, Fault>>),
    /// A handler runs; its result is the method's already.
    Handler { future: Contained<Handling>, timeout: Option<Timeout>, exchange: Option<Box<Exchange>> },
}

/// A handler with all that its method does before and after it: one allocation a call.
pub(crate) type Handling = BoxFuture<'static, Result<Body, Fault>>;

/// How long a handler may run, and what it comes to then.
pub(crate) struct Timeout {
    pub(crate) sleep: Pin<Box<Sleep>>,
    pub(crate) expired: fn(Duration, Revision) -> Result<Body, Fault>,
    pub(crate) after: Duration,
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
    /// A handler that is to run.
    pub(crate) fn new(timeout: Option<Timeout>, future: Handling) -> Self {
        Self::Handler { future: Contained(future), timeout, exchange: None }
    }

    /// One that may ask its client, and then be dropped with its questions as the answer; or become a task.
    pub(crate) fn of_call(mut self, exchange: Option<Exchange>) -> Self {
        if let Self::Handler { exchange: of_call, .. } = &mut self {
            *of_call = exchange.map(Box::new);
        }
        self
    }

    /// The same as a task from now on: what is left of it here is what its client is told first.
    pub(crate) fn into_task(self) -> Self {
        match self {
            Self::Handler { future, timeout, exchange: Some(exchange) } => {
                Self::new(None, Box::pin(task::begin(*exchange, future, timeout)))
            }
            other => other,
        }
    }

    fn poll(&mut self, revision: Revision, cx: &mut Context<'_>) -> Poll<Result<Body, Fault>> {
        let (future, timeout, exchange) = match self {
            Self::Done(outcome) => return Poll::Ready(outcome.take().unwrap_or(Err(Fault::Internal))),
            Self::Handler { future, timeout, exchange } => (future, timeout, exchange),
        };
        let mut polled = future.poll_unpin(cx);
        let task = exchange.as_deref().and_then(|exchange| exchange.task.as_ref());
        if polled.is_pending() && task.is_some_and(|task| task.is_wanted(cx)) {
            *self = std::mem::replace(self, Self::Done(None)).into_task();
            return self.poll(revision, cx);
        }
        let asked = exchange.as_deref().and_then(|exchange| ask(exchange, future, &mut polled, cx));
        let outcome = match (polled, asked, timeout) {
            (_, Some(asked), _) => asked,
            (Poll::Ready(outcome), ..) => settled(outcome),
            (Poll::Pending, None, None) => return Poll::Pending,
            (Poll::Pending, None, Some(timeout)) => {
                // A handler that never waits has used up its turn; its time is up all the same.
                std::task::ready!(pin!(unconstrained(&mut timeout.sleep)).poll(cx));
                (timeout.expired)(timeout.after, revision)
            }
        };
        Poll::Ready(self.dispose().and(outcome))
    }

    /// Drops the handler's future, what it still holds with it: that may panic too.
    fn dispose(&mut self) -> Result<(), Fault> {
        let handler = std::mem::replace(self, Self::Done(None));
        contained(|| drop(handler)).map_err(panicked)
    }
}

/// Asks the client, where the handler waits for what only the client can say.
fn ask(
    exchange: &Exchange,
    future: &mut Contained<Handling>,
    polled: &mut Poll<<Contained<Handling> as Future>::Output>,
    cx: &Context<'_>,
) -> Option<Result<Body, Fault>> {
    let replay = exchange.replay.as_ref()?;
    let has_failed = match polled {
        Poll::Ready(Ok(outcome)) => outcome.as_ref().map_or(true, |body| body.is_failure),
        _ => false,
    };
    if has_failed && replay.asks_by_hand() {
        // It has returned, and waits from here on as one that asks in place does.
        *polled = Poll::Pending;
        *future = Contained(Box::pin(std::future::pending()));
    }
    let round = polled.is_pending().then(|| replay.end(cx)).flatten()?;
    Some(replay.ask_client(exchange, round))
}

/// What came of it, or what its panic is answered with.
pub(crate) fn settled<T>(outcome: Result<Result<T, Fault>, Panicked>) -> Result<T, Fault> {
    outcome.unwrap_or_else(|panic| Err(panicked(panic)))
}

/// What a panic of the user's is answered with.
pub(crate) fn panicked(_: Panicked) -> Fault {
    tracing::error!("a handler or a layer panicked; its caller gets an internal error");
    Fault::Internal
}

/// A handler that is given up may panic as it goes, which must not end the connection.
impl Drop for Call {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.state, Running::Done(None));
        if contained(|| drop(state)).is_err() {
            tracing::error!("a handler panicked as its call was given up");
        }
    }
}

impl Future for Call {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let Self { revision, span, .. } = &*self;
        let (revision, _entered) = (*revision, span.clone().entered());
        self.state.poll(revision, cx).map(|outcome| Reply::new(self.id.clone(), revision, outcome))
    }
}
