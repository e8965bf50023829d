//! `cargo xtask interop`: peers that we did not write call the example server, or are called by the example client.
//!
//! `PEERS` is the whole table: who, on which wires, in which eras, which calls. When every row has passed, the run
//! writes it down as `docs/interop.md`.

mod authorization;
mod bench;
mod call;
mod curl;
mod everything;
mod fastmcp;
mod inspector;
mod page;
mod peer;
mod program;
mod python;
mod rust;
mod typescript;
mod websocket;

use crate::error::{Error, Result};
use crate::interop::bench::Bench;
use crate::interop::peer::{Peer, Row};
use crate::table::Table;

const PEERS: &[&Peer] = &[
    &inspector::PEER,
    &curl::PEER,
    &typescript::CLIENT_V2,
    &typescript::CLIENT_V1,
    &python::CLIENT_V2,
    &python::CLIENT_V1,
    &fastmcp::CLIENT,
    &rust::RMCP_CLIENT,
    &rust::TOWER_MCP_CLIENT,
    &websocket::NODE_CLIENT,
    &websocket::PYTHON_CLIENT,
    &everything::SERVER,
    &typescript::SERVER_V2,
    &typescript::SERVER_V1,
    &python::SERVER_V2,
    &python::SERVER_V1,
    &fastmcp::SERVER,
    &rust::RMCP_SERVER,
    &rust::TOWER_MCP_SERVER,
    &websocket::NODE_SERVER,
    &websocket::PYTHON_SERVER,
];

/// Makes every call, or those of the peers whose names have `only` in them, and prints the table; an error if any call
/// failed.
pub(crate) fn run(skip_npm: bool, only: Option<&str>) -> Result {
    let bench = Bench::set_up(skip_npm)?;
    let wanted = PEERS.iter().copied().filter(|peer| only.is_none_or(|name| peer.shown().contains(name)));
    let (here, left_out): (Vec<&'static Peer>, Vec<_>) = wanted.partition(|peer| bench.has(peer));
    for peer in left_out {
        println!("left out (--skip-npm): {} {}", peer.shown(), peer.role.word());
    }
    let rows: Vec<Row> =
        here.iter().flat_map(|peer| peer.sessions()).flat_map(|session| session.hold(&bench)).collect();
    print(&rows);
    if let Some(installed) =
        bench.installed.as_ref().filter(|_| only.is_none_or(|name| authorization::PACKAGE.name.contains(name)))
    {
        authorization::run(&bench, installed)?;
    }
    match rows.iter().filter(|row| row.outcome.is_err()).count() {
        0 if skip_npm || only.is_some() => Ok(()),
        0 => page::keep(&page::render(PEERS)),
        failed => Err(Error::new(format!("interop: {failed} of {} calls failed", rows.len()))),
    }
}

fn print(rows: &[Row]) {
    let mut table = Table::new(&["peer", "version", "role", "wire", "era", "call", ""]);
    for Row { peer, wire, era, call, outcome } in rows {
        let outcome = outcome.clone().unwrap_or_else(|why| format!("FAILED: {why}"));
        let cells = [&peer.shown(), peer.version, peer.role.word(), wire.word(), era.word(), call.name(), &outcome];
        table.row(cells.map(str::to_owned));
    }
    table.print();
}
