//! WebSocket libraries that know nothing of the protocol: the programs on them write the messages themselves.

use std::process::Command;

use crate::fixtures::{Serving, listening};
use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{ADD, COUNT, Call, FAIL, LIST};
use crate::interop::peer::{Era, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::interop::program;
use crate::node::NpmPackage;
use crate::python::PipPackage;

const WS: NpmPackage = NpmPackage { name: "ws", version: "8.23.0" };
const WEBSOCKETS: PipPackage = PipPackage { name: "websockets", version: "17.4" };

pub(crate) const NPM_PACKAGES: &[NpmPackage] = &[WS];
pub(crate) const PIP_PACKAGES: &[PipPackage] = &[WEBSOCKETS];

pub(crate) const NODE_CLIENT: Peer = Peer {
    from: "npm",
    name: WS.name,
    version: WS.version,
    role: Role::Client,
    wires: &[Wire::WebSocket, Wire::Upgrade],
    eras: &[Era::Modern, Era::Legacy],
    lacks: &[],
    calls: &[ADD, FAIL, COUNT, Call::Close],
    resumes: &[],
    flaws: &[],
    speak: Speak::Installed(|bench, installed, session| {
        visit(bench, installed.node.program("websocket.mjs")?, session)
    }),
};

pub(crate) const PYTHON_CLIENT: Peer = Peer {
    from: "PyPI",
    name: WEBSOCKETS.name,
    version: WEBSOCKETS.version,
    role: Role::Client,
    wires: &[Wire::WebSocket, Wire::Upgrade],
    eras: &[Era::Modern, Era::Legacy],
    lacks: &[],
    calls: &[ADD, FAIL, COUNT, Call::Close],
    resumes: &[],
    flaws: &[],
    speak: Speak::Installed(by_python),
};

/// It picks no subprotocol.
pub(crate) const NODE_SERVER: Peer = Peer {
    from: "npm",
    name: WS.name,
    version: WS.version,
    role: Role::Server,
    wires: &[Wire::WebSocket],
    eras: Era::ALL,
    lacks: &[],
    calls: &[LIST, ADD, FAIL, COUNT],
    resumes: &[],
    flaws: &[],
    speak: Speak::Installed(|bench, installed, session| {
        serve(bench, installed.node.program("websocket_server.mjs")?, session)
    }),
};

/// It picks the subprotocol that is offered.
pub(crate) const PYTHON_SERVER: Peer = Peer {
    from: "PyPI",
    name: WEBSOCKETS.name,
    version: WEBSOCKETS.version,
    role: Role::Server,
    wires: &[Wire::WebSocket],
    eras: Era::ALL,
    lacks: &[],
    calls: &[LIST, ADD, FAIL, COUNT],
    resumes: &[],
    flaws: &[],
    speak: Speak::Installed(|bench, installed, session| {
        serve(bench, installed.websockets.program("websocket_server.py"), session)
    }),
};

fn by_python(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    visit(bench, installed.websockets.program("websocket.py"), session)
}

fn visit(bench: &Bench, program: Command, session: &Session) -> Outcomes {
    let serving = bench.fixtures.listen(if session.wire == Wire::Upgrade { "http" } else { "ws" }, &[])?;
    program::visit(program, session, &[serving.url.replacen("http://", "ws://", 1).into()])
}

fn serve(bench: &Bench, mut server: Command, session: &Session) -> Outcomes {
    bench.call_running(session, &Serving::start(server.arg(session.wire.word()), listening)?)
}
