//! What a handler asks the client while it runs: its user, its model, its directories. A legacy client is asked in place, a
//! modern one with the answer to its request, which then comes again.
//!
//! Specification: *Elicitation; Sampling; Roots; Multi Round-Trip Requests*.

use std::future::pending;

use mcp_jsonrpc::Raw;
use serde::{Serialize, de::DeserializeOwned};
use tokio::task::coop::consume_budget;

use crate::{
    Context, Era, Fault, ToolError,
    method::question as method,
    server::{
        Question,
        keys::Use,
        modern::{Asked, over},
    },
    types::{
        ClientCapability, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitMode, ElicitParams,
        ElicitResult, ListRootsResult, Root, WrittenSampling,
    },
    validate,
};

impl Context {
    /// Asks the client's user, with a form ([`form`](crate::server::form), [`ElicitParams`](crate::types::ElicitParams)) or on a
    /// web page. `key` tells the questions of one call apart.
    ///
    /// Questions work in handlers of tools, prompts and resources. In the legacy era they are asked in place. In the modern
    /// one the handler is dropped where it waits, and run again from its beginning with the answers: what it does before
    /// must be harmless, or stand in [`once`](Self::once). Questions that do not depend on each other are best asked
    /// together, with `join!`. A key names one question, which is the same in every run.
    ///
    /// # Errors
    /// When the client cannot ask its user in that way, does not answer in time
    /// ([`Limits::question_timeout`](crate::Limits)), or refuses. Also when the key has had its answer already, or another
    /// question.
    ///
    /// In a task that the handler has spawned, or in [`Tool::blocking`](crate::Tool::blocking), also when the run is over:
    /// in the modern era that is before anybody has answered.
    ///
    /// Specification: *Elicitation*.
    pub async fn elicit<Q: Question>(&self, key: &str, question: Q) -> Result<Q::Answer, ToolError> {
        let params = self.elicitable(&question)?;
        let schema = params.requested_schema.as_ref();
        let result = self.ask(key, method::ELICIT, &params, |answer: &ElicitResult| answers(answer, schema)).await?;
        question.answer(result)
    }

    /// Has the client's model say something.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    ///
    /// Specification: *Sampling*.
    pub async fn sample(&self, key: &str, params: CreateMessageParams) -> Result<CreateMessageResult, ToolError> {
        self.can_sample(&params)?;
        self.ask(key, method::CREATE_MESSAGE, &WrittenSampling(&params, self.revision()), |_| true).await
    }

    /// The directories and files that the client works in.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    ///
    /// Specification: *Roots*.
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, ToolError> {
        self.needs(ClientCapability::Roots)?;
        let nothing = serde_json::Map::new();
        let result = self.ask(key, method::LIST_ROOTS, &nothing, |_: &ListRootsResult| true).await?;
        Ok(result.roots)
    }

    /// Begins to ask by hand, in the modern era: for handlers that keep track of rounds themselves. The handler notes its
    /// questions, and then returns what it made of them as its error; it is not dropped before. Without a question the
    /// client comes again as it is, with what [`once`](Self::once) has remembered.
    ///
    /// ```
    /// use mcp_core::{Context, ToolError, server::form};
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    /// # #[derive(Deserialize, JsonSchema)] struct Name { name: String }
    /// async fn greet(context: Context) -> Result<String, ToolError> {
    ///     let question = form::<Name>("Who are you?");
    ///     match context.answer("name", &question) {
    ///         Some(name) => Ok(format!("Hello, {}", name?.name)),
    ///         None => {
    ///             let asking = context.input_required();
    ///             asking.elicit("name", &question)?;
    ///             Err(asking.into())
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// Specification: *Multi Round-Trip Requests*.
    pub fn input_required(&self) -> InputRequired {
        InputRequired(self.clone())
    }

    /// The answer to a question that this call has asked before, if there is one that fits; an error if the key names another
    /// question.
    pub fn answer<Q: Question>(&self, key: &str, question: &Q) -> Option<Result<Q::Answer, ToolError>> {
        let params = question.params(self.revision()).ok()?;
        let schema = params.requested_schema.as_ref();
        let result = self.known(key, method::ELICIT, &params, |answer: &ElicitResult| answers(answer, schema))?;
        Some(result.and_then(|result| question.answer(result)))
    }

