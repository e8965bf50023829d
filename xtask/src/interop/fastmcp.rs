//! FastMCP, which is built on version 2 of the Python SDK and has a client and a server of its own.

use crate::interop::call::{ALL, COUNT_SLOWLY, OURS, RECONNECTION};
use crate::interop::peer::{Era, Flaw, Peer, Role, Speak, Wire};
use crate::interop::program;
use crate::python::PipPackage;

const FASTMCP: PipPackage = PipPackage { name: "fastmcp", version: "4.2.3" };

pub(crate) const PACKAGES: &[PipPackage] = &[FASTMCP];

pub(crate) const CLIENT: Peer = Peer {
    from: "PyPI",
    name: FASTMCP.name,
    version: FASTMCP.version,
    calls: ALL,
    resumes: &[COUNT_SLOWLY, RECONNECTION],
    speak: Speak::Installed(|bench, installed, session| {
        let client = installed.fastmcp.program("fastmcp_client.py");
        bench.be_visited(session.wire, |target| program::visit(client, session, target))
    }),
    ..Peer::PLAIN
};

pub(crate) const SERVER: Peer = Peer {
    from: "PyPI",
    name: FASTMCP.name,
    version: FASTMCP.version,
    role: Role::Server,
    calls: OURS,
    gaps: &[Flaw {
        call: "change",
        wires: &[Wire::Stdio, Wire::Http],
        eras: &[Era::Modern],
        words: "their server has no `subscriptions/listen`",
    }],
    speak: Speak::Installed(|bench, installed, session| {
        bench.call(session, installed.fastmcp.program("fastmcp_server.py"))
    }),
    ..Peer::PLAIN
};
