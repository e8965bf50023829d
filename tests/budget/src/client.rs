//! The client: what it writes, and a call with a server at the other end of a wire in memory.

use mcp_core::{Client, Revision, client::Outgoing};
use mcp_jsonrpc::Message;
use serde_json::json;

use crate::{
    messages::{self, decoded},
    servers,
    stand::Stand,
};

pub(crate) fn request(stand: &mut Stand<'_>) {
    let call = messages::modern_call();
    let message = Message::Request(decoded(call.clone()));
    stand.measure(
        || (),
        async |()| Outgoing::new(&message, Some(Revision::LATEST)),
        |outgoing| assert_eq!(outgoing.frame, call),
    );
}

pub(crate) fn call(stand: &mut Stand<'_>) {
    let client = stand.prepare(Client::connect(servers::small())).unwrap();
    stand.measure(
        || json!({ "a": 2, "b": 5 }),
        async |arguments| client.call::<i64>("add", arguments).await.unwrap(),
        |sum| assert_eq!(sum, 7),
    );
}
