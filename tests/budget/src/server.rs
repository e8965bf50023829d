//! The server without a wire: its steps, and all of them at once.

use bytes::Bytes;
use mcp_core::{Arrival, Server, server::Peer};

use crate::{
    messages::{self, decoded, expect, expect_sum},
    servers,
    stand::Stand,
};

/// The scan of the parameters' head, and the era.
pub(crate) fn accept(stand: &mut Stand<'_>) {
    let (server, request) = (servers::small(), decoded(messages::modern_call()));
    stand.measure(
        || request.clone(),
        async |request| server.accept(request, Arrival::alone()),
        |accepted| assert!(accepted.is_ok()),
    );
}

pub(crate) fn encode_reply(stand: &mut Stand<'_>) {
    let server = servers::small();
    let exchange = server.accept(decoded(messages::modern_call()), Arrival::alone()).unwrap();
    let reply = stand.prepare(server.call(exchange));
    stand.measure(|| (), async |()| server.encode(&reply), expect_sum);
}

pub(crate) fn handle_modern(stand: &mut Stand<'_>) {
    handling(stand, &servers::small(), messages::modern_call(), expect_sum);
}

pub(crate) fn handle_legacy(stand: &mut Stand<'_>) {
    handling(stand, &servers::small(), messages::legacy_call(), expect_sum);
}

pub(crate) fn list_10(stand: &mut Stand<'_>) {
    handling(stand, &servers::with_tools(10), messages::list(), |answer| expect("tool_009", answer));
}

pub(crate) fn list_700(stand: &mut Stand<'_>) {
    handling(stand, &servers::with_tools(700), messages::list(), |answer| expect("tool_699", answer));
}

fn handling(stand: &mut Stand<'_>, server: &Server, message: Bytes, check: impl Fn(Bytes)) {
    stand.measure(|| message.clone(), async |message| server.handle(message).await.unwrap(), check);
}

/// As a transport has it, which knows who asks.
pub(crate) fn list_filtered(stand: &mut Stand<'_>) {
    let server = servers::with_hidden_tools(700);
    let (peer, request) = (Peer::new().principal(Some(servers::odd())), decoded(messages::list()));
    stand.measure(
        || request.clone(),
        async |request| {
            let exchange = server.accept(request, Arrival::alone().of(&peer)).unwrap();
            server.encode(&server.call(exchange).await)
        },
        |answer| {
            assert_eq!(memchr::memmem::find_iter(&answer, "tool_").count(), 350);
            expect("tool_699", answer);
        },
    );
}
