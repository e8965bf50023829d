//! What the server sends on its own: no reply comes this way, but the transports put requests and notifications here.

use std::sync::Arc;

use mcp_jsonrpc::{Bytes, ErrorObject, Message, Request, code, encode};

use crate::{
    client::{Inbox, Outgoing, Transport},
    method::{Method, Ping},
};

/// Reads the inbox until the client is gone.
pub(crate) async fn route(transport: Arc<dyn Transport>, inbox: Inbox) {
    while let Some(message) = inbox.next().await {
        match message {
            Message::Request(request) => {
                let out = Outgoing { frame: answer(&request), id: None, method: None, name: None, revision: None };
                if let Err(error) = transport.send(out).await {
                    tracing::debug!(%error, "an answer could not be sent");
                }
            }
            Message::Notification(notification) => {
                tracing::debug!(method = &*notification.method, "a notification was ignored");
            }
            _ => {}
        }
    }
}

fn answer(request: &Request) -> Bytes {
    if Ping::is(request) {
        return encode::result(&request.id, b"{}");
    }
    encode::error(Some(&request.id), &ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found"))
}
