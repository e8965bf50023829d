//! Reading what a peer got wrong where nothing hangs on it.

use mcp_jsonrpc::Raw;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

/// Anything that does not have the shape counts as absent.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(reader: D) -> Result<T, D::Error> {
    let raw = Option::<Raw>::deserialize(reader)?;
    Ok(raw.and_then(|raw| raw.decode().ok()).unwrap_or_default())
}

/// A member that is `null` counts as absent.
pub(super) fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    reader: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}
