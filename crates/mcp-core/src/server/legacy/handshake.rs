use mcp_jsonrpc::Raw;

use crate::{
    Era, Fault, Revision,
    hub::Subject,
    server::{Core, Exchange, exchange::Introduced, legacy::Handshake, reply::Body},
    types::{InitializeParams, InitializeResult, ServerCapabilities},
};

/// Answers `initialize`: the revision asked for if the server accepts it, else the newest legacy one that it does.
///
/// Specification: *2025-11-25, Lifecycle, Initialization*.
pub(crate) fn initialize(core: &Core, mut exchange: Exchange) -> Result<Body, Fault> {
    let params = params(&exchange)?;
    check_length(core, &params)?;
    exchange.revision = negotiate(core, &params.protocol_version)?;
    // From here on the exchange knows its client, as all that come after it do.
    let InitializeParams { client_info, capabilities, .. } = params;
    exchange.introduced = Some(Box::new(Introduced { client_info, capabilities }));
    let (introduction, capabilities) = (core.introduction(&exchange), core.capabilities(&exchange));
    agree(core, &exchange, &capabilities)?;
    let body = Body::encode(&InitializeResult {
        protocol_version: exchange.revision.to_string(),
        capabilities,
        server_info: introduction.info.told_in(exchange.revision),
        instructions: introduction.instructions,
    })?;
    Ok(Body { meta: introduction.meta, ..body })
}

/// The session, where there is one, is told of changes to the lists that its client knows of.
fn agree(core: &Core, exchange: &Exchange, capabilities: &ServerCapabilities) -> Result<(), Fault> {
    let Some(session) = &exchange.session else { return Ok(()) };
    let Some(introduced) = &exchange.introduced else { return Ok(()) };
    // Copies: a slice would hold on to the whole message for as long as the session lives.
    let kept = |raw: &Raw| Raw::assume_valid(raw.as_str().into());
    let (client_info, of_client) = (kept(&introduced.client_info), kept(&introduced.capabilities));
    let handshake = Handshake { revision: exchange.revision, client_info, capabilities: of_client };
    let listener = core.hub.listener();
    for (told_of, subject) in [
        (&capabilities.tools, Subject::Tools),
        (&capabilities.prompts, Subject::Prompts),
        (&capabilities.resources, Subject::Resources),
    ] {
        if told_of.is_some() {
            listener.listen(subject);
        }
    }
    match session.agree(handshake, listener) {
        true => Ok(()),
        false => Err(Fault::InvalidRequest("this connection is initialized already".into())),
    }
}

fn params(exchange: &Exchange) -> Result<InitializeParams, Fault> {
    let missing =
        || Fault::InvalidParams("`initialize` needs `protocolVersion`, `capabilities` and `clientInfo`".into());
    let params: InitializeParams = exchange.params.as_ref().ok_or_else(missing)?.decode().map_err(|_| missing())?;
    if params.capabilities.is_object() && params.client_info.is_object() { Ok(params) } else { Err(missing()) }
}

/// What a client says of itself is kept for as long as its session lives.
fn check_length(core: &Core, params: &InitializeParams) -> Result<(), Fault> {
    let (bytes, most) =
        (params.client_info.as_str().len() + params.capabilities.as_str().len(), core.limits.client_bytes);
    if bytes <= most {
        return Ok(());
    }
    let why = format!("`clientInfo` and `capabilities` have {bytes} bytes, and may have {most}");
    Err(Fault::InvalidParams(why.into()))
}

fn negotiate(core: &Core, requested: &str) -> Result<Revision, Fault> {
    match core.revisions.find(requested) {
        Some(revision) if revision.era() == Era::Legacy => Ok(revision),
        _ => core.revisions.newest(Era::Legacy).ok_or(Fault::Internal),
    }
}
