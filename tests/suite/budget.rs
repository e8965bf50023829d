//! What a call may cost. The counts are of this thread alone, so that other tests do not disturb them.

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
