//! `docs/interop.md`: what passed, as a page. It has no times and no dates, so that a run that finds the same leaves it
//! as it is.

use std::fmt::Write;
use std::path::PathBuf;

use crate::error::{Doing, Error, Result};
use crate::interop::authorization;
use crate::interop::peer::{Peer, Role, Session};
use crate::node::NpmPackage;
use crate::workspace;

const BEGINNING: &str = "\
# Interop

Clients and servers that this project did not write, and that talk to it. `cargo xtask interop` holds every session
below and, when all calls have passed, writes this page; do not edit it. The eras are those of [eras.md](eras.md);
*either* is a client that finds out by itself, and must end up with the newest revision that both speak.
";

const CLIENTS: &str = "
## Clients that call our server

The server is [everything-server](../tests/everything-server). `add` must give 7, `fail` a failed result with the
message, `count` its progress, whole and in order, and then its result. `resource` and `prompt` are the texts of one each.
`question` is a tool that asks the user's name, and whose result has the answer. `cancel` gives a call up that never ends,
once it tells of progress, and a second tool says when the first has stopped. `change` is a tool that adds another one: the
client hears that the list has changed, and finds the new one there. `close` is a WebSocket that both sides close with
1000. The wire *ws* is a server of WebSockets alone, *ws at http* an upgrade at the HTTP server's endpoint. *http,
cut* is HTTP through a proxy that cuts all connections with the first notification of a call, and drops what the server
has sent behind it: the client comes back for that with `Last-Event-ID`. `test_reconnection` is cut by the server itself.
`end` is a DELETE of the session, whose id is answered with 404 from then on; the Inspector's command line sends none, it
leaves its session to expire.

";

const SERVERS: &str = "
## Servers that our client calls

The client is [everything-client](../tests/everything-client). Each result must be right to the letter, and progress
whole and in order. `ws` picks no WebSocket subprotocol, `websockets` the one that is offered.

";

const AUTHORIZATION: &str = "
## An authorization server that our client logs in at

npm `oidc-provider`, in front of [everything-server](../tests/everything-server). The client registers itself, logs in for
the scope that the challenge names, is stepped up for a tool that needs another one, and in a second process, when its
token has ended, refreshes it and nothing more.

";

/// The page for peers whose every call has passed.
pub(crate) fn render(peers: &[&'static Peer]) -> String {
    let mut page = BEGINNING.to_owned();
    for (role, heading) in [(Role::Client, CLIENTS), (Role::Server, SERVERS)] {
        page += heading;
        let _ =
            writeln!(page, "| {} | version | wire | era | calls | result |\n|---|---|---|---|---|---|", role.word());
        for peer in peers.iter().filter(|peer| peer.role == role) {
            page.extend(peer.sessions().map(|session| passed(&session)));
            page.extend(peer.lacks.iter().map(|(era, why)| {
                format!("| {} | {} | | {} | | not offered: {why} |\n", name(peer), peer.version, era.word())
            }));
        }
    }
    let NpmPackage { name, version } = authorization::PACKAGE;
    let _ = writeln!(page, "{AUTHORIZATION}| package | version | result |\n|---|---|---|\n| {name} | {version} | ok |");
    page
}

fn passed(session: &Session) -> String {
    let Session { peer, wire, era } = session;
    let calls: Vec<String> = session.calls().iter().map(|call| format!("`{}`", call.name())).collect();
    let flaws = session.calls().into_iter().filter_map(|call| session.flaw(call));
    let flaws = flaws.map(|flaw| format!("; `{}`: {}", flaw.call, flaw.words));
    let but: String = flaws.chain(session.gaps().map(|gap| format!("; no `{}`: {}", gap.call, gap.words))).collect();
    let (name, version, calls) = (name(peer), peer.version, calls.join(", "));
    format!("| {name} | {version} | {} | {} | {calls} | ok{but} |\n", wire.word(), era.word())
}

fn name(peer: &Peer) -> String {
    format!("{} `{}`", peer.from, peer.name).trim_start().to_owned()
}

/// Writes the page if it has changed; where `CI` is set, a change is an error instead.
pub(crate) fn keep(page: &str) -> Result {
    if committed().is_ok_and(|committed| committed == page) {
        return Ok(());
    }
    let shown = "docs/interop.md";
    if std::env::var_os("CI").is_some_and(|ci| ci != "false") {
        return Err(Error::new(format!("{shown} is not what the run found: `cargo xtask interop` writes it")));
    }
    println!("{shown} has changed");
    std::fs::write(path(), page).doing(|| format!("writing {shown}"))
}

fn committed() -> std::io::Result<String> {
    std::fs::read_to_string(path())
}

fn path() -> PathBuf {
    workspace::root().join("docs/interop.md")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::PEERS;

    #[test]
    fn the_committed_page_is_that_of_the_table() {
        let same = committed().unwrap() == render(PEERS);
        assert!(same, "a peer has changed since `cargo xtask interop` wrote docs/interop.md");
    }

    #[test]
    fn a_session_is_one_row_and_a_missing_era_says_why() {
        let page = render(PEERS);
        let sessions: usize = PEERS.iter().map(|peer| peer.sessions().count() + peer.lacks.len()).sum();
        let rows = page.lines().filter(|line| line.ends_with(" |") && line.contains('`')).count();
        assert_eq!(rows, sessions);
        assert!(page.contains("| modern | | not offered: "), "{page}");
    }
}
