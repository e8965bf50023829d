//! Sockets over pipes, in paused time: what happens when nothing comes.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::{Instant, sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{CloseFrame, Role, frame::coding::CloseCode},
    },
};

use super::*;

const K: Duration = Duration::from_secs(15);
const ROLES: [Role; 2] = [Role::Server, Role::Client];

/// A socket, and the bare stream of its peer.
async fn bare(role: Role, keep_alive: Option<Duration>) -> (Socket<Counted<DuplexStream>>, DuplexStream) {
    let (ours, theirs) = duplex(64 << 10);
    let (stream, traffic) = Counted::new(ours);
    let stream = WebSocketStream::from_raw_socket(stream, role, Some(config(1 << 20))).await;
    (Socket::new(Link::new(stream, role, traffic, keep_alive), None), theirs)
}

/// The same with a peer that speaks, and answers pings whenever it reads.
async fn pair(
    role: Role,
    keep_alive: Option<Duration>,
) -> (Socket<Counted<DuplexStream>>, WebSocketStream<DuplexStream>) {
    let (socket, theirs) = bare(role, keep_alive).await;
    let other = if role == Role::Server { Role::Client } else { Role::Server };
    (socket, WebSocketStream::from_raw_socket(theirs, other, None).await)
}

/// What a connection's loop does with a wire that has nothing to say: how it ends.
async fn idle(
    source: &mut SocketSource<Counted<DuplexStream>>,
    sink: &mut SocketSink<Counted<DuplexStream>>,
) -> io::Error {
    tokio::select! {
        biased;
        next = source.next() => next.unwrap_err(),
        error = sink.tend() => error,
    }
}

