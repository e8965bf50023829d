//! The MCP Inspector's command line: each call is a run of its own.

use std::ffi::OsString;
use std::time::Duration;

use crate::error::Result;
use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{ADD, Call, Heard, LIST, LOGGING, RECONNECTION};
use crate::interop::curl::{parse, said};
use crate::interop::peer::{Era, Outcomes, Peer, Session, Speak};
use crate::node::NpmPackage;

pub(crate) const PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/inspector", version: "2.12.0" };

pub(crate) const PEER: Peer = Peer {
    from: "npm",
    name: PACKAGE.name,
    version: PACKAGE.version,
    eras: &[Era::Modern, Era::Legacy],
    calls: &[LIST, ADD],
    // No `End`: nothing in the package asks its SDK for the DELETE.
    resumes: &[RECONNECTION, LOGGING],
    speak: Speak::Installed(inspect),
    ..Peer::PLAIN
};

/// A call takes a second; this is for a client that waits for an answer that never comes.
const CALL_LIMIT: Duration = Duration::from_secs(60);

fn inspect(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    bench.be_visited(session.wire, |target| {
        Ok(session.calls().iter().map(|call| make(installed, session, target, call)).collect())
    })
}

fn make(installed: &Installed, session: &Session, target: &[OsString], call: &Call) -> Result {
    let mut command = installed.node.command("mcp-inspector");
    command.arg("--cli").args(target);
    command.args(["--protocol-era", session.era.word(), "--method", call.method()]);
    if let Call::Tool(tool) = call {
        command.args(["--tool-name", tool.name]);
        for (name, value) in tool.arguments().as_object().into_iter().flatten() {
            command.args(["--tool-arg", &format!("{name}={value}")]);
        }
    }
    call.judge(&Heard::of_result(&parse(&said(&mut command, CALL_LIMIT)?)?), false)
}
