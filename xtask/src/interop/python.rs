//! The Python SDK: version 2, which speaks both eras, and version 1, which speaks the legacy one.

use std::process::Command;

use crate::interop::bench::Bench;
use crate::interop::call::{
    ADD, ALL, CANCEL, CHANGE, COUNT, COUNT_SLOWLY, Call, LIST, PROMPT, QUESTION, RECONNECTION, RESOURCE, fail,
};
use crate::interop::peer::{Era, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::interop::program;
use crate::interop::websocket::WEBSOCKETS;
use crate::python::PipPackage;

const MCP_V2: PipPackage = PipPackage { name: "mcp", version: "2.3.0" };
const MCP_V1: PipPackage = PipPackage { name: "mcp", version: "1.30.0" };

pub(crate) const PACKAGES_V2: &[PipPackage] = &[MCP_V2];
pub(crate) const PACKAGES_V1: &[PipPackage] = &[MCP_V1, WEBSOCKETS];

const LACKS_V1: &[(Era, &str)] = &[(Era::Modern, "version 1 of the SDK ends with the legacy era")];

/// `OURS`, with their words around the message of a failure.
const OF_PYTHON: &[Call] =
    &[LIST, ADD, fail("Error executing tool fail: on purpose"), COUNT, RESOURCE, PROMPT, QUESTION, CANCEL, CHANGE];

pub(crate) const CLIENT_V2: Peer = Peer {
    from: "PyPI",
    name: MCP_V2.name,
    version: MCP_V2.version,
    calls: ALL,
    resumes: &[COUNT_SLOWLY, RECONNECTION],
    speak: Speak::Installed(|bench, installed, session| {
        visit(bench, installed.python_v2.program("python_v2_client.py"), session)
    }),
    ..Peer::PLAIN
};

pub(crate) const CLIENT_V1: Peer = Peer {
    from: "PyPI",
    name: MCP_V1.name,
    version: MCP_V1.version,
    wires: &[Wire::Stdio, Wire::Http, Wire::WebSocket],
    eras: &[Era::Legacy],
    lacks: LACKS_V1,
    calls: ALL,
    resumes: &[COUNT_SLOWLY, RECONNECTION],
    speak: Speak::Installed(|bench, installed, session| {
        visit(bench, installed.python_v1.program("python_v1_client.py"), session)
    }),
    ..Peer::PLAIN
};

pub(crate) const SERVER_V2: Peer = Peer {
    from: "PyPI",
    name: MCP_V2.name,
    version: MCP_V2.version,
    role: Role::Server,
    calls: OF_PYTHON,
    speak: Speak::Installed(|bench, installed, session| {
        bench.call(session, installed.python_v2.program("python_v2_server.py"))
    }),
    ..Peer::PLAIN
};

pub(crate) const SERVER_V1: Peer = Peer {
    from: "PyPI",
    name: MCP_V1.name,
    version: MCP_V1.version,
    role: Role::Server,
    wires: &[Wire::Stdio, Wire::Http, Wire::WebSocket],
    eras: &[Era::Legacy, Era::Either],
    lacks: LACKS_V1,
    calls: OF_PYTHON,
    speak: Speak::Installed(|bench, installed, session| {
        bench.call(session, installed.python_v1.program("python_v1_server.py"))
    }),
    ..Peer::PLAIN
};

fn visit(bench: &Bench, program: Command, session: &Session) -> Outcomes {
    bench.be_visited(session.wire, |target| program::visit(program, session, target))
}
