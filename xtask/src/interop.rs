//! `cargo xtask interop`: clients that we did not write call the example server.
//!
//! The MCP Inspector's command line speaks both eras over stdio and HTTP; curl sends the bare requests. Each lists the
//! tools and adds 2 and 5.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Doing, Error, Result};
use crate::fixtures::Fixtures;
use crate::node::{Node, NpmPackage};
use crate::table::Table;
use crate::{debian, process};

const INSPECTOR: NpmPackage = NpmPackage { name: "@modelcontextprotocol/inspector", version: "2.12.0" };

/// A call takes a second; this is for a client that waits for an answer that never comes.
const CALL_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Modern,
    Legacy,
}

impl Era {
    fn word(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

/// The two calls that every client makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    List,
    Add,
}

impl Call {
    fn method(self) -> &'static str {
        match self {
            Self::List => "tools/list",
            Self::Add => "tools/call",
        }
    }

    fn params(self) -> Value {
        match self {
            Self::List => json!({}),
            Self::Add => json!({ "name": "add", "arguments": { "a": 2, "b": 5 } }),
        }
    }

    /// Whether `result` is the answer: a list that has `add`, or a text that has 7.
    fn expect(self, result: &Value) -> Result {
        let (list, member, wanted) = match self {
            Self::List => (&result["tools"], "name", "add"),
            Self::Add => (&result["content"], "text", "7"),
        };
        let mut texts = list.as_array().into_iter().flatten().filter_map(|entry| entry[member].as_str());
        let found = match self {
            Self::List => texts.any(|text| text == wanted),
            Self::Add => texts.any(|text| text.contains(wanted)),
        };
        if found { Ok(()) } else { Err(Error::new(format!("no {member} `{wanted}` in {result}"))) }
    }
}

/// What was tried and what came of it.
struct Row {
    client: &'static str,
    wire: &'static str,
    era: Era,
    call: Call,
    outcome: Result,
}

/// Makes every call and prints the table; an error if any call failed.
pub(crate) fn run(skip_npm: bool) -> Result {
    let fixtures = Fixtures::build()?;
    let mut rows = Vec::new();
    if skip_npm {
        println!("left out (--skip-npm): the calls by the MCP Inspector");
    } else {
        by_inspector(&fixtures, &mut rows)?;
    }
    by_curl(&fixtures, &mut rows)?;
    print(&rows);
    match rows.iter().filter(|row| row.outcome.is_err()).count() {
        0 => Ok(()),
        failed => Err(Error::new(format!("interop: {failed} of {} calls failed", rows.len()))),
    }
}

fn print(rows: &[Row]) {
    let mut table = Table::new(&["client", "wire", "era", "call", ""]);
    for row in rows {
        let outcome = row.outcome.as_ref().map_or_else(ToString::to_string, |()| "ok".to_owned());
        table.row([row.client, row.wire, row.era.word(), row.call.method(), &outcome].map(str::to_owned));
    }
    table.print();
}

fn by_inspector(fixtures: &Fixtures, rows: &mut Vec<Row>) -> Result {
    let node = Node::with(INSPECTOR)?;
    let serving = fixtures.serve(&[])?;
    let stdio = [fixtures.server.as_os_str(), OsStr::new("stdio")];
    let http = [OsStr::new(&serving.url)];
    for (wire, target) in [("stdio", stdio.as_slice()), ("http", http.as_slice())] {
        for era in [Era::Legacy, Era::Modern] {
            for call in [Call::List, Call::Add] {
                let outcome = inspect(&node, target, era, call);
                rows.push(Row { client: "inspector", wire, era, call, outcome });
            }
        }
    }
    Ok(())
}

fn inspect(node: &Node, target: &[&OsStr], era: Era, call: Call) -> Result {
    let mut command = node.command("mcp-inspector");
    command.arg("--cli").args(target).args(["--protocol-era", era.word(), "--method", call.method()]);
    if call == Call::Add {
        command.args(["--tool-name", "add", "--tool-arg", "a=2", "b=5"]);
    }
    call.expect(&parse(&said(&mut command)?)?)
}

