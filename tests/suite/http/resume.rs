//! The streams of a legacy session: who opens them, who reads them, and how a client that lost one comes back to it.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use mcp_core::{Limits, Revision};
use mcp_http::Routes;
use serde_json::json;

use super::{
    Connection, Post,
    raw::soon,
    session::{Block, Doors, Heard, Host, Session, builder, call, ping},
};

fn numbers(heard: &[Heard]) -> Vec<u64> {
    heard.iter().map(Heard::number).collect()
}

// The stream that GET opens.

#[tokio::test]
async fn a_get_opens_a_stream_whose_head_and_first_event_come_at_once_and_together() {
    let host = Host::start().await;
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let session = host.speaking(revision).await;
        let mut connection = Connection::open(host.address).await;
        connection.write(&session.get().bytes(host.address)).await;
        let segment = connection.segment().await;
        let (head, body) = segment.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{segment:?}"));
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        for line in ["content-type: text/event-stream", "cache-control: no-cache", "x-accel-buffering: no"] {
            assert!(head.contains(line), "{head}");
        }
        // Older clients stumble over an event without data.
        let primes = revision == Revision::V2025_11_25;
        assert_eq!(body.contains("data: \n\n") && body.contains("retry: ") && body.contains("id: "), primes, "{body}");
        assert_eq!(body.contains(": keep-alive\n\n"), !primes, "{body}");
    }
}

#[tokio::test]
async fn a_get_that_takes_no_stream_is_406_and_over_http_1_0_it_is_505() {
    let host = Host::start().await;
    let session = host.open().await;
    for accept in ["application/json", "*/*", "text/event-stream;q=0"] {
        assert_eq!(host.send(session.get().header("Accept", accept)).await.status(), 406, "{accept}");
    }
    assert_eq!(host.send(session.get().never("Accept")).await.status(), 406);
    assert_eq!(host.send(session.get().version("HTTP/1.0")).await.status(), 505);
    for accept in ["text/*", "application/json, text/event-stream"] {
        assert!(host.stream(&session.get().header("Accept", accept)).await.is_stream(), "{accept}");
        crate::server::until("its end is seen", async || {
            let stream = host.stream(&session.get()).await;
            stream.is_stream()
        })
        .await;
    }
}

/// C078, as far as the old connection is gone: the new one takes its place. While it lives: 409.
#[tokio::test]
async fn c078_a_stream_more_than_may_be_is_409_while_the_old_ones_live_and_no_longer() {
    for most in [1, 2] {
        let host = Host::within(Limits::default().session_streams(most)).await;
        let (session, other) = (host.open().await, host.open().await);
        let mut streams = Vec::new();
        for _ in 0..most {
            streams.push(host.listen(&session).await);
        }
        let refusal = host.send(session.get()).await;
        assert_eq!((refusal.status(), &refusal.json()["error"]["code"]), (409, &json!(-32600)));
        assert!(host.stream(&other.get()).await.is_stream());
        // At once: the server may see the end of the old only after the new one has come.
        streams.remove(0).connection.abort();
        let mut fresh = host.listen(&session).await;
        assert!(host.push(&session, 1).await);
        assert_eq!(fresh.numbers(1).await, [1]);
    }
}

#[tokio::test]
async fn a_pushed_message_is_on_one_stream_and_waits_where_there_is_none() {
    let host = Host::within(Limits::default().session_streams(2)).await;
    let session = host.open().await;
    assert!(host.push(&session, 1).await && host.push(&session, 2).await);
    let mut first = host.listen(&session).await;
    assert_eq!(first.numbers(2).await, [1, 2]);
    let mut second = host.listen(&session).await;
    for number in 3..10 {
        assert!(host.push(&session, number).await);
    }
    assert_eq!(second.numbers(7).await, [3, 4, 5, 6, 7, 8, 9]);
    tokio::join!(first.is_quiet(), second.is_quiet());
}

/// More than a queue holds: nobody read it, so nobody was too slow, and none is lost in any revision.
#[tokio::test]
async fn all_that_waited_for_a_stream_comes_on_it() {
    let host = Host::within(Limits::default().queue_messages(4)).await;
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let session = host.speaking(revision).await;
        for number in 0..100 {
            assert!(host.push(&session, number).await);
        }
        let mut stream = host.listen(&session).await;
        assert_eq!(stream.numbers(100).await, (0..100).collect::<Vec<_>>());
        assert!(host.push(&session, 100).await);
        assert_eq!(stream.numbers(1).await, [100]);
    }
}

