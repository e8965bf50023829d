//! Who asked what under which id, and what came back.

use std::collections::HashMap;

use serde_json::Value;

/// The bookkeeping of one connection, seen from the side that asks.
#[derive(Default)]
pub(crate) struct Ledger {
    ids: HashMap<String, Account>,
    /// Messages of which nobody knows what the server read in them; each may be answered once, under any id.
    unreadable: usize,
    /// Answers that no account explains.
    surplus: usize,
}

#[derive(Default)]
struct Account {
    asked: usize,
    cancelled: usize,
    answered: usize,
}

impl Ledger {
    /// Takes note of what is being sent.
    pub(crate) fn sent(&mut self, frame: &[u8]) {
        let opens = frame.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
        match serde_json::from_slice::<Value>(frame) {
            // Two readers need not agree on what stands twice, nor on what is nested too deep.
            Ok(_) if opens > 100 || says_twice(frame) => self.unreadable += 1,
            Ok(Value::Array(items)) => {
                // The batch as a whole may be refused, too.
                self.unreadable += 1 + items.len();
                items.iter().for_each(|item| self.note(item, false));
            }
            Ok(message) => self.note(&message, true),
            Err(_) => self.unreadable += 1,
        }
    }

    fn note(&mut self, message: &Value, must_be_answered: bool) {
        if message["method"] == "notifications/cancelled" {
            let id = message["params"]["requestId"].to_string();
            self.ids.entry(id).or_default().cancelled += 1;
        }
        let is_request = message["jsonrpc"] == "2.0" && message["method"].is_string();
        let id = &message["id"];
        let has_id = (id.is_string() || id.is_i64() || id.is_u64()) && id.to_string().len() <= 256;
        if is_request && has_id && must_be_answered {
            self.ids.entry(message["id"].to_string()).or_default().asked += 1;
        } else {
            self.unreadable += 1;
        }
    }

    /// Takes note of an answer.
    pub(crate) fn heard(&mut self, answer: &Value) {
        let known = self.ids.get_mut(&answer["id"].to_string());
        match known.filter(|account| account.answered < account.asked) {
            Some(account) => account.answered += 1,
            None => self.surplus += 1,
        }
    }

    /// No more answers than questions, ever.
    pub(crate) fn check(&self) {
        assert!(self.surplus <= self.unreadable, "{} answers that nobody asked for", self.surplus);
    }

    /// At the end nobody waits any more.
    pub(crate) fn close(&self) {
        self.check();
        for (id, account) in &self.ids {
            let Account { asked, cancelled, answered } = account;
            assert!(
                answered + cancelled >= *asked,
                "{asked} asked under {id}, {answered} answered, {cancelled} cancelled"
            );
        }
    }
}

/// Whether an object has a member twice at its top.
fn says_twice(frame: &[u8]) -> bool {
    struct Names(bool);
    impl<'de> serde::Deserialize<'de> for Names {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Visit)
        }
    }
    struct Visit;
    impl<'de> serde::de::Visitor<'de> for Visit {
        type Value = Names;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
            let (mut seen, mut twice) = (std::collections::HashSet::new(), false);
            while let Some((name, serde::de::IgnoredAny)) = map.next_entry::<String, _>()? {
                twice |= !seen.insert(name);
            }
            Ok(Names(twice))
        }
    }
    serde_json::from_slice(frame).is_ok_and(|Names(twice)| twice)
}
