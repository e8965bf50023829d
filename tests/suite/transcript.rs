//! The format of `mcp_test::transcript` with what this suite adds to it: more wires, more settings, and HTTP.
//!
//! # Steps of a conversation in messages (`messages.rs` runs them)
//!
//! | step | meaning |
//! |---|---|
//! | `>raw BYTES` | writes bytes as they are, with no line end behind them (not on `memory`, `http`) |
//! | `>drip TEXT` | sends a message byte by byte (not on `memory`, `http`) |
//!
//! Over `http` each message is a POST of its own, so there the order of answers means nothing and every `<` is a `<?`.
//!
//! # Steps of a conversation in HTTP (`http/cases.rs` runs them)
//!
//! | step | meaning |
//! |---|---|
//! | `> POST /mcp` | begins a request; ` HTTP/1.0` may follow |
//! | `> Name: value` | a header, instead of the default one of that name, or of that name sent before in other letter case |
//! | `> + Name: value` | a header beside those of that name |
//! | `> -Name` | no such header, though it is a default |
//! | `>` | ends the head |
//! | `> TEXT`, `>b BYTES` | the body |
//! | `< 200` | the status of the answer |
//! | `< Name: value`, `< -Name` | a header that it has (`~` as below) or has not |
//! | `< {…}` | the body is this JSON |
//! | `<e {…}` | the next event; after the last one the stream ends |
//! | `<k` | at least one keep-alive comes |
//! | `<= TEXT`, `<! TEXT` | the body, as it came, contains the text, or does not |
//! | `< empty` | there is no body |
//! | `< closed` | the server closes the connection behind the answer |
//!
//! Defaults are `Host`, `Content-Type: application/json`, `Accept: application/json, text/event-stream` and the
//! `Content-Length`. With `Transfer-Encoding: chunked` the body goes in chunks. Requests of one case share a connection
//! as long as the server leaves it open. `$(port)` is the server's port, `$(session)` the session that began last, and
//! `$(event1)`, `$(event2)` … are the ids of the messages of the stream before.
//!
//! # Steps of a conversation with a client (`client/cases/` runs them)
//!
//! Here the script is the server, and what stands behind `>` is what the client must send. What its user does:
//!
//! | step | meaning |
//! |---|---|
//! | `connect` | connects; a case that says what it speaks is connected before its first step |
//! | `call NAME {…}` | calls a tool and reads its value; the name stands in quotation marks where it needs them |
//! | `raw NAME {…}`, `prompt NAME {…}`, `read URI` | the same for the whole result, a prompt, a resource |
//! | `list tools` | walks that list: `tools`, `prompts`, `resources` or `templates` |
//! | `listen tools x:a`, `unlisten` | listens to lists, by the same names, and to resources; listens no more |
//! | `ping`, `log LEVEL` | asks whether the server is alive, or for messages from that level on |
//! | `cancel`, `drop` | cancels what was begun last, or waits for it no more |
//! | `disconnect` | disconnects |
//! | `= JSON` | what was begun first, of all whose end was not asked for yet, comes to this value |
//! | `=~ TEXT` | the value before, as JSON, contains the text |
//! | `! Kind blame 404 -32601 ~TEXT` | it comes to an error: these words in any order and number, and the text in what it says |
//! | `took MS` | what came to an end before took so long; asked only where time is made up |
//! | `heard JSON` | the next progress, change or log message is heard |
//! | `warned TEXT` | the next warning in the log contains the text; where a case says so of one, no other comes. `warned` alone: none came |
//!
//! What the server hears and says:
//!
//! | step | meaning |
//! |---|---|
//! | `> JSON` | the next message; over HTTP, where each has its own request, the first one like it |
//! | `>= TEXT`, `>! TEXT` | the message before, as it came, contains the text, or does not |
//! | `>-` | nothing more comes, and the client works: its next call is answered |
//! | `>cancel ID` | the client takes that request back, or the last one: by a notification, or by closing its stream |
//! | `< TEXT`, `<b BYTES` | sends a message: over HTTP as the answer, or as an event of it |
//! | `<ok JSON` | answers the last request with this result; a string is a tool's text |
//! | `<x 200 TEXT` | sends a message so many times |
//! | `<raw BYTES` | writes bytes as they are (`lines`, and on the stream of `sse`, in a chunk of their own) |
//! | `<f 1 BYTES`, `<f 1+ BYTES` | writes a WebSocket frame of that opcode, the last one of its message or not |
//! | `>f 8 BYTES` | the next frame has that opcode and begins with this |
//! | `close`, `cut` | ends the connection, or the stream of the answer, in good order or not |
//!
//! In HTTP to the letter, a request is the lines `> POST /mcp`, `> Name: value`, `> -Name` and `> JSON`, as many as matter;
//! and an answer is `<status 404`, behind which a media type and a body may stand, and then `< Name: value`, `<` and the body as
//! `< TEXT` or `<b BYTES`; `< open` among the headers leaves the body without an end, and `< cut` breaks it off. An upgrade to WebSocket is answered in the same way. What a case
//! does not mention is answered as it should be: a GET with 405 (`sse`: with a stream), a DELETE with 204, a notification
//! with 202, unless the case begins with `connect` and answers in HTTP.
//!
//! `$id` is the id of the last request that was heard, `$id1` that of the first one behind the opening, and so on; `$token` is
//! the last one's token for progress. A case ends with `>-` where the client is connected, written or not, and then with
//! the client, who sends nothing more.
//!
//! # Settings of a conversation with a client
//!
//! | setting | meaning |
//! |---|---|
//! | `on` | the wires, of `memory`, `lines`, `http` (answers are JSON), `sse` (answers are streams), `ws`; by default all that can run the case |
//! | `limits`, `accepts` | bounds of the client; the revisions that it speaks, where the case connects it itself |
//! | `timeout`, `at_most` | how long each call waits, in ms |
//! | `session` | what `initialize` begins, over HTTP |
//!
//! # Settings of a conversation with a server
//!
//! | setting | meaning |
//! |---|---|
//! | `on` | the wires, of `memory`, `lines` (stdio's framing in this process), `stdio` (a real process), `http`; by default all that can run the case |
//! | `server` | `everything` (default), or `odd` or `templated`, fixtures of this suite |
//! | `limits` | bounds of the server: `in_flight=2 handler=100ms` |
//! | `accepts` | the revisions that the server accepts (`odd` only) |
//! | `origins`, `hosts`, `bind`, `streaming`, `path` | how the HTTP routes are set up |
//! | `sessions` | with any value, the HTTP routes have sessions for the legacy era |

