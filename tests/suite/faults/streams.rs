//! Byte streams that fail or stop, on either side: each ends its connection once, with a reason, and nothing spins or hangs.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use mcp_core::{
    Client, ErrorKind, Limits, Server,
    client::CallOptions,
    implementation,
    observer::{CloseReason, ConnectionEvent, Observer},
};
use mcp_stdio::{Lines, serve_lines};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    time::timeout,
};

use super::PATIENCE;
use crate::{
    report,
    server::{call, gauge, ping},
};

/// How a stream fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    With(io::ErrorKind),
    /// A writer takes nothing, and says so; a reader ends.
    Nothing,
    /// What was written cannot be flushed.
    Flush,
}

impl Failure {
    const ALL: [Self; 10] = [
        Self::With(io::ErrorKind::Other),
        Self::With(io::ErrorKind::BrokenPipe),
        Self::With(io::ErrorKind::ConnectionReset),
        Self::With(io::ErrorKind::ConnectionAborted),
        Self::With(io::ErrorKind::StorageFull),
        Self::With(io::ErrorKind::TimedOut),
        Self::With(io::ErrorKind::UnexpectedEof),
        Self::With(io::ErrorKind::WouldBlock),
        Self::Nothing,
        Self::Flush,
    ];
}

/// A stream that fails behind so many bytes, and counts how often it is asked from then on.
struct Failing<S> {
    stream: S,
    room: usize,
    failure: Failure,
    asked: Arc<AtomicU64>,
}

impl<S> Failing<S> {
    fn new(stream: S, room: usize, failure: Failure) -> Self {
        Self { stream, room, failure, asked: Arc::default() }
    }

    fn fail(&self) -> io::Result<usize> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.failure {
            Failure::With(kind) => Err(kind.into()),
            Failure::Nothing | Failure::Flush => Ok(0),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Failing<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.room == 0 && self.failure != Failure::Flush {
            return Poll::Ready(self.fail());
        }
        let most = if self.room == 0 { bytes.len() } else { bytes.len().min(self.room) };
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &bytes[..most]))?;
        self.room = self.room.saturating_sub(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.room == 0 && self.failure == Failure::Flush {
            self.asked.fetch_add(1, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::Other.into()));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Failing<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.room == 0 {
            return Poll::Ready(self.fail().map(drop));
        }
        let mut part = into.take(self.room);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        self.room -= read;
        // It was filled, and so initialised, through `part`.
        let bytes = part.filled().to_vec();
        into.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

/// Why connections closed.
#[derive(Clone, Default)]
struct Reasons(Arc<Mutex<Vec<String>>>);

impl Observer for Reasons {
    fn connection_closed(&self, _: &ConnectionEvent, reason: &CloseReason<'_>) {
        let told = match reason {
            CloseReason::Failed(error) => format!("{:?}", error.kind()),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(told);
    }
}

fn observed(limits: Limits) -> (Server, Reasons) {
    let reasons = Reasons::default();
    (everything_server::builder(limits).observer(reasons.clone()).build(), reasons)
}

/// A host whose disk is full, whose pipe is gone, whose device is broken: serving ends, and the calls with it.
#[tokio::test(start_paused = true)]
async fn an_output_that_fails_ends_a_server_once_and_with_a_reason() {
    let mut tried = 0;
    for failure in Failure::ALL {
        for room in [0, 1, 20, 300, 5000] {
            let (server, reasons) = observed(Limits::default());
            let ((mut asks, input), (output, mut rest)) = (tokio::io::duplex(64 << 10), tokio::io::duplex(64 << 10));
            let output = Failing::new(output, room, failure);
            let asked = output.asked.clone();
            let serving = tokio::spawn(serve_lines(server.clone(), input, output));
            let sleeps = call(0, "sleep", json!({ "ms": 3_600_000 }));
            let big = call(1, "big", json!({ "bytes": 6000 }));
            asks.write_all(format!("{sleeps}\n{big}\n{}\n{}\n", ping(2), ping(3)).as_bytes()).await.unwrap();
            let served = timeout(PATIENCE, serving).await.expect("it ends, though its input does not").unwrap();
            let kind = served.map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::TransportError), "{failure:?} behind {room} bytes");
            assert_eq!(reasons.0.lock().unwrap().as_slice(), ["TransportError"], "{failure:?} behind {room} bytes");
            assert_eq!(gauge(&server).await, (0, 1), "{failure:?} behind {room} bytes: its calls end with it");
            let asked = asked.load(Ordering::Relaxed);
            assert!(asked <= 3, "{failure:?} behind {room} bytes: it was asked {asked} times");
            let mut written = Vec::new();
            rest.read_to_end(&mut written).await.unwrap();
            assert!(failure == Failure::Flush || written.len() == room, "nothing is lost before it fails");
            tried += 1;
        }
    }
    tell("an output that fails, at a server", tried);
}

