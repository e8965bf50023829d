//! Every request that the specification lets a client send, in every revision.

use mcp_core::{Era, Revision};
use serde_json::{Value, json};

use crate::duplex::Peer;

/// A request, the revisions that have it, and parameters that fit.
struct Row(&'static str, Has, &'static str);

const ANY: Has = |_| true;
const LEGACY: Has = |revision| revision.era() == Era::Legacy;
const MODERN: Has = |revision| revision.era() == Era::Modern;
const OLD_TASKS: Has = |revision| revision == Revision::V2025_11_25;
const TASKS: Has = |revision| OLD_TASKS(revision) || MODERN(revision);

/// `ClientRequest` of the schema of each revision.
const REQUESTS: &[Row] = &[
    Row(
        "initialize",
        LEGACY,
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}"#,
    ),
    Row("ping", LEGACY, "{}"),
    Row("server/discover", MODERN, "{}"),
    Row("tools/list", ANY, "{}"),
    Row("tools/call", ANY, r#"{"name":"echo","arguments":{"text":"x"}}"#),
    Row("prompts/list", ANY, "{}"),
    Row("prompts/get", ANY, r#"{"name":"test_simple_prompt"}"#),
    Row("resources/list", ANY, "{}"),
    Row("resources/templates/list", ANY, "{}"),
    Row("resources/read", ANY, r#"{"uri":"test://static-text"}"#),
    Row("resources/subscribe", LEGACY, r#"{"uri":"test://static-text"}"#),
    Row("resources/unsubscribe", LEGACY, r#"{"uri":"test://static-text"}"#),
    Row(
        "completion/complete",
        ANY,
        r#"{"ref":{"type":"ref/prompt","name":"test_prompt_with_arguments"},"argument":{"name":"arg1","value":""}}"#,
    ),
    Row("logging/setLevel", LEGACY, r#"{"level":"info"}"#),
    Row("subscriptions/listen", MODERN, r#"{"notifications":{"toolsListChanged":true}}"#),
    Row("tasks/get", TASKS, r#"{"taskId":"1"}"#),
    Row("tasks/result", OLD_TASKS, r#"{"taskId":"1"}"#),
    Row("tasks/cancel", TASKS, r#"{"taskId":"1"}"#),
    Row("tasks/list", OLD_TASKS, "{}"),
    Row("tasks/update", MODERN, r#"{"taskId":"1","inputResponses":{}}"#),
];

type Has = fn(Revision) -> bool;

/// What the server does not answer, and why.
const UNSUPPORTED: &[(&str, Has, &str)] = &[
    (
        "tasks/get",
        LEGACY,
        "tasks are experimental in 2025-11-25; the extension of the modern era has taken their place",
    ),
    ("tasks/result", LEGACY, "as tasks/get"),
    ("tasks/cancel", LEGACY, "as tasks/get"),
    ("tasks/list", LEGACY, "as tasks/get"),
];

async fn answer(revision: Revision, method: &str, params: &str) -> Value {
    let mut peer = Peer::memory(everything_server::server());
    let mut params: Value = serde_json::from_str(params).unwrap();
    if revision.era() == Era::Modern {
        params["_meta"] = super::tasks::meta();
    } else if method != "initialize" {
        let client = json!({ "name": "t", "version": "0" });
        let hello = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client });
        peer.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }).to_string()).await;
        assert_eq!(peer.hear().await["result"]["protocolVersion"], revision.as_str());
    }
    peer.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()).await;
    peer.hear().await
}

/// What a revision has is answered with a result; what it has not, and what is declared unsupported, is not found.
#[tokio::test(start_paused = true)]
async fn every_request_of_every_revision_is_answered() {
    for revision in Revision::ALL {
        for Row(method, has, params) in REQUESTS {
            let answer = answer(*revision, method, params).await;
            let is_supported = has(*revision)
                && UNSUPPORTED.iter().all(|(unsupported, lacks, _)| unsupported != method || !lacks(*revision));
            match is_supported {
                // A subscription is answered when it ends, and acknowledged before.
                true if *method == "subscriptions/listen" => {
                    assert_eq!(answer["method"], "notifications/subscriptions/acknowledged", "{answer}");
                }
                // There is no such task.
                true if method.starts_with("tasks/") => assert_eq!(answer["error"]["code"], -32602, "{answer}"),
                true => assert!(answer["result"].is_object(), "{revision} {method}: {answer}"),
                false => assert_eq!(answer["error"]["code"], -32601, "{revision} {method}: {answer}"),
            }
        }
    }
}

/// A method that the server answers by now must not be declared unsupported.
#[test]
fn every_exception_is_a_request_and_has_a_reason() {
    for (method, _, reason) in UNSUPPORTED {
        assert!(REQUESTS.iter().any(|Row(request, ..)| request == method) && !reason.is_empty(), "{method}");
    }
}