#[tokio::test(start_paused = true)]
async fn c114_a_peer_that_says_nothing_is_asked_and_then_taken_for_dead() {
    for role in ROLES {
        let (socket, mut theirs) = bare(role, Some(K)).await;
        let (mut source, mut sink) = socket.split();
        let start = Instant::now();
        let error = idle(&mut source, &mut sink).await;
        assert_eq!((error.kind(), start.elapsed().as_secs()), (io::ErrorKind::TimedOut, 3 * 15));
        assert!(error.to_string().contains("45000 ms"), "{error}");
        // It is told nothing more, since it is dead; it was asked twice.
        sink.close().await.unwrap();
        drop((source, sink));
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).await.unwrap();
        let ping = if role == Role::Client { 6 } else { 2 };
        assert_eq!(heard.len(), 2 * ping);
        assert!(heard.chunks(ping).all(|frame| frame[0] == 0x89), "{heard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_byte_now_and_then_is_life_and_so_is_a_pong() {
    for role in ROLES {
        let (socket, mut theirs) = bare(role, Some(K)).await;
        let (mut source, mut sink) = socket.split();
        let slow = async {
            // A frame that never ends.
            let length = if role == Role::Server { 0xff } else { 0x7f };
            theirs.write_all(&[0x81, length, 0, 0, 0, 0, 0, 0, 0x10, 0]).await.unwrap();
            for _ in 0..20 {
                sleep(K * 5 / 2).await;
                theirs.write_all(&[0]).await.unwrap();
            }
        };
        tokio::select! {
            error = idle(&mut source, &mut sink) => panic!("{error}"),
            () = slow => {}
        }
        let (socket, mut peer) = pair(role, Some(K)).await;
        let (mut source, mut sink) = socket.split();
        let mut pings = 0;
        let answering = async {
            while let Some(Ok(message)) = peer.next().await {
                pings += u32::from(message.is_ping());
            }
        };
        let ended = timeout(K * 100, async {
            tokio::select! {
                error = idle(&mut source, &mut sink) => error,
                () = answering => unreachable!(),
            }
        });
        assert!(ended.await.is_err());
        assert!((99..=100).contains(&pings), "{pings}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_keep_alive_nobody_is_asked_and_nobody_dies() {
    for role in ROLES {
        let (socket, mut theirs) = bare(role, None).await;
        let (mut source, mut sink) = socket.split();
        assert!(timeout(K * 1000, idle(&mut source, &mut sink)).await.is_err());
        drop((source, sink));
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).await.unwrap();
        assert!(heard.is_empty());
    }
}

/// Nobody takes frames; the peer's pings are answered, it is pinged, and its silence, which is ours, does not count.
#[tokio::test(start_paused = true)]
async fn while_nothing_is_taken_pings_go_on_in_both_directions() {
    for role in ROLES {
        let (socket, mut peer) = pair(role, Some(K)).await;
        let (mut source, mut sink) = socket.split();
        let script = async {
            for number in 0..3 {
                peer.send(Message::text(number.to_string())).await.unwrap();
            }
            peer.send(Message::Ping("are you there".into())).await.unwrap();
            assert_eq!(peer.next().await.unwrap().unwrap(), Message::Pong("are you there".into()));
            for _ in 0..10 {
                assert!(peer.next().await.unwrap().unwrap().is_ping());
            }
        };
        tokio::select! {
            error = sink.tend() => panic!("{error}"),
            () = script => {}
        }
        // More than is read ahead: from here on the peer waits, and so does what it says of itself.
        let flood = async { while timeout(K, peer.send(Message::text("x".repeat(1000)))).await.is_ok() {} };
        tokio::select! {
            error = sink.tend() => panic!("{error}"),
            () = flood => {}
        }
        assert!(timeout(K * 100, sink.tend()).await.is_err());
        {
            let shared = lock(&source.0);
            assert!(shared.ahead.len() <= AHEAD && shared.ahead_bytes <= AHEAD_BYTES + 1000, "{}", shared.ahead.len());
            assert!(shared.is_full());
        }
        // What was read ahead comes first, and in order.
        for number in 0..3 {
            assert_eq!(source.next().await.unwrap(), Some(Frame::Line(number.to_string().into())));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_dies_while_something_is_written_to_it_ends_the_writing() {
    for role in ROLES {
        let (socket, _theirs) = bare(role, Some(K)).await;
        let (_source, mut sink) = socket.split();
        let mut frames = vec![Bytes::from(vec![b'x'; 1 << 20])];
        let start = Instant::now();
        let error = sink.send(&mut frames).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(start.elapsed() <= K * 4, "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_on_this_side_is_closed_with_1011() {
    for role in ROLES {
        let (socket, mut peer) = pair(role, None).await;
        let (_source, mut sink) = socket.split();
        let error = sink.send(&mut vec![Bytes::from_static(b"\xff")]).await.unwrap_err();
        assert!(error.to_string().contains("1011"), "{error}");
        let closing = tokio::spawn(async move { sink.close().await });
        let Some(Ok(Message::Close(Some(frame)))) = peer.next().await else { panic!("no close frame") };
        assert_eq!(frame.code, CloseCode::Error);
        drop(peer);
        closing.await.unwrap().unwrap();
    }
}

/// Each code that a peer may close with is told, and so is its reason, but no more of it than an error shows.
#[tokio::test(start_paused = true)]
async fn how_a_peer_closes_is_told() {
    for role in ROLES {
        for (code, words, is_orderly) in [
            (1000, "1000", true),
            (1001, "1001 (it is going away)", true),
            (1002, "1002 (what came broke the protocol)", false),
            (1003, "1003 (a message was no text)", false),
            (1007, "1007 (a message was not UTF-8)", false),
            (1008, "1008 (its policy)", false),
            (1009, "1009 (a message was too large for it)", false),
            (1011, "1011 (an error of its own)", false),
            (4321, "4321", false),
        ] {
            let (socket, mut peer) = pair(role, None).await;
            let (mut source, _sink) = socket.split();
            let reason = "so\nit is".into();
            peer.close(Some(CloseFrame { code: code.into(), reason })).await.unwrap();
            let error = source.next().await.unwrap_err();
            assert_eq!(error.to_string(), format!("the peer closed the connection with {words}: so\\nit is"));
            assert_eq!(error.kind() == io::ErrorKind::ConnectionAborted, is_orderly, "{code}");
        }
    }
}

/// A machine that was asleep asks its peer once, and does not take for dead whoever had no time to answer.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_is_one_beat() {
    for role in ROLES {
        let (socket, mut theirs) = pair(role, Some(K)).await;
        let (mut source, mut sink) = socket.split();
        let jump = async {
            sleep(K / 3).await;
            tokio::time::advance(K * 1000).await;
            assert_eq!(theirs.next().await.unwrap().unwrap(), Message::Ping("".into()));
            // It has one more beat, and as long as any other.
            timeout(K * 2 / 3, theirs.next()).await.unwrap_err();
        };
        tokio::select! {
            error = idle(&mut source, &mut sink) => panic!("{error}"),
            () = jump => {}
        }
    }
}
