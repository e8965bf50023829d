//! What a server says of its skills, on the wire.

use std::time::Duration;

use mcp_core::{
    BoxFuture, Context, ErrorKind, Exchange, Limits, Resource, Server, ToolError, implementation,
    server::{Peer, serve_peer},
    types::CacheHint,
};
use mcp_skills::{DynamicSkill, Frontmatter, MAX_BYTES, MAX_RESOURCES, SkillFiles, Skills};
use mcp_test::RawClient;
use serde_json::{Value, json};

use super::{REFUNDS, digest, refunds, serving, skill_md};

fn skills() -> Skills {
    Skills::builder()
        .skill(refunds())
        .skill(SkillFiles::new(skill_md("git-workflow", "Branch.")))
        .cache(CacheHint::public(Duration::from_secs(60)))
        .build()
        .unwrap()
}

fn names(result: &Value) -> Vec<&str> {
    result["resources"].as_array().unwrap().iter().map(|child| child["name"].as_str().unwrap()).collect()
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn entries_are_whole_manifests() {
    let mut client = RawClient::modern(serving(skills()));
    let discovered = client.request("server/discover", json!({})).await;
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(capabilities["extensions"]["io.modelcontextprotocol/skills"], json!({ "directoryRead": true }));
    assert!(capabilities["resources"].is_object());

    let listed = client.request("skills/list", json!({})).await["result"].take();
    assert_eq!((&listed["ttlMs"], &listed["cacheScope"]), (&json!(60_000), &json!("public")));
    assert_eq!(listed["resultType"], "complete");
    assert_eq!(listed.get("nextCursor"), None);
    let entry = &listed["skills"][0];
    assert_eq!(entry["uri"], REFUNDS);
    assert_eq!(entry["frontmatter"], json!({ "name": "refunds", "description": "What refunds is for" }));
    let text = skill_md("refunds", "See references/policy.md.");
    let expected = [
        ("SKILL.md", text.as_bytes()),
        ("logo.png", b"\x89PNG\xff"),
        ("references/de/policy.md", "Höchstens 30 Tage.".as_bytes()),
        ("references/policy.md", b"At most 30 days."),
        ("scripts/pay%20out.ts", b"export {}"),
    ];
    let expected = expected.map(|(path, bytes)| {
        let uri = format!("skill://acme/billing/refunds/{path}");
        json!({ "uri": uri, "digest": digest(bytes), "size": bytes.len() })
    });
    assert_eq!(entry["resources"], json!(expected));
    let got = client.request("skills/get", json!({ "uri": REFUNDS })).await["result"].take();
    assert_eq!((&got["skill"], &got["ttlMs"], &got["cacheScope"]), (entry, &json!(60_000), &json!("public")));
}

#[tokio::test]
async fn the_legacy_era_has_them_without_hints() {
    let mut client = RawClient::legacy(serving(skills())).await;
    let listed = client.request("skills/list", json!({})).await["result"].take();
    assert_eq!(listed["skills"].as_array().unwrap().len(), 2);
    let got = client.request("skills/get", json!({ "uri": REFUNDS })).await["result"].take();
    assert_eq!(got["skill"], listed["skills"][0]);
    for result in [&listed, &got] {
        assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none(), "{result}");
    }
    let missing = client.request("resources/read", json!({ "uri": "skill://acme/none/SKILL.md" })).await;
    assert_eq!(code(&missing), -32002);
}

#[tokio::test]
async fn files_are_resources() {
    let mut client = RawClient::modern(serving(skills()));
    let listed = client.request("resources/list", json!({})).await["result"].take();
    let first = &listed["resources"][0];
    assert_eq!((&first["name"], &first["mimeType"]), (&json!("refunds"), &json!("text/markdown")));
    assert_eq!(first["description"], "What refunds is for");
    let mut contents = async |path: &str| {
        let uri = format!("skill://acme/billing/refunds/{path}");
        let mut answer = client.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["result"]["ttlMs"], 60_000, "{answer}");
        assert_eq!(answer["result"]["contents"][0]["uri"], uri);
        answer["result"]["contents"][0].take()
    };
    let text = contents("references/policy.md").await;
    assert_eq!((&text["text"], &text["mimeType"]), (&json!("At most 30 days."), &json!("text/markdown")));
    let script = contents("scripts/pay%20out.ts").await;
    assert_eq!((&script["text"], &script["mimeType"]), (&json!("export {}"), &json!("text/plain")));
    let picture = contents("logo.png").await;
    assert_eq!((&picture["blob"], &picture["mimeType"]), (&json!("iVBOR/8="), &json!("image/png")));
}

