//! What the sessions need: our own programs, and what npm and pip bring.

use std::ffi::OsString;
use std::process::Command;

use crate::error::{Error, Result};
use crate::fixtures::{Fixtures, Serving, listening};
use crate::interop::peer::{Outcomes, Peer, Session, Speak, Wire};
use crate::interop::{everything, inspector, program, python, typescript, websocket};
use crate::node::Node;
use crate::python::Python;

/// Our own programs, the server among them running, and the others', unless they are left out.
pub(crate) struct Bench {
    pub(crate) fixtures: Fixtures,
    serving: Serving,
    installed: Option<Installed>,
}

/// What npm and pip bring.
pub(crate) struct Installed {
    pub(crate) node: Node,
    pub(crate) python_v1: Python,
    pub(crate) python_v2: Python,
    pub(crate) websockets: Python,
}

impl Bench {
    pub(crate) fn set_up(skip_npm: bool) -> Result<Self> {
        let installed = if skip_npm { None } else { Some(Installed::install()?) };
        let fixtures = Fixtures::build()?;
        Ok(Self { serving: fixtures.serve(&[])?, fixtures, installed })
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
            (Speak::Installed(_), None) => Err(Error::new("what npm and pip bring is left out")),
        }
    }

    /// Our server, as a client finds it over stdio or HTTP.
    pub(crate) fn our_server(&self, wire: Wire) -> Vec<OsString> {
        if wire == Wire::Stdio {
            return vec![self.fixtures.server.clone().into(), "stdio".into()];
        }
        vec![self.serving.url.clone().into()]
    }

    /// A client calls our server: as a child of its own, or where it listens, behind a proxy that cuts if that is the wire.
    pub(crate) fn be_visited(
        &self,
        installed: &Installed,
        wire: Wire,
        visit: impl FnOnce(&[OsString]) -> Outcomes,
    ) -> Outcomes {
        if wire != Wire::Cut {
            return visit(&self.our_server(wire));
        }
        let mut proxy = installed.node.program("cutting_proxy.mjs")?;
        let proxy = Serving::start(proxy.arg(&self.serving.url), listening)?;
        visit(&[proxy.url.clone().into()])
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
        let packages =
            [&[inspector::PACKAGE, everything::PACKAGE], typescript::PACKAGES, websocket::NPM_PACKAGES].concat();
        Ok(Self {
            node: Node::with(&packages)?,
            python_v1: Python::with(python::PACKAGES_V1)?,
            python_v2: Python::with(python::PACKAGES_V2)?,
            websockets: Python::with(websocket::PIP_PACKAGES)?,
        })
    }
}
