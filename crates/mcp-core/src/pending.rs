use std::collections::HashMap;

use mcp_jsonrpc::RequestId;

/// The requests of one connection that wait for their answer, and who waits for each.
///
/// A request's progress token is its id, so one table serves both.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    /// None once the connection is closed.
    calls: Option<HashMap<RequestId, T>>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { calls: Some(HashMap::new()) }
    }
}

impl<T> Pending<T> {
    /// Enters a request; false once the connection is closed.
    pub(crate) fn begin(&mut self, id: RequestId, waiter: T) -> bool {
        self.calls.as_mut().map(|calls| calls.insert(id, waiter)).is_some()
    }

    /// Who waits for the answer, taken out: an answer comes once.
    pub(crate) fn settle(&mut self, id: &RequestId) -> Option<T> {
        self.calls.as_mut()?.remove(id)
    }

    /// Who waits, for news before the answer.
    pub(crate) fn peek(&self, id: &RequestId) -> Option<&T> {
        self.calls.as_ref()?.get(id)
    }

    /// Everybody who still waits; nobody can from now on.
    pub(crate) fn close(&mut self) -> Vec<T> {
        self.calls.take().unwrap_or_default().into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_finds_the_one_that_waits_by_type_and_value_and_once() {
        let mut pending = Pending::default();
        assert!(pending.begin(0u64.into(), "zero"));
        for stranger in ["", " ", "0"] {
            assert_eq!(pending.settle(&stranger.into()), None);
        }
        assert_eq!(pending.peek(&0u64.into()), Some(&"zero"));
        assert_eq!(pending.settle(&0u64.into()), Some("zero"));
        assert_eq!(pending.settle(&0u64.into()), None);
    }

    #[test]
    fn closing_frees_everybody_and_admits_nobody() {
        let mut pending = Pending::default();
        pending.begin(1u64.into(), 1);
        pending.begin(2u64.into(), 2);
        let mut waiters = pending.close();
        waiters.sort_unstable();
        assert_eq!(waiters, [1, 2]);
        assert!(!pending.begin(3u64.into(), 3) && pending.close().is_empty());
    }

    #[test]
    fn it_is_a_list_of_who_waits() {
        crate::model::rows(|random| {
            let ids: Vec<RequestId> = vec![0u64.into(), 1u64.into(), "0".into(), "".into()];
            let (mut pending, mut model, mut closed) = (Pending::default(), Vec::<(RequestId, usize)>::new(), false);
            for waiter in 0..40 {
                let id = random.one_of(&ids);
                let place = model.iter().position(|(known, _)| *known == id);
                match random.below(12) {
                    0..=4 => {
                        random.does(("begin", &id));
                        assert_eq!(pending.begin(id.clone(), waiter), !closed);
                        if !closed {
                            model.retain(|(known, _)| *known != id);
                            model.push((id, waiter));
                        }
                    }
                    5..=8 => {
                        random.does(("settle", &id));
                        assert_eq!(pending.settle(&id), place.map(|place| model.remove(place).1));
                    }
                    9..=10 => {
                        random.does(("peek", &id));
                        assert_eq!(pending.peek(&id), place.map(|place| &model[place].1));
                    }
                    _ => {
                        random.does("close");
                        let mut waiters = pending.close();
                        waiters.sort_unstable();
                        let mut expected: Vec<usize> = model.drain(..).map(|(_, waiter)| waiter).collect();
                        expected.sort_unstable();
                        assert_eq!(waiters, expected);
                        closed = true;
                    }
                }
            }
        });
    }
}
