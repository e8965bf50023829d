//! `completion/complete`.
//!
//! Specification: *Completion*.

use crate::{
    Context, Fault,
    server::{Core, Exchange, PromptArguments, completer::Completers, dispatch::Running, reply::Body},
    shown,
    types::{CompleteParams, CompleteResult, CompletionReference},
};

/// Starts `completion/complete`.
pub(crate) fn complete(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    let misfit =
        |_| Fault::InvalidParams("`completion/complete` needs `ref` and `argument`, and strings in both".into());
    let params: CompleteParams = match &exchange.params {
        Some(params) => params.decode().map_err(misfit)?,
        None => return Err(Fault::InvalidParams("`completion/complete` needs `ref` and `argument`".into())),
    };
    let completers = completers(core, &exchange, &params.reference)?;
    let (argument, known) = (params.argument, PromptArguments(params.context.arguments));
    let (context, guard) = Context::new(exchange);
    let values = completers.complete(context, &argument.name, argument.value, known);
    let completing = guard.during(async move {
        let completion = values.await?.capped();
        Body::encode(&CompleteResult { completion })
    });
    Ok(Running::new(core.handler_timeout(), Box::pin(completing)))
}

fn completers(core: &Core, exchange: &Exchange, reference: &CompletionReference) -> Result<Completers, Fault> {
    let unknown = |kind: &str, name: &str| Fault::InvalidParams(format!("Unknown {kind}: {}", shown(name)).into());
    match reference {
        CompletionReference::Prompt { name } => {
            let prompt = core.prompts.find_for(exchange, name).ok_or_else(|| unknown("prompt", name))?;
            Ok(prompt.item.completers.clone())
        }
        // A plain resource has nothing to complete.
        CompletionReference::Resource { uri } => match core.templates.find_for(exchange, uri) {
            Some(entry) => Ok(entry.item.completers.clone()),
            None if core.resources.find_for(exchange, uri).is_some() => Ok(Completers::default()),
            None => Err(unknown("resource template", uri)),
        },
    }
}
