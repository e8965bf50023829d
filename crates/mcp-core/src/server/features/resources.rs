//! `resources/read`.
//!
//! Specification: *Resources, Reading Resources*.

use bytes::{BufMut, BytesMut};
use mcp_jsonrpc::encode;

use crate::{
    BoxFuture, Context, Fault, Revision, ToolError,
    server::{Core, Exchange, Registry, dispatch::Running, registry::since, reply::Body, resource::has_scheme},
    types::{CacheHint, ReadResourceResult},
};

type Reading = BoxFuture<'static, Result<ReadResourceResult, ToolError>>;

/// Starts `resources/read`: of the resource of that URI, or of the most specific template that it fits.
pub(crate) fn read(core: &Core, mut exchange: Exchange) -> Result<Running, Fault> {
    let (uri, revision) = (asked_for(&exchange)?.to_owned(), exchange.revision);
    let Some((start, about)) = find(core, &exchange, &uri) else { return Err(Fault::ResourceNotFound(uri.into())) };
    exchange.may_ask()?;
    let asking = exchange.replay.is_some().then(|| exchange.clone());
    let (context, guard) = Context::new(exchange);
    let contents = start(context);
    let reading = guard.during(async move { finish(contents.await, &uri, about, revision) });
    Ok(Running::new(core.handler_timeout(), Box::pin(reading)).of_call(asking))
}

/// The URI that is asked for.
pub(crate) fn asked_for(exchange: &Exchange) -> Result<&str, Fault> {
    match exchange.uri() {
        Some(uri) if has_scheme(uri) => Ok(uri),
        Some(_) => Err(Fault::InvalidParams("`uri` must be a URI, which begins with a scheme and a colon".into())),
        None => Err(Fault::InvalidParams("`uri` is missing".into())),
    }
}

/// Whether something reads that URI.
pub(crate) fn is_readable(core: &Core, exchange: &Exchange, uri: &str) -> bool {
    find(core, exchange, uri).is_some()
}

/// What all contents of a resource have.
struct About {
    mime_type: Option<String>,
    cache: CacheHint,
}

/// What reads a resource.
type Start = Box<dyn FnOnce(Context) -> Reading>;

fn find(core: &Core, exchange: &Exchange, uri: &str) -> Option<(Start, About)> {
    if let Some(entry) = core.resources.find_for(exchange, uri) {
        let about = About {
            mime_type: entry.item.definition().mime_type.clone(),
            cache: private_where_filtered(&core.resources, entry.item.cache),
        };
        return Some((Box::new(move |context| entry.item.handler.read(context)), about));
    }
    let (entry, variables) = core.templates.best(|template| {
        let uri_template = template.template.as_ref().ok()?;
        let variables = uri_template.matches(uri)?;
        let is_shown = core.templates.shows(exchange, template) && template.shows(exchange, &variables);
        is_shown.then(|| (uri_template.specificity(), variables))
    })?;
    let about = About {
        mime_type: entry.item.definition().mime_type.clone(),
        cache: private_where_filtered(&core.templates, entry.item.cache),
    };
    Some((Box::new(move |context| entry.item.handler.read(context, variables)), about))
}

fn private_where_filtered<T>(registry: &Registry<T>, hint: CacheHint) -> CacheHint {
    if registry.is_one_for_all() { hint } else { hint.privately() }
}

fn finish(
    outcome: Result<ReadResourceResult, ToolError>,
    uri: &str,
    about: About,
    revision: Revision,
) -> Result<Body, Fault> {
    let mut result = match outcome {
        Err(error) if error.is_not_found() => return Err(Fault::ResourceNotFound(uri.into())),
        outcome => outcome?,
    };
    for contents in &mut result.contents {
        since(revision, Revision::V2025_06_18, &mut contents.meta);
        if contents.uri.is_empty() {
            contents.uri = uri.to_owned();
            contents.mime_type = contents.mime_type.take().or_else(|| about.mime_type.clone());
        }
    }
    let mut members =
        BytesMut::with_capacity(64 + result.contents.iter().map(|contents| contents.size()).sum::<usize>());
    members.put_slice(br#""contents":"#);
    encode::value(&mut members, &result.contents).map_err(|_| Fault::Internal)?;
    Ok(Body { members, meta: result.meta, ..Body::default() }.cached(about.cache))
}
