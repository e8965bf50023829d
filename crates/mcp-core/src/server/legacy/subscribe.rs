use crate::{
    Fault,
    server::{Core, Exchange, features::resources, hub::Subject, reply::Body},
};

/// Answers `resources/subscribe`: from now on the session is told when that resource, and no other, is updated.
///
/// Specification: *2025-11-25, Resources, Subscriptions*.
pub(crate) fn subscribe(core: &Core, exchange: &Exchange) -> Result<Body, Fault> {
    let (uri, listener) = (uri(exchange)?, super::session(exchange)?.listener());
    if !resources::is_readable(core, exchange, uri) {
        return Err(Fault::ResourceNotFound(uri.into()));
    }
    let subject = Subject::Resource(uri.into());
    if let Some(listener) = listener.filter(|listener| !listener.listens(&subject)) {
        let most = core.limits.subscribed_uris;
        if listener.count(|subject| matches!(subject, Subject::Resource(_))) >= most {
            let why = format!("this session is subscribed to {most} resources already, as many as it may");
            return Err(Fault::InvalidParams(why.into()));
        }
        listener.listen(subject);
    }
    Ok(Body::default())
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
