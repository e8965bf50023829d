use std::collections::HashMap;

use mcp_jsonrpc::RequestId;

/// The requests of one connection that run, and how to stop each: whether an answer may still be given.
#[derive(Debug)]
pub(crate) struct InFlight<H> {
    calls: HashMap<RequestId, (u64, Option<H>)>,
}

impl<H> Default for InFlight<H> {
    fn default() -> Self {
        Self { calls: HashMap::new() }
    }
}

impl<H> InFlight<H> {
    pub(crate) fn contains(&self, id: &RequestId) -> bool {
        self.calls.contains_key(id)
    }

    /// Enters a call under its number. Ids come back once they are answered; numbers never do.
    pub(crate) fn begin(&mut self, id: RequestId, number: u64) {
        self.calls.insert(id, (number, None));
    }

    /// Says how to stop a call, unless it is over already.
    pub(crate) fn stoppable(&mut self, id: &RequestId, number: u64, handle: H) {
        if let Some((_, slot)) = self.calls.get_mut(id).filter(|(begun, _)| *begun == number) {
            *slot = Some(handle);
        }
    }

    /// Whether the call still stands, and is answered herewith.
    pub(crate) fn finish(&mut self, id: &RequestId, number: u64) -> bool {
        let stands = self.calls.get(id).is_some_and(|(begun, _)| *begun == number);
        if stands {
            self.calls.remove(id);
        }
        stands
    }

    /// Gives a call up: its number, and how to stop it.
    pub(crate) fn cancel(&mut self, id: &RequestId) -> Option<(u64, Option<H>)> {
        self.calls.remove(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_or_cancelled_and_never_both() {
        let (id, mut calls) = (RequestId::from("5"), InFlight::default());
        calls.begin(id.clone(), 1);
        calls.stoppable(&id, 1, "stop");
        assert!(calls.contains(&id) && !calls.contains(&5u64.into()));
        assert_eq!(calls.cancel(&id), Some((1, Some("stop"))));
        assert!(!calls.finish(&id, 1));

        calls.begin(id.clone(), 2);
        assert!(!calls.finish(&id, 1), "the number of a call before it under the same id");
        calls.stoppable(&id, 1, "late");
        assert!(calls.finish(&id, 2) && !calls.finish(&id, 2));
        assert_eq!(calls.cancel(&id), None);
    }

    /// Each call ends once: it is answered or given up, whatever is said of calls before it under its id.
    #[test]
    fn it_is_a_list_of_what_runs() {
        crate::model::rows(|random| {
            let ids: Vec<RequestId> = vec![5u64.into(), "5".into()];
            let (mut calls, mut model) = (InFlight::default(), Vec::<(RequestId, u64, Option<u64>)>::new());
            for next in 1..60_u64 {
                let (id, number) = (random.one_of(&ids), next - random.below(3).min(next as usize - 1) as u64);
                let place = model.iter().position(|(known, ..)| *known == id);
                assert_eq!(calls.contains(&id), place.is_some());
                match random.below(4) {
                    0 if place.is_none() => {
                        random.does(("begin", &id, next));
                        calls.begin(id.clone(), next);
                        model.push((id, next, None));
                    }
                    0 | 1 => {
                        random.does(("stoppable", &id, number));
                        calls.stoppable(&id, number, next);
                        if let Some(call) = place.map(|place| &mut model[place]).filter(|call| call.1 == number) {
                            call.2 = Some(next);
                        }
                    }
                    2 => {
                        random.does(("finish", &id, number));
                        let stands = place.is_some_and(|place| model[place].1 == number);
                        assert_eq!(calls.finish(&id, number), stands);
                        model.retain(|(known, begun, _)| *known != id || *begun != number);
                    }
                    _ => {
                        random.does(("cancel", &id));
                        let expected = place.map(|place| model.remove(place));
                        assert_eq!(calls.cancel(&id), expected.map(|(_, number, handle)| (number, handle)));
                    }
                }
            }
        });
    }
}
