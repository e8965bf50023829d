use std::{collections::BTreeMap, fmt::Display, future::Future, str::FromStr, sync::Arc};

use mcp_jsonrpc::Raw;

use crate::{
    BoxFuture, Context, Error, Fault, Revision, ToolError,
    server::{
        completer::Completers,
        registry::{Listed, check, describes_itself, since},
    },
    types::{Completion, GetPromptResult, PromptArgument, PromptDefinition, PromptMessage},
};

/// A prompt: what it says of itself, and what makes its messages.
///
/// ```
/// use mcp_core::{Context, Prompt, ToolError, server::PromptArguments, types::PromptArgument};
///
/// async fn review(_: Context, arguments: PromptArguments) -> Result<String, ToolError> {
///     Ok(format!("Review this code:\n{}", arguments.get("code").unwrap_or_default()))
/// }
///
/// let prompt = Prompt::new("review", review)
///     .describe("Asks for a review")
///     .argument(PromptArgument::new("code").required());
/// assert_eq!(prompt.definition().arguments.len(), 1);
/// ```
///
/// Specification: *Prompts*.
#[derive(Clone)]
pub struct Prompt {
    definition: PromptDefinition,
    pub(crate) handler: Arc<dyn PromptHandler>,
    pub(crate) completers: Completers,
}

/// A handler whose types are erased.
pub(crate) trait PromptHandler: Send + Sync {
    fn get(
        &self,
        context: Context,
        arguments: PromptArguments,
    ) -> BoxFuture<'static, Result<GetPromptResult, ToolError>>;
}

impl<F, Fut, R> PromptHandler for F
where
    F: Fn(Context, PromptArguments) -> Fut + Send + Sync,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoPromptResult,
{
    fn get(
        &self,
        context: Context,
        arguments: PromptArguments,
    ) -> BoxFuture<'static, Result<GetPromptResult, ToolError>> {
        let messages = self(context, arguments);
        Box::pin(async move { Ok(messages.await?.into_prompt_result()) })
    }
}

/// What a prompt is filled in with. A prompt's handler finds all there that the prompt requires; what completes an argument
/// may find fewer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptArguments(pub(crate) BTreeMap<String, String>);

impl PromptArguments {
    /// The argument of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The argument of that name, read from its text.
    ///
    /// # Errors
    /// An error that names the argument, where it is missing or cannot be read (-32602).
    pub fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, ToolError> {
        self.parse_optional(name)?.ok_or_else(|| misfit(name, "it is missing"))
    }

    /// The same of one that may be left out.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), where it is there.
    pub fn parse_optional<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, ToolError> {
        self.get(name).map(str::parse).transpose().map_err(|why| misfit(name, why))
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn misfit(name: &str, why: impl Display) -> ToolError {
    ToolError::faulty(Fault::InvalidParams(format!("the argument `{name}`: {why}").into()))
}

/// What a prompt may return: a [`GetPromptResult`], messages, or a text that the user says.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    note = "return a string, a `PromptMessage`, a `Vec<PromptMessage>` or a `GetPromptResult`"
)]
pub trait IntoPromptResult: 'static {
    /// The result.
    fn into_prompt_result(self) -> GetPromptResult;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> GetPromptResult {
        self
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> GetPromptResult {
        self.into_iter().collect()
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt_result(self) -> GetPromptResult {
        [self].into_iter().collect()
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> GetPromptResult {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl IntoPromptResult for &'static str {
    fn into_prompt_result(self) -> GetPromptResult {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl Prompt {
    /// A prompt whose messages `handler` makes: an `async fn` of the [`Context`] and the [`PromptArguments`].
    pub fn new<F, Fut, R>(name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context, PromptArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoPromptResult,
    {
        let definition = PromptDefinition {
            name: name.into(),
            title: None,
            description: None,
            icons: None,
            arguments: Vec::new(),
            meta: None,
        };
        Self { definition, handler: Arc::new(handler), completers: Completers::default() }
    }

    /// Adds something that it can be filled in with.
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.definition.arguments.push(argument);
        self
    }

    /// Completes an argument while it is typed: `complete` gets the [`Context`], what stands there, and the arguments
    /// that are filled in.
    ///
    /// Specification: *Completion*.
    #[must_use]
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, complete: F) -> Self
    where
        F: Fn(Context, String, PromptArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Completion, ToolError>> + Send + 'static,
    {
        self.completers.add(argument.into(), complete);
        self
    }
}

impl Listed for Prompt {
    const KIND: &'static str = "prompt";

    fn key(&self) -> &str {
        &self.definition.name
    }

    fn prepared(self) -> Result<Self, Error> {
        check(Self::KIND, self.key(), self.key(), self.definition.meta.as_ref()).map(|()| self)
    }

    fn has_extras(&self) -> bool {
        !self.completers.is_empty()
    }

    fn render(&self, revision: Revision) -> Raw {
        let mut shown = self.definition.clone();
        since(revision, Revision::V2025_06_18, &mut shown.title);
        since(revision, Revision::V2025_11_25, &mut shown.icons);
        since(revision, Revision::V2025_06_18, &mut shown.meta);
        shown.arguments.iter_mut().for_each(|argument| since(revision, Revision::V2025_06_18, &mut argument.title));
        Raw::encode(&shown).unwrap_or(Raw::empty_object())
    }
}

impl std::fmt::Debug for Prompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prompt").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

describes_itself!(Prompt, PromptDefinition);
