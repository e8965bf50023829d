use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use mcp_http::{Routes, routes};
use mcp_test::HttpServer;

use crate::server;

fn post(server: &HttpServer, path: &str) -> std::io::Result<String> {
    // It is answered without a session.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
    let mut stream = TcpStream::connect(server.address())?;
    let (host, length) = (server.address(), body.len());
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn it_listens_until_it_is_dropped() {
    let http = HttpServer::start(server()).await;
    assert_eq!(http.url(), format!("http://{}/mcp", http.address()));
    assert!(post(&http, "/mcp").unwrap().contains(r#""result":{"#));
    let address = http.address();
    drop(http);
    let still_there = async {
        while TcpStream::connect(address).is_ok() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(Duration::from_secs(30), still_there).await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_and_routers_are_served_as_they_are() {
    let http = HttpServer::start_routes(Routes::new(server()).path("/tools")).await;
    assert_eq!(http.url_of("/tools"), format!("http://{}/tools", http.address()));
    assert!(post(&http, "/tools").unwrap().starts_with("HTTP/1.1 200"));
    assert!(post(&http, "/mcp").unwrap().starts_with("HTTP/1.1 404"));
    let http = HttpServer::start_router(routes(server())).await;
    assert!(post(&http, "/mcp").unwrap().starts_with("HTTP/1.1 200"));
}
