//! The ways to a token.

use std::time::Duration;

use super::{
    asking::Asking,
    assertion::{self, Assertions, IdentityProvider},
    device::{self, Shower},
    login::{self, Opener},
    registration::Use,
    store::Grant,
    tokens::Failed,
};

/// How tokens are come by.
pub(super) enum Flow {
    /// A user logs in by a browser of this machine.
    Code(Opener),
    /// A user logs in on another device.
    Device(Shower),
    /// The client acts for itself, by its own secret or key.
    ClientCredentials,
    /// The client acts for itself, by what its platform says of it.
    Workload(Assertions),
    /// The client acts for a user whom the organisation's identity provider knows.
    Managed(IdentityProvider),
}

impl Flow {
    /// Whether somebody has to do something for a token.
    pub(super) fn has_user(&self) -> bool {
        matches!(self, Self::Code(_) | Self::Device(_))
    }

    /// The extension of the protocol that has it, where one has.
    pub(super) fn extension(&self) -> Option<&'static str> {
        match self {
            Self::Code(_) | Self::Device(_) | Self::Workload(_) => None,
            Self::ClientCredentials => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Self::Managed(_) => Some("io.modelcontextprotocol/enterprise-managed-authorization"),
        }
    }

    /// Comes by tokens, within that time where a user takes part.
    pub(super) async fn run(&self, asking: &Asking<'_>, patience: Duration) -> Result<Grant, Failed> {
        match self {
            Self::Code(opener) => login::login(asking, opener, patience).await,
            Self::Device(show) => device::login(asking, show, patience).await,
            Self::ClientCredentials => {
                let client = asking.client(Use::ClientCredentials).await?;
                asking.scoped_grant(&client, &[("grant_type", "client_credentials")]).await
            }
            Self::Workload(assertions) => assertion::workload(asking, assertions).await,
            Self::Managed(provider) => assertion::managed(asking, provider).await,
        }
    }
}