/// Who reads what comes is not too slow because it comes in one go.
#[tokio::test]
async fn a_burst_of_pushed_messages_comes_to_whoever_reads() {
    let host = Host::within(Limits::default().queue_messages(16)).await;
    let session = host.speaking(Revision::V2025_06_18).await;
    let mut stream = host.listen(&session).await;
    let pushing = async {
        for number in 0..200 {
            assert!(host.push(&session, number).await);
        }
    };
    let ((), heard) = tokio::join!(pushing, stream.numbers(200));
    assert_eq!(heard, (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn c078_a_quiet_stream_is_kept_alive_by_comments_that_are_no_events() {
    let limits = Limits::default().keep_alive(Duration::from_millis(50)).session_lease(Duration::from_millis(60));
    let host = Host::within(limits).await;
    let session = host.open().await;
    let mut standalone = host.listen(&session).await;
    for _ in 0..3 {
        assert_eq!(standalone.next().await, Some(Block::default()));
    }
    // A call that is quiet for as long becomes a stream too.
    let mut quiet = host.working(&session, 1, json!({ "door": "a" })).await;
    let primed = quiet.next().await.unwrap();
    assert_eq!((primed.data.as_deref(), quiet.next().await), (Some(""), Some(Block::default())));
    host.doors.open("a");
    assert_eq!(quiet.hear().await.unwrap().text(), "done, left: false");
    assert_eq!(quiet.next().await, None);
}

// The streams of calls.

#[tokio::test]
async fn c051_a_call_is_json_unless_it_says_something_and_its_stream_ends_behind_the_answer() {
    let host = Host::start().await;
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let session = host.speaking(revision).await;
        let response = host.work(&session, 1, json!({})).await;
        assert_eq!(response.head.header("content-type"), Some("application/json"));
        let primes = revision == Revision::V2025_11_25;
        for (accept, say) in [("text/event-stream", 0), ("text/event-stream, application/json", 2)] {
            let mut stream = host.stream(&session.post(call(2, json!({ "say": say }))).header("Accept", accept)).await;
            assert!(stream.is_stream());
            let mut blocks = Vec::new();
            while let Some(block) = soon("the end", stream.next()).await {
                blocks.push(block);
            }
            let empty: Vec<_> = blocks.iter().map(|block| !block.is_message()).collect();
            let first = if primes { vec![true] } else { vec![] };
            assert_eq!(empty, [first, vec![false; say + 1]].concat(), "{blocks:?}");
            assert!(blocks.iter().all(|block| block.id.is_some()));
            assert!(blocks.iter().all(|block| block.retry.is_some() != block.is_message()));
        }
    }
}

/// C051: nothing is left of a hundred streams, no connection and no task.
#[tokio::test]
async fn c051_each_stream_ends_right_behind_its_answer_and_leaves_nothing() {
    let host = Host::start().await;
    let session = host.open().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut connection = Connection::open(host.address).await;
    let mut before = None;
    let mut took = Vec::new();
    for id in 0..100 {
        let start = Instant::now();
        connection.write(&session.post(call(id, json!({ "say": 1 }))).bytes(host.address)).await;
        let response = connection.response().await.unwrap();
        took.push(start.elapsed());
        assert!(response.is_stream() && response.text().contains("done"), "{}", response.text());
        if before.is_none() {
            tokio::task::yield_now().await;
            before = Some(tasks());
        }
    }
    crate::server::until("the tasks have ended", async || Some(tasks()) <= before).await;
    took.sort();
    // No pause of Nagle's (40 ms) on a connection that is kept.
    assert!(took[50] < Duration::from_millis(30), "{:?}", took[50]);
}

/// Events of all streams of a session have ids of their own, which tell nothing of the session's.
#[tokio::test]
async fn c098_no_two_events_of_a_session_have_one_id_and_each_can_be_resumed_from() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut standalone = host.listen(&session).await;
    let mut ids = HashSet::new();
    for round in 0..5 {
        let calls = (0..20).map(|id| host.working(&session, round * 20 + id, json!({ "say": 3 })));
        for mut stream in join_all(calls).await {
            while let Some(block) = stream.next().await {
                let id = block.id.unwrap();
                assert!(!id.contains(&session.id) && id.len() <= 40 && id.bytes().all(|byte| byte.is_ascii_graphic()));
                assert!(ids.insert(id));
            }
        }
        assert!(host.push(&session, round).await);
        assert!(ids.insert(standalone.hear().await.unwrap().id));
    }
    assert_eq!(ids.len(), 5 * (20 * 5 + 1));
    for id in ids.iter().step_by(37) {
        assert!(host.resume(&session, id).await.is_stream());
    }
}

// Coming back.

#[tokio::test]
async fn c096_a_stream_that_was_cut_goes_on_behind_the_event_that_is_named() {
    let host = Host::start().await;
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let session = host.speaking(revision).await;
        let mut stream = host.working(&session, 1, json!({ "say": 5, "door": "a", "then": 2 })).await;
        let mut ids = Vec::new();
        for number in 1..=5 {
            let heard = stream.hear().await.unwrap();
            assert_eq!(heard.number(), number);
            ids.push(heard.id);
        }
        stream.connection.abort();
        let mut again = host.resume(&session, &ids[1]).await;
        assert_eq!(again.numbers(3).await, [3, 4, 5]);
        again.connection.abort();
        host.doors.open("a");
        let mut again = host.resume(&session, &ids[4]).await;
        let rest = again.rest().await;
        assert_eq!((numbers(&rest[..2]), rest[2].text(), rest.len()), (vec![6, 7], "done, left: false", 3));
    }
}