fn by_curl(fixtures: &Fixtures, rows: &mut Vec<Row>) -> Result {
    debian::ensure("curl")?;
    // The server with sessions answers modern requests from anyone; a legacy request without a session needs the other.
    let (sessions, sessionless) = (fixtures.serve(&[])?, fixtures.serve(&["--stateless"])?);
    for (era, url) in [(Era::Legacy, &sessionless.url), (Era::Modern, &sessions.url)] {
        for call in [Call::List, Call::Add] {
            rows.push(Row { client: "curl", wire: "http", era, call, outcome: curl(url, era, call) });
        }
    }
    Ok(())
}

fn curl(url: &str, era: Era, call: Call) -> Result {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "20", "--request", "POST", url]);
    for header in headers(era, call) {
        command.args(["--header", &header]);
    }
    command.args(["--data", &request(era, call).to_string()]);
    let answer = parse(event_data(&said(&mut command)?))?;
    match answer.get("result") {
        Some(result) => call.expect(result),
        None => Err(Error::new(format!("no result in {answer}"))),
    }
}

fn headers(era: Era, call: Call) -> Vec<String> {
    let mut headers = vec![
        "Content-Type: application/json".to_owned(),
        "Accept: application/json, text/event-stream".to_owned(),
        format!("MCP-Protocol-Version: {}", revision(era)),
    ];
    if era == Era::Modern {
        headers.push(format!("Mcp-Method: {}", call.method()));
        headers.extend(call.params()["name"].as_str().map(|name| format!("Mcp-Name: {name}")));
    }
    headers
}

fn request(era: Era, call: Call) -> Value {
    let mut params = call.params();
    if era == Era::Modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision(era),
            "io.modelcontextprotocol/clientInfo": { "name": "curl", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": call.method(), "params": params })
}

fn revision(era: Era) -> &'static str {
    match era {
        Era::Modern => "2026-07-28",
        Era::Legacy => "2025-11-25",
    }
}

/// The JSON of an answer, whether it came plain or as the last event of a stream.
fn event_data(body: &str) -> &str {
    body.lines().rev().find_map(|line| line.strip_prefix("data:")).unwrap_or(body)
}

fn said(command: &mut Command) -> Result<String> {
    let said = process::listen(command, CALL_LIMIT)?;
    if said.status.success() {
        return Ok(said.stdout);
    }
    let program = Path::new(command.get_program()).display().to_string();
    Err(Error::new(format!("{program} failed ({}): {}{}", said.status, said.stdout.trim(), said.stderr.trim())))
}

fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text).doing(|| format!("the answer is no JSON: {}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_must_have_add_and_not_only_a_name_that_begins_with_it() {
        assert!(Call::List.expect(&json!({ "tools": [{ "name": "echo" }, { "name": "add" }] })).is_ok());
        assert!(Call::List.expect(&json!({ "tools": [{ "name": "add_all" }] })).is_err());
        assert!(Call::List.expect(&json!({})).is_err());
    }

    #[test]
    fn a_seven_elsewhere_in_the_answer_does_not_count() {
        assert!(Call::Add.expect(&json!({ "content": [{ "type": "text", "text": "7" }] })).is_ok());
        let elsewhere = json!({ "content": [{ "type": "text", "text": "no" }], "_meta": { "since": "2026-07-28" } });
        assert!(Call::Add.expect(&elsewhere).is_err());
    }

    #[test]
    fn a_modern_request_mirrors_method_and_name_in_its_headers() {
        let headers = headers(Era::Modern, Call::Add);
        assert!(headers.contains(&"Mcp-Method: tools/call".to_owned()), "{headers:?}");
        assert!(headers.contains(&"Mcp-Name: add".to_owned()), "{headers:?}");
        assert!(request(Era::Modern, Call::Add)["params"]["_meta"].is_object());
    }

    #[test]
    fn a_legacy_request_carries_nothing_modern() {
        assert!(request(Era::Legacy, Call::Add)["params"].get("_meta").is_none());
        assert!(!headers(Era::Legacy, Call::Add).iter().any(|header| header.starts_with("Mcp-")));
    }

    #[test]
    fn an_answer_is_read_from_json_and_from_the_last_event() {
        assert_eq!(event_data("{}"), "{}");
        assert_eq!(event_data("event: message\ndata: {\"a\":1}\n\ndata: {\"b\":2}\n\n").trim(), "{\"b\":2}");
    }
}
