//! Server path 8 of 11: a tool; its arguments are read, and the user's handler runs. Before: `crates/mcp-core/src/server/features/tools.rs`. After: `crates/mcp-core/src/server/reply.rs`.

use std::{any::Any, future::Future, sync::Arc, time::Duration};

use mcp_jsonrpc::Raw;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Context, Error, ErrorKind, Exchange, MirrorPlan, Revision, ToolError,
    server::{dispatch::Handling, features::tools, form_schema, registry::describes_itself},
    types::{CallToolResult, ClientCapability, Content, ToolAnnotations, ToolDefinition},
    validate::{Author, Checks},
};

/// A tool: what it says of itself, and what runs when it is called.
///
/// ```
/// use mcp_core::{Tool, ToolError};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// async fn add(Add { a, b }: Add) -> Result<i64, ToolError> { Ok(a + b) }
///
/// let tool = Tool::new("add", add).describe("Add two integers");
/// assert_eq!(tool.definition().name, "add");
/// ```
///
/// Specification: *Tools*.
#[derive(Clone)]
pub struct Tool {
    pub(crate) definition: ToolDefinition,
    pub(crate) needs: Vec<ClientCapability>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) handler: Arc<dyn Handler>,
    /// What of its arguments travels in headers; nothing before it is [`prepared`](Self::prepared).
    pub(crate) mirror: MirrorPlan,
    /// What is checked of its calls; nothing before it is prepared.
    pub(crate) checks: Option<Arc<Checks>>,
    author: Author,
    validates_output: bool,
    /// An output schema was written by hand, so that nothing but a check sees to structured content.
    promises: bool,
    /// Whether it may run as a task.
    pub(crate) tasks: Option<RunsAsTask>,
    /// The forms that it asks its user to fill in.
    forms: Vec<fn(Revision) -> Result<Raw, Error>>,
}

/// How a tool runs as a task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunsAsTask {
    /// Not before its handler says so.
    pub(crate) is_told: bool,
    /// For clients that know of no tasks it does not run at all.
    pub(crate) is_all: bool,
}

/// What a call of a tool comes to.
pub(crate) type Outcome = Result<CallToolResult, ToolError>;

/// A handler whose types are erased.
pub(crate) trait Handler: Send + Sync {
    fn call(&self, exchange: Exchange) -> Handling;

    /// Whether it may ask the client anything.
    fn asks(&self) -> bool {
        true
    }
}

/// One that is never told of its context, and so can ask nobody.
struct Mute<F>(F);

impl<F: Handler> Handler for Mute<F> {
    fn call(&self, exchange: Exchange) -> Handling {
        self.0.call(exchange)
    }

    fn asks(&self) -> bool {
        false
    }
}

/// Makes a handler of what maps an exchange to a future.
impl<F, Fut> Handler for F
where
    F: Fn(Exchange) -> Fut + Send + Sync,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    fn call(&self, exchange: Exchange) -> Handling {
        let revision = exchange.revision;
        let checks = exchange.checks.clone().filter(|checks| checks.checks_output());
        let outcome = self(exchange);
        Box::pin(async move {
            let outcome = outcome.await;
            let outcome = match (checks, outcome) {
                (Some(checks), Ok(result)) => Ok(checks.result(result, revision)?),
                (_, outcome) => outcome,
            };
            tools::finish(outcome, revision)
        })
    }
}

/// An `async fn` that can be a tool: of the arguments, of the [`Context`], of both in that order (context first), or of
/// nothing, that returns `Result<R, ToolError>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool",
    note = "a tool is an async fn of nothing, `Args`, `Context` or `(Context, Args)` that returns `Result<R, ToolError>`",
    note = "`Args` must be `Deserialize + JsonSchema + Send + 'static`, `R` must be `Serialize + 'static` or a `CallToolResult`"
)]
pub trait ToolHandler<Shape>: Send + Sync + 'static {
    /// Whether it gets a [`Context`], with which it can ask the client.
    const HAS_CONTEXT: bool = true;

    /// The JSON Schema of the arguments.
    fn input_schema() -> Raw;
    /// The JSON Schema of the structured result, if there is one.
    fn output_schema() -> Option<Raw>;
    /// Runs the tool.
    fn call(
        &self,
        exchange: Exchange,
    ) -> impl Future<Output = Result<CallToolResult, ToolError>> + Send + 'static + use<Self, Shape>;
}