#[tokio::test]
async fn c096_what_is_resumed_is_one_stream_and_nothing_of_another() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut standalone = host.listen(&session).await;
    let mut a = host.working(&session, 1, json!({ "say": 1, "door": "a", "then": 3 })).await;
    let first = a.hear().await.unwrap();
    let mut b = host.working(&session, 2, json!({ "say": 50, "door": "b", "then": 3 })).await;
    assert_eq!(b.numbers(50).await.len(), 50);
    assert!(host.push(&session, 99).await);
    let pushed = standalone.hear().await.unwrap();
    drop((a, b));
    host.doors.open("b");
    host.doors.done(1).await;
    host.doors.open("a");
    let mut again = host.resume(&session, &first.id).await;
    let rest = again.rest().await;
    assert_eq!((numbers(&rest[..3]), &rest[3].message["id"], rest.len()), (vec![2, 3, 4], &json!(1), 4));
    assert!(host.push(&session, 100).await);
    assert_eq!(standalone.numbers(1).await, [100]);
    drop(standalone);
    assert!(host.push(&session, 101).await);
    let mut again = host.resume(&session, &pushed.id).await;
    assert_eq!(again.numbers(2).await, [100, 101]);
    assert!(host.push(&session, 102).await);
    assert_eq!(again.numbers(1).await, [102], "what is resumed is the standalone stream again");
}

#[tokio::test]
async fn c097_a_cursor_that_is_none_of_this_session_replays_nothing() {
    let host = Host::start().await;
    let (owner, thief) = (host.open().await, host.open().await);
    let mut stream = host.working(&owner, 1, json!({ "say": 3 })).await;
    let id = stream.hear().await.unwrap().id;
    assert_eq!(stream.rest().await.len(), 3);
    let long = "a".repeat(30 << 10);
    let strange =
        ["", "x", "1-1", "0-0", "_GET_stream", "a-b_c", "7/1", "-", "ffffffffffffffff-ffffffffffffffff", &long];
    for cursor in strange.into_iter().chain([id.as_str(), "ünï", "\u{1}x"]) {
        if cursor.contains('\u{1}') {
            assert_eq!(host.send(thief.get().header("Last-Event-ID", cursor)).await.status(), 400);
            continue;
        }
        let mut stream = host.resume(&thief, cursor).await;
        assert!(stream.is_stream(), "{cursor:.20}: {:?}", stream.head);
        stream.is_quiet().await;
    }
    // And in its own session it does.
    assert_eq!(host.resume(&owner, &id).await.rest().await.len(), 3);
}

/// A place that no event has had yet hides none of those that come.
#[tokio::test]
async fn c097_a_cursor_ahead_of_its_stream_misses_nothing_that_comes() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut stream = host.working(&session, 1, json!({ "say": 1, "door": "a" })).await;
    let id = stream.hear().await.unwrap().id;
    let (stream_id, _) = id.split_once('-').unwrap();
    let mut again = host.resume(&session, &format!("{stream_id}-ffff")).await;
    host.doors.open("a");
    assert_eq!(again.rest().await.len(), 1);
}

