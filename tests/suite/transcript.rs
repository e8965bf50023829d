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
//! # Settings
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

/// The revisions that the server is to accept; none stands for all.
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
        "handler_timeout" => limits.handler_timeout(Some(time()?)),
        "keep_alive" => limits.keep_alive(time()?),
        "stall_timeout" => limits.stall_timeout(time()?),
        "shutdown_grace" => limits.shutdown_grace(time()?),
        _ => return None,
    })
}
