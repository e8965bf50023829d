use std::sync::Arc;

use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode};
use mcp_core::{
    Arrival, Exchange, Server,
    method::{Initialize, Method},
    server::{Peer, Session},
};
use mcp_jsonrpc::{Bytes, Malformed, Message};

use super::{Sessions, call, live::Live};
use crate::{
    headers::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
    server::{accept_header::Wanted, peer::Head, post::accepted, refusal::Refusal, respond, single},
};

/// Answers a request of the legacy era: `initialize` begins a session, all others belong to one.
pub(crate) async fn request(
    sessions: &Sessions,
    head: Arc<Head>,
    peer: Peer,
    wanted: Wanted,
    mut exchange: Exchange,
) -> Response {
    if exchange.method() == Initialize::NAME {
        return Box::pin(initialize(sessions, peer, wanted, exchange)).await;
    }
    let live = match within(sessions, &head.0.headers, &peer).await {
        Ok(live) => live,
        Err(refusal) => return refusal.answer(Some(exchange.id())),
    };
    exchange.join(&live.session);
    call::call(sessions, &live, wanted, exchange).await
}

/// The id goes into the head, so this answer never becomes a stream that begins before the handshake has succeeded.
async fn initialize(sessions: &Sessions, peer: Peer, wanted: Wanted, mut exchange: Exchange) -> Response {
    let server = &sessions.0.server;
    let session = Arc::new(Session::new());
    exchange.join(&session);
    let reply = server.call(exchange).await;
    if reply.fault().is_some() {
        return respond::at_once(server, wanted, &reply);
    }
    match sessions.mint(session, &peer).await {
        Ok(Some(id)) => {
            let mut response = respond::at_once(server, wanted, &reply);
            if let Ok(value) = HeaderValue::try_from(id.to_string()) {
                response.headers_mut().insert(MCP_SESSION_ID, value);
            }
            response
        }
        Ok(None) => Refusal::Full.answer(reply.id()),
        Err(error) => {
            tracing::warn!(?error, "a session could not be kept");
            Refusal::Unavailable.answer(reply.id())
        }
    }
}

/// Takes a notification, or an answer to a question of the server's.
pub(crate) async fn message(sessions: &Sessions, head: Arc<Head>, peer: Peer, message: Message) -> Response {
    match within(sessions, &head.0.headers, &peer).await {
        Ok(live) => {
            heed(sessions, &live, &peer, &message).await;
            accepted()
        }
        Err(refusal) => refusal.answer(None),
    }
}

async fn heed(sessions: &Sessions, live: &Arc<Live>, peer: &Peer, message: &Message) {
    let server = &sessions.0.server;
    let notification = match message {
        Message::Notification(notification) => notification,
        Message::Response(response) if live.session.settle(response.clone()) => return,
        message => return server.heed(message, &Arrival::http(None).of(peer).within(&live.session)),
    };
    server.heed(message, &Arrival::http(None).of(peer).within(&live.session));
    if let Some(id) = server.cancelled(notification) {
        live.cancel(&id);
    } else if notification.method == mcp_core::method::notification::INITIALIZED && !live.session.is_ready() {
        live.session.ready();
        sessions.save(live).await;
    }
}

/// Answers a batch, which 2025-03-26 alone has.
pub(crate) async fn batch(
    sessions: &Sessions,
    head: Arc<Head>,
    peer: Peer,
    wanted: Wanted,
    items: Vec<Result<Message, Malformed>>,
) -> Response {
    let server: &Server = &sessions.0.server;
    let live = match within(sessions, &head.0.headers, &peer).await {
        Ok(live) => live,
        Err(refusal) => return refusal.answer(None),
    };
    let arrival = Arrival::http(None).of(&peer).within(&live.session);
    if !server.takes_batches(&arrival) {
        let refusal = server.answer_batch(items, arrival).await;
        return refusal.map_or_else(accepted, |body| respond::frame(server, wanted, StatusCode::BAD_REQUEST, body));
    }
    for message in items.iter().flatten().filter(|message| !matches!(message, Message::Request(_))) {
        heed(sessions, &live, &peer, message).await;
    }
    let requests =
        items.into_iter().filter(|item| !matches!(item, Ok(Message::Notification(_) | Message::Response(_))));
    let requests: Vec<_> = requests.collect();
    if requests.is_empty() {
        return accepted();
    }
    match answers(sessions, live, peer, requests).await {
        Ok(Some(body)) => respond::frame(server, wanted, StatusCode::OK, body),
        Ok(None) => accepted(),
        Err(refusal) => refusal.answer(None),
    }
}

/// The answers to the requests of a batch, in a task of their own: as a call does, it goes on when its connection is lost.
async fn answers(
    sessions: &Sessions,
    live: Arc<Live>,
    peer: Peer,
    requests: Vec<Result<Message, Malformed>>,
) -> Result<Option<Bytes>, Refusal> {
    let sessions = sessions.clone();
    let answering = tokio::spawn(async move {
        let arrival = Arrival::http(None).of(&peer).within(&live.session);
        tokio::select! {
            biased;
            () = live.ended.cancelled() => Err(Refusal::Gone),
            answers = call::batch(&sessions, &live, &arrival, requests) => Ok(answers),
        }
    });
    answering.await.unwrap_or_else(|_| Err(Refusal::Unavailable))
}

/// The session that a message belongs to, in the revision that was agreed on. It lives on for a while.
pub(super) async fn within(sessions: &Sessions, headers: &HeaderMap, peer: &Peer) -> Result<Arc<Live>, Refusal> {
    let live = sessions.find(headers, peer).await?;
    live.used();
    if live.has_ended() || !sessions.renew(&live).await {
        return Err(Refusal::Gone);
    }
    check_version(headers, &live).map(|()| live)
}

/// A session speaks one revision. Without the header it is clear which.
///
/// Specification: *2025-11-25, Transports, Protocol Version Header*.
pub(super) fn check_version(headers: &HeaderMap, live: &Live) -> Result<(), Refusal> {
    let Some(named) = single::text(headers, &MCP_PROTOCOL_VERSION) else { return Ok(()) };
    match live.session.revision() {
        Some(agreed) if agreed.as_str() != named => Err(Refusal::OtherRevision(agreed)),
        _ => Ok(()),
    }
}