/// What a tool may return: any `Serialize` value, a [`Json`], a block of content, or a [`CallToolResult`].
///
/// A string is a block of text; `()` and `null` are no content; any other value is its JSON as text.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return a value that is `Serialize + 'static`, `Json`, `Content` or a `CallToolResult`"
)]
pub trait IntoToolResult: 'static {
    /// The JSON Schema of the structured content, if there is any.
    fn output_schema() -> Option<Raw> {
        None
    }

    /// The result.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    fn into_tool_result(self) -> Result<CallToolResult, ToolError>;
}

/// A tool's result as structured content, with its JSON as text too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper to construct, as axum's")]
pub struct Json<R>(pub R);

impl Tool {
    /// A tool that runs `handler`. The schema of its arguments comes from their type.
    pub fn new<S: 'static, H: ToolHandler<S>>(name: impl Into<String>, handler: H) -> Self {
        let call = move |exchange| handler.call(exchange);
        let handler: Arc<dyn Handler> = if H::HAS_CONTEXT { Arc::new(call) } else { Arc::new(Mute(call)) };
        let mut tool = Self::raw(name, H::input_schema(), handler);
        tool.definition.output_schema = H::output_schema();
        tool.author = Author::Type;
        tool
    }

    /// A tool whose schema was written by hand, or came from elsewhere; it is kept as given.
    ///
    /// With the feature `validate` the arguments are checked against it before the handler runs, and one that is longer
    /// than 256 KiB, no valid schema, or refers to anything outside itself cannot be registered. `format` is told and not
    /// checked. Without the feature the handler gets whatever object came.
    pub fn with_schema<F, Fut>(name: impl Into<String>, input_schema: Raw, handler: F) -> Self
    where
        F: Fn(Context, Raw) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CallToolResult, ToolError>> + Send + 'static,
    {
        let call = move |exchange: Exchange| {
            let arguments = exchange.head.arguments.clone().unwrap_or(Raw::empty_object());
            let checked = exchange.checks.as_ref().map_or(Ok(()), |checks| checks.arguments(arguments.as_str()));
            let (context, guard) = Context::new(exchange);
            let started = checked.map(|()| handler(context, arguments));
            guard.during(async move { started?.await })
        };
        let mut tool = Self::raw(name, input_schema, Arc::new(call));
        tool.author = Author::Hand;
        tool
    }

    pub(crate) fn raw(name: impl Into<String>, input_schema: Raw, handler: Arc<dyn Handler>) -> Self {
        let definition = ToolDefinition {
            name: name.into(),
            title: None,
            description: None,
            icons: None,
            input_schema,
            output_schema: None,
            annotations: None,
            meta: None,
        };
        Self {
            definition,
            needs: Vec::new(),
            timeout: None,
            handler,
            mirror: MirrorPlan::default(),
            checks: None,
            author: Author::Remote,
            validates_output: false,
            promises: false,
            tasks: None,
            forms: Vec::new(),
        }
    }

    /// The same tool with what is compiled of its schema.
    pub(crate) fn prepared(mut self) -> Result<Self, Error> {
        if self.author != Author::Remote {
            check_schemas(&self.definition)?;
        }
        self.forms.iter().try_for_each(|form| form(Revision::LATEST).map(drop))?;
        self.mirror = MirrorPlan::compile(&self.definition.input_schema)?;
        self.checks = Checks::of(&self.definition, self.author, self.validates_output, self.promises)?;
        Ok(self)
    }

    /// Sets the hints on its behaviour.
    #[must_use]
    pub fn annotate(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Declares that it needs a capability of the client; a client without it gets an error, and nothing runs.
    #[must_use]
    pub fn needs(mut self, capability: ClientCapability) -> Self {
        self.needs.push(capability);
        self
    }

    /// Declares that it asks its user for a `T`, with a [`form`](crate::server::form): a type that no form carries is then an
    /// error where the tool is registered, and not only where it asks.
    ///
    /// ```
    /// use mcp_core::{Context, ErrorKind, Server, Tool, ToolError, implementation, server::form};
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    /// # #[derive(Deserialize, JsonSchema)] struct Point { x: f64, y: f64 }
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Place { name: String, at: Point }
    ///
    /// async fn go(context: Context) -> Result<String, ToolError> {
    ///     Ok(context.elicit("place", form::<Place>("Where to?")).await?.name)
    /// }
    ///
    /// let error = Server::builder(implementation!()).tool(Tool::new("go", go).asks::<Place>()).try_build().unwrap_err();
    /// assert!(error.kind() == ErrorKind::InvalidParams && error.to_string().contains("`at`"));
    /// ```
    #[must_use]
    pub fn asks<T: DeserializeOwned + JsonSchema + 'static>(mut self) -> Self {
        self.forms.push(form_schema::<T>);
        self
    }

    /// Runs it as a task, for clients that know what that is: they are answered at once, and come back for the result. The
    /// handler is the same; what it asks, it asks in place. For all others it runs as without this word.
    ///
    /// ```
    /// # use mcp_core::{Tool, ToolError};
    /// async fn count() -> Result<String, ToolError> {
    ///     tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    ///     Ok("Many".into())
    /// }
    ///
    /// let tool = Tool::new("count", count).task();
    /// ```
    ///
    /// A task is kept for [`Limits::task_ttl`](crate::Limits), and its handler dropped when that is over, or when the client calls
    /// it off. It tells of no progress.
    ///
    /// Specification: *Tasks extension*.
    #[must_use]
    pub fn task(mut self) -> Self {
        self.tasks.get_or_insert_default();
        self
    }

    /// The same for one that begins in the call, and is a task once its handler says so
    /// ([`Context::go_on_as_task`](crate::Context::go_on_as_task)): it may ask before, or find that there is little to do.
    #[must_use]
    pub fn task_when_told(mut self) -> Self {
        self.tasks.get_or_insert_default().is_told = true;
        self
    }

    /// Runs it as a task only: a client that knows of none gets the error that says so, and nothing runs.
    #[must_use]
    pub fn task_only(mut self) -> Self {
        self.tasks.get_or_insert_default().is_all = true;
        self
    }

    /// Declares the JSON Schema of its structured content, kept as given. Tools that return [`Json`] have one already.
    ///
    /// A result without structured content, that is no failure either, is then an internal error, and the log names the tool.
    #[must_use]
    pub fn output_schema(mut self, schema: Raw) -> Self {
        self.definition.output_schema = Some(schema);
        self.promises = true;
        self
    }

    /// Whether each result is checked against the output schema, if there is one: structured content that is missing or
    /// does not fit becomes a failure of the tool, and the log says what was wrong. Default: no.
    ///
    /// It needs the feature `validate`, and does nothing without.
    #[must_use]
    pub fn validate_output(mut self, validate: bool) -> Self {
        self.validates_output = validate;
        self
    }

    /// How long it may run; then it is dropped, and the caller gets a result with `isError`. Default: as the server's
    /// [`Limits::handler_timeout`](crate::Limits).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// Clients that hold definitions to the specification's schema would refuse the whole list for one of these.
