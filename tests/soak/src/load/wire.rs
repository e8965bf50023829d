//! What a visitor comes by.

use std::time::Duration;

use mcp_suite::{
    Client, ClientBuilder, Era, Error, ErrorKind, Revision, client::Backoff, http::Http, stdio::Lines, ws::Ws,
};
use tokio::net::UnixStream;

use super::Field;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Http,
    /// The transport of 2024-11-05.
    HttpSse,
    WebSocket,
    Unix,
    /// HTTP through the proxy that cuts.
    CutHttp,
    /// A WebSocket through that proxy.
    CutWebSocket,
    /// The same, by a client that goes on where it was.
    ResumedWebSocket,
}

impl Wire {
    pub(super) const ALL: [Self; 7] = [
        Self::Http,
        Self::HttpSse,
        Self::WebSocket,
        Self::Unix,
        Self::CutHttp,
        Self::CutWebSocket,
        Self::ResumedWebSocket,
    ];

    /// The revisions of an era that are spoken over it.
    pub(super) fn revisions(self, era: Era) -> Vec<Revision> {
        let is_spoken = |revision: &Revision| self != Self::HttpSse || *revision == Revision::V2024_11_05;
        Revision::ALL.iter().copied().filter(|revision| revision.era() == era && is_spoken(revision)).collect()
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::HttpSse => "HTTP+SSE",
            Self::WebSocket => "WebSocket",
            Self::Unix => "a Unix socket",
            Self::CutHttp => "HTTP that is cut",
            Self::CutWebSocket => "a WebSocket that is cut",
            Self::ResumedWebSocket => "a WebSocket that is resumed",
        }
    }

    /// Whether calls may fail because the connection is lost.
    pub(super) fn is_cut(self) -> bool {
        matches!(self, Self::CutHttp | Self::CutWebSocket | Self::ResumedWebSocket)
    }

    pub(super) async fn connect(self, field: &Field, builder: ClientBuilder) -> Result<Client, Error> {
        let (straight, cut) = (field.address, field.proxy);
        match self {
            Self::Http => builder.connect(Http::new(format!("http://{straight}/mcp"))).await,
            Self::HttpSse => builder.connect(Http::new(format!("http://{straight}/sse"))).await,
            Self::CutHttp => builder.connect(Http::new(format!("http://{cut}/mcp"))).await,
            Self::WebSocket => builder.connect(Ws::new(format!("ws://{straight}/mcp"))).await,
            Self::CutWebSocket => builder.connect(Ws::new(format!("ws://{cut}/mcp"))).await,
            Self::ResumedWebSocket => {
                let quick = Backoff::new().first(Duration::from_millis(20)).most(Duration::from_millis(200));
                builder.connect(Ws::new(format!("ws://{cut}/mcp")).resume(quick)).await
            }
            Self::Unix => {
                let failed = |error| Error::caused(ErrorKind::TransportError, "no connection", error);
                let (reader, writer) = UnixStream::connect(&field.socket).await.map_err(failed)?.into_split();
                builder.connect(Lines::new(reader, writer, crate::server::limits().message_bytes)).await
            }
        }
    }
}