    /// What the client's model has said, as [`answer`](Self::answer) for [`sample`](Self::sample).
    pub fn answer_sample(
        &self,
        key: &str,
        params: &CreateMessageParams,
    ) -> Option<Result<CreateMessageResult, ToolError>> {
        self.known(key, method::CREATE_MESSAGE, &WrittenSampling(params, self.revision()), |_| true)
    }

    /// What the client works in, as [`answer`](Self::answer) for [`roots`](Self::roots).
    pub fn answer_roots(&self, key: &str) -> Option<Result<Vec<Root>, ToolError>> {
        let result = self.known(key, method::LIST_ROOTS, &serde_json::Map::new(), |_: &ListRootsResult| true)?;
        Some(result.map(|result| result.roots))
    }

    fn known<R: DeserializeOwned>(
        &self,
        key: &str,
        method: &'static str,
        params: &impl Serialize,
        fits: impl Fn(&R) -> bool,
    ) -> Option<Result<R, ToolError>> {
        let asked = Asked::new(method, Raw::encode(params).ok()?);
        self.exchange().replay.as_ref()?.answer(key, &asked, reading(fits)).transpose()
    }

    /// Does something that must not be done again where the handler is run again, and remembers what came of it. `key` tells
    /// such things of one call apart.
    ///
    /// What is remembered travels through the client, sealed, so it should be small. While `what` runs, the client is asked
    /// nothing and the handler is not dropped, unless the call is cancelled or its time is up. Only where `what` itself asks,
    /// it is dropped, and begins anew with the answer.
    ///
    /// # Errors
    /// The error of what was done, which is not remembered: it may be tried again. Also when the key is taken already; in
    /// the modern era when what is to be remembered does not read back from its JSON.
    pub async fn once<T, E, Fut>(&self, key: &str, what: impl FnOnce() -> Fut) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
        Fut: Future<Output = Result<T, E>>,
    {
        // Where all is there at once, nothing else makes way for the others.
        consume_budget().await;
        let taken = self.keys().take(Use::Once, key)?;
        let value = match &self.exchange().replay {
            Some(replay) => replay.once(key, what).await?,
            None => what().await.map_err(Into::into)?,
        };
        taken.keep();
        Ok(value)
    }

    /// Asks a legacy client whether it is alive.
    ///
    /// # Errors
    /// When it does not answer, or is of the modern era, in which every request shows that.
    pub async fn ping(&self) -> Result<(), ToolError> {
        if self.revision().era() == Era::Modern {
            return Err(ToolError::new("A client of the modern era cannot be pinged"));
        }
        self.put("", "ping", &serde_json::Map::new(), |_: &serde::de::IgnoredAny| true).await.map(drop)
    }

    /// What the client is asked, if it can ask its user that.
    fn elicitable(&self, question: &impl Question) -> Result<ElicitParams, ToolError> {
        let params = question.params(self.revision())?;
        match params.mode {
            Some(ElicitMode::Url) => self.needs(ClientCapability::ElicitationUrl)?,
            _ => {
                self.needs(ClientCapability::Elicitation)?;
                self.needs(ClientCapability::ElicitationForm)?;
            }
        }
        Ok(params)
    }

    fn needs(&self, capability: ClientCapability) -> Result<(), ToolError> {
        if capability.is_in(&self.client_capabilities()) {
            return Ok(());
        }
        Err(ToolError::faulty(Fault::MissingCapability(vec![capability])))
    }

    /// A model that may call tools is more than a model.
    fn can_sample(&self, params: &CreateMessageParams) -> Result<(), ToolError> {
        self.needs(ClientCapability::Sampling)?;
        let wants_tools = params.tools.is_some() || params.tool_choice.is_some();
        if wants_tools { self.needs(ClientCapability::SamplingTools) } else { Ok(()) }
    }

    async fn ask<R: DeserializeOwned>(
        &self,
        key: &str,
        method: &'static str,
        params: &impl Serialize,
        fits: impl Fn(&R) -> bool,
    ) -> Result<R, ToolError> {
        // Where the answer is there at once, nothing else makes way for the others.
        consume_budget().await;
        let taken = self.keys().take(Use::Question, key)?;
        let answer = self.put(key, method, params, fits).await?;
        taken.keep();
        Ok(answer)
    }

