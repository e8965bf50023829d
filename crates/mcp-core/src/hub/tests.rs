//! A hub and its listeners, one thread at a time.

use super::*;

fn uri(uri: &str) -> Subject {
    Subject::Resource(uri.into())
}

fn told(listener: &Listener) -> Vec<Subject> {
    std::iter::from_fn(|| listener.next()).collect()
}

#[test]
fn bursts_coalesce_and_order_is_that_of_the_first_change() {
    let hub = Arc::<Hub>::default();
    let (slow, other) = (hub.listener(), hub.listener());
    slow.listen(Subject::Tools);
    slow.listen(uri("x:a"));
    other.listen(Subject::Tools);
    for _ in 0..1000 {
        assert!(hub.changed(&uri("x:a")) && hub.changed(&Subject::Tools));
    }
    assert!(!hub.changed(&Subject::Prompts) && !hub.changed(&uri("x:b")));
    assert_eq!(told(&slow), [uri("x:a"), Subject::Tools]);
    assert_eq!(told(&other), [Subject::Tools]);
    hub.changed(&uri("x:a"));
    assert_eq!(told(&slow), [uri("x:a")]);
}

#[test]
fn what_is_not_listened_to_any_more_leaves_nothing_behind() {
    let hub = Arc::<Hub>::default();
    let listener = hub.listener();
    for _ in 0..100 {
        listener.listen(uri("x:a"));
        assert!(hub.changed(&uri("x:a")));
        listener.ignore(&uri("x:a"));
    }
    listener.ignore(&uri("x:never"));
    assert!(told(&listener).is_empty() && !hub.changed(&uri("x:a")));
    listener.listen(Subject::Prompts);
    assert!(listener.listen_within(uri("x:a"), 1) && listener.listen_within(uri("x:a"), 1));
    assert!(!listener.listen_within(uri("x:b"), 1) && listener.listens(&Subject::Prompts));
    listener.close();
    listener.listen(uri("x:late"));
    assert!(!hub.changed(&uri("x:late")) && !hub.changed(&uri("x:a")));
    drop(listener);
    assert!(!hub.changed(&Subject::Prompts) && lock(&hub.0).by_subject.is_empty());
}

#[tokio::test]
async fn a_change_wakes_who_waits() {
    let hub = Arc::<Hub>::default();
    let listener = hub.listener();
    listener.listen(Subject::Resources);
    let waiting = tokio::spawn(async move {
        std::future::poll_fn(|cx| listener.poll_changed(cx)).await;
        listener.next()
    });
    tokio::task::yield_now().await;
    hub.changed(&Subject::Resources);
    assert_eq!(waiting.await.unwrap(), Some(Subject::Resources));
}