#[tokio::test]
async fn what_is_no_file_of_a_skill_is_not_there() {
    let mut client = RawClient::modern(serving(skills()));
    for path in [
        "acme/billing/refunds",
        "acme/billing/refunds/",
        "acme/billing/refunds/none.md",
        "acme/billing/refunds/../../../etc/passwd",
        "acme/billing/refunds/%2e%2e/%2e%2e/Cargo.toml",
        "acme/billing/refunds//SKILL.md",
        "../Cargo.toml",
        "/etc/passwd",
    ] {
        let answer = client.request("resources/read", json!({ "uri": format!("skill://{path}") })).await;
        assert_eq!(code(&answer), -32602, "{path}");
    }
    for uri in ["skill://acme/billing/refunds", "skill://acme/SKILL.md", "SKILL.md", "", "file:///SKILL.md"] {
        assert_eq!(code(&client.request("skills/get", json!({ "uri": uri })).await), -32602, "{uri}");
    }
    for params in [json!({}), json!({ "uri": 7 })] {
        assert_eq!(code(&client.request("skills/get", params.clone()).await), -32602);
        assert_eq!(code(&client.request("resources/directory/read", params).await), -32602);
    }
}

#[tokio::test]
async fn directories_are_listed_level_by_level() {
    let mut client = RawClient::modern(serving(skills()));
    for (directory, children) in [
        ("skill://acme", &["billing"][..]),
        ("skill://acme/billing/refunds", &["refunds", "logo.png", "references", "scripts"]),
        ("skill://acme/billing/refunds/references", &["de", "policy.md"]),
    ] {
        let answer = client.request("resources/directory/read", json!({ "uri": directory })).await["result"].take();
        assert_eq!(names(&answer), children, "{directory}");
        assert_eq!(answer["resultType"], "complete");
        for child in answer["resources"].as_array().unwrap() {
            let uri = child["uri"].as_str().unwrap();
            assert!(uri.starts_with(&format!("{directory}/")), "{uri}");
            let is_directory = child["mimeType"] == "inode/directory";
            let read = client.request("resources/directory/read", json!({ "uri": uri })).await;
            assert_eq!(read["result"].is_object(), is_directory, "{uri}: {read}");
        }
    }
    for uri in [
        "skill://",
        "skill://acme/",
        "skill://acme/billing/refunds/",
        "skill://none",
        REFUNDS,
        "file:///",
        "skill://acme/billing/refunds/references/../references",
        "skill://acme/billing/refunds/logo.png",
    ] {
        assert_eq!(code(&client.request("resources/directory/read", json!({ "uri": uri })).await), -32602, "{uri}");
    }
}

#[tokio::test]
async fn long_lists_come_in_pages_and_entries_stay_whole() {
    let mut limits = Limits::default();
    limits.page_size = 2;
    let builder = (0..5).fold(Skills::builder(), |builder, n| {
        builder.skill(SkillFiles::new(skill_md(&format!("s{n}"), "")).file("a", "").file("b", ""))
    });
    let server = Server::builder(implementation!()).limits(limits).with(builder.build().unwrap()).build();
    let mut client = RawClient::modern(server);
    for (method, member, first, whole) in [
        ("skills/list", "skills", json!({}), 5),
        ("resources/directory/read", "resources", json!({ "uri": "skill://s0" }), 3usize),
    ] {
        let (mut seen, mut params, mut pages) = (Vec::new(), first, 0);
        loop {
            let page = client.request(method, params.clone()).await["result"].take();
            let entries = page[member].as_array().unwrap();
            assert!((1..=2).contains(&entries.len()), "{page}");
            seen.extend(entries.iter().map(|entry| entry["uri"].to_string()));
            pages += 1;
            match page.get("nextCursor") {
                Some(cursor) => params["cursor"] = cursor.clone(),
                None => break,
            }
        }
        let count = seen.len();
        seen.dedup();
        assert_eq!((seen.len(), count, pages), (whole, whole, whole.div_ceil(2)), "{method}");
    }
    assert_eq!(code(&client.request("skills/list", json!({ "cursor": "" })).await), -32602);
    assert_eq!(code(&client.request("skills/list", json!({ "cursor": 7 })).await), -32602);
}

