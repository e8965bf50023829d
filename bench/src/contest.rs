//! One row: its contestants take turns, so that whatever else the machine does meets them all.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Command},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{
    load::{Score, memory, pipe, socket},
    rows::{Contestant, Load, Row, Who},
    server::Server,
    settings::Settings,
    statistics::Rates,
};

/// How much longer than its time a round may take before its server is ended.
const GRACE: Duration = Duration::from_secs(20);

/// Rounds before the first that counts are no longer than this.
const WARM_UP: Duration = Duration::from_millis(500);

/// What came of one contestant.
pub(crate) struct Outcome {
    pub(crate) who: Who,
    pub(crate) label: String,
    pub(crate) rates: Rates,
    /// In KiB; unknown of what has no process of its own.
    pub(crate) peak_memory: Option<u64>,
}

/// Runs a row. It fails when a contestant answers wrongly or not at all.
pub(crate) fn run(row: &Row, settings: &Settings) -> Result<Vec<Outcome>> {
    let mut entrants = Vec::new();
    for contestant in row.contestants {
        entrants.push(Entrant::new(row, contestant, settings)?);
    }
    for entrant in &mut entrants {
        entrant.round(settings.time.min(WARM_UP))?;
    }
    for _ in 0..settings.rounds {
        for entrant in &mut entrants {
            let score = entrant.round(settings.time)?;
            entrant.rates.push(score.rate());
        }
    }
    Ok(entrants.into_iter().map(Entrant::outcome).collect())
}

/// A contestant that was started.
struct Entrant {
    load: Load,
    who: Who,
    label: String,
    server: Option<Server>,
    reached: Reached,
    rates: Vec<f64>,
}

/// By what the load reaches it.
enum Reached {
    Pipes(ChildStdin, ChildStdout),
    Address(SocketAddr),
    Memory,
}

impl Entrant {
    fn new(row: &Row, contestant: &Contestant, settings: &Settings) -> Result<Self> {
        let label = contestant.label();
        let (server, reached) =
            start(row.load, contestant, settings).with_context(|| format!("{} of {label}", row.name))?;
        Ok(Self { load: row.load, who: contestant.who, label, server, reached, rates: Vec::new() })
    }

    fn round(&mut self, time: Duration) -> Result<Score> {
        let _limit = self.server.as_ref().map(|server| server.ended_after(time + GRACE));
        let score = match (self.load, &mut self.reached) {
            (Load::Pipe { depth, cores }, Reached::Pipes(input, output)) => {
                cores.load(|| pipe::drive(input, output, depth, time))
            }
            (Load::Sockets { wire, connections, cores }, Reached::Address(address)) => {
                cores.load(|| socket::drive(wire, *address, connections, time))
            }
            (Load::Direct, _) => memory::direct(self.who, time),
            (Load::Pair, _) => memory::pair(self.who, time),
            _ => unreachable!("a contestant is started for the load of its row"),
        };
        score.with_context(|| self.label.clone())
    }

    fn outcome(self) -> Outcome {
        let peak_memory = self.server.as_ref().and_then(Server::peak_memory);
        Outcome { who: self.who, label: self.label, rates: Rates::new(self.rates), peak_memory }
    }
}

fn start(load: Load, contestant: &Contestant, settings: &Settings) -> Result<(Option<Server>, Reached)> {
    match load {
        Load::Pipe { cores, .. } => {
            let mut command = command(contestant, settings)?;
            let (server, mut input, mut output) = cores.server(|| Server::on_pipes(&mut command))?;
            let _limit = server.ended_after(GRACE);
            pipe::shake_hands(&mut input, &mut output)?;
            Ok((Some(server), Reached::Pipes(input, output)))
        }
        Load::Sockets { cores, .. } => {
            let mut command = command(contestant, settings)?;
            let (server, address) = cores.server(|| Server::on_sockets(&mut command))?;
            Ok((Some(server), Reached::Address(address)))
        }
        Load::Direct | Load::Pair => Ok((None, Reached::Memory)),
    }
}

fn command(contestant: &Contestant, settings: &Settings) -> Result<Command> {
    let program = match contestant.who {
        Who::Ours => settings.server.clone(),
        Who::Ceiling => beside_us("ceiling")?,
        Who::Rmcp => beside_us("peer-rmcp")?,
        Who::TowerMcp => beside_us("peer-tower-mcp")?,
    };
    let mut command = Command::new(program);
    command.args(contestant.arguments);
    Ok(command)
}

/// Another program of this package, which cargo builds into the same folder.
fn beside_us(name: &str) -> Result<PathBuf> {
    let itself = std::env::current_exe().context("where this program is")?;
    let folder = itself.parent().unwrap_or(Path::new(""));
    Ok(folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}
