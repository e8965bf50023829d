//! Tools whose handlers block: they run on threads of their own.

use std::panic::resume_unwind;

use mcp_jsonrpc::Raw;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tracing::Span;

use crate::{
    Context, Exchange, Tool, ToolError,
    server::tool::{Arguments, IntoToolResult, ToolHandler, arguments, no_parameters, object_schema},
    types::CallToolResult,
};

/// A function that blocks and can be a tool: of the arguments, of the [`Context`], of both in that order, or of nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a blocking tool",
    note = "a blocking tool is a `fn` of nothing, `Args`, `Context` or `(Context, Args)` that returns `Result<R, ToolError>`",
    note = "for an `async fn` use `Tool::new`"
)]
pub trait BlockingHandler<Shape>: Clone + Send + Sync + 'static {
    /// What it takes.
    type Input: Send + 'static;
    /// What it returns.
    type Output: IntoToolResult + Send;

    /// The JSON Schema of the arguments.
    fn input_schema() -> Raw;

    /// What it is to be run with.
    ///
    /// # Errors
    /// When the arguments do not fit.
    fn input(context: &Context) -> Result<Self::Input, ToolError>;

    /// Runs it.
    ///
    /// # Errors
    /// As the tool fails.
    fn run(&self, input: Self::Input) -> Result<Self::Output, ToolError>;
}

/// What makes a tool of a function that blocks.
#[derive(Debug, Clone)]
struct Blocking<H>(H);

impl<H: BlockingHandler<S>, S: 'static> ToolHandler<(Blocking<()>, S)> for Blocking<H> {
    fn input_schema() -> Raw {
        H::input_schema()
    }

    fn output_schema() -> Option<Raw> {
        H::Output::output_schema()
    }

    fn call(
        &self,
        exchange: Exchange,
    ) -> impl Future<Output = Result<CallToolResult, ToolError>> + Send + 'static + use<H, S> {
        let handler = self.0.clone();
        let (context, guard) = Context::new(exchange);
        let input = H::input(&context);
        let (turns, span) = (context.server().0.core.blocking.clone(), Span::current());
        guard.during(async move {
            let input = input?;
            // Held by the thread, which cannot be stopped. So nothing ever waits in the runtime's own queue.
            let turn = turns.acquire_owned().await;
            let run = move || {
                let _turn = turn;
                if context.is_cancelled() {
                    return Err(ToolError::new("The call was cancelled"));
                }
                span.in_scope(|| handler.run(input)?.into_tool_result())
            };
            match tokio::task::spawn_blocking(run).await {
                Ok(outcome) => outcome,
                Err(error) => match error.try_into_panic() {
                    // It is caught where those of other handlers are.
                    Ok(panic) => resume_unwind(panic),
                    Err(_) => Err(ToolError::new("The server is shutting down")),
                },
            }
        })
    }
}

impl Tool {
    /// A tool that runs `handler`, which blocks or computes for long, on a thread of its own, so that it holds up nobody.
    ///
    /// A call that is cancelled or out of time is answered for at once, but a thread cannot be stopped: the handler of
    /// a long loop looks at [`Context::is_cancelled`]. [`Limits::blocking`](crate::Limits) of them run at once, and
    /// further ones wait their turn.
    ///
    /// ```
    /// # use mcp_core::{Tool, ToolError};
    /// fn hostname() -> Result<String, ToolError> { Ok(std::fs::read_to_string("/etc/hostname")?) }
    ///
    /// let tool = Tool::blocking("hostname", hostname).describe("Says what this machine is called");
    /// ```
    pub fn blocking<S: 'static, H: BlockingHandler<S>>(name: impl Into<String>, handler: H) -> Self {
        Self::new(name, Blocking(handler))
    }
}

impl<F, R> BlockingHandler<()> for F
where
    F: Fn() -> Result<R, ToolError> + Clone + Send + Sync + 'static,
    R: IntoToolResult + Send,
{
    type Input = ();
    type Output = R;

    fn input_schema() -> Raw {
        no_parameters()
    }

    fn input(_: &Context) -> Result<(), ToolError> {
        Ok(())
    }

    fn run(&self, (): ()) -> Result<R, ToolError> {
        self()
    }
}

impl<F, R> BlockingHandler<(Context,)> for F
where
    F: Fn(Context) -> Result<R, ToolError> + Clone + Send + Sync + 'static,
    R: IntoToolResult + Send,
{
    type Input = Context;
    type Output = R;

    fn input_schema() -> Raw {
        no_parameters()
    }

    fn input(context: &Context) -> Result<Context, ToolError> {
        Ok(context.clone())
    }

    fn run(&self, context: Context) -> Result<R, ToolError> {
        self(context)
    }
}

impl<F, A, R> BlockingHandler<(Arguments, A)> for F
where
    F: Fn(A) -> Result<R, ToolError> + Clone + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: IntoToolResult + Send,
{
    type Input = A;
    type Output = R;

    fn input_schema() -> Raw {
        object_schema::<A>()
    }

    fn input(context: &Context) -> Result<A, ToolError> {
        arguments(context.exchange())
    }

    fn run(&self, arguments: A) -> Result<R, ToolError> {
        self(arguments)
    }
}

impl<F, A, R> BlockingHandler<(Context, A)> for F
where
    F: Fn(Context, A) -> Result<R, ToolError> + Clone + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: IntoToolResult + Send,
{
    type Input = (Context, A);
    type Output = R;

    fn input_schema() -> Raw {
        object_schema::<A>()
    }

    fn input(context: &Context) -> Result<(Context, A), ToolError> {
        Ok((context.clone(), arguments(context.exchange())?))
    }

    fn run(&self, (context, arguments): (Context, A)) -> Result<R, ToolError> {
        self(context, arguments)
    }
}
