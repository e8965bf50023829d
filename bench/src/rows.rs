//! What is measured: a row a kind of work, and who does it.

use crate::{cores::Cores, load::wire::Wire};

/// One kind of work.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) load: Load,
    pub(crate) contestants: &'static [Contestant],
}

/// How the calls reach a contestant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Load {
    /// A child's stdin and stdout, after a handshake, with so many calls in flight.
    Pipe { depth: u64, cores: Cores },
    /// TCP connections, one call in flight on each, in the modern era.
    Sockets { wire: Wire, connections: u64, cores: Cores },
    /// A function in this process.
    Direct,
    /// A pair of byte streams in this process.
    Pair,
}

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Ceiling,
    Ours,
    Rmcp,
    TowerMcp,
}

/// One program, or in this process one function, that does a row's work.
pub(crate) struct Contestant {
    pub(crate) who: Who,
    /// What sets it apart from the same one's other entries.
    pub(crate) manner: &'static str,
    /// What its program is called with.
    pub(crate) arguments: &'static [&'static str],
}

impl Contestant {
    const fn new(who: Who, manner: &'static str, arguments: &'static [&'static str]) -> Self {
        Self { who, manner, arguments }
    }

    /// As it is called in the table.
    pub(crate) fn label(&self) -> String {
        let name = match self.who {
            Who::Ceiling => "ceiling",
            Who::Ours => "ours",
            Who::Rmcp => "rmcp",
            Who::TowerMcp => "tower-mcp",
        };
        if self.manner.is_empty() { name.to_owned() } else { format!("{name}, {}", self.manner) }
    }
}

const HTTP: &[Contestant] = &[
    Contestant::new(Who::Ceiling, "", &["http"]),
    Contestant::new(Who::Ours, "", &["http", "--listen", "127.0.0.1:0"]),
    Contestant::new(Who::Rmcp, "JSON", &["http-json"]),
    Contestant::new(Who::Rmcp, "default", &["http-default"]),
    Contestant::new(Who::TowerMcp, "", &["http"]),
];

const STDIO: &[Contestant] = &[
    Contestant::new(Who::Ceiling, "", &["stdio"]),
    Contestant::new(Who::Ours, "", &["stdio"]),
    Contestant::new(Who::Rmcp, "pipes", &["stdio-pipes"]),
    Contestant::new(Who::Rmcp, "default", &["stdio"]),
    Contestant::new(Who::TowerMcp, "", &["stdio"]),
];

const WEB_SOCKET: &[Contestant] = &[
    Contestant::new(Who::Ceiling, "", &["ws"]),
    Contestant::new(Who::Ours, "", &["ws", "--listen", "127.0.0.1:0"]),
    Contestant::new(Who::TowerMcp, "", &["ws"]),
];

const DIRECT: &[Contestant] = &[
    Contestant::new(Who::Ceiling, "", &[]),
    Contestant::new(Who::Ours, "", &[]),
    Contestant::new(Who::Rmcp, "over a pair", &[]),
    Contestant::new(Who::TowerMcp, "", &[]),
];

const PAIR: &[Contestant] = &[
    Contestant::new(Who::Ceiling, "", &[]),
    Contestant::new(Who::Ours, "", &[]),
    Contestant::new(Who::Rmcp, "", &[]),
    Contestant::new(Who::TowerMcp, "", &[]),
];

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "http",
        about: "a modern call over HTTP, 16 connections",
        load: Load::Sockets { wire: Wire::Http, connections: 16, cores: Cores::Any },
        contestants: HTTP,
    },
    Row {
        name: "stdio",
        about: "a legacy call over stdio, one at a time, client and server on cores of their own",
        load: Load::Pipe { depth: 1, cores: Cores::Apart },
        contestants: STDIO,
    },
    Row {
        name: "stdio-core",
        about: "the same, client and server on one core",
        load: Load::Pipe { depth: 1, cores: Cores::Together },
        contestants: STDIO,
    },
    Row {
        name: "stdio-64",
        about: "legacy calls over stdio, 64 in flight",
        load: Load::Pipe { depth: 64, cores: Cores::Any },
        contestants: STDIO,
    },
    Row {
        name: "ws",
        about: "a modern call over WebSocket, 1 connection, client and server on cores of their own",
        load: Load::Sockets { wire: Wire::WebSocket, connections: 1, cores: Cores::Apart },
        contestants: WEB_SOCKET,
    },
    Row {
        name: "ws-core",
        about: "the same, client and server on one core",
        load: Load::Sockets { wire: Wire::WebSocket, connections: 1, cores: Cores::Together },
        contestants: WEB_SOCKET,
    },
    Row {
        name: "ws-16",
        about: "a modern call over WebSocket, 16 connections",
        load: Load::Sockets { wire: Wire::WebSocket, connections: 16, cores: Cores::Any },
        contestants: WEB_SOCKET,
    },
    Row {
        name: "in-process",
        about: "a modern call in process, bytes to bytes",
        load: Load::Direct,
        contestants: DIRECT,
    },
    Row {
        name: "pair",
        about: "a modern call in process, over a pair of byte streams",
        load: Load::Pair,
        contestants: PAIR,
    },
];