/// A list of large entries stays far below what a message may have.
#[tokio::test]
async fn pages_are_bounded_in_bytes_too() {
    let builder = (0..40).fold(Skills::builder(), |builder, n| {
        let skill = SkillFiles::new(skill_md(&format!("s{n}"), ""));
        builder.skill((0..MAX_RESOURCES - 1).fold(skill, |skill, file| skill.file(format!("{file:0>100}"), "")))
    });
    let mut client = RawClient::modern(serving(builder.build().unwrap()));
    let first = client.request("skills/list", json!({})).await["result"].take();
    assert!(first["nextCursor"].is_string());
    assert!((1..40).contains(&first["skills"].as_array().unwrap().len()));
    assert!(first.to_string().len() < 2 << 20);
}

fn sees(exchange: &Exchange, resource: &Resource) -> bool {
    exchange.principal().is_some() || !resource.definition().uri.contains("secret")
}

#[tokio::test]
async fn who_does_not_see_the_resource_does_not_see_the_skill() {
    let outer = SkillFiles::new(skill_md("outer", "")).file("a.md", "");
    let secret = SkillFiles::new(skill_md("secret", "")).under("hidden").file("a.md", "");
    let nested = SkillFiles::new(skill_md("nested", "")).under("outer/secret-things").file("a.md", "");
    let skills = Skills::builder().skill(outer).skill(secret).skill(nested).build().unwrap();
    let server = Server::builder(implementation!()).with(skills).resource_filter(sees).build();
    let client = async |principal: Option<&str>| {
        let (here, there) = mcp_core::memory();
        let peer = Peer::new().principal(principal.map(mcp_core::Principal::new));
        let mut client = RawClient::over(here, serve_peer(server.clone(), there, peer));
        client.open(mcp_core::Revision::LATEST_LEGACY).await.unwrap();
        client
    };
    let (mut ada, mut nobody) = (client(Some("ada")).await, client(None).await);
    let list = ada.request("skills/list", json!({})).await["result"].take();
    assert_eq!(list["skills"].as_array().unwrap().len(), 3);
    let list = nobody.request("skills/list", json!({})).await["result"].take();
    assert_eq!(list["skills"].as_array().unwrap().len(), 1, "{list}");
    for (method, uri) in [
        ("skills/get", "skill://hidden/secret/SKILL.md"),
        ("resources/read", "skill://hidden/secret/SKILL.md"),
        ("resources/read", "skill://hidden/secret/a.md"),
        ("resources/directory/read", "skill://hidden/secret"),
        ("resources/directory/read", "skill://hidden"),
        ("skills/get", "skill://outer/secret-things/nested/SKILL.md"),
    ] {
        assert!(ada.request(method, json!({ "uri": uri })).await["result"].is_object(), "{method} {uri}");
        let hidden = nobody.request(method, json!({ "uri": uri })).await;
        let absent = uri.replace("secret", "absent").replace("hidden", "absent");
        let absent = nobody.request(method, json!({ "uri": absent })).await;
        let words = |answer: &Value, uri: &str| answer["error"].to_string().replace(uri, "$");
        let none = uri.replace("secret", "absent").replace("hidden", "absent");
        assert_eq!(words(&hidden, uri), words(&absent, &none), "{method} {uri}");
        assert!(hidden["error"].is_object(), "{hidden}");
    }
    // Nothing is told of it, either.
    for path in ["hidden/secret/SKILL.md", "hidden/secret/a.md"] {
        let params = json!({ "uri": format!("skill://{path}") });
        code(&nobody.request("resources/subscribe", params.clone()).await);
        assert!(ada.request("resources/subscribe", params).await["result"].is_object());
    }
    // From the enclosing skill's perspective these are supporting files.
    let file = json!({ "uri": "skill://outer/secret-things/nested/SKILL.md" });
    assert!(nobody.request("resources/read", file).await["result"].is_object());
}

