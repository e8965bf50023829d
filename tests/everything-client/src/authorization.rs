//! Servers that want credentials: those of the conformance suite's scenarios, and any other.

use std::{env, error::Error};

use mcp_suite::{
    Client, ErrorKind,
    auth::{ClientCredentials, ClientKey, FileStore, IdentityProvider, OAuth, OAuthBuilder, SigningAlgorithm, Url},
    http::Http,
    implementation,
};
use serde::{Deserialize, de::DeserializeOwned};

/// What the suite takes a Client ID Metadata Document to be at; nobody fetches it.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Runs a scenario of that name, which begins with `auth/`.
pub(crate) async fn run(scenario: &str, url: &str) -> Result<(), Box<dyn Error>> {
    let credentials = match scenario {
        "auth/pre-registration" => user().client(issuer(url).await?, context::<Secret>()?.client()).build()?,
        "auth/client-credentials-basic" => {
            OAuth::client_credentials().client(issuer(url).await?, context::<Secret>()?.client()).build()?
        }
        "auth/client-credentials-jwt" => signing(&issuer(url).await?)?.build()?,
        "auth/enterprise-managed-authorization" => managed(&issuer(url).await?)?.build()?,
        "auth/wif-jwt-bearer" => workload(&issuer(url).await?)?.build()?,
        _ => user().client_id_document(DOCUMENT).build()?,
    };
    let http = Http::new(url).credentials(credentials);
    let client: Client = crate::conformance::builder()?.connect(http).await?;
    for tool in client.tools().await? {
        client.call_raw(&tool.definition().name, ()).await?;
    }
    client.disconnect().await;
    Ok(())
}

/// Calls these tools, each with an empty object, at a server that wants credentials, and prints the texts. What there are is
/// kept in `file`, for all processes.
pub(crate) async fn call(url: &str, file: &str, tools: &[&str]) -> Result<(), Box<dyn Error>> {
    let credentials = user().store(FileStore::new(file)).build()?;
    let client = Client::builder(implementation!()).connect(Http::new(url).credentials(credentials)).await?;
    for tool in tools {
        println!("{}", client.call_raw(tool, serde_json::json!({})).await?.to_text());
    }
    client.disconnect().await;
    Ok(())
}

/// What the suite says of this run.
fn context<T: DeserializeOwned>() -> Result<T, Box<dyn Error>> {
    Ok(serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?)
}

#[derive(Deserialize)]
struct Secret {
    client_id: String,
    client_secret: String,
}

impl Secret {
    fn client(&self) -> ClientCredentials {
        ClientCredentials::secret(&self.client_id, &self.client_secret)
    }
}

/// Whose clients the suite speaks of, which it does not say, and a user would know.
async fn issuer(url: &str) -> Result<String, Box<dyn Error>> {
    #[derive(Deserialize)]
    struct Metadata {
        authorization_servers: Vec<String>,
    }
    let endpoint = Url::parse(url)?;
    let metadata = endpoint.join(&format!("/.well-known/oauth-protected-resource{}", endpoint.path()))?;
    let body = reqwest::get(metadata).await?.error_for_status()?.bytes().await?;
    let metadata: Metadata = serde_json::from_slice(&body)?;
    Ok(metadata.authorization_servers.into_iter().next().ok_or("there is no authorization server")?)
}

/// A user who agrees to everything, at once, and whose browser keeps cookies.
fn user() -> OAuthBuilder {
    OAuth::builder("everything-client", |url: Url| async move {
        let shown =
            async { reqwest::Client::builder().cookie_store(true).build()?.get(url).send().await?.error_for_status() };
        let failed = |error| mcp_suite::Error::caused(ErrorKind::TransportError, "no page was shown", error);
        shown.await.map(drop).map_err(failed)
    })
}

fn signing(issuer: &str) -> Result<OAuthBuilder, Box<dyn Error>> {
    #[derive(Deserialize)]
    struct Context {
        client_id: String,
        private_key_pem: String,
        signing_algorithm: String,
    }
    let context: Context = context()?;
    if context.signing_algorithm != "ES256" {
        return Err(format!("no algorithm `{}`", context.signing_algorithm).into());
    }
    let key = ClientKey::from_pem(SigningAlgorithm::Es256, &context.private_key_pem)?;
    Ok(OAuth::client_credentials().client(issuer, ClientCredentials::public(context.client_id)).client_key(key))
}

fn managed(issuer: &str) -> Result<OAuthBuilder, Box<dyn Error>> {
    #[derive(Deserialize)]
    struct Context {
        idp_client_id: String,
        idp_id_token: String,
        idp_issuer: String,
        idp_token_endpoint: String,
    }
    let of_server = context::<Secret>()?.client();
    let Context { idp_client_id, idp_id_token, idp_issuer, idp_token_endpoint } = context()?;
    let id_token = move || std::future::ready(Ok(idp_id_token.clone()));
    let provider = IdentityProvider::new(idp_issuer, ClientCredentials::public(idp_client_id), id_token);
    Ok(OAuth::managed("conformance", provider.token_endpoint(idp_token_endpoint)).client(issuer, of_server))
}

fn workload(issuer: &str) -> Result<OAuthBuilder, Box<dyn Error>> {
    #[derive(Deserialize)]
    struct Context {
        client_id: String,
        valid_jwt: String,
    }
    let Context { client_id, valid_jwt } = context()?;
    let workload = OAuth::workload(move |_| std::future::ready(Ok(valid_jwt.clone())));
    Ok(workload.client(issuer, ClientCredentials::public(client_id)))
}
