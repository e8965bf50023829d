//! Any order of calls and cancellations: every request is answered exactly once, unless it was cancelled.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use mcp_core::Limits;
use serde_json::{Value, json};

use super::{call, call_with_token, cancel, ping};
use crate::duplex::Peer;

/// A small generator, so that a failing seed can be run again.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }
}

/// A conversation at random, and what is known of it.
struct Talk {
    peer: Peer,
    random: Random,
    next: u64,
    /// Asked, and neither answered nor given up.
    open: HashSet<u64>,
    /// Given up: at most one message more, and none once a later ping was answered.
    given_up: HashSet<u64>,
    /// What a ping that is not answered yet will show to be over, by the ping's id.
    fences: HashMap<u64, HashSet<u64>>,
    over: HashSet<u64>,
    heard: usize,
}

impl Talk {
    fn new(peer: Peer, seed: u64) -> Self {
        Self {
            peer,
            random: Random::new(seed),
            next: 0,
            open: HashSet::new(),
            given_up: HashSet::new(),
            fences: HashMap::new(),
            over: HashSet::new(),
            heard: 0,
        }
    }

    fn id(&mut self) -> u64 {
        self.next += 1;
        self.open.insert(self.next);
        self.next
    }

    async fn act(&mut self) {
        let ms = self.random.below(6);
        let message = match self.random.below(12) {
            0..=2 => call(self.id(), "sleep", json!({ "ms": ms })),
            3 => call(self.id(), "echo", json!({ "text": "x" })),
            4 => call_with_token(self.id(), "count", json!({ "n": ms * 100 }), "t"),
            5 => call(self.id(), "panic", json!({ "message": "at random" })),
            6 => call(self.id(), "nobody", json!({})),
            7 => return self.fence().await,
            8..=10 => return self.give_up().await,
            _ => return tokio::time::sleep(Duration::from_millis(ms)).await,
        };
        self.peer.say(&message).await;
    }

    /// Cancels any call, be it answered or not; sometimes one that never was.
    async fn give_up(&mut self) {
        let id = 1 + self.random.below(self.next + 2);
        // A ping cannot be cancelled in time to be told from one that was not.
        if self.fences.contains_key(&id) {
            return;
        }
        if self.open.remove(&id) {
            self.given_up.insert(id);
        }
        self.peer.say(&cancel(id)).await;
    }

    async fn fence(&mut self) {
        let id = self.id();
        self.fences.insert(id, self.given_up.clone());
        self.peer.say(&ping(id)).await;
    }

    fn hear(&mut self, message: &Value) {
        let Some(id) = message["id"].as_u64() else {
            return assert_eq!(message["method"], "notifications/progress", "{message}");
        };
        self.heard += 1;
        assert!(!self.over.contains(&id), "behind its end came {message}");
        assert!(self.open.remove(&id) || self.given_up.remove(&id), "nobody asked, or twice: {message}");
        self.over.insert(id);
        if let Some(given_up) = self.fences.remove(&id) {
            self.given_up.retain(|id| !given_up.contains(id));
            self.over.extend(given_up);
        }
    }

    async fn hear_next(&mut self) {
        let Ok(message) = tokio::time::timeout(Duration::from_secs(20), self.peer.hear()).await else {
            panic!("never answered: {:?}", self.open);
        };
        self.hear(&message);
    }

    async fn run(mut self, steps: u32) -> usize {
        for _ in 0..steps {
            self.act().await;
            while self.random.below(3) == 0 && !self.open.is_empty() {
                self.hear_next().await;
            }
        }
        self.fence().await;
        while !self.open.is_empty() {
            self.hear_next().await;
        }
        self.peer.silence().await.unwrap();
        self.peer.end().await.unwrap();
        self.heard
    }
}

fn bounds(seed: u64) -> Limits {
    let limits = Limits::default().in_flight([1, 2, 5, 64][(seed % 4) as usize]);
    if seed.is_multiple_of(3) { limits.queue_messages(2) } else { limits }
}

/// In made-up time, where every interleaving of one thread can be had again by its seed.
#[test]
fn every_request_is_answered_once_unless_it_was_cancelled() {
    for seed in 1..=16 {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        let heard = runtime.block_on(async {
            let server = everything_server::server_with(bounds(seed));
            let peer = if seed % 2 == 0 { Peer::memory(server) } else { Peer::lines(server) };
            Talk::new(peer, seed).run(250).await
        });
        assert!(heard > 50, "seed {seed} says something");
    }
}

/// With threads, where the handlers really run while cancellations are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c132_every_request_is_answered_once_with_threads() {
    let talks = (100..106).map(|seed| {
        let server = everything_server::server_with(bounds(seed));
        tokio::spawn(async move { Talk::new(Peer::memory(server), seed).run(250).await })
    });
    for heard in futures_util::future::join_all(talks).await {
        assert!(heard.unwrap() > 40);
    }
}

/// Around the very moment of completion, a cancel comes before it or after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c132_a_cancel_at_the_moment_of_completion() {
    let mut peer = Peer::memory(everything_server::server());
    for round in 0..150_u64 {
        peer.say(&call(5, "sleep", json!({ "ms": 1 }))).await;
        tokio::time::sleep(Duration::from_micros(800 + round * 7)).await;
        peer.say(&cancel(5)).await;
        peer.say(&ping("fence")).await;
        let mut answers = 0;
        loop {
            let message = peer.hear().await;
            match &message["id"] {
                id if id == "fence" => break,
                id => assert_eq!(*id, 5, "{message}"),
            }
            answers += 1;
            assert!(message.get("result").is_some(), "a cancelled call has no error: {message}");
        }
        assert!(answers <= 1, "round {round}: {answers} answers");
    }
    peer.end().await.unwrap();
}
