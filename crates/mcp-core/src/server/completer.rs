//! What completes arguments while they are typed.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use crate::{BoxFuture, Context, ToolError, server::PromptArguments, types::Completion};

type Completer =
    dyn Fn(Context, String, PromptArguments) -> BoxFuture<'static, Result<Completion, ToolError>> + Send + Sync;

/// The completers of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<String, Arc<Completer>>);

impl Completers {
    pub(crate) fn add<F, Fut>(&mut self, argument: String, complete: F)
    where
        F: Fn(Context, String, PromptArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Completion, ToolError>> + Send + 'static,
    {
        self.0.insert(argument, Arc::new(move |context, value, known| Box::pin(complete(context, value, known))));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Completes an argument; one that nothing completes has no values.
    pub(crate) fn complete(
        &self,
        context: Context,
        argument: &str,
        value: String,
        known: PromptArguments,
    ) -> BoxFuture<'static, Result<Completion, ToolError>> {
        match self.0.get(argument) {
            Some(complete) => complete(context, value, known),
            None => Box::pin(std::future::ready(Ok(Completion::default()))),
        }
    }
}
