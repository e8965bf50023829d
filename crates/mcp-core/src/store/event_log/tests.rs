//! What is kept of events, and what is replayed of it.

use super::*;

const A: StreamId = StreamId(0xa);
const B: StreamId = StreamId(0xb);

fn event(stream: StreamId, seq: u64, bytes: usize, is_answer: bool) -> LoggedEvent {
    LoggedEvent { stream, seq, is_answer, frame: "x".repeat(bytes).into() }
}

async fn seqs(log: &MemoryEventLog, session: SessionId, stream: StreamId, after: u64) -> Option<Vec<u64>> {
    let events = log.after(session, stream, after).await.unwrap()?;
    Some(events.iter().map(|event| event.seq).collect())
}

#[test]
fn ids_read_back_and_foreign_ones_are_none() {
    assert_eq!(LoggedEvent::parse_id(&LoggedEvent::id(StreamId(u64::MAX), 10)), Some((StreamId(u64::MAX), 10)));
    for foreign in ["", "-", "a-", "-1", "1", "a-b-c", "_GET_stream", "7/1", "g-1", "+1-1", &"1".repeat(100_000)] {
        assert_eq!(LoggedEvent::parse_id(foreign), None, "{foreign:.20}");
    }
}

#[tokio::test]
async fn a_stream_is_replayed_behind_a_place_and_others_are_not() {
    let log = MemoryEventLog::new(&Limits::default());
    let (one, other) = (SessionId::random(), SessionId::random());
    for (stream, seq) in [(A, 1), (B, 1), (A, 2), (A, 3)] {
        log.append(one, event(stream, seq, 1, seq == 3)).await.unwrap();
    }
    assert_eq!(seqs(&log, one, A, 1).await, Some(vec![2, 3]));
    assert_eq!(seqs(&log, one, A, 3).await, Some(vec![]));
    assert_eq!(seqs(&log, one, B, 0).await, Some(vec![1]));
    assert_eq!(seqs(&log, one, StreamId(1), 0).await, None);
    assert_eq!(seqs(&log, other, A, 0).await, None);
    log.forget(one).await.unwrap();
    assert_eq!(seqs(&log, one, A, 0).await, None);
    assert_eq!(lock(&log.logs).bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn number_bytes_and_age_are_bounded_and_answers_go_last() {
    let limits = Limits::default().session_events(3).session_event_bytes(100).all_event_bytes(150);
    let log = MemoryEventLog::new(&limits);
    let id = SessionId::random();
    log.append(id, event(A, 1, 1, true)).await.unwrap();
    for seq in 1..=5 {
        log.append(id, event(B, seq, 1, false)).await.unwrap();
    }
    assert_eq!((seqs(&log, id, A, 0).await, seqs(&log, id, B, 0).await), (Some(vec![1]), Some(vec![4, 5])));
    // The newest is kept however large it is.
    log.append(id, event(B, 6, 120, false)).await.unwrap();
    assert_eq!((seqs(&log, id, A, 0).await, seqs(&log, id, B, 0).await), (None, Some(vec![6])));
    tokio::time::advance(Duration::from_secs(300)).await;
    assert_eq!(seqs(&log, id, B, 0).await, None);
    log.sweep();
    let logs = lock(&log.logs);
    assert!(logs.bytes == 0 && logs.by_session.is_empty());
}

/// However many events of whomever else there are, who keeps little keeps it.
#[tokio::test]
async fn where_all_have_too_many_bytes_whoever_has_most_makes_room() {
    let log = MemoryEventLog::new(&Limits::default().all_event_bytes(150));
    let (greedy, modest, late) = (SessionId::random(), SessionId::random(), SessionId::random());
    log.append(modest, event(A, 1, 20, true)).await.unwrap();
    log.append(greedy, event(A, 1, 10, true)).await.unwrap();
    for seq in 1..=50 {
        log.append(greedy, event(B, seq, 10, false)).await.unwrap();
    }
    assert_eq!((seqs(&log, greedy, B, 0).await.unwrap().len(), lock(&log.logs).bytes), (12, 150));
    log.append(late, event(A, 1, 60, true)).await.unwrap();
    assert_eq!((seqs(&log, late, A, 0).await, seqs(&log, modest, A, 0).await), (Some(vec![1]), Some(vec![1])));
    assert_eq!((seqs(&log, greedy, B, 0).await.unwrap().len(), lock(&log.logs).bytes), (6, 150));
    assert_eq!(seqs(&log, greedy, A, 0).await, Some(vec![1]), "its answer goes last");
    // What nobody could keep is not kept.
    log.append(late, event(A, 2, 151, true)).await.unwrap();
    assert_eq!(seqs(&log, late, A, 0).await, None);
    assert_eq!(seqs(&log, modest, A, 0).await, Some(vec![1]));
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_out_comes_in_order_and_is_gone() {
    let log = MemoryEventLog::new(&Limits::default());
    let id = SessionId::random();
    log.push(id, event(A, 1, 10, false));
    tokio::time::advance(Duration::from_secs(299)).await;
    (2..=3).for_each(|seq| log.push(id, event(A, seq, 10, false)));
    tokio::time::advance(Duration::from_secs(1)).await;
    let taken: Vec<_> = std::iter::from_fn(|| log.pop(id)).map(|event| event.seq).collect();
    assert_eq!((taken, log.is_empty_of(id), lock(&log.logs).bytes), (vec![2, 3], true, 0));
    assert!(lock(&log.logs).by_bytes.is_empty());
}
