//! curl sends the bare requests.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Doing, Error, Result};
use crate::interop::bench::Bench;
use crate::interop::call::{ADD, Call, Heard, LIST};
use crate::interop::peer::{Era, Outcomes, Peer, Session, Speak, Wire};
use crate::{debian, process};

pub(crate) const PEER: Peer = Peer {
    name: "curl",
    version: "any",
    wires: &[Wire::Http],
    eras: &[Era::Modern, Era::Legacy],
    calls: &[LIST, ADD],
    speak: Speak::Here(by_curl),
    ..Peer::PLAIN
};

const CALL_LIMIT: Duration = Duration::from_secs(30);

fn by_curl(bench: &Bench, session: &Session) -> Outcomes {
    debian::ensure("curl")?;
    // The server with sessions answers modern requests from anyone; a legacy request without a session needs the other.
    let serving = bench.fixtures.serve(if session.era == Era::Legacy { &["--stateless"] } else { &[] })?;
    Ok(session.peer.calls.iter().map(|call| curl(&serving.url, session, call)).collect())
}

fn curl(url: &str, session: &Session, call: &Call) -> Result {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "20", "--request", "POST", url]);
    for header in headers(session, call) {
        command.args(["--header", &header]);
    }
    command.args(["--data", &request(session, call).to_string()]);
    let answer = parse(event_data(&said(&mut command, CALL_LIMIT)?))?;
    match answer.get("result") {
        Some(result) => call.judge(&Heard::of_result(result), false),
        None => Err(Error::new(format!("no result in {answer}"))),
    }
}

fn headers(session: &Session, call: &Call) -> Vec<String> {
    let mut headers = vec![
        "Content-Type: application/json".to_owned(),
        "Accept: application/json, text/event-stream".to_owned(),
        format!("MCP-Protocol-Version: {}", session.revision()),
    ];
    if session.era == Era::Modern {
        headers.push(format!("Mcp-Method: {}", call.method()));
        headers.extend(call.params()["name"].as_str().map(|name| format!("Mcp-Name: {name}")));
    }
    headers
}

fn request(session: &Session, call: &Call) -> Value {
    let mut params = call.params();
    if session.era == Era::Modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": session.revision(),
            "io.modelcontextprotocol/clientInfo": { "name": "curl", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": call.method(), "params": params })
}

/// The JSON of an answer, whether it came plain or as the last event of a stream.
fn event_data(body: &str) -> &str {
    body.lines().rev().find_map(|line| line.strip_prefix("data:")).unwrap_or(body)
}

/// What the command wrote to stdout; an error if it failed.
pub(crate) fn said(command: &mut Command, limit: Duration) -> Result<String> {
    let said = process::listen(command, limit)?;
    if said.status.success() {
        return Ok(said.stdout);
    }
    let program = Path::new(command.get_program()).display().to_string();
    Err(Error::new(format!("{program} failed ({}): {}{}", said.status, said.stdout.trim(), said.stderr.trim())))
}

pub(crate) fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text).doing(|| format!("the answer is no JSON: {}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(era: Era) -> Session {
        Session { peer: &PEER, wire: Wire::Http, era }
    }

    #[test]
    fn a_modern_request_mirrors_method_and_name_in_its_headers() {
        let headers = headers(&session(Era::Modern), &ADD);
        assert!(headers.contains(&"Mcp-Method: tools/call".to_owned()), "{headers:?}");
        assert!(headers.contains(&"Mcp-Name: add".to_owned()), "{headers:?}");
        assert!(request(&session(Era::Modern), &ADD)["params"]["_meta"].is_object());
    }

    #[test]
    fn a_legacy_request_carries_nothing_modern() {
        assert!(request(&session(Era::Legacy), &ADD)["params"].get("_meta").is_none());
        assert!(!headers(&session(Era::Legacy), &ADD).iter().any(|header| header.starts_with("Mcp-")));
    }

    #[test]
    fn an_answer_is_read_from_json_and_from_the_last_event() {
        assert_eq!(event_data("{}"), "{}");
        assert_eq!(event_data("event: message\ndata: {\"a\":1}\n\ndata: {\"b\":2}\n\n").trim(), "{\"b\":2}");
    }
}
