//! The TypeScript SDK: version 2, which speaks both eras, and version 1, which speaks the legacy one.

use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{ALL, COUNT_SLOWLY, Call, OURS, RECONNECTION};
use crate::interop::peer::{Era, Flaw, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::interop::program;
use crate::node::NpmPackage;

const CLIENT_PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/client", version: "2.4.0" };
const SDK_PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/sdk", version: "1.32.2" };
const SERVER_PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/server", version: "2.4.0" };
/// Puts the server behind Node's own HTTP server.
const NODE_PACKAGE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/node", version: "2.1.2" };
/// Version 1 has its tools' parameters from it.
const ZOD_PACKAGE: NpmPackage = NpmPackage { name: "zod", version: "4.6.7" };

pub(crate) const PACKAGES: &[NpmPackage] = &[CLIENT_PACKAGE, SDK_PACKAGE, SERVER_PACKAGE, NODE_PACKAGE, ZOD_PACKAGE];

const LACKS_V1: &[(Era, &str)] = &[(Era::Modern, "version 1 of the SDK ends with the legacy era")];

/// Notifications wait for a microtask and answers do not, so that an answer in the same chunk overtakes them.
const LOSES_PROGRESS: Flaw = Flaw {
    call: "count",
    wires: &[Wire::Stdio, Wire::WebSocket],
    eras: Era::SPOKEN,
    words: "their client drops progress that is read in one piece with the answer",
};

pub(crate) const CLIENT_V2: Peer = Peer {
    from: "npm",
    name: CLIENT_PACKAGE.name,
    version: CLIENT_PACKAGE.version,
    calls: ALL,
    resumes: &[COUNT_SLOWLY, RECONNECTION, Call::End],
    flaws: &[LOSES_PROGRESS],
    speak: Speak::Installed(|bench, installed, session| visit(bench, installed, session, "typescript_v2_client.mjs")),
    ..Peer::PLAIN
};

pub(crate) const CLIENT_V1: Peer = Peer {
    from: "npm",
    name: SDK_PACKAGE.name,
    version: SDK_PACKAGE.version,
    wires: &[Wire::Stdio, Wire::Http, Wire::WebSocket],
    eras: &[Era::Legacy],
    lacks: LACKS_V1,
    calls: ALL,
    resumes: &[COUNT_SLOWLY, RECONNECTION, Call::End],
    flaws: &[LOSES_PROGRESS],
    speak: Speak::Installed(|bench, installed, session| visit(bench, installed, session, "typescript_v1_client.mjs")),
    ..Peer::PLAIN
};

pub(crate) const SERVER_V2: Peer = Peer {
    from: "npm",
    name: SERVER_PACKAGE.name,
    version: SERVER_PACKAGE.version,
    role: Role::Server,
    calls: OURS,
    speak: Speak::Installed(|bench, installed, session| {
        bench.call(session, installed.node.program("typescript_v2_server.mjs")?)
    }),
    ..Peer::PLAIN
};

pub(crate) const SERVER_V1: Peer = Peer {
    from: "npm",
    name: SDK_PACKAGE.name,
    version: SDK_PACKAGE.version,
    role: Role::Server,
    eras: &[Era::Legacy, Era::Either],
    lacks: LACKS_V1,
    calls: OURS,
    speak: Speak::Installed(|bench, installed, session| {
        bench.call(session, installed.node.program("typescript_v1_server.mjs")?)
    }),
    ..Peer::PLAIN
};

fn visit(bench: &Bench, installed: &Installed, session: &Session, program: &str) -> Outcomes {
    let client = installed.node.program(program)?;
    bench.be_visited(session.wire, |target| program::visit(client, session, target))
}