/// What nobody can be told is not told to somebody else: the log is behind the principal too.
#[tokio::test]
async fn c097_a_cursor_of_another_principals_session_is_404() {
    let host = Host::with_principals().await;
    let session = host.of(Some("ada.1")).await;
    let id = host.working(&session, 1, json!({ "say": 1 })).await.hear().await.unwrap().id;
    let stolen = session.as_of(Some("bob.1"));
    assert_eq!(host.resume(&stolen, &id).await.head.status, 404);
    assert_eq!(host.resume(&session, &id).await.rest().await.len(), 1);
}

/// A client whose stream was forgotten here, though not what was sent on it, gets that and goes on.
#[tokio::test]
async fn c098_a_standalone_stream_that_only_the_log_knows_goes_on_in_a_new_one() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut stream = host.listen(&session).await;
    assert!(host.push(&session, 1).await && host.push(&session, 2).await);
    let (first, second) = (stream.hear().await.unwrap().id, stream.hear().await.unwrap().id);
    drop(stream);
    for _ in 0..9 {
        host.listen(&session).await.connection.abort();
    }
    let other = host.listen(&session).await;
    assert_eq!(host.send(session.get().header("Last-Event-ID", &*first)).await.status(), 409, "one may be open");
    drop(other);
    for (cursor, missed) in [(&first, vec![2]), (&second, vec![])] {
        // What waits for a reader comes behind what was missed.
        let mut stream = host.resume(&session, cursor).await;
        assert_eq!(stream.numbers(missed.len()).await, missed);
        assert!(host.push(&session, 3).await);
        let third = stream.hear().await.unwrap();
        assert_eq!(third.number(), 3);
        drop(stream);
        let mut stream = host.resume(&session, &third.id).await;
        assert!(host.push(&session, 4).await);
        assert_eq!(stream.numbers(1).await, [4]);
    }
}

/// D06: the answer to a call is not lost with the connection that it was written to.
#[tokio::test]
async fn d06_an_answer_that_was_lost_in_transit_is_delivered_on_resume_and_again() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut stream = host.working(&session, 1, json!({ "say": 2 })).await;
    let priming = stream.next().await.unwrap().id.unwrap();
    let rest = stream.rest().await;
    assert_eq!(rest.len(), 3);
    for (cursor, count) in [(&priming, 3), (&rest[0].id, 2), (&rest[1].id, 1), (&priming, 3)] {
        let mut again = host.resume(&session, cursor).await;
        let heard = again.rest().await;
        assert_eq!((heard.len(), heard.last().unwrap().text()), (count, "done, left: false"));
        assert_eq!(heard.last().unwrap().id, rest[2].id);
    }
}

/// D06, for an answer that nobody read: the connection was cut while the call ran.
#[tokio::test]
async fn d06_an_answer_that_came_while_nobody_read_is_delivered_on_resume() {
    let host = Host::start().await;
    let session = host.open().await;
    for (id, work) in [(1, json!({ "say": 1, "door": "a" })), (2, json!({ "say": 300, "door": "a", "then": 1 }))] {
        let mut stream = host.working(&session, id, work).await;
        let first = stream.hear().await.unwrap();
        stream.connection.abort();
        host.doors.open("a");
        host.doors.done(id).await;
        let heard = host.resume(&session, &first.id).await.rest().await;
        assert_eq!(heard.last().unwrap().message["id"], id);
    }
}

/// A client that has all of a stream and asks again must not be kept asking: no event, no id.
#[tokio::test]
async fn c051_behind_the_answer_there_is_an_end_and_no_event() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut stream = host.working(&session, 1, json!({ "say": 1 })).await;
    let last = stream.rest().await.pop().unwrap();
    let mut again = host.resume(&session, &last.id).await;
    assert!(again.is_stream());
    assert_eq!(soon("the end", again.next()).await, None);
}

