//! What a call leads to: an answer that was kept, or as many requests as it takes until the server wants to know nothing
//! more.
//!
//! Specification: *Multi Round-Trip Requests; Caching; Streamable HTTP, Custom Headers from Tool Parameters*.

use std::{sync::Arc, time::Duration};

use mcp_jsonrpc::{ByteString, Raw, Response};
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    Blame, BoxFuture, Client, Era, Error, ErrorKind, Tool,
    client::{
        CallOptions, CancellationToken,
        call::Ask,
        input::{Input, InputRequired, visits_required},
        remote::Whose,
        result::{self, Answer},
    },
    hub::Subject,
    mcp_code,
    method::{CallTool, Method},
    types::{CallToolParams, Task},
};

/// What all rounds of a call came to.
pub(super) enum Outcome {
    Complete(Raw),
    Task(Box<Task>),
}

/// What is given up fails at once.
async fn unless_cancelled<T>(
    token: Option<CancellationToken>,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match token {
        None => call.await,
        Some(token) => tokio::select! {
            biased;
            () = token.cancelled() => Err(Error::new(ErrorKind::RequestCancelled, "the call was given up")),
            outcome = call => outcome,
        },
    }
}

impl Client {
    pub(crate) async fn ask<M: Method>(&self, params: &M::Params) -> Result<M::Result, Error> {
        self.ask_with::<M>(Ask::new(params), &mut CallOptions::new()).await
    }

