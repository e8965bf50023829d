//! `prompts/get`.
//!
//! Specification: *Prompts, Getting a Prompt*.

use bytes::{BufMut, BytesMut};
use mcp_jsonrpc::{Raw, encode};

use crate::{
    Context, Fault, Prompt, Revision, ToolError,
    server::{Core, Exchange, PromptArguments, dispatch::Running, reply::Body},
    shown,
    types::{GetPromptResult, WrittenMessage},
};

/// Starts `prompts/get`.
pub(crate) fn get(core: &Core, mut exchange: Exchange) -> Result<Running, Fault> {
    let Some(name) = exchange.name() else { return Err(Fault::InvalidParams("`name` is missing".into())) };
    let Some(entry) = core.prompts.find_for(&exchange, name) else {
        return Err(Fault::InvalidParams(format!("Unknown prompt: {}", shown(name)).into()));
    };
    let arguments = arguments(exchange.head.arguments.as_ref())?;
    check(&entry.item, &arguments)?;
    let revision = exchange.revision;
    exchange.may_ask()?;
    let asking = exchange.replay.is_some().then(|| exchange.clone());
    let (context, guard) = Context::new(exchange);
    let messages = entry.item.handler.get(context, arguments);
    let getting = guard.during(async move { finish(messages.await, revision) });
    Ok(Running::new(core.handler_timeout(), Box::pin(getting)).of_call(asking))
}

/// Arguments are strings, whatever the prompt makes of them.
pub(super) fn arguments(raw: Option<&Raw>) -> Result<PromptArguments, Fault> {
    let Some(raw) = raw else { return Ok(PromptArguments::default()) };
    let misfit = |_| Fault::InvalidParams("`arguments` must be an object of strings".into());
    raw.decode().map(PromptArguments).map_err(misfit)
}

fn check(prompt: &Prompt, arguments: &PromptArguments) -> Result<(), Fault> {
    let required = prompt.definition().arguments.iter().filter(|argument| argument.required);
    match required.map(|argument| &argument.name).find(|name| arguments.get(name).is_none()) {
        Some(missing) => Err(Fault::InvalidParams(format!("the argument `{missing}` is missing").into())),
        None => Ok(()),
    }
}

fn finish(outcome: Result<GetPromptResult, ToolError>, revision: Revision) -> Result<Body, Fault> {
    let result = outcome?;
    let mut members = BytesMut::new();
    if let Some(description) = &result.description {
        members.put_slice(br#""description":"#);
        encode::string(&mut members, description);
        members.put_u8(b',');
    }
    members.put_slice(br#""messages":"#);
    let messages: Vec<_> = result.messages.iter().map(|message| WrittenMessage(message, revision)).collect();
    encode::value(&mut members, &messages).map_err(|_| Fault::Internal)?;
    Ok(Body { members, meta: result.meta, ..Body::default() })
}
