//! The calls that are in flight on one connection.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    call::Template,
    check::{Checker, number_of},
    wire::{Plan, Reply},
};

/// Keeps a number of calls in flight, and checks what answers them.
///
/// They have a slot each, and a slot's next call has a number that is `step` higher: so each answer is known to belong to
/// a call that still waits, and with one slot they are known to come in order.
pub(super) struct Flight {
    plan: Plan,
    calls: Template,
    checker: Checker,
    first: u64,
    step: u64,
    slots: Vec<Slot>,
    waiting: usize,
    answered: u64,
}

/// One call in flight.
struct Slot {
    number: u64,
    /// Whether it was answered with a question.
    was_asked: bool,
}

impl Flight {
    /// So many calls from the number `first` on, each followed by those that are `step` apart.
    pub(super) fn new(plan: Plan, first: u64, depth: u64, step: u64) -> Self {
        let slots: Vec<Slot> = (first..first + depth).map(|number| Slot { number, was_asked: false }).collect();
        let (calls, checker, waiting) = (plan.template(), Checker::new(plan.work), slots.len());
        Self { plan, calls, checker, first, step, slots, waiting, answered: 0 }
    }

    /// Writes the first call of each slot.
    pub(super) fn start(&mut self, sending: &mut Vec<u8>) {
        for slot in &self.slots {
            sending.extend_from_slice(self.calls.numbered(slot.number));
        }
    }

    /// Takes an answer, and writes what is to be sent next: nothing more, if the time `is_over`.
    pub(super) fn take(&mut self, reply: &Reply<'_>, is_over: bool, sending: &mut Vec<u8>) -> Result<()> {
        let index = self.slot(reply)?;
        let slot = &mut self.slots[index];
        if let Some(question) = question(&reply.message) {
            ensure!(!slot.was_asked, "the call {} is asked again", slot.number);
            slot.was_asked = true;
            sending.extend_from_slice(&agreed(&self.plan, slot.number, &question)?);
            return Ok(());
        }
        ensure!(slot.was_asked == self.plan.work.asks(), "an answer to the call {} unasked", slot.number);
        self.checker.check(reply, slot.number)?;
        self.answered += 1;
        *slot = Slot { number: slot.number + self.step, was_asked: false };
        if is_over {
            self.waiting -= 1;
        } else {
            sending.extend_from_slice(self.calls.numbered(slot.number));
        }
        Ok(())
    }

    fn slot(&self, reply: &Reply<'_>) -> Result<usize> {
        // With one call in flight, the check of the answer finds out whether it has another's id.
        if self.slots.len() == 1 {
            return Ok(0);
        }
        let number = number_of(&reply.message)?;
        let index = number.wrapping_sub(self.first) % self.step;
        let found = usize::try_from(index).ok().filter(|index| {
            let slot = self.slots.get(*index);
            slot.is_some_and(|slot| slot.number == number)
        });
        found.with_context(|| format!("an answer to the call {number}, which was not waiting"))
    }

    /// Whether all that was sent is answered, and nothing more is to be sent.
    pub(super) fn is_over(&self) -> bool {
        self.waiting == 0
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered
    }
}

/// What is needed of a result that is a question.
#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    result: Question<'a>,
}

#[derive(Deserialize)]
struct Question<'a> {
    /// As it is written, so that it goes back exactly.
    #[serde(borrow, rename = "requestState")]
    state: &'a RawValue,
    #[serde(borrow, rename = "inputRequests")]
    requests: &'a RawValue,
}

/// The question that a message asks, if it asks one.
fn question(message: &[u8]) -> Option<Question<'_>> {
    // Hardly any message is a question.
    memchr::memmem::find(&message[..message.len().min(4096)], b"inputRequests")?;
    Some(serde_json::from_slice::<Asked<'_>>(message).ok()?.result)
}

/// The same call, with the answer that was asked for.
fn agreed(plan: &Plan, number: u64, question: &Question<'_>) -> Result<Vec<u8>> {
    ensure!(question.requests.get().contains(r#""approve""#), "another question: {}", question.requests);
    let member = format!(
        r#""inputResponses":{{"approve":{{"action":"accept","content":{{"go":true}}}}}},"requestState":{}"#,
        question.state
    );
    let mut request = plan.wrapped(&Template::with(plan.work, plan.era, Some(member)));
    request.numbered(number);
    Ok(request.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{
        call::{Era, FIRST, Work},
        wire::Wire,
    };

    fn flight(work: Work, depth: u64) -> Flight {
        let plan = Plan { wire: Wire::Lines, work, era: Era::Modern, host: String::new(), session: None };
        Flight::new(plan, FIRST, depth, depth)
    }

    fn sum(number: u64) -> String {
        let sum = number + 5;
        format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{"content":[{{"type":"text","text":"{sum}"}}]}}}}"#)
    }

    fn take(flight: &mut Flight, message: &str, is_over: bool) -> Result<String> {
        let mut sending = Vec::new();
        let reply = Reply { before: Vec::new(), message: message.as_bytes().into(), length: 0 };
        flight.take(&reply, is_over, &mut sending)?;
        Ok(String::from_utf8(sending)?)
    }

    #[test]
    fn each_answer_is_followed_by_the_next_call_of_its_slot_until_time_is_over() {
        let mut flight = flight(Work::Add, 2);
        assert!(take(&mut flight, &sum(FIRST + 1), false).unwrap().contains(r#""id":100000003"#));
        assert_eq!(take(&mut flight, &sum(FIRST), true).unwrap(), "");
        assert!(!flight.is_over());
        assert_eq!(take(&mut flight, &sum(FIRST + 3), true).unwrap(), "");
        assert!(flight.is_over() && flight.answered() == 3);
    }

    #[test]
    fn an_answer_twice_or_to_no_call_is_an_error() {
        let mut flight = flight(Work::Add, 2);
        take(&mut flight, &sum(FIRST), false).unwrap();
        assert!(take(&mut flight, &sum(FIRST), false).is_err());
        assert!(take(&mut flight, &sum(FIRST + 7), false).is_err());
    }

    #[test]
    fn a_question_is_answered_with_the_state_exactly_as_it_came() {
        let asked = r#"{"jsonrpc":"2.0","id":100000000,"result":{"resultType":"input_required","requestState":"a\/\u0041","inputRequests":{"approve":{}}}}"#;
        let mut flight = flight(Work::Ask, 1);
        let again = take(&mut flight, asked, false).unwrap();
        assert!(again.contains(r#""requestState":"a\/\u0041""#) && again.contains(r#""id":100000000"#), "{again}");
        assert!(take(&mut flight, asked, false).is_err(), "asked twice");
        take(&mut flight, &sum(FIRST), false).unwrap();
        assert!(take(&mut flight, &sum(FIRST + 1), false).is_err(), "not asked at all");
    }
}
