//! WebSocket libraries that know nothing of the protocol: the programs on them write the messages themselves.

use std::process::Command;

use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{ADD, COUNT, Call, FAIL, LIST};
use crate::interop::peer::{Era, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::interop::program;
use crate::node::NpmPackage;
use crate::python::PipPackage;

const WS: NpmPackage = NpmPackage { name: "ws", version: "8.23.0" };
pub(crate) const WEBSOCKETS: PipPackage = PipPackage { name: "websockets", version: "17.4" };

pub(crate) const NPM_PACKAGES: &[NpmPackage] = &[WS];
pub(crate) const PIP_PACKAGES: &[PipPackage] = &[WEBSOCKETS];

pub(crate) const NODE_CLIENT: Peer = Peer {
    from: "npm",
    name: WS.name,
    version: WS.version,
    wires: &[Wire::WebSocket, Wire::Upgrade],
    eras: &[Era::Modern, Era::Legacy],
    calls: &[ADD, FAIL, COUNT, Call::Close],
    speak: Speak::Installed(|bench, installed, session| {
        visit(bench, installed.node.program("websocket.mjs")?, session)
    }),
    ..Peer::PLAIN
};

pub(crate) const PYTHON_CLIENT: Peer = Peer {
    from: "PyPI",
    name: WEBSOCKETS.name,
    version: WEBSOCKETS.version,
    wires: &[Wire::WebSocket, Wire::Upgrade],
    eras: &[Era::Modern, Era::Legacy],
    calls: &[ADD, FAIL, COUNT, Call::Close],
    speak: Speak::Installed(by_python),
    ..Peer::PLAIN
};

/// It picks no subprotocol.
pub(crate) const NODE_SERVER: Peer = Peer {
    from: "npm",
    name: WS.name,
    version: WS.version,
    role: Role::Server,
    wires: &[Wire::WebSocket],
    calls: &[LIST, ADD, FAIL, COUNT],
    speak: Speak::Installed(|bench, installed, session| {
        bench.call(session, installed.node.program("websocket_server.mjs")?)
    }),
    ..Peer::PLAIN
};

/// It picks the subprotocol that is offered.
pub(crate) const PYTHON_SERVER: Peer = Peer {
    from: "PyPI",
    name: WEBSOCKETS.name,
    version: WEBSOCKETS.version,
    role: Role::Server,
    wires: &[Wire::WebSocket],
    calls: &[LIST, ADD, FAIL, COUNT],
    speak: Speak::Installed(|bench, installed, session| {
        bench.call(session, installed.websockets.program("websocket_server.py"))
    }),
    ..Peer::PLAIN
};

fn by_python(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    visit(bench, installed.websockets.program("websocket.py"), session)
}

fn visit(bench: &Bench, program: Command, session: &Session) -> Outcomes {
    bench.be_visited(session.wire, |target| program::visit(program, session, target))
}
