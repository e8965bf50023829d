//! What stands between two sides and does one thing wrong: at one byte of one direction of one connection.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// How many bytes are passed on one by one. A WebSocket's head in more than 64 pieces is refused as an attack.
pub(super) const SPLIT: usize = 53;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Each of the next bytes is a write of its own: [`SPLIT`] of them.
    Split,
    /// A pause.
    Delay,
    /// What was just passed on comes a second time.
    Duplicate,
    /// Nothing more comes, and both sides are told of the end.
    Truncate,
    /// Both sides see a reset.
    Reset,
    /// Nothing more comes in this direction, while the other one goes on.
    HalfClose,
    /// Nothing more comes, and nobody is told.
    Stall,
}

impl Fault {
    pub(super) const ALL: [Self; 7] =
        [Self::Split, Self::Delay, Self::Duplicate, Self::Truncate, Self::Reset, Self::HalfClose, Self::Stall];

    /// Whether everything arrives all the same.
    pub(super) fn is_harmless(self) -> bool {
        matches!(self, Self::Split | Self::Delay)
    }
}

/// A fault and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) fault: Fault,
    /// Which connection it befalls, in the order in which they are made.
    pub(super) connection: usize,
    /// Whether it befalls what the client sends.
    pub(super) is_upwards: bool,
    /// Behind so many bytes of that direction.
    pub(super) at: usize,
}

/// How a direction ended.
enum End {
    Closed,
    HalfClosed,
    Reset,
}

/// A proxy in front of `behind`; one connection has the fault, and the others have none.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    task: AbortHandle,
}

impl Proxy {
    pub(super) async fn before(behind: SocketAddr, plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let relaying = async move {
            let mut connections = tokio::task::JoinSet::new();
            let mut count = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let plan = (count == plan.connection).then_some(plan);
                count += 1;
                connections.spawn(async move {
                    let behind = TcpStream::connect(behind).await.unwrap();
                    let _ = (stream.set_nodelay(true), behind.set_nodelay(true));
                    relay(stream, behind, plan).await;
                });
            }
        };
        Self { address, task: tokio::spawn(relaying).abort_handle() }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on what comes over TCP, where a connection can be reset.
async fn relay(client: TcpStream, server: TcpStream, plan: Option<Plan>) {
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let (up, down) = directions(plan);
    let (up, down) = (pass(from_client, to_server, up), pass(from_server, to_client, down));
    tokio::pin!(up, down);
    tokio::select! {
        (end, reader, writer) = &mut up => { finish(end, reader, writer, down).await }
        (end, reader, writer) = &mut down => { finish(end, reader, writer, up).await }
    }
}

type Passed = (End, tokio::net::tcp::OwnedReadHalf, tokio::net::tcp::OwnedWriteHalf);

/// One direction has ended; what becomes of the other.
async fn finish(
    end: End,
    reader: tokio::net::tcp::OwnedReadHalf,
    writer: tokio::net::tcp::OwnedWriteHalf,
    other: impl Future<Output = Passed>,
) {
    match end {
        End::Reset => {
            let sides: [&TcpStream; 2] = [reader.as_ref(), writer.as_ref()];
            for side in sides {
                let _ = side.set_zero_linger();
            }
        }
        End::Closed => {}
        // The halves are kept: dropping one would close it.
        End::HalfClosed => drop(other.await),
    }
}

/// The same over any streams, which cannot be reset.
pub(super) async fn relay_streams<C, S>(client: C, server: S, plan: Plan)
where
    C: AsyncRead + AsyncWrite,
    S: AsyncRead + AsyncWrite,
{
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, to_server) = tokio::io::split(server);
    let (up, down) = directions(Some(plan));
    let up = pass(from_client, to_server, up);
    let down = pass(from_server, to_client, down);
    tokio::pin!(up, down);
    let (end, other_goes_on) = tokio::select! {
        (end, ..) = &mut up => (end, true),
        (end, ..) = &mut down => (end, false),
    };
    match (end, other_goes_on) {
        (End::HalfClosed, true) => drop(down.await),
        (End::HalfClosed, false) => drop(up.await),
        _ => {}
    }
}

fn directions(plan: Option<Plan>) -> (Option<Plan>, Option<Plan>) {
    (plan.filter(|plan| plan.is_upwards), plan.filter(|plan| !plan.is_upwards))
}

/// Passes bytes on until they end, or until the plan ends them. What is returned beside keeps the streams open.
async fn pass<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(mut from: R, mut to: W, plan: Option<Plan>) -> (End, R, W) {
    let (mut chunk, mut passed) = ([0; 4096], 0);
    loop {
        let read = match from.read(&mut chunk).await {
            Ok(read @ 1..) => read,
            _ => {
                let _ = to.shutdown().await;
                return (End::HalfClosed, from, to);
            }
        };
        let bytes = &chunk[..read];
        let Some(plan) = plan.filter(|plan| (passed..passed + read).contains(&plan.at)) else {
            passed += read;
            if to.write_all(bytes).await.is_err() {
                return (End::Closed, from, to);
            }
            continue;
        };
        let (before, behind) = bytes.split_at(plan.at - passed);
        passed += read;
        let _ = to.write_all(before).await;
        match plan.fault {
            Fault::Split => {
                let (split, rest) = behind.split_at(behind.len().min(SPLIT));
                for byte in split {
                    let _ = to.write_all(&[*byte]).await;
                    tokio::task::yield_now().await;
                }
                let _ = to.write_all(rest).await;
            }
            Fault::Delay => {
                tokio::time::sleep(Duration::from_millis(30)).await;
                let _ = to.write_all(behind).await;
            }
            Fault::Duplicate => {
                let _ = to.write_all(before).await;
                let _ = to.write_all(behind).await;
            }
            Fault::Truncate => return (End::Closed, from, to),
            Fault::Reset => return (End::Reset, from, to),
            Fault::HalfClose => {
                let _ = to.shutdown().await;
                // What still comes is read, so that only this direction has ended.
                while matches!(from.read(&mut chunk).await, Ok(1..)) {}
                return (End::HalfClosed, from, to);
            }
            Fault::Stall => std::future::pending().await,
        }
    }
}
