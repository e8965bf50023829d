//! `resources/read`.
//!
//! Specification: *Resources, Reading Resources*.

use bytes::{BufMut, BytesMut};
use mcp_jsonrpc::encode;

use crate::{
    BoxFuture, Context, Fault, ToolError,
    server::{Core, Exchange, dispatch::Running, features::failure, reply::Body},
    types::ReadResourceResult,
};

type Reading = BoxFuture<'static, Result<ReadResourceResult, ToolError>>;

/// Starts `resources/read`: of the resource of that URI, or of the most specific template that it fits.
pub(crate) fn read(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    let Some(uri) = exchange.uri().map(str::to_owned) else {
        return Err(Fault::InvalidParams("`uri` is missing".into()));
    };
    let Some((start, mime_type)) = find(core, &uri) else { return Err(Fault::ResourceNotFound(uri.into())) };
    Ok(Running::start(core.handler_timeout(), || {
        let (context, guard) = Context::new(exchange);
        let reading = start(context);
        Box::pin(guard.during(async move { finish(reading.await, &uri, mime_type) }))
    }))
}

/// What reads a resource, and its media type where all contents have one.
type Found = (Box<dyn FnOnce(Context) -> Reading>, Option<String>);

fn find(core: &Core, uri: &str) -> Option<Found> {
    if let Some(entry) = core.resources.find(uri) {
        let mime_type = entry.item.definition().mime_type.clone();
        return Some((Box::new(move |context| entry.item.handler.read(context)), mime_type));
    }
    let (entry, variables) = core.templates.best(|template| {
        let uri_template = template.template.as_ref().ok()?;
        Some((uri_template.specificity(), uri_template.matches(uri)?))
    })?;
    let mime_type = entry.item.definition().mime_type.clone();
    Some((Box::new(move |context| entry.item.handler.read(context, variables)), mime_type))
}

fn finish(outcome: Result<ReadResourceResult, ToolError>, uri: &str, mime_type: Option<String>) -> Result<Body, Fault> {
    let mut result = match outcome {
        Err(error) if error.is_not_found() => return Err(Fault::ResourceNotFound(uri.into())),
        outcome => outcome.map_err(failure)?,
    };
    for contents in &mut result.contents {
        if contents.uri.is_empty() {
            contents.uri = uri.to_owned();
            contents.mime_type = contents.mime_type.take().or_else(|| mime_type.clone());
        }
    }
    let mut members =
        BytesMut::with_capacity(64 + result.contents.iter().map(|contents| contents.size()).sum::<usize>());
    members.put_slice(br#""contents":"#);
    encode::value(&mut members, &result.contents).map_err(|_| Fault::Internal)?;
    Ok(Body { members, meta: result.meta, ..Body::default() }.cacheable())
}
