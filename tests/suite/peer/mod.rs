//! A scripted peer: a server that is played from data, whatever it is that servers do wrong.
//!
//! [`memory`] is `mcp_test`'s, which plays it over a pair in memory, where time can be paused; [`http`] plays it over a
//! socket, down to the bytes; [`process`] as a child process. None of them knows more of the protocol than a script says.

#![allow(clippy::unwrap_used, reason = "tests, and what only they call")]

pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod process;

/// A peer over a pair in memory.
pub(crate) mod memory {
    pub(crate) use mcp_test::{
        ScriptedServer as ScriptedPeer,
        script::{Script, Step, close, expect, expect_as, flood, raw, rest, send, serve, wait},
    };
}
