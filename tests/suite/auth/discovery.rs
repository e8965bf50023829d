//! From a challenge to a login.

use serde_json::json;

use super::{RESOURCE_METADATA, SERVER_METADATA, Setup, can_log_in, cannot_log_in};

/// What is found at the root alone, and named by the challenge alone.
fn hidden(challenges: &[&str]) -> Setup {
    Setup::bare().challenges(challenges).resource("/metadata", "{origin}/mcp", "{origin}/as").issuer(
        &format!("{SERVER_METADATA}/as"),
        "{origin}/as",
        json!({}),
    )
}

#[tokio::test]
async fn c171_a_challenge_with_odd_blanks_and_quotes_leads_to_a_login() {
    let line = r#"Bearer realm="a, resource_metadata=\"x\"", RESOURCE_METADATA = "{origin}/metadata""#;
    can_log_in(hidden(&[line])).await;
}

#[tokio::test]
async fn c171_the_challenge_may_be_one_of_several_in_several_lines() {
    can_log_in(hidden(&["Basic realm=\"x\", Negotiate", "bearer resource_metadata={origin}/metadata"])).await;
}

#[tokio::test]
async fn c172_a_first_url_that_is_empty_does_not_end_the_search() {
    let line =
        r#"Bearer resource_metadata="{origin}/gone", error="invalid_token", resource_metadata="{origin}/metadata""#;
    for site in can_log_in(hidden(&[line])).await {
        assert_eq!(site.paths()[..2], ["/gone", "/metadata"]);
    }
}

#[tokio::test]
async fn c172_a_first_url_of_another_resource_does_not_end_the_search() {
    let line = r#"Bearer resource_metadata="{origin}/other", resource_metadata="{origin}/metadata""#;
    can_log_in(hidden(&[line]).resource("/other", "{origin}/another", "{origin}/as")).await;
}

#[tokio::test]
async fn c172_where_both_urls_are_empty_the_well_known_one_is_looked_at() {
    let line = r#"Bearer resource_metadata="{origin}/gone", resource_metadata="{origin}/gone-too""#;
    let setup = hidden(&[line]).resource(RESOURCE_METADATA, "{origin}", "{origin}/as");
    for site in can_log_in(setup).await {
        let expected = ["/gone", "/gone-too", &format!("{RESOURCE_METADATA}/mcp"), RESOURCE_METADATA];
        assert_eq!(site.paths()[..4], expected);
    }
}

/// An issuer with a path whose metadata is in one place alone; it is looked for in these, in this order.
async fn found_at(path: &str, before: &[&str]) {
    let setup = Setup::bare().resource(RESOURCE_METADATA, "{origin}", "{origin}/tenant1");
    for site in can_log_in(setup.issuer(path, "{origin}/tenant1", json!({}))).await {
        let paths: Vec<_> = site.paths().into_iter().filter(|path| path.contains("tenant1")).collect();
        assert_eq!(paths, before.iter().chain([&path]).copied().collect::<Vec<_>>());
    }
}

const INSERTED: &str = "/.well-known/oauth-authorization-server/tenant1";
const OPENID: &str = "/.well-known/openid-configuration/tenant1";

#[tokio::test]
async fn c174_metadata_of_oauth_has_the_issuers_path_after_the_well_known_one() {
    found_at(INSERTED, &[]).await;
}

#[tokio::test]
async fn c174_metadata_of_openid_may_have_it_there_too() {
    found_at(OPENID, &[INSERTED]).await;
}

#[tokio::test]
async fn c174_metadata_of_openid_may_be_below_the_issuer() {
    found_at("/tenant1/.well-known/openid-configuration", &[INSERTED, OPENID]).await;
}

#[tokio::test]
async fn c174_metadata_of_another_issuer_is_not_taken() {
    let setup = Setup::bare().resource(RESOURCE_METADATA, "{origin}", "{origin}/tenant1");
    let why = cannot_log_in(setup.issuer(INSERTED, "{origin}/tenant2", json!({}))).await;
    assert!(why.contains("another's"), "{why}");
}

#[tokio::test]
async fn c175_the_issuer_is_the_one_that_the_resource_names_and_not_one_below_the_endpoint() {
    let setup = Setup::bare().resource(&format!("{RESOURCE_METADATA}/mcp"), "{origin}/mcp", "{origin}");
    for site in can_log_in(setup.issuer(SERVER_METADATA, "{origin}", json!({}))).await {
        assert!(!site.paths().contains(&format!("{SERVER_METADATA}/mcp")), "{:?}", site.paths());
        assert_eq!(site.asked("/register").len(), 1);
    }
}

