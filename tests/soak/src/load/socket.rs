//! WebSockets by hand.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, Message},
};

pub(super) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// What came.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    Message(Value),
    Closed(u16),
}

impl Socket {
    pub(super) async fn connect(to: SocketAddr) -> Result<Self, Error> {
        Ok(Self(connect_async(format!("ws://{to}/mcp")).await?.0))
    }

    pub(super) async fn say(&mut self, message: Message) -> Result<(), Error> {
        self.0.send(message).await
    }

    pub(super) async fn hear(&mut self) -> Result<Heard, Error> {
        loop {
            match self.0.next().await.ok_or(Error::ConnectionClosed)?? {
                Message::Text(text) => {
                    return Ok(Heard::Message(serde_json::from_str(&text).unwrap_or(Value::Null)));
                }
                Message::Close(frame) => return Ok(Heard::Closed(frame.map_or(1005, |frame| frame.code.into()))),
                _ => {}
            }
        }
    }
}
