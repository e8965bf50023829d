//! Load on a child's stdin and stdout, with blocking calls: no reactor stands between the child and the clock.

use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{
    Score,
    call::{Era, FIRST, Work},
    check::{lossy, number_of},
    flight::Flight,
    session::{INITIALIZE, INITIALIZED},
    wire::{Plan, Reply, Wire},
};

/// What is read at once, at most.
const CHUNK: usize = 1 << 16;

/// Keeps `depth` calls in flight. What was sent when the time is over is waited for and counts.
///
/// # Errors
/// When an answer is wrong, or does not come.
pub fn drive(input: &mut impl Write, output: &mut impl Read, work: Work, depth: u64, time: Duration) -> Result<Score> {
    let plan = Plan { wire: Wire::Lines, work, era: Era::Legacy, host: String::new(), session: None };
    let mut flight = Flight::new(plan, FIRST, depth, depth);
    let mut answers = Answers { output, received: Vec::new(), chunk: vec![0; CHUNK] };
    let mut sending = Vec::new();
    flight.start(&mut sending);
    let start = Instant::now();
    while !flight.is_over() {
        input.write_all(&sending)?;
        sending.clear();
        answers.take(|reply| flight.take(reply, start.elapsed() >= time, &mut sending))?;
    }
    Ok(Score::since(start, flight.answered()))
}

/// Says the handshake of the legacy era.
///
/// # Errors
/// When it is not answered.
pub fn shake_hands(input: &mut impl Write, output: &mut impl Read) -> Result<()> {
    initialize(input, output)?;
    input.write_all(INITIALIZED.as_bytes())?;
    Ok(input.write_all(b"\n")?)
}

/// Says its first half, and waits for the answer.
///
/// # Errors
/// When it is not answered.
pub fn initialize(input: &mut impl Write, output: &mut impl Read) -> Result<()> {
    input.write_all(INITIALIZE.as_bytes())?;
    input.write_all(b"\n")?;
    let mut answers = Answers { output, received: Vec::new(), chunk: vec![0; CHUNK] };
    answers.take(|reply| {
        ensure!(number_of(&reply.message)? == 0, "not the answer to `initialize`: {:.2000}", lossy(&reply.message));
        Ok(())
    })
}

/// What a child writes, in whole lines.
struct Answers<'a, R> {
    output: &'a mut R,
    received: Vec<u8>,
    chunk: Vec<u8>,
}

impl<R: Read> Answers<'_, R> {
    /// Waits until there is at least one, and takes all that are there.
    fn take(&mut self, mut each: impl FnMut(&Reply<'_>) -> Result<()>) -> Result<()> {
        let mut used = 0;
        while used == 0 {
            let seen = self.received.len();
            let count = self.output.read(&mut self.chunk)?;
            ensure!(count > 0, "the server ended, or was ended as it did not answer");
            self.received.extend_from_slice(&self.chunk[..count]);
            // What was seen before has no end of a line in it.
            if memchr::memchr(b'\n', &self.received[seen..]).is_none() {
                continue;
            }
            while let Some(reply) = Wire::Lines.reply(&self.received[used..])? {
                each(&reply)?;
                used += reply.length;
            }
        }
        self.received.drain(..used);
        Ok(())
    }
}