fn tell(fault: &str, tried: usize) {
    let cells = [
        ("fault", fault.to_owned()),
        ("wire", "lines".to_owned()),
        ("tried", tried.to_string()),
        ("survived", tried.to_string()),
    ];
    report::row("Faults", cells);
}

/// The same for the input, in the middle of a message and behind one: that it fails is told from that it ends.
#[tokio::test(start_paused = true)]
async fn an_input_that_fails_ends_a_server_once_and_with_a_reason() {
    let request = call(0, "sleep", json!({ "ms": 3_600_000 })) + "\n";
    let mut tried = 0;
    for failure in Failure::ALL.into_iter().filter(|failure| *failure != Failure::Flush) {
        for room in [0, 1, request.len() - 1, request.len()] {
            let (server, reasons) = observed(Limits::default());
            let (mut asks, input) = tokio::io::duplex(64 << 10);
            asks.write_all(request.as_bytes()).await.unwrap();
            let input = Failing::new(input, room, failure);
            let asked = input.asked.clone();
            let serving = tokio::spawn(serve_lines(server.clone(), input, tokio::io::sink()));
            let served = timeout(PATIENCE, serving).await.expect("it ends").unwrap();
            let expected = if failure == Failure::Nothing { "Peer" } else { "TransportError" };
            assert_eq!(served.is_ok(), failure == Failure::Nothing, "{failure:?} behind {room} bytes: {served:?}");
            assert_eq!(reasons.0.lock().unwrap().as_slice(), [expected], "{failure:?} behind {room} bytes");
            assert_eq!(gauge(&server).await.0, 0, "{failure:?} behind {room} bytes");
            assert!(asked.load(Ordering::Relaxed) <= 2, "{failure:?} behind {room} bytes: it spins");
            tried += 1;
        }
    }
    tell("an input that fails, at a server", tried);
}

/// A host that has stopped reading holds a server no longer than the limit says, and others are served meanwhile.
#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_ends_its_connection_with_a_reason_and_no_other() {
    let limits = Limits::default().stall_timeout(Duration::from_secs(5)).queue_messages(8);
    let (server, reasons) = observed(limits);
    let (stuck, there) = tokio::io::duplex(256);
    let (reader, writer) = tokio::io::split(there);
    let serving = tokio::spawn(serve_lines(server.clone(), reader, writer));
    let (_unread, mut asks) = tokio::io::split(stuck);
    let asking = tokio::spawn(async move {
        let mut taken = 0_u64;
        while asks.write_all(format!("{}\n", ping(taken)).as_bytes()).await.is_ok() {
            taken += 1;
        }
        taken
    });
    let other = Client::connect(server.clone()).await.unwrap();
    let start = tokio::time::Instant::now();
    while !serving.is_finished() {
        assert!(start.elapsed() < PATIENCE, "it is never given up");
        assert_eq!(other.call::<u64>("add", json!({ "a": 1, "b": 2 })).await.unwrap(), 3);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(serving.await.unwrap().unwrap_err().kind(), ErrorKind::TransportError);
    assert_eq!(reasons.0.lock().unwrap().as_slice(), ["TransportError"]);
    let taken = asking.await.unwrap();
    assert!(taken < 64, "{taken} requests were taken of one who reads no answer");
    other.disconnect().await;
}

/// Wherever a client's output fails, its calls do, with what it was; a call that was answered was not lost.
#[tokio::test(start_paused = true)]
async fn an_output_that_fails_fails_the_calls_of_a_client() {
    let mut tried = 0;
    for failure in Failure::ALL {
        for room in (0..1500).step_by(149) {
            let ((here, there), (up, asked)) = (tokio::io::duplex(64 << 10), tokio::io::duplex(64 << 10));
            tokio::spawn(serve_lines(everything_server::server(), asked, there));
            let wire = Lines::new(here, Failing::new(up, room, failure), Limits::default().message_bytes);
            let met = async {
                let client = Client::builder(implementation!()).connect(wire).await?;
                for n in 0..3 {
                    assert_eq!(client.call::<u64>("add", json!({ "a": 1, "b": n })).await?, n + 1);
                }
                client.disconnect().await;
                Ok::<_, mcp_core::Error>(())
            };
            let outcome =
                timeout(PATIENCE, met).await.unwrap_or_else(|_| panic!("{failure:?} behind {room}: it hangs"));
            if let Err(error) = outcome {
                let is_typed = [ErrorKind::TransportClosed, ErrorKind::TransportError].contains(&error.kind());
                assert!(is_typed, "{failure:?} behind {room} bytes: {error:?}");
            }
            tried += 1;
        }
    }
    tell("an output that fails, at a client", tried);
}

