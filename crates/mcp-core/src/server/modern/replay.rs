//! A call of several rounds: the handler runs again from its beginning, with what is known by then.
//!
//! A question that has no answer yet is noted, and its future stays pending. When a poll ends with questions open, and
//! nothing is being done that must not be done again, the handler is dropped and the client gets them.
//!
//! Specification: *Multi Round-Trip Requests*.

use std::{collections::BTreeMap, sync::Arc, task::Context};

use bytes::{BufMut, BytesMut};
use mcp_jsonrpc::{Raw, encode};

use super::{
    once::Doing,
    state::{State, fingerprint},
};
use crate::{
    Exchange, Fault, ToolError,
    server::{
        Core,
        keys::{Use, names_two},
        reply::{Body, ResultKind},
    },
    sync::{
        AtomicWaker, Mutex,
        atomic::{AtomicBool, Ordering},
        lock,
    },
};

/// What a round knows of those before it, and what it leaves for the next.
#[derive(Debug)]
pub(crate) struct Replay {
    /// What was carried over.
    pub(super) before: State,
    /// What the client answers in this round.
    given: BTreeMap<String, Raw>,
    pub(super) round: Mutex<Round>,
    /// The handler returns to ask.
    is_by_hand: AtomicBool,
    /// Whoever polls the handler: it may ask from a task of its own.
    pub(super) runner: AtomicWaker,
}

#[derive(Debug, Default)]
pub(crate) struct Round {
    /// What has no answer yet.
    pub(super) open: BTreeMap<String, Asked>,
    /// What is open once the handler has returned.
    by_hand: BTreeMap<String, Asked>,
    /// What to carry over.
    answers: BTreeMap<String, (String, Raw)>,
    pub(super) once: BTreeMap<String, Raw>,
    /// What is being done, and is not to be done again.
    pub(super) doing: BTreeMap<String, Doing>,
    /// The handler has returned to ask.
    has_returned: bool,
    /// The handler is dropped.
    pub(super) is_over: bool,
}

impl Round {
    /// Whether the handler waits for the client.
    pub(super) fn is_waiting(&self) -> bool {
        self.has_returned || !self.open.is_empty()
    }
}

/// A question, as the client gets it.
#[derive(Debug)]
pub(crate) struct Asked {
    method: &'static str,
    params: Raw,
    fingerprint: String,
}

