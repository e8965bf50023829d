//! One row: its contestants take turns, so that whatever else the machine does meets them all.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench::{
    Who,
    load::{
        Effort, Score,
        call::Era,
        client, decode, float,
        listeners::Listeners,
        memory, pipe, session,
        socket::{self, Sockets},
    },
};

use crate::{
    cores::Cores,
    rows::{Contestant, Load, Row},
    server::Server,
    settings::{Guest, Settings},
    statistics::Values,
    system, trials,
};

/// How much longer than its time a round may take before its server is ended.
const GRACE: Duration = Duration::from_secs(20);

/// Rounds before the first that counts are no longer than this.
const WARM_UP: Duration = Duration::from_millis(500);

/// What came of a row.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) outcomes: Vec<Outcome>,
    /// Guests that could not do it, and why.
    pub(crate) left_out: Vec<(String, String)>,
}

/// What came of one contestant.
pub(crate) struct Outcome {
    pub(crate) who: Who,
    pub(crate) label: String,
    pub(crate) values: Values,
    /// How long a call had a core, in µs, in the process that is measured; unknown within this one.
    pub(crate) cpu: Option<f64>,
    /// In KiB; unknown of what has no process of its own, as a client here.
    pub(crate) peak_memory: Option<u64>,
    /// In one call; counted within this process only.
    pub(crate) allocations: Option<f64>,
}

/// Runs a row. It fails when a contestant answers wrongly or not at all, unless that is a guest.
pub(crate) fn run(row: &Row, settings: &Settings) -> Result<Results> {
    let mut results = Results::default();
    let mut entrants = Vec::new();
    for candidate in Candidate::all(row, settings)? {
        let entrant = Entrant::start(row, &candidate, settings);
        entrants.extend(results.keep(&candidate, entrant)?);
    }
    if row.load.has_warm_up() {
        entrants = results.each(entrants, |entrant| entrant.round(settings.time.min(WARM_UP)).map(drop))?;
    }
    for _ in 0..row.load.rounds(settings) {
        entrants = results.each(entrants, |entrant| entrant.counted_round(settings.time))?;
    }
    for entrant in entrants {
        results.outcomes.push(entrant.outcome(row)?);
    }
    Ok(results)
}

impl Results {
    /// What was made of a candidate. A guest that fails is left out, and anybody else fails the run.
    fn keep<T>(&mut self, candidate: &Candidate, made: Result<T>) -> Result<Option<T>> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(error) if candidate.is_guest => {
                let why = on_one_line(&format!("{error:#}"));
                eprintln!("  {} is left out: {why}", candidate.label);
                self.left_out.push((candidate.label.clone(), why));
                Ok(None)
            }
            Err(error) => Err(error.context(candidate.label.clone())),
        }
    }

    fn each(
        &mut self,
        entrants: Vec<Entrant>,
        mut part: impl FnMut(&mut Entrant) -> Result<()>,
    ) -> Result<Vec<Entrant>> {
        let mut kept = Vec::new();
        for mut entrant in entrants {
            let done = part(&mut entrant);
            kept.extend(self.keep(&entrant.candidate.clone(), done.map(|()| entrant))?);
        }
        Ok(kept)
    }
}

/// A reason as a line of a list takes it.
fn on_one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST { line } else { line.chars().take(LONGEST).chain(['…']).collect() }
}

impl Load {
    /// Rounds that start from nothing have none.
    fn has_warm_up(self) -> bool {
        !matches!(self, Self::Idle | Self::StartUp)
    }

    /// Memory that is counted over thousands of sessions is counted once.
    fn rounds(self, settings: &Settings) -> usize {
        if matches!(self, Self::Idle) { 1 } else { settings.rounds }
    }
}

/// Who may do a row's work, before it was started.
#[derive(Clone)]
struct Candidate {
    who: Who,
    label: String,
    /// A program and what it is called with.
    command: Vec<String>,
    is_guest: bool,
}

impl Candidate {
    fn all(row: &Row, settings: &Settings) -> Result<Vec<Self>> {
        let guests = settings.guests.iter().filter(|_| row.is_open).map(|guest| Self::guest(row, guest));
        row.contestants.iter().map(|contestant| Self::own(row, contestant)).chain(guests.map(Ok)).collect()
    }