/// Each server has its own list of resources.
#[tokio::test]
async fn the_same_skills_serve_several_servers() {
    let skills = skills();
    let servers = [serving(skills.clone()), serving(skills.clone())];
    for server in &servers {
        skills.refresh(server).await.unwrap();
    }
    for server in servers {
        let mut client = RawClient::modern(server);
        let listed = client.request("skills/list", json!({})).await["result"].take();
        assert_eq!(listed["skills"].as_array().unwrap().len(), 2);
        assert!(client.request("skills/get", json!({ "uri": REFUNDS })).await["result"].is_object());
    }
}

#[tokio::test]
async fn nested_skills_are_listed_flat_and_belong_to_the_enclosing_one_too() {
    let nested =
        SkillFiles::new(skill_md("outer", "")).file("inner/SKILL.md", skill_md("inner", "")).file("inner/x", "");
    let skills = Skills::builder().skill(nested).build().unwrap();
    let entries = skills.entries();
    let files: Vec<Vec<&str>> =
        entries.iter().map(|entry| entry.files().iter().map(|file| file.uri.as_str()).collect()).collect();
    let inner = ["skill://outer/inner/SKILL.md", "skill://outer/inner/x"];
    assert_eq!(files, [["skill://outer/SKILL.md", inner[0], inner[1]].to_vec(), inner.to_vec()]);
}

/// A skill that may not even run for whoever does not see it.
struct Secret;

impl DynamicSkill for Secret {
    fn instructions(&self, _: Context) -> BoxFuture<'_, Result<String, ToolError>> {
        panic!("it is hidden");
    }

    fn files(&self, _: Context) -> BoxFuture<'_, Result<Vec<String>, ToolError>> {
        panic!("it is hidden");
    }
}

#[tokio::test]
async fn a_hidden_dynamic_skill_does_not_run() {
    let skills = Skills::builder().dynamic("hidden", Frontmatter::new("secret", "x"), Secret).build().unwrap();
    let server = Server::builder(implementation!()).with(skills).resource_filter(sees).build();
    let mut client = RawClient::modern(server);
    for (method, uri) in [
        ("resources/directory/read", "skill://hidden/secret"),
        ("resources/directory/read", "skill://hidden"),
        ("resources/read", "skill://hidden/secret/SKILL.md"),
        ("resources/read", "skill://hidden/secret/x"),
        ("skills/get", "skill://hidden/secret/SKILL.md"),
    ] {
        assert_eq!(code(&client.request(method, json!({ "uri": uri })).await), -32602, "{method} {uri}");
    }
}

struct Report;

impl DynamicSkill for Report {
    fn instructions(&self, context: Context) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move { Ok(format!("As of request {}.", context.sequence())) })
    }

    fn files(&self, _: Context) -> BoxFuture<'_, Result<Vec<String>, ToolError>> {
        Box::pin(async { Ok(["a/b.txt", "a/c.md", "../out", "/etc/passwd", ""].map(str::to_owned).to_vec()) })
    }

    fn read<'a>(&'a self, _: Context, path: &'a str) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move { if path == "a/b.txt" { Ok(b"now".to_vec()) } else { Err(ToolError::not_found()) } })
    }
}