impl Asked {
    /// The question as the client gets it.
    pub(crate) fn raw(method: &str, params: &Raw) -> Raw {
        Raw::assume_valid(format!(r#"{{"method":"{method}","params":{params}}}"#, params = params.as_str()).into())
    }

    pub(crate) fn new(method: &'static str, params: Raw) -> Self {
        let fingerprint = fingerprint(method, &params);
        Self { method, params, fingerprint }
    }
}

impl Replay {
    /// What the request says of earlier rounds.
    pub(crate) fn of(core: &Core, exchange: &Exchange) -> Result<Arc<Self>, Fault> {
        let head = &exchange.head;
        let before = match &head.request_state {
            None => State::default(),
            Some(text) => {
                let is_short = text.len() <= core.limits.request_state_bytes;
                let ttl = core.limits.request_state_ttl;
                let state = is_short.then(|| core.state_keys.open(exchange, text, ttl)).flatten();
                // Whatever is wrong with it, nobody is told what.
                state.ok_or_else(|| Fault::InvalidParams("`requestState` is not one of this request's".into()))?
            }
        };
        let mut given: BTreeMap<String, Raw> = match &head.input_responses {
            None => BTreeMap::new(),
            Some(raw) => raw.decode().map_err(|_| Fault::InvalidParams("`inputResponses` must be an object".into()))?,
        };
        if head.request_state.is_some() {
            // Nobody was shown what was not asked.
            given.retain(|key, _| before.open.contains_key(key));
        }
        Ok(Arc::new(Self::new(before, given)))
    }

    pub(super) fn new(before: State, given: BTreeMap<String, Raw>) -> Self {
        let (round, is_by_hand, runner) = (Mutex::default(), AtomicBool::new(false), AtomicWaker::new());
        Self { before, given, round, is_by_hand, runner }
    }

    /// The answer to a question, as `read` makes it out; one that does not read is no answer.
    pub(crate) fn answer<R>(
        &self,
        key: &str,
        asked: &Asked,
        read: impl Fn(&Raw) -> Option<R>,
    ) -> Result<Option<R>, ToolError> {
        let mut round = lock(&self.round);
        self.only(&round, key, asked)?;
        let kept = self.before.answers.get(key).map(|(_, raw)| raw);
        let mut known = kept.into_iter().chain(self.given.get(key));
        let Some((raw, answer)) = known.find_map(|raw| Some((raw, read(raw)?))) else { return Ok(None) };
        round.answers.insert(key.to_owned(), (asked.fingerprint.clone(), raw.clone()));
        Ok(Some(answer))
    }

    /// Notes a question, which the client gets when this poll of the handler ends.
    pub(crate) fn note(&self, key: &str, asked: Asked) -> Result<(), ToolError> {
        let mut round = lock(&self.round);
        if round.is_over {
            return Err(over());
        }
        self.only(&round, key, &asked)?;
        round.open.insert(key.to_owned(), asked);
        round.release_what_asks();
        drop(round);
        self.runner.wake();
        Ok(())
    }

    /// Notes a question, which the client gets if the handler returns to ask.
    pub(crate) fn note_by_hand(&self, key: &str, asked: Asked) -> Result<(), ToolError> {
        let mut round = lock(&self.round);
        self.only(&round, key, &asked)?;
        round.by_hand.insert(key.to_owned(), asked);
        Ok(())
    }

    /// Makes sure that a key names no other question, of this run or of those before: the answer to one must not be taken
    /// for the answer to another. What was asked before and has no answer yet may be asked in other words.
    fn only(&self, round: &Round, key: &str, asked: &Asked) -> Result<(), ToolError> {
        let answered = [self.before.answers.get(key), round.answers.get(key)].into_iter().flatten();
        let given = self.before.open.get(key).filter(|_| self.given.contains_key(key));
        let open = [round.open.get(key), round.by_hand.get(key)].into_iter().flatten().map(|open| &open.fingerprint);
        let mut others = answered.map(|(question, _)| question).chain(given).chain(open);
        if others.any(|other| *other != asked.fingerprint) {
            return Err(names_two(Use::Question, key));
        }
        Ok(())
    }

    /// The handler is to return, and asks what it has noted.
    pub(crate) fn ask_by_hand(&self) {
        self.is_by_hand.store(true, Ordering::Relaxed);
    }

    /// Whether a handler that has returned asks.
    pub(crate) fn asks_by_hand(&self) -> bool {
        if !self.is_by_hand.load(Ordering::Relaxed) {
            return false;
        }
        let mut round = lock(&self.round);
        let by_hand = std::mem::take(&mut round.by_hand);
        round.open.extend(by_hand);
        round.has_returned = true;
        true
    }

    /// Ends the round if the handler waits for what only the client can say, and nothing is being done that must not be
    /// done again. If it is not to end yet, `cx` is woken when it is.
    pub(crate) fn end(&self, cx: &Context<'_>) -> Option<Round> {
        // From here on nothing is missed, so looking comes after.
        self.runner.register(cx.waker());
        let mut round = lock(&self.round);
        let ends = round.is_waiting() && !round.is_held();
        ends.then(|| std::mem::replace(&mut *round, Round { is_over: true, ..Round::default() }))
    }

    /// The answer that asks for what a round has left open.
    pub(crate) fn ask_client(&self, exchange: &Exchange, round: Round) -> Result<Body, Fault> {
        let core = &exchange.server.0.core;
        if self.before.rounds >= core.limits.input_rounds {
            let most = core.limits.input_rounds;
            return Err(Fault::InvalidParams(format!("the call asked for more input {most} times already").into()));
        }
        let sealed = seal(exchange, self.state_after(&round))?;
        write(&round.open, &sealed)
    }

    /// What is known after a round. What it did not come to, of answers and of what was done, is known all the same.
    fn state_after(&self, round: &Round) -> State {
        let State { rounds, open, mut answers, mut once } = self.before.clone();
        let given = open.into_iter().filter_map(|(key, question)| {
            let answer = (question, self.given.get(&key)?.clone());
            Some((key, answer))
        });
        answers.extend(given);
        answers.extend(round.answers.clone());
        answers.retain(|key, _| !round.open.contains_key(key));
        once.extend(round.once.clone());
        let open = round.open.iter().map(|(key, asked)| (key.clone(), asked.fingerprint.clone())).collect();
        State { rounds: rounds + 1, open, answers, once }
    }
}

/// The failure of what is asked or done by what has outlived its run.
pub(crate) fn over() -> ToolError {
    ToolError::new("The call is over")
}

fn seal(exchange: &Exchange, state: State) -> Result<String, Fault> {
    let core = &exchange.server.0.core;
    let (ttl, most) = (core.limits.request_state_ttl, core.limits.request_state_bytes);
    let sealed = core.state_keys.seal(exchange, &state, ttl).ok_or(Fault::Internal)?;
    if sealed.len() <= most {
        return Ok(sealed);
    }
    // Whose fault it is shows without what the client has answered.
    let ours = core.state_keys.seal(exchange, &State { answers: BTreeMap::new(), ..state }, ttl);
    if ours.is_some_and(|ours| ours.len() <= most) {
        return Err(Fault::InvalidParams(format!("with its answers the call carries more than {most} bytes").into()));
    }
    tracing::error!(method = exchange.method(), "what a call carries from round to round is over its limit");
    Err(Fault::Internal)
}

fn write(open: &BTreeMap<String, Asked>, state: &str) -> Result<Body, Fault> {
    let mut members = BytesMut::new();
    if !open.is_empty() {
        members.put_slice(br#""inputRequests":{"#);
        write_questions(&mut members, open);
        members.put_slice(br"},");
    }
    members.put_slice(br#""requestState":"#);
    encode::string(&mut members, state);
    Ok(Body { members, kind: ResultKind::InputRequired, ..Body::default() })
}

fn write_questions(members: &mut BytesMut, open: &BTreeMap<String, Asked>) {
    for (index, (key, Asked { method, params, .. })) in open.iter().enumerate() {
        if index > 0 {
            members.put_u8(b',');
        }
        encode::string(members, key);
        members.put_slice(br#":{"method":"#);
        encode::string(members, method);
        members.put_slice(br#","params":"#);
        encode::one_line(members, params.as_bytes());
        members.put_u8(b'}');
    }
}