#[tokio::test]
async fn c175_a_place_that_is_empty_moves_on_to_the_next() {
    let setup = Setup::bare().resource(RESOURCE_METADATA, "{origin}", "{origin}");
    can_log_in(setup.issuer("/.well-known/openid-configuration", "{origin}", json!({}))).await;
}

#[tokio::test]
async fn c175_the_issuer_may_be_named_with_a_slash_at_its_end() {
    let setup = Setup::bare().resource(RESOURCE_METADATA, "{origin}", "{origin}/");
    can_log_in(setup.issuer(SERVER_METADATA, "{origin}/", json!({}))).await;
}

#[tokio::test]
async fn c175_a_server_without_any_metadata_is_its_own_authorization_server() {
    for site in can_log_in(Setup::bare()).await {
        assert_eq!(site.asked("/authorize")[0].parameters["resource"], site.url());
    }
}

#[tokio::test]
async fn c175_a_server_that_is_its_own_may_name_itself_with_a_slash() {
    can_log_in(Setup::bare().issuer(SERVER_METADATA, "{origin}/", json!({}))).await;
}

#[tokio::test]
async fn c175_an_issuer_that_is_not_this_machines_is_asked_by_https_only() {
    let why = cannot_log_in(Setup::bare().resource(RESOURCE_METADATA, "{origin}", "http://as.invalid")).await;
    assert!(why.contains("neither https"), "{why}");
}

/// The resource is in every request to the authorization server as it was published.
async fn sent_as(published: &str) {
    let place = format!("{RESOURCE_METADATA}/mcp");
    for site in can_log_in(Setup::default().resource(&place, published, "{origin}")).await {
        let published = published.replace("{origin}", &site.origin());
        for asked in site.asked("/authorize").iter().chain(&site.asked("/token")) {
            assert_eq!(asked.parameters["resource"], published, "{asked:?}");
        }
    }
}

#[tokio::test]
async fn c177_no_slash_is_added_to_an_origin() {
    sent_as("{origin}").await;
}

#[tokio::test]
async fn c177_no_slash_is_taken_from_an_origin() {
    sent_as("{origin}/").await;
}

#[tokio::test]
async fn c177_a_path_stays_as_it_is() {
    sent_as("{origin}/mcp").await;
    sent_as("{origin}/mcp/").await;
}

async fn refused_as(published: &str) {
    let place = format!("{RESOURCE_METADATA}/mcp");
    let why = cannot_log_in(Setup::default().resource(&place, published, "{origin}")).await;
    assert!(why.contains("another resource"), "{why}");
}

#[tokio::test]
async fn c178_an_origin_holds_its_endpoint() {
    can_log_in(Setup::default().resource(&format!("{RESOURCE_METADATA}/mcp"), "{origin}", "{origin}")).await;
}

#[tokio::test]
async fn c178_a_path_that_ends_within_a_segment_does_not() {
    refused_as("{origin}/mc").await;
}

#[tokio::test]
async fn c178_another_origin_does_not() {
    refused_as("https://evil.example").await;
    refused_as("https://evil.example/mcp").await;
}

/// An authorization server that says that of its methods, or nothing.
fn with_methods(methods: serde_json::Value) -> Setup {
    Setup::default().issuer(SERVER_METADATA, "{origin}", json!({ "code_challenge_methods_supported": methods }))
}

#[tokio::test]
async fn c185_a_server_that_says_nothing_of_pkce_is_refused() {
    let why = cannot_log_in(with_methods(json!(null))).await;
    assert!(why.contains("S256"), "{why}");
}

#[tokio::test]
async fn c185_plain_is_not_enough() {
    let why = cannot_log_in(with_methods(json!(["plain"]))).await;
    assert!(why.contains("S256"), "{why}");
    cannot_log_in(with_methods(json!([]))).await;
}

#[tokio::test]
async fn c185_s256_is_taken_where_plain_is_there_too() {
    for site in can_log_in(with_methods(json!(["plain", "S256"]))).await {
        assert_eq!(site.asked("/authorize")[0].parameters["code_challenge_method"], "S256");
    }
}

#[tokio::test]
async fn c185_metadata_of_openid_needs_it_as_well() {
    let mut setup = Setup::default().issuer(
        "/.well-known/openid-configuration",
        "{origin}",
        json!({ "code_challenge_methods_supported": null }),
    );
    setup.documents.remove(SERVER_METADATA);
    assert!(cannot_log_in(setup).await.contains("S256"));
}