    fn own(row: &Row, contestant: &Contestant) -> Result<Self> {
        let program = match contestant.who {
            // What a client's load is put on is the same server for all.
            _ if matches!(row.load, Load::Client { .. }) => "ceiling",
            Who::Ours => "ours",
            Who::Rmcp => "peer-rmcp",
            Who::TowerMcp => "peer-tower-mcp",
            _ => "ceiling",
        };
        let program = beside_us(program)?.to_string_lossy().into_owned();
        let command = [program].into_iter().chain(contestant.arguments.iter().map(|word| (*word).to_owned()));
        Ok(Self { who: contestant.who, label: contestant.label(), command: command.collect(), is_guest: false })
    }

    fn guest(row: &Row, guest: &Guest) -> Self {
        let wire = if matches!(row.load, Load::Sockets { .. }) { "http" } else { "stdio" };
        let command = guest.command.iter().cloned().chain([wire.to_owned()]).collect();
        Self { who: guest.who, label: guest.who.to_string(), command, is_guest: true }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }
}

/// Another program of this package, which cargo builds into the same folder.
pub(crate) fn beside_us(name: &str) -> Result<PathBuf> {
    let itself = std::env::current_exe().context("where this program is")?;
    let folder = itself.parent().unwrap_or(Path::new(""));
    Ok(folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// A candidate that was started.
struct Entrant {
    candidate: Candidate,
    server: Option<Server>,
    /// The process whose time on a core counts.
    measured: Option<u32>,
    work: Work,
    values: Vec<f64>,
    calls: u64,
    /// What all counted rounds have had of a core.
    cpu: Option<Duration>,
}

/// One round.
type Work = Box<dyn FnMut(Duration) -> Result<Score>>;

impl Entrant {
    fn start(row: &Row, candidate: &Candidate, settings: &Settings) -> Result<Self> {
        let Started { server, measured, work } = start(row.load, candidate, settings)?;
        let (values, cpu) = (Vec::new(), Some(Duration::ZERO));
        Ok(Self { candidate: candidate.clone(), server, measured, work, values, calls: 0, cpu })
    }

    fn round(&mut self, time: Duration) -> Result<Score> {
        let _limit = self.server.as_ref().map(|server| server.ended_after(time + GRACE));
        (self.work)(time)
    }

    fn counted_round(&mut self, time: Duration) -> Result<()> {
        let before = self.measured.and_then(system::cpu_time);
        let score = self.round(time)?;
        let after = self.measured.and_then(system::cpu_time);
        let taken = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        self.cpu = self.cpu.zip(taken).map(|(sum, taken)| sum + taken);
        self.values.push(score.value);
        self.calls += score.calls;
        Ok(())
    }

    fn outcome(self, row: &Row) -> Result<Outcome> {
        let Candidate { who, label, .. } = self.candidate;
        let measured = self.server.as_ref().filter(|server| self.measured == Some(server.id()));
        let allocations = match row.load {
            Load::Direct(_) | Load::Pair | Load::Decode(_) => Some(allocations(row.name, who)?),
            _ => None,
        };
        Ok(Outcome {
            who,
            label,
            values: Values::new(self.values),
            cpu: self.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / float(self.calls.max(1))),
            peak_memory: measured.and_then(Server::peak_memory),
            allocations,
        })
    }
}

/// What one call allocates, as a program of its own counts it.
fn allocations(row: &str, who: Who) -> Result<f64> {
    let output = Command::new(beside_us("allocations")?).args([row, who.name()]).output()?;
    ensure!(output.status.success(), "counting allocations: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// What a round is done with.
struct Started {
    server: Option<Server>,
    measured: Option<u32>,
    work: Work,
}

impl Started {
    /// Something that has a process of its own.
    fn serving(server: Server, work: Work) -> Self {
        Self { measured: Some(server.id()), server: Some(server), work }
    }

    /// Something within this process, or that starts a process in each round.
    fn alone(work: Work) -> Self {
        Self { server: None, measured: None, work }
    }
}

fn start(load: Load, candidate: &Candidate, settings: &Settings) -> Result<Started> {
    let (who, mut command) = (candidate.who, candidate.command());
    Ok(match load {
        Load::Pipe { work, depth, cores } => {
            on_pipes(command, cores, move |input, output, time| pipe::drive(input, output, work, depth, time))?
        }
        Load::Sockets { .. } => on_sockets(command, load)?,
        Load::Client { depth } => with_client(command, who, depth)?,
        Load::Direct(work) => Started::alone(Box::new(move |time| memory::direct(who, work, Effort::Time(time)))),
        Load::Pair => Started::alone(Box::new(move |time| memory::pair(who, Effort::Time(time)))),
        Load::Decode(size) => Started::alone(Box::new(move |time| decode::drive(who, size, Effort::Time(time)))),
        Load::Idle => {
            let sessions = settings.sessions;
            Started::alone(Box::new(move |_| trials::idle(&mut command, sessions)))
        }
        Load::FanOut => with_listeners(command, settings.listeners)?,
        Load::StartUp => Started::alone(Box::new(move |time| trials::start_up(&mut command, time))),
    })
}

fn on_pipes(
    mut command: Command,
    cores: Cores,
    mut drive: impl FnMut(&mut std::process::ChildStdin, &mut std::process::ChildStdout, Duration) -> Result<Score>
    + 'static,
) -> Result<Started> {
    let (server, mut input, mut output) = cores.server(|| Server::on_pipes(&mut command))?;
    let limit = server.ended_after(GRACE);
    pipe::shake_hands(&mut input, &mut output)?;
    drop(limit);
    Ok(Started::serving(server, Box::new(move |time| cores.load(|| drive(&mut input, &mut output, time)))))
}

fn on_sockets(mut command: Command, load: Load) -> Result<Started> {
    let Load::Sockets { wire, work, in_session, connections, depth, cores } = load else {
        unreachable!("asked for with sockets only")
    };
    let (server, address) = cores.server(|| Server::on_sockets(&mut command))?;
    let limit = server.ended_after(GRACE);
    let session = if in_session { Some(session::begin(address)?) } else { None };
    drop(limit);
    let era = if in_session { Era::Legacy } else { Era::Modern };
    let sockets = Sockets { wire, work, era, session, connections, depth, sleeps: cores != Cores::Awake };
    Ok(Started::serving(server, Box::new(move |time| cores.load(|| socket::drive(&sockets, address, time)))))
}

/// The client is what is measured, and this process is the client.
fn with_client(mut command: Command, who: Who, depth: u64) -> Result<Started> {
    let cores = Cores::Apart;
    let (server, address) = cores.server(|| Server::on_sockets(&mut command))?;
    let work = Box::new(move |time| cores.load(|| client::drive(who, address, depth, time)));
    Ok(Started { measured: Some(std::process::id()), ..Started::serving(server, work) })
}

fn with_listeners(mut command: Command, count: usize) -> Result<Started> {
    let (server, address) = Server::on_sockets(&mut command)?;
    let limit = server.ended_after(GRACE);
    let mut listeners = Listeners::open(address, count)?;
    drop(limit);
    Ok(Started::serving(server, Box::new(move |time| trials::fan_out(&mut listeners, time))))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn candidate(is_guest: bool) -> Candidate {
        Candidate { who: Who::Node, label: "node".to_owned(), command: Vec::new(), is_guest }
    }

    #[test]
    fn a_guest_that_fails_is_left_out_and_anybody_else_fails_the_run() {
        let mut results = Results::default();
        let failed = || Err::<(), _>(anyhow!("no\n  such version"));
        assert_eq!(results.keep(&candidate(true), failed()).unwrap(), None);
        assert_eq!(results.left_out, [("node".to_owned(), "no such version".to_owned())]);
        assert!(results.keep(&candidate(false), failed()).is_err());
        assert_eq!(results.keep(&candidate(true), Ok(5)).unwrap(), Some(5));
    }

    #[test]
    fn a_long_reason_is_cut() {
        assert_eq!(on_one_line(&"x".repeat(1000)).chars().count(), 201);
    }
}
