//! Load on a child's stdin and stdout, with blocking calls: no reactor stands between the child and the clock.

use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{
    Score,
    call::{Era, FIRST, Template},
    check::{Checker, number_of},
    wire::Wire,
};

/// Keeps `depth` calls in flight. What was sent when the time is over is waited for and counts.
///
/// The calls in flight have a slot each, and a slot's next call has a number that is `depth` higher: so each answer is
/// known to belong to a call that still waits, and with one slot they are known to come in order.
pub(crate) fn drive(input: &mut impl Write, output: &mut impl Read, depth: u64, time: Duration) -> Result<Score> {
    let mut calls = Wire::Lines.template(&Template::new(Era::Legacy), "");
    let mut slots: Vec<u64> = (FIRST..FIRST + depth).collect();
    let mut checker = Checker::new();
    let mut answers = Answers { output, received: Vec::new(), chunk: vec![0; 1 << 16] };
    let mut sending = Vec::new();
    for number in &slots {
        sending.extend_from_slice(calls.numbered(*number));
    }
    let (start, mut answered, mut waiting) = (Instant::now(), 0, depth);
    while waiting > 0 {
        input.write_all(&sending)?;
        sending.clear();
        let on_time = start.elapsed() < time;
        answers.take(|answer| {
            let number = number_of(answer)?;
            let slot = &mut slots[(number.wrapping_sub(FIRST) % depth) as usize];
            ensure!(*slot == number, "an answer to the call {number}, which was not waiting");
            checker.check(answer, number)?;
            *slot += depth;
            answered += 1;
            if on_time {
                sending.extend_from_slice(calls.numbered(*slot));
            } else {
                waiting -= 1;
            }
            Ok(())
        })?;
    }
    Ok(Score::since(start, answered))
}

/// Says the handshake of the legacy era.
pub(crate) fn shake_hands(input: &mut impl Write, output: &mut impl Read) -> Result<()> {
    input.write_all(concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
        r#""clientInfo":{"name":"bench","version":"1"}}}"#, "\n").as_bytes())?;
    let mut answers = Answers { output, received: Vec::new(), chunk: vec![0; 1 << 16] };
    answers.take(|answer| {
        ensure!(number_of(answer)? == 0, "not the answer to `initialize`: {}", String::from_utf8_lossy(answer));
        Ok(())
    })?;
    Ok(input.write_all(concat!(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "\n").as_bytes())?)
}

/// What a child writes, in whole lines.
struct Answers<'a, R> {
    output: &'a mut R,
    received: Vec<u8>,
    chunk: Vec<u8>,
}

impl<R: Read> Answers<'_, R> {
    /// Waits until there is at least one, and takes all that are there.
    fn take(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut used = 0;
        while used == 0 {
            let count = self.output.read(&mut self.chunk)?;
            ensure!(count > 0, "the server ended, or was ended as it did not answer");
            self.received.extend_from_slice(&self.chunk[..count]);
            while let Some(reply) = Wire::Lines.reply(&self.received[used..])? {
                each(&reply.message)?;
                used += reply.length;
            }
        }
        self.received.drain(..used);
        Ok(())
    }
}
