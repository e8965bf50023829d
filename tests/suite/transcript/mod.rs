//! Conversations as text: what is sent and what must come back, for a person to read.
//!
//! A file holds several cases. `#` starts a comment line, blank lines mean nothing, and an indented line goes on where the
//! line before it stopped.
//!
//! ```text
//! == C001 an id of null is refused           the case's id and what it shows
//! on: memory stdio                           settings, each `name: value`; see below
//! > {"jsonrpc":"2.0","id":null,"method":"tools/list"}
//! < {"id":null,"error":{"code":-32600}}
//! ```
//!
//! # Steps of a conversation in messages (`messages.rs` runs them)
//!
//! | step | meaning |
//! |---|---|
//! | `> TEXT` | sends a message |
//! | `>b BYTES` | sends a message given as bytes: `\xEF`, `\n`, `\r`, `\\` |
//! | `>raw BYTES` | writes bytes as they are, with no line end behind them (not on `memory`, `http`) |
//! | `>drip TEXT` | sends a message byte by byte (not on `memory`, `http`) |
//! | `< JSON` | the next message |
//! | `<? JSON` | the next messages are those of this and the neighbouring `<?` lines, in any order |
//! | `<* JSON` | any number of messages like this one, even none |
//! | `<= TEXT` | the message before, as it came, contains the text |
//! | `<! TEXT` | the message before, as it came, does not contain it |
//! | `<-` | nothing more comes, and the connection lives |
//! | `wait 50` | waits for 50 ms |
//! | `eof` | ends the input; what follows is what the server still says |
//!
//! A case ends with `<-` and the end of the input, written or not: the server says nothing more and ends in good order. Over `http` each message is a
//! POST of its own, so there the order of answers means nothing and every `<` is a `<?`.
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
//! as long as the server leaves it open.
//!
//! # What is expected of JSON
//!
//! An object may have more members than the expected one, an array must be equal in length. `"~text"` is a string that
//! contains the text, `"!any"` any value, `"!absent"` a member that is not there, and an array that begins with
//! `"!unordered"` is one in any order. Beyond what a case says, every
//! message must be a well-formed message in itself (`shape.rs`).
//!
//! # Settings
//!
//! | setting | meaning |
//! |---|---|
//! | `on` | the wires, of `memory`, `lines` (stdio's framing in this process), `stdio` (a real process), `http`; by default all that can run the case |
//! | `speak` | `legacy`, `modern`, `all` or dates: the case runs once for each revision, behind its handshake |
//! | `with` | the case runs once for each such line; `$(1)`, `$(2)` … are its cells, which `\|\|` separates |
//! | `server` | `everything` (default), or `odd`, the fixture of this suite |
//! | `limits` | bounds of the server: `in_flight=2 handler=100ms` |
//! | `accepts` | the revisions that the server accepts (`odd` only) |
//! | `origins`, `hosts`, `bind`, `streaming`, `path` | how the HTTP routes are set up |
//!
//! # Text that stands for other text
//!
//! | text | stands for |
//! |---|---|
//! | `$(300 {"a":)` | `{"a":` 300 times over; any text without `)` |
//! | `$(meta)`, `$(in_meta)` | the member `_meta`, or what follows a member within it, for the revision that is spoken |
//! | `$(modern)`, `$(in_modern)` | the same for the modern era whatever is spoken |
//! | `$(revision)` | the revision that is spoken |
//! | `$(port)` | the port that the HTTP server listens on |

mod expect;
mod parse;
mod shape;
mod text;

pub(crate) use expect::mismatch;
pub(crate) use parse::{Case, Step, parse};
pub(crate) use shape::{Shape, well_formed};
pub(crate) use text::{Words, unescape};

use mcp_core::{Limits, Revision};

/// One run of a case: one `with` line, one revision.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) cells: Vec<String>,
    pub(crate) speaks: Option<Revision>,
}

impl Case {
    /// Every run of the case.
    pub(crate) fn variants(&self) -> Result<Vec<Variant>, String> {
        let rows: Vec<Vec<String>> = match self.all("with").collect::<Vec<_>>().as_slice() {
            [] => vec![Vec::new()],
            rows => rows.iter().map(|row| row.split("||").map(|cell| cell.trim().to_owned()).collect()).collect(),
        };
        let speaks = self.speaks()?;
        let each = |row: &Vec<String>| {
            speaks.iter().map(|speaks| Variant { cells: row.clone(), speaks: *speaks }).collect::<Vec<_>>()
        };
        Ok(rows.iter().flat_map(each).collect())
    }

    fn speaks(&self) -> Result<Vec<Option<Revision>>, String> {
        let Some(words) = self.setting("speak") else { return Ok(vec![None]) };
        let mut revisions = Vec::new();
        for word in words.split_whitespace() {
            match word {
                "all" => revisions.extend(Revision::ALL),
                "modern" => revisions.push(Revision::LATEST),
                "legacy" => {
                    revisions.extend(Revision::ALL.iter().filter(|revision| **revision <= Revision::LATEST_LEGACY));
                }
                date => revisions.push(Revision::parse(date).ok_or_else(|| format!("no revision `{date}`"))?),
            }
        }
        Ok(revisions.into_iter().map(Some).collect())
    }

    /// The revisions that the server is to accept; none stands for all.
    pub(crate) fn accepts(&self) -> Result<Vec<Revision>, String> {
        let dates = self.setting("accepts").unwrap_or_default().split_whitespace();
        dates.map(|date| Revision::parse(date).ok_or_else(|| format!("no revision `{date}`"))).collect()
    }

    /// The server's bounds.
    pub(crate) fn limits(&self) -> Result<Limits, String> {
        self.all("limits").flat_map(str::split_whitespace).try_fold(Limits::default(), |limits, pair| {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is no limit"))?;
            limit(limits, name, value).ok_or_else(|| format!("`{pair}` is no limit"))
        })
    }
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
        "page_size" => limits.page_size(number()?),
        "handler_timeout" => limits.handler_timeout(Some(time()?)),
        "keep_alive" => limits.keep_alive(time()?),
        "stall_timeout" => limits.stall_timeout(time()?),
        "shutdown_grace" => limits.shutdown_grace(time()?),
        _ => return None,
    })
}