#[tokio::test]
async fn c098_a_stream_that_is_resumed_while_its_call_runs_waits_for_the_answer() {
    let host = Host::start().await;
    let session = host.open().await;
    let _standalone = host.listen(&session).await;
    let mut stream = host.working(&session, 1, json!({ "say": 1, "door": "a" })).await;
    let cursor = stream.hear().await.unwrap().id;
    stream.connection.abort();
    // Beside the standalone stream, though that is all there may be; cut before any event it begins at the same place.
    for _ in 0..3 {
        let mut again = host.resume(&session, &cursor).await;
        assert_eq!(again.next().await.unwrap().id.as_ref(), Some(&cursor));
        again.connection.abort();
    }
    let mut again = host.resume(&session, &cursor).await;
    again.is_quiet().await;
    host.doors.open("a");
    assert_eq!(again.rest().await.len(), 1);
}

/// The old connection may only seem to live.
#[tokio::test]
async fn c078_who_resumes_a_stream_that_is_still_read_takes_it_over() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut first = host.working(&session, 1, json!({ "say": 1, "door": "a", "then": 2 })).await;
    let cursor = first.hear().await.unwrap().id;
    let mut second = host.resume(&session, &cursor).await;
    assert!(second.is_stream() && first.rest().await.is_empty());
    let mut third = host.resume(&session, &cursor).await;
    assert!(third.is_stream() && second.rest().await.is_empty());
    host.doors.open("a");
    assert_eq!(third.rest().await.len(), 3);
    let mut old = host.listen(&session).await;
    assert!(host.push(&session, 1).await);
    let cursor = old.hear().await.unwrap().id;
    let mut new = host.resume(&session, &cursor).await;
    assert!(new.is_stream() && old.rest().await.is_empty());
    assert!(host.push(&session, 2).await);
    assert_eq!(new.numbers(1).await, [2]);
}

/// SEP-1699: a handler may end its connection, and the client comes back for the answer.
#[tokio::test]
async fn a_handler_ends_its_connection_and_its_call_goes_on() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut stream = host.working(&session, 1, json!({ "leave": true, "door": "a" })).await;
    let primed = stream.next().await.unwrap();
    assert_eq!((primed.data.as_deref(), primed.retry.is_some(), stream.next().await), (Some(""), true, None));
    let mut again = host.resume(&session, primed.id.as_deref().unwrap()).await;
    host.doors.open("a");
    assert_eq!(again.rest().await[0].text(), "done, left: true");
}

#[tokio::test]
async fn a_handler_that_cannot_end_its_connection_is_told_so_and_answered_as_ever() {
    let doors = Doors::default();
    let server = builder(&doors, Limits::default()).build();
    let json_only = Host::serve(Routes::new(server.clone()).streaming(false), server, doors).await;
    let host = Host::start().await;
    let (new, old) = (host.open().await, host.speaking(Revision::V2025_06_18).await);
    let of_json_only = json_only.open().await;
    let work = || call(1, json!({ "leave": true }));
    for (host, post) in [
        (&host, old.post(work())),
        (&host, new.post(work()).header("Accept", "application/json")),
        (&host, new.post(work()).version("HTTP/1.0")),
        (&host, Post::speaking(Revision::LATEST, crate::server::call(1, "work", json!({ "leave": true })))),
        (&json_only, of_json_only.post(work())),
    ] {
        let response = host.send(post).await;
        assert_eq!(response.json()["result"]["content"][0]["text"], "done, left: false");
    }
}

// Bounds.

/// What was dropped for want of room is not told again, but an answer is kept longer than what else was said.
#[tokio::test]
async fn d06_of_a_stream_that_said_more_than_is_kept_the_answer_is_delivered() {
    let host = Host::within(Limits::default().session_events(8)).await;
    let session = host.open().await;
    let mut first = host.working(&session, 1, json!({ "say": 1 })).await;
    let priming = first.next().await.unwrap().id.unwrap();
    assert_eq!(first.rest().await.len(), 2);
    let mut other = host.working(&session, 2, json!({ "say": 100 })).await;
    assert_eq!(other.rest().await.len(), 101);
    let heard = host.resume(&session, &priming).await.rest().await;
    assert_eq!((heard.len(), &heard[0].message["id"]), (1, &json!(1)));
}

