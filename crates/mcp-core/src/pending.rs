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
}