///
/// Specification: *schema, `Tool`*.
fn check_schemas(definition: &ToolDefinition) -> Result<(), Error> {
    let wrong = |why: &str| Err(Error::new(ErrorKind::InvalidParams, why));
    let kind = definition.input_schema.member("type");
    if kind.is_none_or(|kind| kind.as_str() != r#""object""#) {
        return wrong("the input schema: it must be an object with `\"type\":\"object\"`");
    }
    match &definition.output_schema {
        Some(schema) if !schema.is_object() => wrong("the output schema: it must be an object"),
        _ => Ok(()),
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

describes_itself!(Tool, ToolDefinition);

impl<F, Fut, R> ToolHandler<()> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoToolResult,
{
    const HAS_CONTEXT: bool = false;

    fn input_schema() -> Raw {
        no_parameters()
    }

    fn output_schema() -> Option<Raw> {
        R::output_schema()
    }

    fn call(&self, _: Exchange) -> impl Future<Output = Outcome> + Send + 'static + use<F, Fut, R> {
        finish(Ok(self()))
    }
}

impl<F, Fut, R> ToolHandler<(Context,)> for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoToolResult,
{
    fn input_schema() -> Raw {
        no_parameters()
    }

    fn output_schema() -> Option<Raw> {
        R::output_schema()
    }

    fn call(&self, exchange: Exchange) -> impl Future<Output = Outcome> + Send + 'static + use<F, Fut, R> {
        let (context, guard) = Context::new(exchange);
        guard.during(finish(Ok(self(context))))
    }
}

