use crate::{
    Fault,
    hub::Subject,
    server::{Core, Exchange, features::resources, reply::Body},
};

/// Answers `resources/subscribe`: from now on the session is told when that resource, and no other, is updated. Something must
/// read that URI; what it would say is not asked.
///
/// Specification: *2025-11-25, Resources, Subscriptions*.
pub(crate) fn subscribe(core: &Core, exchange: &Exchange) -> Result<Body, Fault> {
    let (uri, listener) = (resources::asked_for(exchange)?, super::session(exchange)?.listener());
    let longest = core.limits.uri_bytes;
    if uri.len() > longest {
        let why = format!("`uri` is longer than {longest} bytes, more than is kept of a subscription");
        return Err(Fault::InvalidParams(why.into()));
    }
    if !resources::is_readable(core, exchange, uri) {
        return Err(Fault::ResourceNotFound(uri.into()));
    }
    let most = core.limits.subscribed_uris;
    if listener.is_none_or(|listener| listener.listen_within(Subject::Resource(uri.into()), most)) {
        return Ok(Body::default());
    }
    let why = format!("this session is subscribed to {most} resources already, as many as it may");
    Err(Fault::InvalidParams(why.into()))
}

/// Answers `resources/unsubscribe`, which succeeds for whatever URI.
///
/// Specification: *2025-11-25, Resources, Subscriptions*.
pub(crate) fn unsubscribe(exchange: &Exchange) -> Result<Body, Fault> {
    let (uri, listener) = (uri(exchange)?, super::session(exchange)?.listener());
    if let Some(listener) = listener {
        listener.ignore(&Subject::Resource(uri.into()));
    }
    Ok(Body::default())
}

fn uri(exchange: &Exchange) -> Result<&str, Fault> {
    exchange.uri().ok_or_else(|| Fault::InvalidParams("`uri` is missing".into()))
}
