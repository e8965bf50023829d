//! What belongs to no call, and whoever comes to read it, in every order.

use loom::{future::block_on, model, thread};

use super::{super::channel::Found, *};

fn live(limits: &Limits) -> (Arc<Live>, Arc<MemoryEventLog>) {
    let [log, unsent] = [(); 2].map(|()| Arc::new(MemoryEventLog::new(limits)));
    let live = Live::new(SessionId::random(), None, Arc::new(Session::new()), unsent, limits);
    (Arc::new(live), log)
}

fn saying(live: &Arc<Live>, log: &Arc<MemoryEventLog>, frame: &'static str) -> thread::JoinHandle<()> {
    let (live, log) = (live.clone(), log.clone());
    thread::spawn(move || match live.route(frame.into()) {
        Ok((channel, frame)) => block_on(channel.send(&*log, frame, false, Duration::ZERO)),
        Err(Kept(is_kept)) => assert!(is_kept),
    })
}

/// A client that listens would otherwise never see it, and whoever asked would wait in vain.
#[test]
fn nothing_waits_beside_a_reader_and_what_came_first_is_read_first() {
    model(|| {
        let limits = Limits::default();
        let (live, log) = live(&limits);
        assert!(matches!(live.route("1".into()), Err(Kept(true))));
        let saying = saying(&live, &log, "2");
        let (channel, reader) = live.try_open_standalone(&limits).unwrap();
        block_on(channel.catch_up(&*log, || live.next_unsent()));
        saying.join().unwrap();
        for frame in ["1", "2"] {
            match channel.take(reader) {
                Found::Event(event) => assert_eq!(event.frame, frame),
                nothing => panic!("{nothing:?} instead of {frame}"),
            }
        }
    });
}

#[test]
fn a_reader_that_waits_is_woken_by_what_comes_and_by_who_takes_its_place() {
    model(|| {
        let limits = Limits::default();
        let (live, log) = live(&limits);
        let (channel, reader) = live.try_open_standalone(&limits).unwrap();
        let saying = saying(&live, &log, "1");
        block_on(channel.readable(reader));
        assert!(matches!(channel.take(reader), Found::Event(_)));
        saying.join().unwrap();
        let taking_over = thread::spawn({
            let channel = channel.clone();
            move || channel.attach()
        });
        block_on(channel.readable(reader));
        assert!(matches!(channel.take(reader), Found::End));
        assert_ne!(taking_over.join().unwrap(), reader);
    });
}

#[test]
fn what_comes_while_a_session_ends_is_not_left_behind() {
    model(|| {
        let (live, _) = live(&Limits::default());
        let ending = thread::spawn({
            let live = live.clone();
            move || live.end()
        });
        assert!(live.route("1".into()).is_err());
        ending.join().unwrap();
        assert!(live.next_unsent().is_none() && matches!(live.route("2".into()), Err(Kept(false))));
    });
}