/// Half of an answer is none: its call ends by its time, and where the rest comes late, it is nobody else's answer.
#[tokio::test(start_paused = true)]
async fn half_a_line_costs_one_call_and_its_late_rest_none() {
    let (here, there) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(here);
    let script = async move {
        let (reader, mut writer) = tokio::io::split(there);
        let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(reader));
        let mut next = async || {
            let line = lines.next_line().await.unwrap().expect("a message");
            serde_json::from_str::<Value>(&line).unwrap()
        };
        let result = |id: &Value, text: &str| {
            let result = json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] });
            json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string() + "\n"
        };
        let probe = next().await;
        let discovered = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
        let discovered = json!({ "jsonrpc": "2.0", "id": probe["id"], "result": discovered });
        writer.write_all(format!("{discovered}\n").as_bytes()).await.unwrap();
        let late = result(&next().await["id"], "late");
        let (half, rest) = late.split_at(late.len() / 2);
        writer.write_all(half.as_bytes()).await.unwrap();
        assert_eq!(next().await["method"], "notifications/cancelled");
        let answer = result(&next().await["id"], "in time");
        writer.write_all(format!("{rest}{answer}").as_bytes()).await.unwrap();
        (lines, writer)
    };
    let script = tokio::spawn(script);
    let client = Client::connect(Lines::new(reader, writer, 64 << 10)).await.unwrap();
    let patience = CallOptions::new().timeout(Duration::from_secs(1));
    let error = client.call_with::<String>("a", (), patience).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "in time");
    drop(script.await.unwrap());
    client.disconnect().await;
}

#[cfg(unix)]
mod processes {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::{
        peer::process::{answer, shell},
        process::{Running, stdio},
    };

    const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;

    /// A host that goes while an answer is being written: the process ends by itself, and nothing panics.
    #[test]
    fn a_stdout_that_is_closed_within_an_answer_ends_the_process() {
        for taken in [0, 1, 10_000, 1 << 20] {
            let mut process = Running::start(&mut stdio());
            let mut stdin = process.stdin();
            let mut stdout = process.0.stdout.take().unwrap();
            let asked = format!(
                "{}\n{}\n",
                call(1, "sleep", json!({ "ms": 3_600_000 })),
                call(2, "big", json!({ "bytes": 3 << 20 }))
            );
            stdin.write_all(asked.as_bytes()).unwrap();
            stdout.read_exact(&mut vec![0; taken]).unwrap();
            drop(stdout);
            // The input stays open: that nobody reads is enough.
            let (_, _, stderr) = process.end();
            assert!(!stderr.contains("panicked"), "{stderr}");
            drop(stdin);
        }
    }

    /// A server that is there and can say nothing any more: pending calls fail at once, and so do later ones.
    #[tokio::test]
    async fn a_child_that_closes_its_stdout_and_lives_fails_its_calls_and_is_ended() {
        for last_words in ["", "printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"resu'; "] {
            let script = format!("{}read -r line; {last_words}exec >&-; exec sleep 3600", answer(0, DISCOVERED));
            let client = Client::connect(shell(&script)).await.unwrap();
            let ended = async {
                for _ in 0..2 {
                    let error = client.call::<String>("a", ()).await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error:?}");
                    assert!(error.to_string().contains("closed its stdout"), "{error}");
                }
                client.disconnect().await;
            };
            timeout(PATIENCE, ended).await.expect("nobody waits for what cannot come");
        }
    }

    /// It writes half an answer and stops; it can be ended all the same.
    #[tokio::test]
    async fn a_child_that_stops_within_a_line_costs_its_call_alone_and_is_ended() {
        let half = "printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"resu'";
        let script = format!("{}read -r line; {half}; exec sleep 3600", answer(0, DISCOVERED));
        let client = Client::connect(shell(&script)).await.unwrap();
        let options = CallOptions::new().timeout(Duration::from_millis(300));
        let error = client.call_with::<String>("a", (), options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
        timeout(PATIENCE, client.disconnect()).await.expect("it is ended");
    }
}