    pub(super) async fn ask_with<M: Method>(
        &self,
        ask: Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<M::Result, Error> {
        result::decode::<M>(&self.result_of::<M>(ask, options).await?)
    }

    /// The result, as it came. A task is driven to its end.
    pub(super) async fn result_of<M: Method>(
        &self,
        ask: Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Raw, Error> {
        let (token, times) = (options.cancel.clone(), options.patience(self.limits()));
        unless_cancelled(token, async {
            match self.kept_or_asked::<M>(ask, options).await? {
                Outcome::Complete(result) => Ok(result),
                Outcome::Task(task) => self.driven(*task, times).await,
            }
        })
        .await
    }

    /// The result, or the task that the call has become.
    pub(super) async fn outcome_of<M: Method>(
        &self,
        ask: Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Outcome, Error> {
        unless_cancelled(options.cancel.clone(), self.kept_or_asked::<M>(ask, options)).await
    }

    /// An answer that is still good, or a new one.
    async fn kept_or_asked<M: Method>(
        &self,
        ask: Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Outcome, Error> {
        options.log_level = options.log_level.or_else(|| self.0.listening.log_level());
        // Only answers of the modern era say how long they are good.
        let may_keep = self.revision().era() == Era::Modern && !options.is_fresh;
        let cache = self.0.settings.keeps().filter(|_| may_keep);
        let Some(cache) = cache else { return Ok(self.rounds::<M>(ask, options).await?.0) };
        let params = Raw::encode(ask.params).map_err(|error| {
            Error::caused(ErrorKind::InvalidParams, "the parameters cannot be written as JSON", error)
        })?;
        match cache.find(M::NAME, &params) {
            Some(Ok(kept)) => Ok(Outcome::Complete(kept)),
            Some(Err(asked)) => {
                let (outcome, rounds) = self.rounds::<M>(ask, options).await?;
                // What the user answered is not part of what was asked.
                if let (Outcome::Complete(result), 0) = (&outcome, rounds) {
                    cache.keep(asked, result);
                }
                Ok(outcome)
            }
            None => Ok(self.rounds::<M>(ask, options).await?.0),
        }
    }

    /// Asks until the server wants to know nothing more: the result, and how often it did.
    async fn rounds<M: Method>(
        &self,
        mut ask: Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<(Outcome, u32), Error> {
        let most = self.limits().input_rounds;
        for round in 0..=most {
            match self.round::<M>(&ask, options).await {
                Ok(Answer::Complete(result)) => return Ok((Outcome::Complete(result), round)),
                Ok(Answer::Task(task)) => return Ok((Outcome::Task(task), round)),
                Ok(Answer::InputRequired(asked)) => ask.input = self.answered(asked).await?,
                // Whoever else made the call is the one to be sent there, and gets the error.
                Err(error) if !matches!(options.whose, Whose::Ours) => return Err(error),
                Err(error) => self.visited(error, options.at_most).await?,
            }
        }
        let message = format!("the server wants to know still more after {most} rounds");
        Err(Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer))
    }

    /// One request and its answer. A server that misses headers has looked no further than these; what they should have
    /// been, its list says.
    pub(crate) async fn round<M: Method>(
        &self,
        ask: &Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Answer, Error> {
        let mut outcome = self.respond::<M>(ask, options).await.and_then(|response| self.answer::<M>(response));
        let is_about_headers = outcome.as_ref().is_err_and(|error| self.is_about_headers(error));
        if M::NAME == CallTool::NAME && is_about_headers && self.mirrors_anew(ask.params, options).await {
            outcome = self.respond::<M>(ask, options).await.and_then(|response| self.answer::<M>(response));
        }
        outcome
    }

    fn answer<M: Method>(&self, response: Response) -> Result<Answer, Error> {
        result::answer::<M>(response, self.revision().era())
    }

    /// Lists the tools again; whether a call has other headers by that.
    async fn mirrors_anew(&self, params: &impl Serialize, options: &mut CallOptions) -> bool {
        let params = Raw::encode(params).and_then(|params| params.decode::<CallToolParams>());
        let patience = options.timeout.unwrap_or(self.limits().request_timeout);
        let listed = timeout(patience, self.listed_again()).await;
        let (Ok(params), Ok(Ok(_))) = (params, listed) else { return false };
        let mirrored = self.mirrored(&params);
        let before = std::mem::replace(&mut options.mirrored, mirrored);
        before != options.mirrored
    }

    /// Boxed, as listing is a request too. A list that was kept is the one that was wrong.
    fn listed_again(&self) -> BoxFuture<'_, Result<Vec<Tool>, Error>> {
        if let Some(cache) = self.0.settings.keeps() {
            cache.changed(&Subject::Tools);
        }
        Box::pin(self.tools())
    }

    /// Sends the user to the pages that have to be visited before the call can be made, where that is what an error says.
    async fn visited(&self, error: Error, patience: Option<Duration>) -> Result<(), Error> {
        let handlers = &self.0.settings.handlers;
        let is_legacy = self.revision().era() == Era::Legacy;
        let pages = visits_required(&error).filter(|_| is_legacy && handlers.url.is_some());
        let Some(pages) = pages else { return Err(error) };
        let patience = patience.unwrap_or(self.limits().request_timeout_max);
        match timeout(patience, handlers.visit(pages, self.revision())).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Err(failed)) => Err(failed),
            Ok(Ok(false)) | Err(_) => Err(error),
        }
    }

    pub(super) async fn answered(&self, asked: InputRequired) -> Result<Input, Error> {
        asked.answered(&self.0.settings.handlers, self.revision(), self.limits()).await
    }

    pub(super) fn know_tools(&self, tools: &[Tool]) {
        let plans = tools.iter().filter(|tool| !tool.mirror.is_empty());
        let plans = plans.map(|tool| (tool.definition.name.clone(), tool.mirror.clone())).collect();
        self.0.plans.store(Arc::new(plans));
    }

    /// Shared wires have no headers, and the legacy era none that mirror.
    fn is_about_headers(&self, error: &Error) -> bool {
        let code = error.object().map(|object| object.code);
        let has_headers = self.revision().era() == Era::Modern && !self.0.caller.transport.is_shared();
        has_headers && code == Some(mcp_code::HEADER_MISMATCH)
    }

    /// Legacy servers know nothing of it.
    pub(super) fn mirrored(&self, params: &CallToolParams) -> Vec<(ByteString, ByteString)> {
        match self.0.plans.load().get(&params.name) {
            Some(plan) if self.revision().era() == Era::Modern => plan.pairs(params.arguments.as_ref()),
            _ => Vec::new(),
        }
    }
}
