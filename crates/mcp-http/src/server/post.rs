//! Server path 1 of 10 (HTTP): a POST is read and becomes one message. After: `crates/mcp-jsonrpc/src/decode/mod.rs`.

use axum::{
    body::{Body, HttpBody},
    response::Response,
};
use http::{HeaderMap, StatusCode, Version, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use mcp_core::{Arrival, Fault, Reply, Revision};
use mcp_jsonrpc::{Bytes, Inbound, Message};

use crate::{
    headers::MCP_PROTOCOL_VERSION,
    server::{
        accept_header::{self, Wanted},
        mirror, reply, respond,
        routes::Endpoint,
        single,
    },
};

/// Answers a POST.
///
/// Specification: *Streamable HTTP, Sending Messages*.
pub(super) async fn post(endpoint: &Endpoint, parts: Parts, body: Body) -> Response {
    let wanted = match wanted(endpoint, &parts) {
        Ok(wanted) => wanted,
        Err(why) => return reply::refuse(StatusCode::NOT_ACCEPTABLE, why.to_string()),
    };
    if let Err(why) = readable(&parts.headers) {
        return reply::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    }
    match read(body, endpoint.server.limits().message_bytes).await {
        Ok(body) => answer(endpoint, &parts.headers, wanted, body).await,
        Err(refusal) => refusal,
    }
}

async fn answer(endpoint: &Endpoint, headers: &HeaderMap, wanted: Wanted, body: Bytes) -> Response {
    let server = &endpoint.server;
    let arrival = Arrival::http(single::text(headers, &MCP_PROTOCOL_VERSION));
    match server.decode(body) {
        Inbound::One(Message::Request(request)) => {
            let exchange = server.accept(request, arrival).and_then(|exchange| {
                let refused = |fault| Reply::refusal(Some(exchange.id().clone()), exchange.revision(), fault);
                mirror::check(headers, &exchange).map_err(refused).map(|()| exchange)
            });
            match exchange {
                Ok(exchange) => respond::respond(endpoint, wanted, exchange).await,
                Err(reply) => reply::reply(server, &reply),
            }
        }
        Inbound::One(Message::Notification(_)) => accepted(),
        Inbound::One(_) => reply::refuse(StatusCode::BAD_REQUEST, "a response needs a session to belong to"),
        Inbound::Batch(items) => {
            let taken = server.takes_batches(&arrival);
            match server.answer_batch(items, arrival).await {
                Some(body) => reply::json(if taken { StatusCode::OK } else { StatusCode::BAD_REQUEST }, body),
                None => accepted(),
            }
        }
        Inbound::Malformed(malformed) => {
            let fault = Fault::Malformed(malformed.error);
            reply::reply(server, &Reply::refusal(malformed.id, Revision::LATEST, fault))
        }
        _ => accepted(),
    }
}

/// HTTP/1.0 has no chunks, so it gets no stream.
fn wanted(endpoint: &Endpoint, parts: &Parts) -> Result<Wanted, accept_header::NotAcceptable> {
    let wanted = accept_header::wanted(&parts.headers)?;
    if endpoint.streaming && parts.version != Version::HTTP_10 { Ok(wanted) } else { wanted.json_only() }
}

/// Compressed bodies are refused: what they inflate to could not be bounded before it is there.
fn readable(headers: &HeaderMap) -> Result<(), &'static str> {
    if !accept_header::is_json(headers.get(header::CONTENT_TYPE)) {
        return Err("the body must be `Content-Type: application/json`");
    }
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            Err("the body must not be compressed")
        }
        _ => Ok(()),
    }
}

/// Stops reading at the limit, whatever the headers claimed.
async fn read(body: Body, most: usize) -> Result<Bytes, Response> {
    let too_large = || reply::refuse(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {most} bytes"));
    if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > most {
        return Err(too_large());
    }
    match Limited::new(body, most).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(reply::refuse(StatusCode::BAD_REQUEST, "the body could not be read to its end")),
    }
}

fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}
