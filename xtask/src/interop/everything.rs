//! The reference server that has one of everything, on version 1 of the TypeScript SDK.

use std::net::TcpListener;

use crate::error::{Doing, Result};
use crate::fixtures::Serving;
use crate::interop::bench::{Bench, Installed};
use crate::interop::call::{Call, Tool};
use crate::interop::peer::{Era, Outcomes, Peer, Role, Session, Speak, Wire};
use crate::node::NpmPackage;

pub(crate) const PACKAGE: NpmPackage =
    NpmPackage { name: "@modelcontextprotocol/server-everything", version: "2026.8.31" };

pub(crate) const SERVER: Peer = Peer {
    from: "npm",
    name: PACKAGE.name,
    version: PACKAGE.version,
    role: Role::Server,
    eras: &[Era::Legacy, Era::Either],
    lacks: &[(Era::Modern, "it is built on version 1 of the TypeScript SDK")],
    calls: &[Call::List { having: "get-sum" }, ECHO, GET_SUM, LONG_RUNNING],
    speak: Speak::Installed(serve),
    ..Peer::PLAIN
};

const ECHO: Call = Call::Tool(Tool {
    name: "echo",
    arguments: r#"{"message":"it is I"}"#,
    text: "Echo: it is I",
    fails: false,
    steps: 0,
});
const GET_SUM: Call = Call::Tool(Tool {
    name: "get-sum",
    arguments: r#"{"a":2,"b":5}"#,
    text: "The sum of 2 and 5 is 7.",
    fails: false,
    steps: 0,
});
const LONG_RUNNING: Call = Call::Tool(Tool {
    name: "trigger-long-running-operation",
    arguments: r#"{"duration":0.3,"steps":3}"#,
    text: "Long running operation completed. Duration: 0.3 seconds, Steps: 3.",
    fails: false,
    steps: 3,
});

fn serve(bench: &Bench, installed: &Installed, session: &Session) -> Outcomes {
    let mut server = installed.node.command("mcp-server-everything");
    if session.wire == Wire::Stdio {
        return bench.call_child(session, server.arg("stdio"));
    }
    server.arg("streamableHttp").env("PORT", free_port()?.to_string());
    bench.call_running(session, &Serving::start(&mut server, ready)?)
}

/// The server takes port 0 and does not say which one it got, so that the port has to be chosen for it.
fn free_port() -> Result<u16> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(address.doing(|| "looking for a free port".to_owned())?.port())
}

fn ready(line: &str) -> Option<String> {
    let port = line.strip_prefix("MCP Streamable HTTP Server listening on port ")?;
    Some(format!("http://127.0.0.1:{port}/mcp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_becomes_the_url() {
        let url = ready("MCP Streamable HTTP Server listening on port 4711");
        assert_eq!(url.as_deref(), Some("http://127.0.0.1:4711/mcp"));
        assert_eq!(ready("Starting Streamable HTTP server..."), None);
    }
}
