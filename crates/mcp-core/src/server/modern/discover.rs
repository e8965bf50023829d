use crate::{
    Fault, Revision,
    server::{Core, Exchange, reply::Body},
    types::DiscoverResult,
};

/// Answers `server/discover`.
///
/// Specification: *Discovery*.
pub(crate) fn discover(core: &Core, exchange: &Exchange) -> Result<Body, Fault> {
    let introduction = core.introduction(exchange);
    let result = DiscoverResult {
        supported_versions: core.revisions.iter().map(|revision: Revision| revision.to_string()).collect(),
        capabilities: core.capabilities(exchange),
        instructions: introduction.instructions,
        // The exit seam puts the server's name into the `_meta` of every result.
        meta: None,
    };
    Ok(Body { meta: introduction.meta, ..Body::encode(&result)? }.cached(core.discovery_hint()))
}
