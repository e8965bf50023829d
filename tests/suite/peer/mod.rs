//! A scripted peer: a server that is played from data, whatever it is that servers do wrong.
//!
//! [`memory`] plays it over a pair in memory, where time can be paused; [`http`] over a socket, down to the bytes;
//! [`process`] as a child process. None of them knows more of the protocol than a script says.

#![allow(clippy::unwrap_used, reason = "tests, and what only they call")]

pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod process;

use serde_json::Value;

/// Whether `seen` has at least what `like` has: objects may have more members, everything else is equal.
pub(crate) fn is_like(seen: &Value, like: &Value) -> bool {
    match (seen, like) {
        (Value::Object(seen), Value::Object(like)) => {
            like.iter().all(|(name, like)| seen.get(name).is_some_and(|seen| is_like(seen, like)))
        }
        (Value::Array(seen), Value::Array(like)) => {
            seen.len() == like.len() && seen.iter().zip(like).all(|(seen, like)| is_like(seen, like))
        }
        (seen, like) => seen == like,
    }
}

#[test]
fn is_like_is_a_subset_of_objects_and_equality_of_the_rest() {
    use serde_json::json;
    let seen = json!({ "id": 1, "params": { "name": "a", "list": [1, { "x": 1, "y": 2 }] } });
    for (like, fits) in [
        (json!({}), true),
        (json!({ "params": { "name": "a" } }), true),
        (json!({ "params": { "list": [1, { "y": 2 }] } }), true),
        (json!({ "params": { "list": [1] } }), false),
        (json!({ "id": "1" }), false),
        (json!({ "method": null }), false),
    ] {
        assert_eq!(is_like(&seen, &like), fits, "{like}");
    }
}
