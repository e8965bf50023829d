//! Messages in lines, by hand.

use std::{io, path::Path};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

pub(super) struct Lines {
    reader: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    pub(super) writer: OwnedWriteHalf,
}

impl Lines {
    pub(super) async fn connect(socket: &Path) -> io::Result<Self> {
        let (reader, writer) = UnixStream::connect(socket).await?.into_split();
        Ok(Self { reader: BufReader::new(reader).lines(), writer })
    }

    pub(super) async fn say(&mut self, line: &str) -> io::Result<()> {
        self.writer.write_all(format!("{line}\n").as_bytes()).await
    }

    /// The next message; null where there is none any more.
    pub(super) async fn hear(&mut self) -> io::Result<Value> {
        let line = self.reader.next_line().await?;
        Ok(line.map_or(Value::Null, |line| serde_json::from_str(&line).unwrap_or(json!(line))))
    }
}