/// Tells a handler of the arguments alone from one of the context alone.
#[derive(Debug)]
#[non_exhaustive]
pub struct Arguments;

impl<F, A, Fut, R> ToolHandler<(Arguments, A)> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoToolResult,
{
    const HAS_CONTEXT: bool = false;

    fn input_schema() -> Raw {
        object_schema::<A>()
    }

    fn output_schema() -> Option<Raw> {
        R::output_schema()
    }

    fn call(&self, exchange: Exchange) -> impl Future<Output = Outcome> + Send + 'static + use<F, A, Fut, R> {
        finish(arguments(&exchange).map(self))
    }
}

impl<F, A, Fut, R> ToolHandler<(Context, A)> for F
where
    F: Fn(Context, A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoToolResult,
{
    fn input_schema() -> Raw {
        object_schema::<A>()
    }

    fn output_schema() -> Option<Raw> {
        R::output_schema()
    }

    fn call(&self, exchange: Exchange) -> impl Future<Output = Outcome> + Send + 'static + use<F, A, Fut, R> {
        let arguments = arguments(&exchange);
        let (context, guard) = Context::new(exchange);
        guard.during(finish(arguments.map(|arguments| self(context, arguments))))
    }
}

/// What a handler that could be started comes to.
async fn finish<R: IntoToolResult>(
    started: Result<impl Future<Output = Result<R, ToolError>>, ToolError>,
) -> Result<CallToolResult, ToolError> {
    started?.await?.into_tool_result()
}

/// Reads the arguments straight into the handler's type; absent ones are `{}`. The schema is asked after that.
pub(super) fn arguments<A: DeserializeOwned>(exchange: &Exchange) -> Result<A, ToolError> {
    let text = exchange.head.arguments.as_ref().map_or("{}", Raw::as_str);
    let checks = exchange.checks.as_deref();
    match serde_json::from_str(text) {
        Ok(arguments) => checks.map_or(Ok(()), |checks| checks.arguments(text)).map(|()| arguments),
        Err(_) => Err(checks.and_then(|checks| checks.explain(text)).unwrap_or_else(|| misfit::<A>(text))),
    }
}

/// Reads them again, with what is needed to name the field: only bad arguments pay for it.
fn misfit<A: DeserializeOwned>(text: &str) -> ToolError {
    match read::<A>(text) {
        Ok(_) => ToolError::new("The arguments do not fit"),
        Err(why) => ToolError::new(format!("Invalid arguments: {why}")),
    }
}

/// Reads a value, or says which of its fields does not fit and why.
pub(super) fn read<A: DeserializeOwned>(text: &str) -> Result<A, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (path, reason) = (error.path().to_string(), error.inner().to_string());
        // Where in the text it stands tells a model nothing.
        let reason = reason.rsplit_once(" at line ").map_or(&*reason, |(reason, _)| reason);
        if path == "." { reason.to_owned() } else { format!("`{path}`: {reason}") }
    })
}

