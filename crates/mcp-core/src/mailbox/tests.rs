//! A mailbox, one thread at a time.

use super::*;

fn mailbox(most: usize, bytes: usize) -> Mailbox<u32> {
    Mailbox::new(&Limits::default().queue_messages(most).queue_bytes(bytes))
}

fn all(mailbox: &Mailbox<u32>) -> Vec<u32> {
    std::iter::from_fn(|| mailbox.try_pop()).collect()
}

#[test]
fn a_full_mailbox_takes_replies_and_keeps_the_newest_of_the_rest() {
    let full = mailbox(2, 100);
    for item in [10, 11, 12] {
        full.offer(item, 1, |old| *old >= 10, || true);
    }
    full.push(1, 1);
    full.offer(13, 1, |old| *old == 99, || true);
    assert_eq!(all(&full), [10, 12, 1]);
}

#[test]
fn what_is_not_wanted_any_more_is_not_queued() {
    let mailbox = mailbox(2, 100);
    mailbox.offer(1, 1, |_| false, || false);
    assert!(mailbox.is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_what_must_not_be_lost_holds_up_who_waits_for_it_to_settle() {
    let mailbox = mailbox(2, 100);
    (0..2).for_each(|item| mailbox.offer(item, 1, |_| false, || true));
    mailbox.settled().await;
    (0..2).for_each(|item| assert!(mailbox.push(item, 1)));
    let waited = tokio::time::timeout(Duration::from_secs(1), mailbox.settled()).await;
    assert!(waited.is_err());
    assert_eq!(all(&mailbox), [0, 1, 0, 1]);
    mailbox.settled().await;
}

#[test]
fn bytes_count_too() {
    let full = mailbox(100, 10);
    full.offer(1, 10, |_| false, || true);
    full.offer(2, 1, |_| false, || true);
    assert_eq!(all(&full), [1]);
    full.offer(3, 1, |_| false, || true);
    full.retain(|item| *item != 3);
    assert!(full.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_closed_mailbox_reads_to_its_end() {
    let mailbox = mailbox(8, 100);
    mailbox.push(1, 1);
    mailbox.close();
    assert!(!mailbox.push(2, 1));
    assert_eq!(mailbox.pop().await, Some(1));
    assert_eq!(mailbox.pop().await, None);
    assert_eq!(mailbox.pop().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_reads_nothing_is_told_from_a_slow_one() {
    let (mailbox, patience) = (mailbox(8, 100), Duration::from_secs(60));
    (0..4).for_each(|item| assert!(mailbox.push(item, 1)));
    let slow = async {
        for _ in 0..4 {
            tokio::time::sleep(patience / 2).await;
            mailbox.try_pop();
        }
        tokio::time::sleep(patience * 9).await;
        mailbox.push(9, 1);
        std::future::pending::<()>().await;
    };
    let start = tokio::time::Instant::now();
    tokio::select! {
        () = slow => {}
        () = mailbox.stalled(patience) => {}
    }
    assert!(start.elapsed() > patience * 11);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_room_never_goes_over_it() {
    let mailbox = std::sync::Arc::new(mailbox(2, 100));
    let waiting: Vec<_> = (0..5)
        .map(|item| {
            let mailbox = mailbox.clone();
            tokio::spawn(async move { mailbox.put(item, 1).await })
        })
        .collect();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(all(&mailbox).len(), 2);
    }
    mailbox.close();
    let mut put = 0;
    for task in waiting {
        put += u32::from(task.await.unwrap());
    }
    assert!((4..=5).contains(&put), "{put}");
}

#[tokio::test(start_paused = true)]
async fn room_is_waited_for() {
    let mailbox = std::sync::Arc::new(mailbox(1, 100));
    mailbox.push(1, 1);
    let waiting = tokio::spawn({
        let mailbox = mailbox.clone();
        async move { mailbox.room().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    mailbox.try_pop();
    waiting.await.unwrap();
}
