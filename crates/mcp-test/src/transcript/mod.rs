//! Conversations as text: what is said to a server and what must come back, for a person to read.
//!
//! A file holds several cases. `#` starts a comment line, blank lines mean nothing, and an indented line goes on where
//! the line before it stopped.
//!
//! ```text
//! == two numbers are added                   what the case shows
//! speak: legacy modern                       settings, each `name: value`; see below
//! with: 2 || 5 || 7
//! with: -1 || 1 || 0
//! > {"jsonrpc":"2.0","id":1,"method":"tools/call",
//!     "params":{"name":"add","arguments":{"a":$(1),"b":$(2)},$(meta)}}
//! < {"id":1,"result":{"content":[{"text":"$(3)"}]}}
//! ```
//!
//! [`golden`](crate::golden) runs a file against a server, and can fill in what the server answers.
//!
//! # Steps
//!
//! | step | meaning |
//! |---|---|
//! | `> TEXT` | sends a message |
//! | `>b BYTES` | sends a message given as bytes: `\xEF`, `\n`, `\r`, `\\` |
//! | `< JSON` | the next message |
//! | `<? JSON` | the next messages are those of this and the neighbouring `<?` lines, in any order |
//! | `<* JSON` | any number of messages like this one, even none |
//! | `<= TEXT` | the message before, as it came, contains the text |
//! | `<! TEXT` | the message before, as it came, does not contain it |
//! | `<-` | nothing more comes, and the connection lives |
//! | `wait 50` | waits for 50 ms |
//! | `eof` | ends the input; what follows is what the server still says |
//!
//! A case ends with `<-` and the end of the input, written or not: the server says nothing more and ends in good order.
//! That it still answers is asked with ids from 901 on, which a case leaves alone.
//!
//! JSON is compared by the rules of [`mismatch`](crate::mismatch). Beyond what a case says, every message must be
//! [well-formed](well_formed) in itself.
//!
//! # Settings
//!
//! | setting | meaning |
//! |---|---|
//! | `speak` | `legacy`, `modern`, `all` or dates: the case runs once for each revision, behind its handshake |
//! | `with` | the case runs once for each such line; `$(1)`, `$(2)` … are its cells, which `\|\|` separates |
//!
//! # Text that stands for other text
//!
//! | text | stands for |
//! |---|---|
//! | `$(300 {"a":)` | `{"a":` 300 times over; any text without `)` |
//! | `$(meta)`, `$(in_meta)` | the member `_meta`, or what follows a member within it, for the revision that is spoken |
//! | `$(modern)`, `$(in_modern)` | the same for the modern era whatever is spoken |
//! | `$(revision)` | the revision that is spoken |
//! | any other | what [`Words::with`] says |

mod bless;
mod conversation;
mod golden;
mod parse;
mod recorder;
mod shape;
mod variant;
mod words;

pub use conversation::Conversation;
pub use golden::golden;
pub use parse::{Case, Format, Step, parse};
pub use recorder::{RecordedSink, RecordedSource, RecordedWire, Recorder};
pub use shape::{Shape, well_formed};
pub use variant::Variant;
pub use words::{Words, unescape};
