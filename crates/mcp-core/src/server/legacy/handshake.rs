use crate::{
    Era, Fault, Revision,
    server::{Core, Exchange, legacy::Handshake, reply::Body},
    types::{InitializeParams, InitializeResult},
};

/// Answers `initialize`: the revision asked for if the server accepts it, else the newest legacy one that it does.
///
/// Specification: *2025-11-25, Lifecycle, Initialization*.
pub(crate) fn initialize(core: &Core, exchange: &Exchange) -> Result<Body, Fault> {
    let params = params(exchange)?;
    let revision = negotiate(core, &params.protocol_version)?;
    let handshake = Handshake { revision, client_info: params.client_info, capabilities: params.capabilities };
    if exchange.session.as_ref().is_some_and(|session| !session.agree(handshake)) {
        return Err(Fault::InvalidRequest("this connection is initialized already".into()));
    }
    Body::encode(&InitializeResult {
        protocol_version: revision.to_string(),
        capabilities: core.capabilities(),
        server_info: core.info.clone(),
        instructions: core.instructions.clone(),
    })
}

fn params(exchange: &Exchange) -> Result<InitializeParams, Fault> {
    let missing =
        || Fault::InvalidParams("`initialize` needs `protocolVersion`, `capabilities` and `clientInfo`".into());
    let params: InitializeParams = exchange.params.as_ref().ok_or_else(missing)?.decode().map_err(|_| missing())?;
    if params.capabilities.is_object() && params.client_info.is_object() { Ok(params) } else { Err(missing()) }
}

fn negotiate(core: &Core, requested: &str) -> Result<Revision, Fault> {
    match core.revisions.find(requested) {
        Some(revision) if revision.era() == Era::Legacy => Ok(revision),
        _ => core.revisions.newest(Era::Legacy).ok_or(Fault::Internal),
    }
}
