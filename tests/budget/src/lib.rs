//! The hot functions, each set up so that it can be measured without its set-up. `cargo xtask budget` counts what they
//! cost and holds it to `budget.txt`.

#![expect(clippy::unwrap_used, reason = "what is measured must work")]

mod client;
mod codec;
mod http;
mod messages;
mod server;
mod servers;
mod stand;
mod streams;

pub use stand::Meter;
use stand::Stand;

/// A function to be measured.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Function {
    /// What it is called in the budget.
    pub name: &'static str,
    run: fn(&mut Stand<'_>),
}

impl Function {
    /// Runs it, the part that counts through `meter`. Returns how many calls that part has.
    pub fn run(&self, meter: Meter<'_>) -> u64 {
        let mut stand = Stand::new(meter);
        (self.run)(&mut stand);
        stand.calls()
    }
}

/// All functions, in the order of the budget: from a message's first scan to whole wires.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "decode-call", run: codec::decode_call },
    Function { name: "decode-175-kb", run: codec::decode_large },
    Function { name: "accept", run: server::accept },
    Function { name: "encode-reply", run: server::encode_reply },
    Function { name: "handle-modern", run: server::handle_modern },
    Function { name: "handle-legacy", run: server::handle_legacy },
    Function { name: "list-10-tools", run: server::list_10 },
    Function { name: "list-700-tools", run: server::list_700 },
    Function { name: "list-350-of-700-tools", run: server::list_filtered },
    Function { name: "http-modern", run: http::modern },
    Function { name: "http-session", run: http::session },
    Function { name: "http-sse-one-progress", run: http::progress },
    Function { name: "lines-64-in-flight", run: streams::lines },
    Function { name: "websocket", run: streams::websocket },
    Function { name: "client-request", run: client::request },
    Function { name: "client-and-server", run: client::call },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_function_has_a_name_of_its_own_that_is_one_word() {
        let names: BTreeSet<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
        assert_eq!(names.len(), FUNCTIONS.len());
        assert!(names.iter().all(|name| !name.contains(|letter: char| letter.is_whitespace() || letter == ':')));
    }
}
