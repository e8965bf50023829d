//! The code flow: a user is sent to the authorization server, and comes back to a port of this machine.
//!
//! Specification: *Authorization, Authorization Flow Steps*; *RFC 8252*; *OpenID Connect Core, Offline Access*.

use std::{sync::Arc, time::Duration};

use mcp_core::{BoxFuture, Error};
use tokio::time::timeout;
use url::Url;

use super::{
    asking::Asking,
    error::AuthError,
    loopback::Loopback,
    pkce::{Pkce, secret},
    registration::Use,
    scopes::OFFLINE_ACCESS,
    store::{ClientCredentials, Grant},
    tokens::Failed,
};

/// What shows a URL to the user.
pub(super) type Opener = Arc<dyn Fn(Url) -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

/// A login that is under way.
struct Begun {
    state: String,
    pkce: Pkce,
    loopback: Loopback,
    client: ClientCredentials,
}

/// Has the user log in by a browser.
pub(super) async fn login(asking: &Asking<'_>, opener: &Opener, patience: Duration) -> Result<Grant, Failed> {
    let pkce = Pkce::new(&asking.found.server)?;
    let (loopback, client) = listen(asking).await?;
    let begun = Begun { state: secret()?, pkce, loopback, client };
    let shown = opener(url(asking, &begun)?);
    let code = timeout(patience, begun.code(asking, shown)).await;
    let code = code.map_err(|_| AuthError::TooLate(patience.as_secs()))??;
    let parameters = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &begun.loopback.uri),
        ("code_verifier", &begun.pkce.verifier),
    ];
    asking.grant(&begun.client, &parameters).await
}

impl Begun {
    /// The user may be back before the opener is done, as where it waits for a browser to be closed.
    async fn code(&self, asking: &Asking<'_>, shown: BoxFuture<'static, Result<(), Error>>) -> Result<String, Error> {
        let answer = self.loopback.code(&self.state, &asking.found.server);
        tokio::pin!(answer);
        tokio::select! {
            biased;
            code = &mut answer => return Ok(code?),
            shown = shown => shown?,
        }
        Ok(answer.await?)
    }
}

/// Listens where the client was registered for, or else anywhere, and registers for that.
async fn listen(asking: &Asking<'_>) -> Result<(Loopback, ClientCredentials), AuthError> {
    let server = &asking.found.server;
    if let Some(client) = asking.registration.known(server) {
        return Ok((Loopback::bind(0).await?, client));
    }
    if let Some(client) = &asking.before
        && let Some(uri) = &client.redirect_uri
        && let Some(loopback) = Loopback::at(uri).await
    {
        return Ok((loopback, client.clone()));
    }
    let loopback = Loopback::bind(0).await?;
    let client = asking.registration.register(asking.fetch, server, Use::Code, Some(&loopback.uri)).await?;
    Ok((loopback, client))
}

/// Where the user is sent to.
fn url(asking: &Asking<'_>, begun: &Begun) -> Result<Url, AuthError> {
    let nowhere = || AuthError::Discovery("the authorization server has nowhere to log in".to_owned());
    let endpoint = asking.found.server.authorization_endpoint.as_deref().ok_or_else(nowhere)?;
    let mut url = asking.fetch.allowed(endpoint)?;
    let mut query = url.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &begun.client.id)
        .append_pair("redirect_uri", &begun.loopback.uri)
        .append_pair("state", &begun.state)
        .append_pair("code_challenge", &begun.pkce.challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &asking.found.resource);
    if !asking.scopes.is_empty() {
        query.append_pair("scope", &asking.scopes.join(" "));
    }
    // OpenID servers pass over the scope where the user is not asked.
    if asking.scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
        query.append_pair("prompt", "consent");
    }
    // So that nobody else can redeem the code either.
    if let Some(key) = &asking.proof_key {
        query.append_pair("dpop_jkt", &key.thumbprint()?);
    }
    drop(query);
    Ok(url)
}
