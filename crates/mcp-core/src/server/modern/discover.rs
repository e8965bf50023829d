use crate::{
    Fault, Revision,
    server::{Core, reply::Body},
    types::DiscoverResult,
};

/// Answers `server/discover`.
///
/// Specification: *Discovery*.
pub(crate) fn discover(core: &Core) -> Result<Body, Fault> {
    let result = DiscoverResult {
        supported_versions: core.revisions.iter().map(|revision: Revision| revision.to_string()).collect(),
        capabilities: core.capabilities(),
        instructions: core.instructions.clone(),
        // The exit seam puts the server's name into the `_meta` of every result.
        meta: None,
    };
    Ok(Body::encode(&result)?.cacheable())
}
