//! A call that becomes a task while it is polled, in every order.

use std::future::poll_fn;

use loom::{future::block_on, model, thread};

use super::*;

fn live() -> Arc<Live> {
    let (changed, ended, asked) = Default::default();
    Arc::new(Live { id: TaskId::random(), changed, ended, asked })
}

#[test]
fn whoever_polls_a_call_hears_that_it_is_to_become_a_task_and_all_who_wait_that_it_is_one() {
    model(|| {
        let (tasking, live) = (Arc::<Tasking>::default(), live());
        let waiting = [(); 2].map(|()| {
            let tasking = tasking.clone();
            thread::spawn(move || block_on(tasking.become_task()).id)
        });
        block_on(poll_fn(
            |cx| {
                if tasking.is_wanted(cx) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            },
        ));
        tasking.begin(live.clone());
        for waiting in waiting {
            assert!(waiting.join().unwrap() == live.id);
        }
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(!tasking.is_wanted(&mut cx));
    });
}
