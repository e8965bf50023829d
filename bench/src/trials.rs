//! What is no load on a server that stands ready: sessions and listeners in numbers, and servers that start.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bench::load::{Score, float, listeners::Listeners, pipe, session::Beginners};

use crate::{server::Server, statistics::Values};

/// How long a trial's server may take for one of its steps.
const LIMIT: Duration = Duration::from_secs(120);

/// How often something is done at most in one round.
const OFTEN: usize = 20;

/// What a session takes that nobody uses: in bytes of resident memory.
pub(crate) fn idle(command: &mut Command, sessions: usize) -> Result<Score> {
    let (server, address) = Server::on_sockets(command)?;
    let _limit = server.ended_after(LIMIT);
    let mut beginners = Beginners::connect(address)?;
    // What the first sessions bring along, as buffers of connections, is not theirs.
    beginners.begin(sessions / 10)?;
    let resident = || server.resident().context("the system does not tell the memory of a process");
    let before = resident()?;
    beginners.begin(sessions)?;
    let grown = resident()?.saturating_sub(before) * 1024;
    Ok(Score::new(float(grown) / float(sessions as u64), sessions as u64))
}

/// How long the last of all listeners waits for a change: in ms.
pub(crate) fn fan_out(listeners: &mut Listeners, time: Duration) -> Result<Score> {
    often(time, || listeners.change())
}

/// How long a server takes from nothing to its first answer: in ms.
pub(crate) fn start_up(command: &mut Command, time: Duration) -> Result<Score> {
    often(time, || {
        let start = Instant::now();
        let (server, mut input, mut output) = Server::on_pipes(command)?;
        let _limit = server.ended_after(LIMIT);
        pipe::initialize(&mut input, &mut output)?;
        Ok(start.elapsed())
    })
}

/// The median of what is done until the time is over, in ms.
fn often(time: Duration, mut once: impl FnMut() -> Result<Duration>) -> Result<Score> {
    let (start, mut taken) = (Instant::now(), Vec::new());
    while taken.is_empty() || (start.elapsed() < time && taken.len() < OFTEN) {
        taken.push(once()?.as_secs_f64() * 1e3);
    }
    let count = taken.len() as u64;
    Ok(Score::new(Values::new(taken).median(), count))
}