#[tokio::test]
async fn dynamic_skills_are_made_when_they_are_read() {
    let frontmatter = Frontmatter::new("daily", "It's \"the\" report: #1").with("metadata", json!({ "v": "1" }));
    let skills = Skills::builder().dynamic("reports", frontmatter.clone(), Report).build().unwrap();
    let mut client = RawClient::modern(serving(skills));
    let uri = "skill://reports/daily/SKILL.md";
    let entry = client.request("skills/get", json!({ "uri": uri })).await["result"]["skill"].take();
    assert_eq!(entry["resources"], "dynamic");
    let read = client.request("resources/read", json!({ "uri": uri })).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(Frontmatter::parse(text).unwrap(), frontmatter);
    assert_eq!(serde_json::to_value(&frontmatter).unwrap(), entry["frontmatter"]);
    assert!(text.contains("As of request"));
    for (directory, children) in [
        ("skill://reports", &["daily"][..]),
        ("skill://reports/daily", &["daily", "a"]),
        ("skill://reports/daily/a", &["b.txt", "c.md"]),
    ] {
        let answer = client.request("resources/directory/read", json!({ "uri": directory })).await["result"].take();
        assert_eq!(names(&answer), children, "{directory}");
    }
    let read = client.request("resources/read", json!({ "uri": "skill://reports/daily/a/b.txt" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "now");
    for path in ["a/none", "../x", "a"] {
        let uri = format!("skill://reports/daily/{path}");
        assert_eq!(code(&client.request("resources/read", json!({ "uri": uri })).await), -32602, "{path}");
    }
}

#[test]
fn skills_that_break_a_rule_are_refused_where_they_are_added() {
    let built = |files: SkillFiles| Skills::builder().skill(files).build().unwrap_err();
    let good = || SkillFiles::new(skill_md("good", ""));
    for (why, files) in [
        ("no frontmatter", SkillFiles::new("# Good")),
        ("no name", SkillFiles::new("---\ndescription: x\n---\n")),
        ("no description", SkillFiles::new("---\nname: x\n---\n")),
        ("a bad name", SkillFiles::new(skill_md("Good", ""))),
        ("a long description", SkillFiles::new(format!("---\nname: x\ndescription: {}\n---\n", "x".repeat(1025)))),
        ("a path that leads out", good().file("../x", "")),
        ("a path from the root", good().file("/x", "")),
        ("a bad prefix", good().under("a//b")),
        ("a nested one of another name", good().file("inner/SKILL.md", skill_md("other", ""))),
        ("a file that is a directory, too", good().file("x", "").file("x/y", "")),
        ("a nested one that is no text", good().file("inner/SKILL.md", b"\xff".to_vec())),
        ("too many files", (0..MAX_RESOURCES).fold(good(), |files, n| files.file(n.to_string(), ""))),
        ("too many bytes", good().file("x", vec![0; MAX_BYTES as usize])),
    ] {
        assert_eq!(built(files).kind(), ErrorKind::InvalidParams, "{why}");
    }
    let most = (0..MAX_RESOURCES - 1).fold(good(), |files, n| files.file(n.to_string(), ""));
    assert!(Skills::builder().skill(most).build().is_ok());
    let largest = vec![0; MAX_BYTES as usize - skill_md("good", "").len()];
    assert!(Skills::builder().skill(good().file("x", largest)).build().is_ok());

    let odd = |frontmatter: Frontmatter| Skills::builder().dynamic("", frontmatter, Report);
    for builder in [
        odd(Frontmatter::new("good", "a\u{7f}b")),
        odd(Frontmatter::new("good", "x").with("null", 1)),
        odd(Frontmatter::new("Good", "x")),
        odd(Frontmatter::new("good", "x")).skill(good()),
        Skills::builder().skill(good()).dynamic("good/sub", Frontmatter::new("inner", "x"), Report),
    ] {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::InvalidParams);
    }
    let twice = [
        Skills::builder().skill(good()).skill(good()),
        Skills::builder().skill(good().file("x", "").file("x", "")),
        Skills::builder().dynamic("", Frontmatter::new("good", "x"), Report).dynamic(
            "",
            Frontmatter::new("good", "x"),
            Report,
        ),
    ];
    for builder in twice {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::DuplicateRegistration);
    }
}
