//! Other people's crates: rmcp, and tower-mcp.

use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{ALL, OURS};
use crate::interop::peer::{Era, Flaw, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::interop::program;

const RMCP: &str = "rmcp";
const RMCP_VERSION: &str = "3.11.0";
const TOWER_MCP: &str = "tower-mcp";
const TOWER_MCP_VERSION: &str = "0.25.0";

const PROGRESS_ELSEWHERE: &str = "their server sends progress on the stream for what is about no request";

pub(crate) const RMCP_CLIENT: Peer = Peer {
    from: "crates.io",
    name: RMCP,
    version: RMCP_VERSION,
    calls: ALL,
    speak: Speak::Installed(visit),
    ..Peer::PLAIN
};

pub(crate) const RMCP_SERVER: Peer = Peer {
    from: "crates.io",
    name: RMCP,
    version: RMCP_VERSION,
    role: Role::Server,
    calls: OURS,
    speak: Speak::Installed(serve),
    ..Peer::PLAIN
};

/// It is told the era, and does not find out.
pub(crate) const TOWER_MCP_CLIENT: Peer = Peer {
    from: "crates.io",
    name: TOWER_MCP,
    version: TOWER_MCP_VERSION,
    wires: &[Wire::Stdio, Wire::Http, Wire::WebSocket],
    eras: &[Era::Modern, Era::Legacy],
    calls: ALL,
    speak: Speak::Installed(visit),
    ..Peer::PLAIN
};

pub(crate) const TOWER_MCP_SERVER: Peer = Peer {
    from: "crates.io",
    name: TOWER_MCP,
    version: TOWER_MCP_VERSION,
    role: Role::Server,
    wires: &[Wire::Stdio, Wire::Http, Wire::WebSocket],
    calls: OURS,
    flaws: &[
        Flaw {
            call: "count",
            wires: &[Wire::Stdio],
            eras: Era::SPOKEN,
            words: "their server lets the answer overtake progress",
        },
        Flaw { call: "count", wires: &[Wire::Http], eras: &[Era::Legacy], words: PROGRESS_ELSEWHERE },
        Flaw {
            call: "count",
            wires: &[Wire::WebSocket],
            eras: Era::SPOKEN,
            words: "their server tells of no progress on a WebSocket",
        },
    ],
    gaps: &[
        Flaw { call: "cancel", wires: &[Wire::Http], eras: &[Era::Legacy], words: PROGRESS_ELSEWHERE },
        Flaw {
            call: "cancel",
            wires: &[Wire::WebSocket],
            eras: Era::SPOKEN,
            words: "their server reads nothing from a WebSocket while a call runs",
        },
        Flaw {
            call: "question",
            wires: &[Wire::WebSocket],
            eras: &[Era::Legacy],
            words: "their server sends no request on a WebSocket while a call runs",
        },
        Flaw {
            call: "change",
            wires: &[Wire::WebSocket],
            eras: Era::SPOKEN,
            words: "their server tells of no changes on a WebSocket",
        },
    ],
    speak: Speak::Installed(serve),
    ..Peer::PLAIN
};

fn visit(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    let client = installed.rust.program(package(session), "client");
    bench.be_visited(session.wire, |target| program::visit(client, session, target))
}

fn serve(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    bench.call(session, installed.rust.program(package(session), "server"))
}

/// The package of `tests/interop/rust`.
fn package(session: &Session) -> &'static str {
    if session.peer.name == RMCP { "rmcp-peer" } else { "tower-mcp-peer" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn the_versions_are_those_that_the_programs_are_built_with() {
        let lock = std::fs::read_to_string(workspace::root().join("tests/interop/rust/Cargo.lock")).unwrap();
        for (name, version) in [(RMCP, RMCP_VERSION), (TOWER_MCP, TOWER_MCP_VERSION)] {
            assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")), "{name}");
        }
    }
}