pub(super) fn no_parameters() -> Raw {
    Raw::assume_valid(r#"{"type":"object"}"#.into())
}

/// The schema of `T` as an object's.
pub(super) fn object_schema<T: JsonSchema>() -> Raw {
    let mut schema = schema_of::<T>();
    schema.insert("type".into(), "object".into());
    Raw::encode(&schema).unwrap_or_else(|_| no_parameters())
}

/// Dialect and title are left out: the one is the default, the other a Rust name.
fn schema_of<T: JsonSchema>() -> schemars::Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    schema
}

impl<R: Serialize + 'static> IntoToolResult for R {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(match text_of(self)? {
            Some(text) => CallToolResult::text(text),
            None => CallToolResult::default(),
        })
    }
}

impl<R: Serialize + JsonSchema + 'static> IntoToolResult for Json<R> {
    fn output_schema() -> Option<Raw> {
        Raw::encode(&schema_of::<R>()).ok()
    }

    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        let value = Raw::encode(&self.0)?;
        Ok(CallToolResult::text(value.as_str()).structured(value))
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::default().with(self))
    }
}

/// A value as text: a string as it is (an owned one without a copy), `null` as nothing, anything else as its JSON.
fn text_of<R: Serialize + 'static>(value: R) -> Result<Option<String>, serde_json::Error> {
    let mut slot = Some(value);
    if let Some(text) = (&mut slot as &mut dyn Any).downcast_mut::<Option<String>>().and_then(Option::take) {
        return Ok(Some(text));
    }
    let json = serde_json::to_string(&slot)?;
    match json.as_bytes() {
        b"null" => Ok(None),
        [b'"', ..] => serde_json::from_str(&json).map(Some),
        _ => Ok(Some(json)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Serialize, JsonSchema)]
    struct Point {
        x: i64,
        y: Option<u8>,
    }

    fn texts(result: impl IntoToolResult) -> Vec<String> {
        let result = result.into_tool_result().unwrap();
        result.content.iter().filter_map(Content::as_text).map(Into::into).collect()
    }

    #[test]
    fn what_values_become() {
        assert_eq!(texts("a\"b"), ["a\"b"]);
        assert_eq!(texts(String::from("a")), ["a"]);
        assert_eq!(texts(7), ["7"]);
        assert_eq!(texts(Point { x: 1, y: None }), [r#"{"x":1,"y":null}"#]);
        assert_eq!(texts(()), [""; 0]);
        assert_eq!(texts(CallToolResult::from_iter([Content::text("a"), Content::text("b")])), ["a", "b"]);
    }

    #[test]
    fn json_is_structured_and_text() {
        let result = Json(Point { x: 1, y: Some(2) }).into_tool_result().unwrap();
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"x":1,"y":2}"#);
        assert_eq!(result.content[0].as_text(), Some(r#"{"x":1,"y":2}"#));
        assert!(<Json<Point> as IntoToolResult>::output_schema().unwrap().as_str().contains("\"x\""));
    }

    #[test]
    fn a_handlers_schema_comes_from_its_type() {
        async fn none() -> Result<(), ToolError> {
            Ok(())
        }
        async fn some(_: Context, _: Point) -> Result<(), ToolError> {
            Ok(())
        }
        assert_eq!(Tool::new("none", none).definition().input_schema.as_str(), r#"{"type":"object"}"#);
        let schema: serde_json::Value = Tool::new("some", some).definition().input_schema.decode().unwrap();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], serde_json::json!(["x"]));
        assert_eq!(schema.get("$schema"), None);
        assert_eq!(schema.get("title"), None);
    }

    #[test]
    fn bad_arguments_name_the_field() {
        for (text, part) in [
            (r#"{"x":"1"}"#, "`x`: invalid type"),
            ("{}", "missing field `x`"),
            (r#"{"x":1,"y":300}"#, "`y`: invalid value"),
            (r#"{"x":123456789012345678901234567890}"#, "`x`"),
        ] {
            let error = misfit::<Point>(text);
            assert!(error.message().contains(part) && !error.message().contains("line"), "{error:?}");
        }
    }
}
