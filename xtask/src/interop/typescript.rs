//! The TypeScript SDK: version 2, which speaks both eras, and version 1, which speaks the legacy one.

use crate::fixtures::{Serving, listening};
use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{ADD, COUNT, COUNT_SLOWLY, Call, FAIL, LIST, RECONNECTION};
use crate::interop::peer::{Era, Flaw, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::interop::program;
use crate::node::NpmPackage;

const CLIENT_PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/client", version: "2.4.0" };
const SDK_PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/sdk", version: "1.32.2" };
const SERVER_PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/server", version: "2.4.0" };
/// Puts the server behind Node's own HTTP server.
const NODE_PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/node", version: "2.1.2" };

pub(crate) const PACKAGES: &[NpmPackage] = &[CLIENT_PACKAGE, SDK_PACKAGE, SERVER_PACKAGE, NODE_PACKAGE];

/// Notifications wait for a microtask and answers do not, so that an answer in the same chunk overtakes them.
const LOSES_PROGRESS: Flaw = Flaw {
    wire: Wire::Stdio,
    call: "count",
    words: "their client drops progress that is read in one piece with the answer",
};

pub(crate) const CLIENT_V2: Peer = Peer {
    from: "npm",
    name: CLIENT_PACKAGE.name,
    version: CLIENT_PACKAGE.version,
    role: Role::Client,
    wires: &[Wire::Stdio, Wire::Http],
    eras: Era::ALL,
    lacks: &[],
    calls: &[ADD, FAIL, COUNT],
    resumes: &[COUNT_SLOWLY, RECONNECTION, Call::End],
    flaws: &[LOSES_PROGRESS],
    speak: Speak::Installed(|bench, installed, session| visit(bench, installed, session, "typescript_v2_client.mjs")),
};

pub(crate) const CLIENT_V1: Peer = Peer {
    from: "npm",
    name: SDK_PACKAGE.name,
    version: SDK_PACKAGE.version,
    role: Role::Client,
    wires: &[Wire::Stdio, Wire::Http],
    eras: &[Era::Legacy],
    lacks: &[(Era::Modern, "version 1 of the SDK ends with the legacy era")],
    calls: &[ADD, FAIL, COUNT],
    resumes: &[COUNT_SLOWLY, RECONNECTION, Call::End],
    flaws: &[LOSES_PROGRESS],
    speak: Speak::Installed(|bench, installed, session| visit(bench, installed, session, "typescript_v1_client.mjs")),
};

pub(crate) const SERVER: Peer = Peer {
    from: "npm",
    name: SERVER_PACKAGE.name,
    version: SERVER_PACKAGE.version,
    role: Role::Server,
    wires: &[Wire::Stdio, Wire::Http],
    eras: Era::ALL,
    lacks: &[],
    calls: &[LIST, ADD, FAIL, COUNT],
    resumes: &[],
    flaws: &[],
    speak: Speak::Installed(serve),
};

fn visit(bench: &Bench, installed: &Installed, session: &Session, program: &str) -> Outcomes {
    let client = installed.node.program(program)?;
    bench.be_visited(installed, session.wire, |target| program::visit(client, session, target))
}

fn serve(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    let mut server = installed.node.program("typescript_server.mjs")?;
    server.arg(session.wire.word());
    if session.wire == Wire::Stdio {
        return bench.call_child(session, &server);
    }
    bench.call_running(session, &Serving::start(&mut server, listening)?)
}
