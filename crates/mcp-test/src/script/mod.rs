//! What a [`ScriptedServer`](crate::ScriptedServer) does, step by step.
//!
//! A script knows no more of the protocol than it says, so that a server can be played whatever it does wrong.
//! [`modern`] and [`legacy`] are how well-behaved servers of either era begin.

mod openings;

use std::{fmt, sync::Arc, time::Duration};

use mcp_core::jsonrpc::Bytes;
pub use openings::{discovered, handshake, initialized, legacy, modern};
use serde_json::Value;

/// One step of a script. After the last one the server listens and says nothing; a message that comes then fails the
/// script, unless the last step is [`rest`].
#[derive(Clone)]
pub struct Step(pub(crate) Kind);

/// What a server does on one connection.
pub type Script = Vec<Step>;

#[derive(Clone)]
pub(crate) enum Kind {
    /// The next message is like this. Its id goes by that name from now on.
    Expect(&'static str, Value),
    Send(Value),
    Raw(Bytes),
    Flood(usize, Arc<dyn Fn(usize) -> Bytes + Send + Sync>),
    Wait(Duration),
    Serve(Arc<Rule>),
    Rest,
    Close,
}

/// What a message is answered with.
pub(crate) type Rule = dyn Fn(&Value) -> Vec<Value> + Send + Sync;

/// The next message is like this, by the rules of [`mismatch`](crate::mismatch); its id is `$id` from now on.
pub fn expect(like: Value) -> Step {
    Step(Kind::Expect("$id", like))
}

/// The next message is like this; its id is `name`, which begins with `$`, from now on.
pub fn expect_as(name: &'static str, like: Value) -> Step {
    Step(Kind::Expect(name, like))
}

/// Sends a message. `jsonrpc` is put in where it is missing, and a string that is the name of an id, as `$id`, is
/// replaced by that id.
pub fn send(message: Value) -> Step {
    Step(Kind::Send(message))
}

/// Sends a frame as it is, be it JSON or not.
pub fn raw(frame: impl Into<Bytes>) -> Step {
    Step(Kind::Raw(frame.into()))
}

/// Sends what `frame` makes of each number below `count`, as it is.
pub fn flood(count: usize, frame: impl Fn(usize) -> Bytes + Send + Sync + 'static) -> Step {
    Step(Kind::Flood(count, Arc::new(frame)))
}

/// Lets time pass.
pub fn wait(duration: Duration) -> Step {
    Step(Kind::Wait(duration))
}

/// Sends what `answer` makes of each message that comes, until the client closes. Messages are filled in as those of
/// [`send`] are; this is the last step of a script.
pub fn serve(answer: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static) -> Step {
    Step(Kind::Serve(Arc::new(answer)))
}

/// From here on anything may come, and is not answered; this is the last step of a script. Unlike one that ends with
/// [`serve`], it need not wait for the client to close.
#[must_use]
pub fn rest() -> Step {
    Step(Kind::Rest)
}

/// Closes the connection.
pub fn close() -> Step {
    Step(Kind::Close)
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Expect(name, like) => write!(f, "expect {name} {like}"),
            Kind::Send(message) => write!(f, "send {message}"),
            Kind::Raw(frame) => write!(f, "raw {frame:?}"),
            Kind::Flood(count, _) => write!(f, "flood {count}"),
            Kind::Wait(duration) => write!(f, "wait {duration:?}"),
            Kind::Serve(_) => f.write_str("serve"),
            Kind::Rest => f.write_str("rest"),
            Kind::Close => f.write_str("close"),
        }
    }
}
