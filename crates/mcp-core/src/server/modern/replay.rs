//! A call of several rounds: the handler runs again from its beginning, with what is known by then.
//!
//! A question that has no answer yet is noted, and its future stays pending. When a poll ends with questions open, the
//! handler is dropped and the client gets them.
//!
//! Specification: *Multi Round-Trip Requests*.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Context,
};

use bytes::{BufMut, BytesMut};
use futures_util::task::AtomicWaker;
use mcp_jsonrpc::{Raw, encode};
use serde::{Serialize, de::DeserializeOwned};

use super::state::State;
use crate::{
    Exchange, Fault, ToolError,
    lock::lock,
    server::{Core, reply::Body},
};

/// What a round knows of those before it, and what it leaves for the next.
#[derive(Debug)]
pub(crate) struct Replay {
    /// What was carried over.
    before: State,
    /// What the client answers in this round.
    given: BTreeMap<String, Raw>,
    round: Mutex<Round>,
    /// The handler has returned, to ask.
    is_by_hand: AtomicBool,
    /// Whoever polls the handler: it may ask from a task of its own.
    runner: AtomicWaker,
}

#[derive(Debug, Default)]
struct Round {
    /// What has no answer yet.
    open: BTreeMap<String, (&'static str, Raw)>,
    /// What to carry over.
    answers: BTreeMap<String, Raw>,
    once: BTreeMap<String, Raw>,
}

impl Replay {
    /// What the request says of earlier rounds.
    pub(crate) fn of(core: &Core, exchange: &Exchange) -> Result<Arc<Self>, Fault> {
        let head = &exchange.head;
        let before = match &head.request_state {
            None => State::default(),
            Some(text) => {
                let is_short = text.len() <= core.limits.request_state_bytes;
                let state = is_short.then(|| core.state_keys.open(exchange, text)).flatten();
                // Whatever is wrong with it, nobody is told what.
                state.ok_or_else(|| Fault::InvalidParams("`requestState` is not one of this request's".into()))?
            }
        };
        let given = match &head.input_responses {
            None => BTreeMap::new(),
            Some(raw) => raw.decode().map_err(|_| Fault::InvalidParams("`inputResponses` must be an object".into()))?,
        };
        Ok(Arc::new(Self {
            before,
            given,
            round: Mutex::default(),
            is_by_hand: AtomicBool::new(false),
            runner: AtomicWaker::new(),
        }))
    }

    /// The answer to a question, as `read` makes it out; one that does not read is no answer.
    pub(crate) fn answer<R>(&self, key: &str, read: impl Fn(&Raw) -> Option<R>) -> Option<R> {
        let known = self.before.answers.get(key).into_iter().chain(self.given.get(key));
        let (raw, answer) = known.filter_map(|raw| Some((raw, read(raw)?))).next()?;
        lock(&self.round).answers.insert(key.to_owned(), raw.clone());
        Some(answer)
    }

    /// Notes a question, which the client gets when this poll of the handler ends.
    pub(crate) fn note(&self, key: &str, method: &'static str, params: Raw) -> Result<(), ToolError> {
        let mut round = lock(&self.round);
        if round.open.get(key).is_some_and(|(other, asked)| *other != method || *asked != params) {
            return Err(ToolError::new(format!("The key `{key}` names two questions")));
        }
        round.open.insert(key.to_owned(), (method, params));
        drop(round);
        self.runner.wake();
        Ok(())
    }

    /// What was done in an earlier round.
    pub(crate) fn done<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let raw = self.before.once.get(key)?;
        let value = raw.decode().ok()?;
        lock(&self.round).once.insert(key.to_owned(), raw.clone());
        Some(value)
    }

    /// Something was done, and is not to be done again.
    pub(crate) fn did(&self, key: &str, value: &impl Serialize) -> Result<(), ToolError> {
        lock(&self.round).once.insert(key.to_owned(), Raw::encode(value)?);
        Ok(())
    }

    /// The handler returns, and asks what it has noted.
    pub(crate) fn ask_by_hand(&self) {
        self.is_by_hand.store(true, Ordering::Relaxed);
    }

    /// Whether a handler that has returned asks.
    pub(crate) fn asks_by_hand(&self) -> bool {
        self.is_by_hand.load(Ordering::Relaxed) && !lock(&self.round).open.is_empty()
    }

    /// Whether the handler waits for what only the client can say; if not yet, `cx` is woken when it does.
    pub(crate) fn is_open(&self, cx: &Context<'_>) -> bool {
        // From here on nothing is missed, so looking comes after.
        self.runner.register(cx.waker());
        !lock(&self.round).open.is_empty()
    }

    /// The answer that asks for it.
    pub(crate) fn ask_client(&self, exchange: &Exchange) -> Result<Body, Fault> {
        let core = &exchange.server.0.core;
        let Round { open, mut answers, mut once } = std::mem::take(&mut *lock(&self.round));
        let rounds = self.before.rounds + 1;
        if rounds > core.limits.input_rounds {
            let most = core.limits.input_rounds;
            return Err(Fault::InvalidParams(format!("the call asked for more input {most} times already").into()));
        }
        // What this round did not come to is still known.
        for (known, all) in [(&self.before.answers, &mut answers), (&self.before.once, &mut once)] {
            known.iter().for_each(|(key, raw)| {
                all.entry(key.clone()).or_insert_with(|| raw.clone());
            });
        }
        answers.retain(|key, _| !open.contains_key(key));
        let state = State { rounds, answers, once };
        let sealed = core.state_keys.seal(exchange, &state, core.limits.request_state_ttl).ok_or(Fault::Internal)?;
        if sealed.len() > core.limits.request_state_bytes {
            tracing::error!(method = exchange.method(), "what a call carries from round to round is over its limit");
            return Err(Fault::Internal);
        }
        write(&open, &sealed)
    }
}

fn write(open: &BTreeMap<String, (&'static str, Raw)>, state: &str) -> Result<Body, Fault> {
    let mut members = BytesMut::new();
    members.put_slice(br#""inputRequests":{"#);
    for (index, (key, (method, params))) in open.iter().enumerate() {
        if index > 0 {
            members.put_u8(b',');
        }
        encode::string(&mut members, key);
        members.put_slice(br#":{"method":"#);
        encode::string(&mut members, method);
        members.put_slice(br#","params":"#);
        encode::one_line(&mut members, params.as_bytes());
        members.put_u8(b'}');
    }
    members.put_slice(br#"},"requestState":"#);
    encode::string(&mut members, state);
    Ok(Body { members, asks: true, ..Body::default() })
}