#[tokio::test]
async fn what_is_too_old_is_not_replayed() {
    let host = Host::within(Limits::default().session_event_age(Duration::from_millis(200))).await;
    let session = host.open().await;
    let mut stream = host.working(&session, 1, json!({ "say": 1 })).await;
    let cursor = stream.hear().await.unwrap().id;
    assert_eq!(stream.rest().await.len(), 1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    host.resume(&session, &cursor).await.is_quiet().await;
}

/// What belongs to no call and was heard by nobody is bounded as what was sent is: in number, bytes and age, and for all
/// sessions together. Whoever keeps most makes room.
#[tokio::test]
async fn what_waits_for_a_stream_is_bounded_for_all_sessions_together_and_each_has_its_newest() {
    const ALL: usize = 64 << 10;
    let host = Host::within(Limits::default().all_event_bytes(ALL)).await;
    let push = async |session: &Session, number: u64| {
        let id = mcp_core::store::SessionId::parse(&session.id).unwrap();
        let params = mcp_jsonrpc::Raw::encode(&json!({ "n": number, "x": "x".repeat(1 << 10) })).unwrap();
        assert!(host.sessions.push(id, "notifications/x", Some(params)).await);
    };
    let (modest, mut greedy) = (host.open().await, Vec::new());
    push(&modest, 1).await;
    for _ in 0..4 {
        greedy.push(host.open().await);
    }
    for number in 1..=100 {
        for session in &greedy {
            push(session, number).await;
        }
    }
    let mut heard = 0;
    for session in &greedy {
        let mut stream = host.listen(session).await;
        assert!(host.push(session, 101).await);
        let mut numbers = Vec::new();
        while numbers.last() != Some(&101) {
            numbers.push(stream.hear().await.unwrap().number());
        }
        heard += numbers.len() - 1;
        assert_eq!(numbers[numbers.len() - 2..], [100, 101], "{numbers:?}");
    }
    assert!(heard <= ALL >> 10 && heard > ALL >> 11, "{heard} KiB were kept");
    assert_eq!(host.listen(&modest).await.numbers(1).await, [1], "who keeps little keeps it");
}

#[tokio::test]
async fn what_waits_for_a_stream_for_too_long_is_not_told() {
    let host = Host::within(Limits::default().session_event_age(Duration::from_millis(200))).await;
    let session = host.open().await;
    assert!(host.push(&session, 1).await);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(host.push(&session, 2).await);
    assert_eq!(host.listen(&session).await.numbers(1).await, [2]);
}

/// As in the log: the newest is kept however large it is.
#[tokio::test]
async fn a_message_that_waits_for_a_stream_is_kept_however_long_it_is() {
    let host = Host::within(Limits::default().session_event_bytes(1 << 10)).await;
    let session = host.open().await;
    assert!(host.push(&session, 1).await);
    let id = mcp_core::store::SessionId::parse(&session.id).unwrap();
    let params = mcp_jsonrpc::Raw::encode(&json!({ "n": 2, "x": "x".repeat(2 << 10) })).unwrap();
    assert!(host.sessions.push(id, "notifications/x", Some(params)).await);
    assert_eq!(host.listen(&session).await.numbers(1).await, [2]);
}

/// What was lost and is resumed counts as what is opened anew.
#[tokio::test]
async fn c078_of_many_streams_that_were_lost_no_more_are_resumed_than_may_be_open() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut cursors = Vec::new();
    for number in 0..3 {
        let mut stream = host.listen(&session).await;
        assert!(host.push(&session, number).await);
        cursors.push(stream.hear().await.unwrap().id);
    }
    let first = host.resume(&session, &cursors[0]).await;
    assert!(first.is_stream());
    for cursor in &cursors[1..] {
        assert_eq!(host.resume(&session, cursor).await.head.status, 409);
    }
    drop(first);
    let mut second = host.resume(&session, &cursors[1]).await;
    assert!(host.push(&session, 9).await);
    assert_eq!(second.numbers(1).await, [9]);
}

/// The newest event is kept however large it is.
#[tokio::test]
async fn d06_an_answer_larger_than_all_that_is_kept_is_delivered_and_delivered_again() {
    const BYTES: usize = 3 << 20;
    let host = Host::start().await;
    let session = host.open().await;
    let mut stream = host.working(&session, 1, json!({ "say": 1, "bytes": BYTES })).await;
    let cursor = stream.hear().await.unwrap().id;
    assert_eq!(stream.hear().await.unwrap().text().len(), BYTES);
    assert_eq!(host.resume(&session, &cursor).await.hear().await.unwrap().text().len(), BYTES);
}

/// A connection with room for little, on which nobody reads more than the head of the answer.
async fn unread(host: &Host, post: Post) -> Connection {
    let mut connection = Connection::narrow(host.address).await;
    connection.write(&post.bytes(host.address)).await;
    assert_eq!(connection.head().await.unwrap().status, 200);
    connection
}

