//! Load on TCP connections, one call at a time on each, all in one thread.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime,
    task::JoinSet,
};

use super::{
    Score,
    call::{Era, FIRST, Template},
    check::Checker,
    wire::Wire,
};

/// Keeps one call in flight on each of `connections`.
pub(crate) fn drive(wire: Wire, address: SocketAddr, connections: u64, time: Duration) -> Result<Score> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let template = wire.template(&Template::new(Era::Modern), &address.to_string());
        let mut tasks = JoinSet::new();
        let mut streams = Vec::new();
        for _ in 0..connections {
            streams.push(connect(wire, address).await?);
        }
        let start = Instant::now();
        for (stream, first) in streams.into_iter().zip(FIRST..) {
            let calls = template.clone();
            tasks.spawn(Connection { wire, stream, calls, first, step: connections }.run(start, time));
        }
        let mut calls = 0;
        while let Some(done) = tasks.join_next().await {
            calls += done??;
        }
        Ok(Score::since(start, calls))
    })
}

async fn connect(wire: Wire, address: SocketAddr) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
    stream.set_nodelay(true)?;
    wire.open(&mut stream, address).await?;
    Ok(stream)
}

/// One connection, and the numbers of its calls: from `first` in steps of `step`, so that no two share one.
struct Connection {
    wire: Wire,
    stream: TcpStream,
    calls: Template,
    first: u64,
    step: u64,
}

impl Connection {
    async fn run(mut self, start: Instant, time: Duration) -> Result<u64> {
        let mut checker = Checker::new();
        let mut received = Vec::with_capacity(1 << 14);
        let mut calls = 0;
        while start.elapsed() < time {
            let number = self.first + calls * self.step;
            self.stream.write_all(self.calls.numbered(number)).await?;
            self.answer(&mut received, &mut checker, number).await?;
            calls += 1;
        }
        Ok(calls)
    }

    /// Reads one answer; nothing may follow it, as nothing else was asked.
    async fn answer(&mut self, received: &mut Vec<u8>, checker: &mut Checker, number: u64) -> Result<()> {
        received.clear();
        loop {
            let count = self.stream.read_buf(received).await?;
            ensure!(count > 0, "the server closed the connection, or was ended as it did not answer");
            if let Some(reply) = self.wire.reply(received)? {
                ensure!(reply.length == received.len(), "more than one answer to one call");
                return checker.check(&reply.message, number);
            }
        }
    }
}
