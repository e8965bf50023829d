//! What a handler asks the client while it runs: its user, its model, its directories.
//!
//! Specification: *Elicitation; Sampling; Roots*.

use mcp_jsonrpc::Raw;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Context, Era, Fault, Revision, ToolError,
    method::question,
    types::{
        ClientCapability, CreateMessageParams, CreateMessageResult, ElicitMode, ElicitParams, ElicitResult,
        ListRootsResult, Root, WrittenSampling,
    },
};

impl Context {
    /// Asks the client's user, with a form or on a web page. `key` tells the questions of one call apart.
    ///
    /// # Errors
    /// When the client cannot ask its user in that way, does not answer in time
    /// ([`Limits::question_timeout`](crate::Limits)), or refuses. In the modern era the question cannot be asked yet.
    ///
    /// Specification: *Elicitation*.
    pub async fn elicit(&self, key: &str, params: ElicitParams) -> Result<ElicitResult, ToolError> {
        self.needs(ClientCapability::Elicitation)?;
        let url = params.mode == Some(ElicitMode::Url);
        let capability = self.client_capabilities().elicitation;
        let has = |mode: &str| capability.as_ref().is_some_and(|modes| modes.member(mode).is_some());
        // A client that names no mode shows forms.
        if url && !has("url") || !url && has("url") && !has("form") {
            return Err(missing(ClientCapability::Elicitation));
        }
        self.ask(key, question::ELICIT, &params).await
    }

    /// Has the client's model say something.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    ///
    /// Specification: *Sampling*.
    pub async fn sample(&self, key: &str, params: CreateMessageParams) -> Result<CreateMessageResult, ToolError> {
        self.needs(ClientCapability::Sampling)?;
        self.ask(key, question::CREATE_MESSAGE, &WrittenSampling(&params, self.revision())).await
    }

    /// The directories and files that the client works in.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    ///
    /// Specification: *Roots*.
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, ToolError> {
        self.needs(ClientCapability::Roots)?;
        let result: ListRootsResult = self.ask(key, question::LIST_ROOTS, &serde_json::Map::new()).await?;
        Ok(result.roots)
    }

    /// Asks a legacy client whether it is alive.
    ///
    /// # Errors
    /// When it does not answer, or is of the modern era.
    pub async fn ping(&self) -> Result<(), ToolError> {
        self.ask::<serde::de::IgnoredAny>("", "ping", &serde_json::Map::new()).await.map(drop)
    }

    fn needs(&self, capability: ClientCapability) -> Result<(), ToolError> {
        if capability.is_in(&self.client_capabilities()) { Ok(()) } else { Err(missing(capability)) }
    }

    async fn ask<R: DeserializeOwned>(
        &self,
        _key: &str,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<R, ToolError> {
        let exchange = self.exchange();
        let (Era::Legacy, Some(session)) = (exchange.revision.era(), &exchange.session) else {
            return Err(ToolError::new(unasked(exchange.revision)));
        };
        let patience = self.server().limits().question_timeout;
        if let Some(watch) = &exchange.watch {
            watch.notification(method);
        }
        let answer = session.ask(&exchange.outlet, method, Some(Raw::encode(params)?), patience).await?;
        answer
            .decode()
            .map_err(|_| ToolError::new(format!("The client's answer to `{method}` does not have its shape")))
    }
}

/// Where there is nobody to ask.
fn unasked(revision: Revision) -> String {
    match revision.era() {
        Era::Legacy => "The client cannot be asked: its request belongs to no session".into(),
        Era::Modern => format!("The client cannot be asked in {revision} yet"),
    }
}

fn missing(capability: ClientCapability) -> ToolError {
    ToolError::faulty(Fault::MissingCapability(vec![capability]))
}
