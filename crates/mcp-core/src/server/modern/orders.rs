//! A round of a call and what its handler does in threads of its own, in every order.

use std::{collections::BTreeMap, future::poll_fn, sync::Arc, task::Poll};

use loom::{future::block_on, model, thread};
use mcp_jsonrpc::Raw;

use super::{
    replay::{Asked, Replay, Round},
    state::State,
};
use crate::{ToolError, sync::lock};

fn replay() -> Arc<Replay> {
    Arc::new(Replay::new(State::default(), BTreeMap::new()))
}

fn asked() -> Asked {
    Asked::new("elicitation/create", Raw::parse("{}").unwrap())
}

fn asking(replay: &Arc<Replay>, key: &'static str) -> thread::JoinHandle<Result<(), ToolError>> {
    let replay = replay.clone();
    thread::spawn(move || replay.note(key, asked()))
}

fn round(replay: &Replay) -> Round {
    block_on(poll_fn(|cx| replay.end(cx).map_or(Poll::Pending, Poll::Ready)))
}

/// A handler that asks in another thread, and whose own waits for the answer, would otherwise hang.
#[test]
fn a_question_is_in_the_round_that_ends_or_is_refused() {
    model(|| {
        let replay = replay();
        let asking = ["a", "b"].map(|key| (key, asking(&replay, key)));
        let round = round(&replay);
        assert!(!round.open.is_empty());
        for (key, asking) in asking {
            assert_eq!(asking.join().unwrap().is_ok(), round.open.contains_key(key), "{key}");
        }
    });
}

#[test]
fn a_round_does_not_end_in_the_middle_of_what_is_done_once() {
    model(|| {
        let replay = replay();
        let doing = thread::spawn({
            let replay = replay.clone();
            move || block_on(replay.once("deed", || async { Ok::<_, ToolError>(1) }))
        });
        let asking = asking(&replay, "a");
        let round = round(&replay);
        assert!(asking.join().unwrap().is_ok() && round.doing.is_empty());
        assert_eq!(doing.join().unwrap().is_ok(), round.once.contains_key("deed"));
    });
}

/// What is done once asks the client itself: it cannot end before the round does.
#[test]
fn what_is_done_once_and_asks_holds_up_no_round() {
    model(|| {
        let replay = replay();
        let doing = thread::spawn({
            let replay = replay.clone();
            move || {
                let asks = || async {
                    replay.note("a", asked())?;
                    Ok::<_, ToolError>(())
                };
                block_on(replay.once("deed", asks)).is_ok()
            }
        });
        let round = round(&replay);
        assert!(round.open.contains_key("a"));
        doing.join().unwrap();
        assert!(lock(&replay.round).is_over);
    });
}
