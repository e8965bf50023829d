//! POSTs through the routes, from the request to the last byte of its response.

use axum::{body::Body, extract::Request, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::BodyExt;
use mcp_http::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, Routes, RoutesService};
use tower_service::Service;

use crate::{
    messages::{self, expect, expect_sum},
    servers,
    stand::Stand,
};

pub(crate) fn modern(stand: &mut Stand<'_>) {
    let headers = modern_headers("application/json, text/event-stream", "add");
    posting(stand, &Routes::new(servers::small()).into_service(), &headers, messages::modern_call(), expect_sum);
}

pub(crate) fn session(stand: &mut Stand<'_>) {
    let service = Routes::new(servers::small()).into_service();
    let mut headers = headers("application/json, text/event-stream", []);
    let greeted = stand.prepare(answer(&service, post(&headers, messages::initialize())));
    headers.insert(MCP_SESSION_ID, greeted.headers()[MCP_SESSION_ID].clone());
    headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static("2025-11-25"));
    let heeded = stand.prepare(answer(&service, post(&headers, messages::initialized())));
    assert!(heeded.status().is_success());
    posting(stand, &service, &headers, messages::legacy_call(), expect_sum);
}

pub(crate) fn progress(stand: &mut Stand<'_>) {
    let headers = modern_headers("text/event-stream", "progressing");
    let is_told = |events: Bytes| {
        expect("notifications/progress", &events);
        expect("resultType", &events);
    };
    posting(stand, &Routes::new(servers::small()).into_service(), &headers, messages::progressing_call(), is_told);
}

fn posting(stand: &mut Stand<'_>, service: &RoutesService, headers: &HeaderMap, message: Bytes, check: impl Fn(Bytes)) {
    stand.measure(
        || post(headers, message.clone()),
        async |request| answer(service, request).await.into_body().collect().await.unwrap().to_bytes(),
        check,
    );
}

async fn answer(service: &RoutesService, request: Request) -> Response {
    service.clone().call(request).await.unwrap()
}

fn post(headers: &HeaderMap, message: Bytes) -> Request {
    let mut request = Request::post("/mcp").body(Body::from(message)).unwrap();
    request.headers_mut().clone_from(headers);
    request
}

fn modern_headers(accept: &'static str, tool: &'static str) -> HeaderMap {
    headers(accept, [(MCP_PROTOCOL_VERSION, "2026-07-28"), (MCP_METHOD, "tools/call"), (MCP_NAME, tool)])
}

fn headers<const N: usize>(accept: &'static str, more: [(HeaderName, &'static str); N]) -> HeaderMap {
    let usual =
        [(header::HOST, "localhost:8080"), (header::CONTENT_TYPE, "application/json"), (header::ACCEPT, accept)];
    usual.into_iter().chain(more).map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
}
