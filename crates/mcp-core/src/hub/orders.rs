//! A hub and those who listen, in every order of what they do.

use std::future::poll_fn;

use loom::{future::block_on, model, thread};

use super::*;

fn heard(listener: &Listener) -> Subject {
    block_on(poll_fn(|cx| listener.poll_changed(cx)));
    listener.next().expect("it was woken because something has changed")
}

fn changing(hub: &Arc<Hub>, subject: Subject) -> thread::JoinHandle<bool> {
    let hub = hub.clone();
    thread::spawn(move || hub.changed(&subject))
}

#[test]
fn each_change_wakes_who_waits_and_is_told_once() {
    model(|| {
        let hub = Arc::<Hub>::default();
        let listener = hub.listener();
        listener.listen(Subject::Tools);
        listener.listen(Subject::Prompts);
        let changes = [Subject::Tools, Subject::Prompts].map(|subject| changing(&hub, subject));
        let told = [heard(&listener), heard(&listener)];
        assert!(told.contains(&Subject::Tools) && told.contains(&Subject::Prompts), "{told:?}");
        assert!(changes.into_iter().all(|change| change.join().unwrap()));
        assert_eq!(listener.next(), None);
    });
}

/// Bursts coalesce: it may be told fewer times than it has changed, but never too early.
#[test]
fn who_was_told_last_sees_the_last_change() {
    use crate::sync::atomic::{AtomicUsize, Ordering};
    model(|| {
        let (hub, now) = (Arc::<Hub>::default(), Arc::new(AtomicUsize::new(0)));
        let listener = hub.listener();
        listener.listen(Subject::Tools);
        let change = thread::spawn({
            let (hub, now) = (hub.clone(), now.clone());
            move || {
                for version in 1..=2 {
                    now.store(version, Ordering::Relaxed);
                    hub.changed(&Subject::Tools);
                }
            }
        });
        let mut seen = 0;
        while seen < 2 {
            heard(&listener);
            seen = now.load(Ordering::Relaxed);
        }
        change.join().unwrap();
    });
}

#[test]
fn who_listens_no_more_is_told_nothing_and_leaves_nothing_behind() {
    model(|| {
        let hub = Arc::<Hub>::default();
        let listener = hub.listener();
        listener.listen(Subject::Tools);
        let change = changing(&hub, Subject::Tools);
        listener.ignore(&Subject::Tools);
        assert_eq!(listener.next(), None);
        change.join().unwrap();
        assert!(listener.next().is_none() && !hub.is_heard());
    });
}

#[test]
fn what_is_listened_to_while_another_leaves_is_still_heard() {
    model(|| {
        let hub = Arc::<Hub>::default();
        let (leaves, stays) = (hub.listener(), hub.listener());
        leaves.listen(Subject::Tools);
        let leaving = thread::spawn(move || drop(leaves));
        assert!(stays.listen_within(Subject::Resource("x:a".into()), 1));
        stays.listen(Subject::Tools);
        assert!(hub.changed(&Subject::Tools));
        assert_eq!(heard(&stays), Subject::Tools);
        leaving.join().unwrap();
        assert!(hub.changed(&Subject::Tools));
        drop(stays);
        assert!(!hub.is_heard());
    });
}
