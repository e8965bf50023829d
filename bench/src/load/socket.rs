//! Load on TCP connections, all in one thread, which waits for all of them at once: a call costs it one write, one read,
//! and its part of a wait.

use std::{
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use mio::{Events, Interest, Poll, Token, net::TcpStream};

use super::{
    Score,
    call::{Era, FIRST, Work},
    flight::Flight,
    wire::{Plan, Wire},
};

/// What is read at once to begin with; it grows with what is answered.
const CHUNK: usize = 1 << 14;

/// What is asked for, and on how many connections.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "the programs of this package make them")]
pub struct Sockets {
    /// How messages travel.
    pub wire: Wire,
    /// What is asked for.
    pub work: Work,
    /// Whether requests carry `_meta`.
    pub era: Era,
    /// The session that they belong to, if to one.
    pub session: Option<String>,
    /// How many connections there are.
    pub connections: u64,
    /// How many calls are in flight on each.
    pub depth: u64,
    /// Whether the load sleeps while nothing has come.
    pub sleeps: bool,
}

/// Keeps the connections busy. What was sent when the time is over is waited for and counts.
///
/// # Errors
/// When an answer is wrong, or does not come.
pub fn drive(sockets: &Sockets, address: SocketAddr, time: Duration) -> Result<Score> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    for index in 0..sockets.connections {
        connections.push(Connection::open(sockets, address, index, &poll)?);
    }
    let mut events = Events::with_capacity(connections.len());
    let start = Instant::now();
    connections.iter_mut().try_for_each(Connection::send)?;
    let mut open = connections.len();
    let limit = if sockets.sleeps { None } else { Some(Duration::ZERO) };
    while open > 0 {
        wait(&mut poll, &mut events, limit)?;
        let is_over = start.elapsed() >= time;
        for event in &events {
            let connection = &mut connections[event.token().0];
            connection.turn(is_over)?;
            open -= usize::from(connection.has_just_ended());
        }
    }
    Ok(Score::since(start, connections.iter().map(|connection| connection.flight.answered()).sum()))
}

/// Waits until something has come, within the limit if there is one.
pub(super) fn wait(poll: &mut Poll, events: &mut Events, limit: Option<Duration>) -> Result<()> {
    while let Err(error) = poll.poll(events, limit) {
        ensure!(error.kind() == ErrorKind::Interrupted, error);
    }
    Ok(())
}

struct Connection {
    wire: Wire,
    stream: TcpStream,
    flight: Flight,
    received: Received,
    sending: Vec<u8>,
    sent: usize,
    has_ended: bool,
}

impl Connection {
    fn open(sockets: &Sockets, address: SocketAddr, index: u64, poll: &Poll) -> Result<Self> {
        let &Sockets { wire, work, era, ref session, connections, depth, .. } = sockets;
        let stream = wire.connect(address)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let token = Token(usize::try_from(index)?);
        poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        let plan = Plan { wire, work, era, host: address.to_string(), session: session.clone() };
        // Each connection has its own numbers: no two calls of a round share one.
        let mut flight = Flight::new(plan, FIRST + index * depth, depth, connections * depth);
        let mut sending = Vec::new();
        flight.start(&mut sending);
        Ok(Self { wire, stream, flight, received: Received::new(), sending, sent: 0, has_ended: false })
    }

    /// What there is to do when something has come, or can leave.
    fn turn(&mut self, is_over: bool) -> Result<()> {
        while self.received.read(&mut self.stream)? {
            let mut used = 0;
            while let Some(reply) = self.wire.reply(&self.received.bytes()[used..])? {
                self.flight.take(&reply, is_over, &mut self.sending)?;
                used += reply.length;
            }
            self.received.used(used);
            if !self.received.may_be_more() {
                break;
            }
        }
        ensure!(!self.flight.is_over() || self.received.bytes().is_empty(), "more answers than calls");
        self.send()
    }

    /// Writes what is to be sent, as much as there is room for.
    fn send(&mut self) -> Result<()> {
        while self.sent < self.sending.len() {
            match self.stream.write(&self.sending[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.sending.clear();
        self.sent = 0;
        Ok(())
    }

    fn has_just_ended(&mut self) -> bool {
        let ends = self.flight.is_over() && !self.has_ended;
        self.has_ended |= ends;
        ends
    }
}

/// What a connection has received and nobody has used.
pub(super) struct Received {
    buffer: Vec<u8>,
    length: usize,
    was_full: bool,
}

impl Received {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; CHUNK], length: 0, was_full: false }
    }

    /// Reads once; `false` if there was nothing.
    pub(super) fn read(&mut self, stream: &mut TcpStream) -> Result<bool> {
        if self.length == self.buffer.len() {
            self.buffer.resize(2 * self.length, 0);
        }
        match stream.read(&mut self.buffer[self.length..]) {
            Ok(count) => {
                ensure!(count > 0, "the server closed the connection, or was ended as it did not answer");
                self.length += count;
                self.was_full = self.length == self.buffer.len();
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Forgets the first `count` bytes.
    pub(super) fn used(&mut self, count: usize) {
        self.buffer.copy_within(count..self.length, 0);
        self.length -= count;
    }

    /// Whether the last read took all that there was room for. If not, the system tells when more has come.
    pub(super) fn may_be_more(&self) -> bool {
        self.was_full
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        net::TcpListener,
        thread,
    };

    use super::*;
    use crate::ceiling;

    /// Serves lines, with so much more than the sum.
    fn server(error: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || serve(stream.unwrap(), error));
            }
        });
        address
    }

    fn serve(stream: std::net::TcpStream, error: &str) {
        let mut writer = stream.try_clone().unwrap();
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let answer = ceiling::answer(line.as_bytes()).unwrap().json().unwrap().replace(r#""text":"1"#, error);
            // Whoever asked may have gone.
            let _ = writer.write_all((answer + "\n").as_bytes());
        }
    }

    fn sockets(sleeps: bool) -> Sockets {
        let (wire, work, era) = (Wire::Lines, Work::Add, Era::Legacy);
        Sockets { wire, work, era, session: None, connections: 3, depth: 2, sleeps }
    }

    #[test]
    fn what_was_sent_when_time_is_over_is_waited_for_and_counts() {
        let address = server(r#""text":"1"#);
        for sleeps in [true, false] {
            assert_eq!(drive(&sockets(sleeps), address, Duration::ZERO).unwrap().calls, 6);
        }
    }

    #[test]
    fn a_wrong_answer_fails_the_round() {
        let failed = drive(&sockets(true), server(r#""text":"2"#), Duration::ZERO);
        assert!(format!("{:#}", failed.unwrap_err()).contains("another text"));
    }
}
