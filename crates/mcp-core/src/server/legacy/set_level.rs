use crate::{
    Fault,
    server::{Exchange, reply::Body},
    types::SetLevelParams,
};

/// Answers `logging/setLevel`: from now on the session gets log messages of that level and of graver ones.
///
/// Specification: *2025-11-25, Logging, Setting Log Level*.
pub(crate) fn set_level(exchange: &Exchange) -> Result<Body, Fault> {
    let session = super::session(exchange)?;
    let misfit = || Fault::InvalidParams("`level` must be one of the eight log levels".into());
    let params: SetLevelParams = exchange.params.as_ref().and_then(|params| params.decode().ok()).ok_or_else(misfit)?;
    session.set_log_level(params.level);
    Ok(Body::default())
}