/// D04: a stream that nobody reads delays nothing else of its session; it ends, and can be resumed.
#[tokio::test]
async fn d04_a_stream_that_nobody_reads_stalls_nobody_and_ends() {
    let patience = Duration::from_millis(500);
    let limits = Limits::default().stall_timeout(patience).queue_messages(8).queue_bytes(64 << 10);
    let host = Host::within(limits).await;
    let session = host.open().await;
    let mut standalone = unread(&host, session.get()).await;
    let work = json!({ "say": 100, "pad": 100 << 10, "door": "a" });
    let mut streaming = unread(&host, session.post(call(1, work))).await;
    let start = Instant::now();
    let id = mcp_core::store::SessionId::parse(&session.id).unwrap();
    let text = mcp_jsonrpc::Raw::encode(&json!({ "text": "x".repeat(100 << 10) })).unwrap();
    for _ in 0..100 {
        assert!(host.sessions.push(id, "notifications/x", Some(text.clone())).await);
    }
    for id in 2..20 {
        assert_eq!(host.send(session.post(ping(id))).await.status(), 200);
        assert!(host.work(&session, id, json!({ "say": 1 })).await.text().contains("done"));
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    // Both connections end when nobody has read for so long, and their places can be had again.
    tokio::time::sleep(patience * 3).await;
    let (_, rest) = tokio::join!(standalone.rest(), streaming.rest());
    assert!(!rest.ends_with("0\r\n\r\n"), "it breaks off");
    let priming = rest.split("id: ").nth(1).and_then(|rest| rest.split('\n').next()).expect("an id").to_owned();
    host.doors.open("a");
    let heard = host.resume(&session, &priming).await.rest().await;
    assert_eq!(heard.last().unwrap().message["id"], 1, "its answer is there");
    let mut fresh = host.stream(&session.get()).await;
    assert!(fresh.is_stream() && host.push(&session, 7).await);
    while fresh.hear().await.unwrap().message["params"]["n"] != 7 {}
}

/// D04, for the call whose stream it is: what it does is done, and its answer waits for who comes for it.
#[tokio::test]
async fn d04_a_stream_that_nobody_reads_does_not_stall_its_own_call() {
    let host = Host::within(Limits::default().queue_messages(4)).await;
    let session = host.open().await;
    let work = json!({ "say": 100, "pad": 100 << 10 });
    let mut streaming = unread(&host, session.post(call(1, work))).await;
    let priming = String::from_utf8(streaming.chunk().await.unwrap()).unwrap();
    let priming = priming.split("id: ").nth(1).and_then(|rest| rest.split('\n').next()).expect("an id");
    let done = tokio::time::timeout(Duration::from_secs(10), host.doors.done(1)).await;
    assert!(done.is_ok(), "the handler waits for whoever reads");
    let heard = host.resume(&session, priming).await.rest().await;
    assert_eq!(heard.last().unwrap().message["id"], 1);
}

/// Over the life of a client that follows its cursor each message comes, in order, and none twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c096_messages_that_race_with_cuts_and_resumptions_come_once_and_in_order() {
    const COUNT: u64 = 300;
    let host = Host::start().await;
    let session = host.open().await;
    let pushing = async {
        for number in 1..=COUNT {
            assert!(host.push(&session, number).await);
            if number % 7 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    let reading = async {
        let (mut heard, mut cursor, mut round) = (Vec::new(), None::<String>, 0);
        while heard.last() != Some(&COUNT) {
            let mut stream = match &cursor {
                Some(cursor) => host.resume(&session, cursor).await,
                None => host.stream(&session.get()).await,
            };
            assert!(stream.is_stream(), "{:?}", stream.head);
            // A few more each time, sometimes none at all.
            round += 1;
            for _ in 0..round % 13 + 1 {
                let Some(block) = stream.next().await else { break };
                if let Some(id) = &block.id {
                    cursor = Some(id.clone());
                }
                if block.is_message() {
                    heard.push(block.json()["params"]["n"].as_u64().unwrap());
                }
                if heard.last() == Some(&COUNT) {
                    break;
                }
            }
        }
        heard
    };
    let ((), heard) = tokio::join!(pushing, reading);
    assert_eq!(heard, (1..=COUNT).collect::<Vec<_>>());
}
