//! A new access token without the user, once for everybody who uses the store.
//!
//! Specification: *Authorization, Refresh Tokens*; *OAuth 2.1, Refresh Token Grant*.

use mcp_core::Error;

use super::{
    asking::Asking,
    store::{Grant, Key, TokenStore},
    tokens::Failed,
};
use crate::clock::now;

/// What is left of a login once its access token is refused.
pub(super) enum Refreshed {
    /// A token that is newer than the one that was refused.
    Newer(Grant),
    /// Tokens have to be come by anew; what is kept stays until then.
    Over(Option<Grant>),
}

/// Brings a newer token than `refused`: the one that somebody else has stored meanwhile, or one from the server. The store is
/// locked all the while.
pub(super) async fn refresh(
    asking: &mut Asking<'_>,
    store: &dyn TokenStore,
    key: &Key,
    refused: Option<&str>,
) -> Result<Refreshed, Error> {
    let Some(kept) = store.load(key).await? else { return Ok(Refreshed::Over(None)) };
    if is_newer(&kept, refused) {
        return Ok(Refreshed::Newer(kept));
    }
    let Some(token) = &kept.refresh_token else { return Ok(Refreshed::Over(Some(kept))) };
    match ask(asking, &kept, token).await {
        Ok(grant) => {
            keep(store, key, Some(&kept), &grant).await?;
            Ok(Refreshed::Newer(grant))
        }
        Err(failed) if failed.is("invalid_grant") => lost(store, key, kept, refused).await,
        Err(failed) if failed.is("invalid_client") => forgotten(store, key, &kept).await,
        // It was asked, and gives nothing for that token, be it for ever or not.
        Err(Failed::Refused(refused)) if !refused.is_about_now() => Ok(Refreshed::Over(Some(kept))),
        Err(failed) => Err(failed.into()),
    }
}

/// What is not said of scopes and the next refresh token is as it was before.
async fn ask(asking: &mut Asking<'_>, kept: &Grant, token: &str) -> Result<Grant, Failed> {
    // What the user says of a client now may be newer than what was kept.
    let known = asking.registration.known(&asking.found.server).filter(|known| known.id == kept.client.id);
    let client = known.unwrap_or_else(|| kept.client.clone());
    asking.scopes.clone_from(&kept.scopes);
    asking.proof_key.clone_from(&kept.proof_key);
    let grant = asking.grant(&client, &[("grant_type", "refresh_token"), ("refresh_token", token)]).await?;
    Ok(Grant { refresh_token: grant.refresh_token.or_else(|| kept.refresh_token.clone()), ..grant })
}

fn is_newer(kept: &Grant, refused: Option<&str>) -> bool {
    refused != Some(kept.access_token.as_str()) && !is_over(kept)
}

/// Whether a token has ended.
pub(super) fn is_over(grant: &Grant) -> bool {
    grant.expires_at.is_some_and(|end| end <= now())
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

/// The server does not know the client any more, which has to be registered anew.
pub(super) async fn forgotten(store: &dyn TokenStore, key: &Key, kept: &Grant) -> Result<Refreshed, Error> {
    store.swap(key, Some(kept), None).await?;
    Ok(Refreshed::Over(None))
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
