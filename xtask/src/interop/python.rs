//! The Python SDK: version 2, which speaks both eras, and version 1, which speaks the legacy one.

use std::process::Command;

use crate::fixtures::{Serving, listening};
use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{ADD, COUNT, COUNT_SLOWLY, FAIL, LIST, RECONNECTION, fail};
use crate::interop::peer::{Era, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::interop::program;
use crate::python::PipPackage;

const MCP_V2: PipPackage = PipPackage { name: "mcp", version: "2.3.0" };
const MCP_V1: PipPackage = PipPackage { name: "mcp", version: "1.30.0" };

pub(crate) const PACKAGES_V2: &[PipPackage] = &[MCP_V2];
pub(crate) const PACKAGES_V1: &[PipPackage] = &[MCP_V1];

pub(crate) const CLIENT_V2: Peer = Peer {
    from: "PyPI",
    name: MCP_V2.name,
    version: MCP_V2.version,
    role: Role::Client,
    wires: &[Wire::Stdio, Wire::Http],
    eras: Era::ALL,
    lacks: &[],
    calls: &[ADD, FAIL, COUNT],
    resumes: &[COUNT_SLOWLY, RECONNECTION],
    flaws: &[],
    speak: Speak::Installed(|bench, installed, session| {
        visit(bench, installed, installed.python_v2.program("python_v2_client.py"), session)
    }),
};

pub(crate) const CLIENT_V1: Peer = Peer {
    from: "PyPI",
    name: MCP_V1.name,
    version: MCP_V1.version,
    role: Role::Client,
    wires: &[Wire::Stdio, Wire::Http],
    eras: &[Era::Legacy],
    lacks: &[(Era::Modern, "version 1 of the SDK ends with the legacy era")],
    calls: &[ADD, FAIL, COUNT],
    resumes: &[COUNT_SLOWLY, RECONNECTION],
    flaws: &[],
    speak: Speak::Installed(|bench, installed, session| {
        visit(bench, installed, installed.python_v1.program("python_v1_client.py"), session)
    }),
};

pub(crate) const SERVER: Peer = Peer {
    from: "PyPI",
    name: MCP_V2.name,
    version: MCP_V2.version,
    role: Role::Server,
    wires: &[Wire::Stdio, Wire::Http],
    eras: Era::ALL,
    lacks: &[],
    calls: &[LIST, ADD, fail("Error executing tool fail: on purpose"), COUNT],
    resumes: &[],
    flaws: &[],
    speak: Speak::Installed(serve),
};

fn visit(bench: &Bench, installed: &Installed, program: Command, session: &Session) -> Outcomes {
    bench.be_visited(installed, session.wire, |target| program::visit(program, session, target))
}

fn serve(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    let mut server = installed.python_v2.program("python_server.py");
    server.arg(session.wire.word());
    if session.wire == Wire::Stdio {
        return bench.call_child(session, &server);
    }
    bench.call_running(session, &Serving::start(&mut server, listening)?)
}
