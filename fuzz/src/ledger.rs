//! Who asked what under which id, and what came back.

use std::collections::HashMap;

use serde_json::Value;

/// The bookkeeping of one connection, seen from the side that asks.
#[derive(Default)]
pub(crate) struct Ledger {
    ids: HashMap<String, Account>,
    /// Messages of which nobody knows what the other side read in them; each may be answered once, under any id.
    unreadable: usize,
    /// Answers that no account explains.
    surplus: usize,
    /// Whether a revision is spoken that has batches. Elsewhere an array is refused as a whole.
    pub(crate) has_batches: bool,
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
            Ok(_) if opens > 100 => self.unreadable += 1,
            Ok(Value::Array(items)) if is_canonical(frame, &items) => self.batch(&items),
            Ok(Value::Array(items)) => self.unreadable += 1 + items.len(),
            Ok(_) if says_twice(frame) => self.unreadable += 1,
            Ok(message) => self.note(&message),
            Err(_) => self.unreadable += 1,
        }
    }

    /// Each of its messages is one of its own, or all are refused at once.
    fn batch(&mut self, items: &[Value]) {
        if self.has_batches && (1..=64).contains(&items.len()) {
            items.iter().for_each(|item| self.note(item));
        } else {
            self.ask(&Value::Null);
        }
    }

    fn note(&mut self, message: &Value) {
        if message["method"] == "notifications/cancelled" {
            let id = message["params"]["requestId"].to_string();
            self.ids.entry(id).or_default().cancelled += 1;
        }
        match Kind::of(message) {
            Kind::Request => self.ask(&message["id"]),
            Kind::Unanswered => {}
            Kind::Other => self.unreadable += 1,
        }
    }

    fn ask(&mut self, id: &Value) {
        self.ids.entry(id.to_string()).or_default().asked += 1;
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

/// What is to be expected of a message.
enum Kind {
    /// One answer.
    Request,
    /// None: it is a notification, or an answer itself.
    Unanswered,
    /// Nobody can tell.
    Other,
}

impl Kind {
    fn of(message: &Value) -> Self {
        let (Some(members), id) = (message.as_object(), &message["id"]) else { return Self::Other };
        let has = |member: &str| members.contains_key(member);
        let is_id = (id.is_string() || id.is_i64() || id.is_u64()) && id.to_string().len() <= 256;
        let is_call = message["method"].is_string() && !has("result") && !has("error");
        let params = message.get("params");
        match (has("id"), is_call, has("method")) {
            _ if message["jsonrpc"] != "2.0" => Self::Other,
            (true, true, _) if is_id => Self::Request,
            (false, true, _) if params.is_none_or(|params| params.is_object() || params.is_array()) => Self::Unanswered,
            (true, _, false) if is_id && message["result"].is_object() != message["error"].is_object() => {
                Self::Unanswered
            }
            _ => Self::Other,
        }
    }
}

/// Whether there is but one way to read it: no member stands twice, anywhere.
fn is_canonical(frame: &[u8], items: &[Value]) -> bool {
    serde_json::to_vec(items).is_ok_and(|again| again == frame)
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