use mcp_core::{Limits, Revision};
use mcp_test::transcript::{Case, Format};

/// The cases of a file, or the first line that means nothing.
pub(crate) fn parse(text: &str) -> Result<Vec<Case>, String> {
    let format = Format::new()
        .settings(["on", "server", "accepts", "origins", "hosts", "bind", "streaming", "path", "sessions"])
        .repeatable(["limits"])
        .steps([">raw", ">drip", "<e", "<k"]);
    Ok(format.parse(text)?)
}

/// The cases of a file of conversations with a client, or the first line that means nothing.
pub(crate) fn parse_client(text: &str) -> Result<Vec<Case>, String> {
    let format = Format::new()
        .settings(["on", "accepts", "timeout", "at_most", "session"])
        .repeatable(["limits"])
        .steps([
            "connect",
            "call",
            "raw",
            "prompt",
            "read",
            "list",
            "listen",
            "unlisten",
            "ping",
            "log",
            "cancel",
            "drop",
            "disconnect",
        ])
        .steps(["=", "=~", "!", "took", "heard", "warned", ">=", ">!", ">-", ">cancel", ">f"])
        .steps(["<b", "<ok", "<status", "<x", "<raw", "<f", "close", "cut"]);
    Ok(format.parse(text)?)
}

/// The revisions that are to be accepted; none stands for all.
pub(crate) fn accepts(case: &Case) -> Result<Vec<Revision>, String> {
    let dates = case.setting("accepts").unwrap_or_default().split_whitespace();
    dates.map(|date| Revision::parse(date).ok_or_else(|| format!("no revision `{date}`"))).collect()
}

/// The server's bounds.
pub(crate) fn limits(case: &Case) -> Result<Limits, String> {
    case.all("limits").flat_map(str::split_whitespace).try_fold(Limits::default(), |limits, pair| {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is no limit"))?;
        limit(limits, name, value).ok_or_else(|| format!("`{pair}` is no limit"))
    })
}

fn limit(limits: Limits, name: &str, value: &str) -> Option<Limits> {
    let number = || value.parse().ok();
    let time = || value.strip_suffix("ms")?.parse().ok().map(std::time::Duration::from_millis);
    Some(match name {
        "message_bytes" => limits.message_bytes(number()?),
        "nesting" => limits.nesting(number()?),
        "id_bytes" => limits.id_bytes(number()?),
        "cursor_bytes" => limits.cursor_bytes(number()?),
        "batch" => limits.batch(number()?),
        "in_flight" => limits.in_flight(number()?),
        "waiting" => limits.waiting(number()?),
        "queue_messages" => limits.queue_messages(number()?),
        "queue_bytes" => limits.queue_bytes(number()?),
        "subscribed_uris" => limits.subscribed_uris(number()?),
        "uri_bytes" => limits.uri_bytes(number()?),
        "subscriptions" => limits.subscriptions(number()?),
        "page_size" => limits.page_size(number()?),
        "max_pages" => limits.max_pages(number()?),
        "list_bytes" => limits.list_bytes(number()?),
        "input_rounds" => limits.input_rounds(value.parse().ok()?),
        "request_timeout" => limits.request_timeout(time()?),
        "request_timeout_max" => limits.request_timeout_max(time()?),
        "probe_timeout" => limits.probe_timeout(time()?),
        "handler_timeout" => limits.handler_timeout(Some(time()?)),
        "keep_alive" => limits.keep_alive(time()?),
        "stall_timeout" => limits.stall_timeout(time()?),
        "shutdown_grace" => limits.shutdown_grace(time()?),
        _ => return None,
    })
}
