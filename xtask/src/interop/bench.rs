//! What the sessions need: our own programs, and what the registries bring.

use std::ffi::OsString;
use std::process::Command;

use crate::error::{Error, Result};
use crate::fixtures::{Fixtures, Serving, listening};
use crate::interop::peer::{Outcomes, Peer, Session, Speak, Wire};
use crate::interop::{authorization, everything, fastmcp, inspector, program, python, typescript, websocket};
use crate::node::Node;
use crate::python::Python;
use crate::rust::Rust;

/// Our own programs, and the others', unless they are left out.
pub(crate) struct Bench {
    pub(crate) fixtures: Fixtures,
    pub(crate) installed: Option<Installed>,
}

/// What the registries bring.
pub(crate) struct Installed {
    pub(crate) node: Node,
    pub(crate) python_v1: Python,
    pub(crate) python_v2: Python,
    pub(crate) fastmcp: Python,
    pub(crate) websockets: Python,
    pub(crate) rust: Rust,
}

impl Bench {
    pub(crate) fn set_up(skip_npm: bool) -> Result<Self> {
        let installed = if skip_npm { None } else { Some(Installed::install()?) };
        Ok(Self { fixtures: Fixtures::build()?, installed })
    }

    /// Whether what the peer needs is there.
    pub(crate) fn has(&self, peer: &Peer) -> bool {
        matches!(peer.speak, Speak::Here(_)) || self.installed.is_some()
    }

    /// Holds the session.
    pub(crate) fn speak(&self, session: &Session) -> Outcomes {
        match (session.peer.speak, &self.installed) {
            (Speak::Here(speak), _) => speak(self, session),
            (Speak::Installed(speak), Some(installed)) => speak(self, installed, session),
            (Speak::Installed(_), None) => Err(Error::new("what the registries bring is left out")),
        }
    }

    /// A client calls our server: as a child of its own, or where it listens, behind a proxy that cuts if that is the wire.
    /// Each session has a server of its own, so that none sees what another changes.
    pub(crate) fn be_visited(&self, wire: Wire, visit: impl FnOnce(&[OsString]) -> Outcomes) -> Outcomes {
        if wire == Wire::Stdio {
            return visit(&[self.fixtures.server.clone().into(), "stdio".into()]);
        }
        let serving = self.fixtures.listen(if wire == Wire::WebSocket { "ws" } else { "http" }, &[])?;
        match (wire, &self.installed) {
            (Wire::Upgrade, _) => visit(&[serving.url.replacen("http://", "ws://", 1).into()]),
            (Wire::Cut, Some(installed)) => {
                let mut proxy = installed.node.program("cutting_proxy.mjs")?;
                let proxy = Serving::start(proxy.arg(&serving.url), listening)?;
                visit(&[proxy.url.clone().into()])
            }
            _ => visit(&[serving.url.clone().into()]),
        }
    }

    /// Our client calls a server that takes the wire as its argument, and says where it listens.
    pub(crate) fn call(&self, session: &Session, mut server: Command) -> Outcomes {
        server.arg(session.wire.word());
        if session.wire == Wire::Stdio {
            return self.call_child(session, &server);
        }
        self.call_running(session, &Serving::start(&mut server, listening)?)
    }

    /// Our client calls a server that is a child of it.
    pub(crate) fn call_child(&self, session: &Session, server: &Command) -> Outcomes {
        program::visit(self.our_client(), session, &program::words(server))
    }

    /// Our client calls a server that runs.
    pub(crate) fn call_running(&self, session: &Session, server: &Serving) -> Outcomes {
        program::visit(self.our_client(), session, &[server.url.clone().into()])
    }

    fn our_client(&self) -> Command {
        let mut command = Command::new(&self.fixtures.client);
        command.arg("interop");
        command
    }
}

impl Installed {
    fn install() -> Result<Self> {
        let packages = [
            &[authorization::PACKAGE, inspector::PACKAGE, everything::PACKAGE],
            typescript::PACKAGES,
            websocket::NPM_PACKAGES,
        ]
        .concat();
        Ok(Self {
            node: Node::with(&packages)?,
            python_v1: Python::with(python::PACKAGES_V1)?,
            python_v2: Python::with(python::PACKAGES_V2)?,
            fastmcp: Python::with(fastmcp::PACKAGES)?,
            websockets: Python::with(websocket::PIP_PACKAGES)?,
            rust: Rust::build()?,
        })
    }
}
