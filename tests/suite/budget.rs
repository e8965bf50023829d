//! What a call may cost. The counts are of this thread alone, so that other tests do not disturb them.

use mcp_core::{
    Exchange, Principal, Server, Tool, ToolError, implementation,
    server::{Arrival, Peer},
};
use mcp_jsonrpc::{Inbound, Message, Raw};
use serde_json::Value;
use tokio::runtime::Builder;

const LEGACY: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":5}}}"#;
const MODERN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":5},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"b","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// From bytes to bytes, the handler and its result included.
#[test]
fn a_call_of_add_keeps_its_budget_of_allocations() {
    const MOST: u64 = 20;
    let server = everything_server::server();
    let runtime = Builder::new_current_thread().build().unwrap();
    for message in [LEGACY, MODERN] {
        let mut reply = runtime.block_on(server.handle(message));
        let counted = allocation_counter::measure(|| reply = runtime.block_on(server.handle(message)));
        let text = String::from_utf8(reply.unwrap().to_vec()).unwrap();
        assert!(text.contains(r#""text":"7""#), "{text}");
        assert!((1..=MOST).contains(&counted.count_total), "{} allocations", counted.count_total);
    }
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// With many tools, and a filter by which each of two callers sees others: what a second list allocates is hardly more
/// than its answer. (That it renders nothing is shown beside the registry.)
#[test]
fn a_second_list_allocates_little_more_than_its_answer() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let server = many_tools(700);
    let list = |who: &str| {
        let peer = Peer::new().principal(Some(Principal::new(who)));
        runtime.block_on(async {
            let Inbound::One(Message::Request(request)) = server.decode(LIST.into()) else { panic!("a request") };
            let exchange = server.accept(request, Arrival::alone().of(&peer)).unwrap();
            server.encode(&server.call(exchange).await)
        })
    };
    for who in ["even", "odd"] {
        let first = list(who);
        let mut second = first.clone();
        let counted = allocation_counter::measure(|| second = list(who));
        assert_eq!(first, second);
        let entries = serde_json::from_slice::<Value>(&second).unwrap()["result"]["tools"].as_array().unwrap().len();
        assert_eq!(entries, 350);
        let (bytes, reply) = (counted.bytes_total, second.len() as u64);
        assert!(bytes >= reply && bytes < reply + reply / 4, "{bytes} bytes for an answer of {reply}");
        assert!(counted.count_total <= 20, "{} allocations", counted.count_total);
    }
}

fn many_tools(count: usize) -> Server {
    async fn nothing() -> Result<(), ToolError> {
        Ok(())
    }
    let tool = |index| {
        let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}}}"#;
        let tool = Tool::new(format!("tool_{index:03}"), nothing).describe("Does this and that, as the name says");
        tool.output_schema(Raw::parse(schema).unwrap())
    };
    let sees = |exchange: &Exchange, tool: &Tool| {
        let is_odd = tool.definition().name.ends_with(['1', '3', '5', '7', '9']);
        exchange.principal().is_some_and(|principal| is_odd == (principal.id() == "odd"))
    };
    let server = Server::builder(implementation!()).tool_filter(sees).build();
    server.tools().add((0..count).map(tool)).unwrap();
    server
}
