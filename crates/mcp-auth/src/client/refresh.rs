//! A new access token without the user, once for everybody who uses the store.
//!
//! Specification: *Authorization, Refresh Tokens*; *OAuth 2.1, Refresh Token Grant*.

use mcp_core::Error;

use super::{
    discovery::Discovered,
    store::{Grant, Key, TokenStore},
    tokens::{self, Failed},
};
use crate::fetch::Fetch;

/// What is left of a login once its access token is refused.
pub(super) enum Refreshed {
    /// A token that is newer than the one that was refused.
    Newer(Grant),
    /// The user has to log in; what is kept stays until then.
    Over(Option<Grant>),
}

/// Brings a newer token than `refused`: the one that somebody else has stored meanwhile, or one from the server. The store is
/// locked all the while.
pub(super) async fn refresh(
    fetch: &Fetch,
    found: &Discovered,
    store: &dyn TokenStore,
    refused: Option<&str>,
) -> Result<Refreshed, Error> {
    let key = Key::new(&found.server.issuer, &found.resource);
    let Some(kept) = store.load(&key).await? else { return Ok(Refreshed::Over(None)) };
    if is_newer(&kept, refused) {
        return Ok(Refreshed::Newer(kept));
    }
    let Some(token) = &kept.refresh_token else { return Ok(Refreshed::Over(Some(kept))) };
    let parameters = [("grant_type", "refresh_token"), ("refresh_token", token.as_str())];
    match tokens::ask(fetch, found, &kept.client, &parameters, (&kept.scopes, Some(token))).await {
        Ok(grant) => {
            keep(store, &key, Some(&kept), &grant).await?;
            Ok(Refreshed::Newer(grant))
        }
        Err(Failed::InvalidGrant) => lost(store, &key, kept, refused).await,
        Err(Failed::Other(error)) => Err(error.into()),
    }
}

fn is_newer(kept: &Grant, refused: Option<&str>) -> bool {
    refused != Some(kept.access_token.as_str()) && !tokens::is_over(kept)
}

/// The refresh token is no good: somebody else may have used it first, and stored what came of it. What they stored is
/// theirs, and never deleted.
async fn lost(store: &dyn TokenStore, key: &Key, tried: Grant, refused: Option<&str>) -> Result<Refreshed, Error> {
    if store.swap(key, Some(&tried), None).await? {
        return Ok(Refreshed::Over(Some(tried)));
    }
    Ok(match store.load(key).await? {
        Some(kept) if is_newer(&kept, refused) => Refreshed::Newer(kept),
        kept => Refreshed::Over(kept.or(Some(tried))),
    })
}

/// Keeps a grant in place of `before`. Where that is gone, as one that somebody thought to be lost, the new one is kept all the
/// same; where there is another, the later login counts for this process, and the other is left to its own.
pub(super) async fn keep(
    store: &dyn TokenStore,
    key: &Key,
    before: Option<&Grant>,
    grant: &Grant,
) -> Result<(), Error> {
    if !store.swap(key, before, Some(grant.clone())).await? {
        store.swap(key, None, Some(grant.clone())).await?;
    }
    Ok(())
}
