use std::{fs, path::PathBuf};

use mcp_core::Client;
use mcp_test::{Recorder, golden};
use serde_json::json;

use crate::{panic_of, server};

/// A file of its own for one test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_holds_in_every_revision() {
    golden("tests/golden/add.txt", server).await;
}

#[tokio::test(start_paused = true)]
async fn every_case_that_fails_is_told_with_its_line_and_place() {
    let text = r#"== seven
speak: legacy modern
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":5},$(meta)}}
< {"id":1,"result":{"content":[{"text":"8"}]}}
== fine
> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"id":1,"result":{}}
== a word too many
> {"jsonrpc":"2.0","id":1,"method":"ping"}
"#;
    let file = File::new("fails.txt", text);
    let why = panic_of(async move { golden(&file.0, server).await }).await;
    assert!(why.contains("6 of 7 runs failed"), "{why}");
    assert!(why.contains("seven [2026-07-28] line 4: result.content[0].text: expected \"8\", got \"7\""), "{why}");
    assert!(why.contains("a word too many at the end: a message that nothing expects: {"), "{why}");
    assert!(!why.contains("fine"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_none_is_told() {
    let file = File::new("typo.txt", "== a\n>> {}\n");
    let why = panic_of(async move { golden(&file.0, server).await }).await;
    assert!(why.ends_with("typo.txt: line 2: `>>` is neither a step nor a setting that may stand here"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_can_be_played_again() {
    let recorder = Recorder::new(server());
    let client = Client::connect(recorder.clone()).await.unwrap();
    assert_eq!(client.call::<i64>("add", json!({ "a": 2, "b": 5 })).await.unwrap(), 7);
    client.disconnect().await;
    let transcript = recorder.transcript("a sum");
    assert_eq!(transcript.lines().filter(|line| line.starts_with("> ")).count(), 2, "{transcript}");
    assert_eq!(transcript.lines().filter(|line| line.starts_with("< ")).count(), 2, "{transcript}");
    golden(&File::new("recorded.txt", &transcript).0, server).await;

    let wrong = File::new("wrong.txt", &transcript.replace("\"text\":\"7\"", "\"text\":\"8\""));
    let why = panic_of(async move { golden(&wrong.0, server).await }).await;
    assert!(why.contains("result.content[0].text: expected \"8\", got \"7\""), "{why}");
}
