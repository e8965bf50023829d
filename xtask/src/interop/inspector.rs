//! The MCP Inspector's command line: each call is a run of its own.

use std::time::Duration;

use crate::error::Result;
use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{ADD, Call, Heard, LIST};
use crate::interop::curl::{parse, said};
use crate::interop::peer::{Era, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::node::NpmPackage;

pub(crate) const PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/inspector", version: "2.12.0" };

pub(crate) const PEER: Peer = Peer {
    from: "npm",
    name: PACKAGE.name,
    version: PACKAGE.version,
    role: Role::Client,
    wires: &[Wire::Stdio, Wire::Http],
    eras: &[Era::Modern, Era::Legacy],
    lacks: &[],
    calls: &[LIST, ADD],
    flaws: &[],
    speak: Speak::Installed(inspect),
};

/// A call takes a second; this is for a client that waits for an answer that never comes.
const CALL_LIMIT: Duration = Duration::from_secs(60);

fn inspect(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    Ok(session.peer.calls.iter().map(|call| make(bench, installed, session, call)).collect())
}

fn make(bench: &Bench, installed: &Installed, session: &Session, call: &Call) -> Result {
    let mut command = installed.node.command("mcp-inspector");
    command.arg("--cli").args(bench.our_server(session.wire));
    command.args(["--protocol-era", session.era.word(), "--method", call.method()]);
    if let Call::Tool(tool) = call {
        command.args(["--tool-name", tool.name, "--tool-arg"]);
        command.args(tool.arguments().as_object().into_iter().flatten().map(|(name, value)| format!("{name}={value}")));
    }
    call.judge(&Heard::of_result(&parse(&said(&mut command, CALL_LIMIT)?)?), false)
}