    /// Puts a question in the way of the era.
    async fn put<R: DeserializeOwned>(
        &self,
        key: &str,
        method: &'static str,
        params: &impl Serialize,
        fits: impl Fn(&R) -> bool,
    ) -> Result<R, ToolError> {
        let (exchange, params, read) = (self.exchange(), Raw::encode(params)?, reading(fits));
        let core = &self.server().0.core;
        if let Some(live) = exchange.task.as_ref().and_then(|task| task.live()) {
            return live.ask(core, key, &Asked::raw(method, &params), read).await;
        }
        if let Some(replay) = &exchange.replay {
            let asked = Asked::new(method, params.clone());
            if let Some(answer) = replay.answer(key, &asked, &read)? {
                return Ok(answer);
            }
            replay.note(key, asked)?;
            let begun = async {
                match &exchange.task {
                    Some(task) => task.begun().await,
                    None => pending().await,
                }
            };
            return tokio::select! {
                // Meanwhile something else of the handler has gone on as a task, where nobody ends a round.
                live = begun => live.ask(core, key, &Asked::raw(method, &params), read).await,
                // The handler is dropped here; but what it has left running must come to an end too.
                () = self.cancelled() => Err(over()),
            };
        }
        let Some(session) = exchange.session.as_ref().filter(|_| exchange.revision.era() == Era::Legacy) else {
            return Err(ToolError::new("The client cannot be asked here"));
        };
        let patience = core.limits.question_timeout;
        if let Some(watch) = &exchange.watch {
            watch.notification(method);
        }
        let answer = session.ask(&exchange.outlet, method, Some(params), patience).await?;
        read(&answer)
            .ok_or_else(|| ToolError::new(format!("The client's answer to `{method}` does not have its shape")))
    }
}

/// Questions that a handler asks by hand; see [`Context::input_required`].
#[derive(Debug)]
#[must_use = "it is what the handler returns as its error"]
pub struct InputRequired(Context);

impl InputRequired {
    /// Asks the client's user.
    ///
    /// # Errors
    /// When the client cannot be asked that, or is of the legacy era.
    pub fn elicit(&self, key: &str, question: &impl Question) -> Result<(), ToolError> {
        self.note(key, method::ELICIT, &self.0.elicitable(question)?)
    }

    /// Has the client's model say something.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub fn sample(&self, key: &str, params: &CreateMessageParams) -> Result<(), ToolError> {
        self.0.can_sample(params)?;
        self.note(key, method::CREATE_MESSAGE, &WrittenSampling(params, self.0.revision()))
    }

    /// Asks for the directories and files that the client works in.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub fn roots(&self, key: &str) -> Result<(), ToolError> {
        self.0.needs(ClientCapability::Roots)?;
        self.note(key, method::LIST_ROOTS, &serde_json::Map::new())
    }

    fn note(&self, key: &str, method: &'static str, params: &impl Serialize) -> Result<(), ToolError> {
        let exchange = self.0.exchange();
        if exchange.task.as_ref().is_some_and(|task| task.live().is_some()) {
            return Err(ToolError::new("A task cannot ask by hand: what it asks, it asks in place"));
        }
        match &exchange.replay {
            Some(replay) => replay.note_by_hand(key, Asked::new(method, Raw::encode(params)?)),
            None => Err(ToolError::new("The client cannot be asked by hand in this revision")),
        }
    }
}

/// What the handler returns; the client gets the questions in its place.
impl From<InputRequired> for ToolError {
    fn from(asking: InputRequired) -> Self {
        if let Some(replay) = &asking.0.exchange().replay {
            replay.ask_by_hand();
        }
        Self::new("The client has to answer first")
    }
}

/// Reads an answer, if it is one that fits.
fn reading<R: DeserializeOwned>(fits: impl Fn(&R) -> bool) -> impl Fn(&Raw) -> Option<R> {
    move |raw| raw.decode::<R>().ok().filter(|answer| fits(answer))
}

/// Whether it is an answer of the schema that was asked for.
fn answers(answer: &ElicitResult, schema: Option<&Raw>) -> bool {
    match (answer.action, schema) {
        (ElicitAction::Accept, Some(schema)) => {
            // A form of which nothing is required may be left as it is.
            let content = answer.content.clone().unwrap_or(Raw::empty_object());
            content.is_object() && validate::fits(schema, &content)
        }
        _ => true,
    }
}
