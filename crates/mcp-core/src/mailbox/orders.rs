//! A mailbox and those who fill it, in every order of what they do.

use std::sync::Arc;

use loom::{future::block_on, model, thread};

use super::*;

fn mailbox(most: usize) -> Arc<Mailbox<u32>> {
    Arc::new(Mailbox::new(&Limits::default().queue_messages(most)))
}

#[test]
fn what_is_pushed_wakes_the_reader_and_comes_once() {
    model(|| {
        let mailbox = mailbox(8);
        let pushing = [1, 2].map(|item| {
            let mailbox = mailbox.clone();
            thread::spawn(move || assert!(mailbox.push(item, 1)))
        });
        let read = [block_on(mailbox.pop()), block_on(mailbox.pop())];
        assert!(read.contains(&Some(1)) && read.contains(&Some(2)), "{read:?}");
        pushing.into_iter().for_each(|pushing| pushing.join().unwrap());
        assert!(mailbox.is_empty());
    });
}

#[test]
fn what_was_taken_before_the_end_is_read_before_the_end() {
    model(|| {
        let mailbox = mailbox(8);
        let pushing = thread::spawn({
            let mailbox = mailbox.clone();
            move || mailbox.push(1, 1)
        });
        let closing = thread::spawn({
            let mailbox = mailbox.clone();
            move || mailbox.close()
        });
        let mut read = 0;
        while block_on(mailbox.pop()).is_some() {
            read += 1;
        }
        closing.join().unwrap();
        assert_eq!(u32::from(pushing.join().unwrap()), read);
    });
}

#[test]
fn who_waits_for_room_is_woken_by_each_who_makes_some_and_never_goes_over_it() {
    model(|| {
        let mailbox = mailbox(1);
        let putting = [1, 2].map(|item| {
            let mailbox = mailbox.clone();
            thread::spawn(move || assert!(block_on(mailbox.put(item, 1))))
        });
        for _ in 0..2 {
            assert!(block_on(mailbox.pop()).is_some());
            assert!(mailbox.lock().items.len() <= 1);
        }
        putting.into_iter().for_each(|putting| putting.join().unwrap());
    });
}

#[test]
fn whatever_makes_room_or_ends_it_wakes_who_waits_for_it_to_settle() {
    for make_room in [|mailbox: &Mailbox<u32>| _ = mailbox.retain(|_| false), |mailbox: &Mailbox<u32>| mailbox.close()]
    {
        model(move || {
            let mailbox = mailbox(1);
            mailbox.push(1, 1);
            let waiting = thread::spawn({
                let mailbox = mailbox.clone();
                move || block_on(mailbox.settled())
            });
            make_room(&mailbox);
            waiting.join().unwrap();
        });
    }
}
