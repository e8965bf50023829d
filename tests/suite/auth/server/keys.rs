//! Names and passwords, for small private servers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_auth::{BasicAuth, ResourceMetadata, ResourceServer};

use super::{RESOURCE, Site};

#[tokio::test]
async fn a_name_and_a_password_let_in() {
    let users = BasicAuth::new().user("ada", "pass:word", ["write", "audit"]).unwrap();
    let guard = ResourceServer::builder(ResourceMetadata::new(RESOURCE), users).build().unwrap();
    let site = Site::start(guard).await;
    let call = async |pair: &str, tool: &str| {
        site.call_with(&[("authorization", &format!("Basic {}", STANDARD.encode(pair)))], tool).await
    };
    assert_eq!(call("ada:pass:word", "whoami").await.said(), "ada");
    assert_eq!(call("ada:pass:word", "write").await.said(), "written");
    let answer = call("ada:wrong", "whoami").await;
    assert_eq!(answer.status, 401);
    assert!(answer.challenges[0].is("Basic") && answer.challenged("realm") == Some("mcp"), "{answer:?}");
    assert_eq!(site.call("adas-key").await.status, 401);
}
