//! Load within this process: a function that takes a message and gives its answer, or a pair of byte streams.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bench::{ceiling, peer_rmcp, peer_tower_mcp};
use bytes::Bytes;
use mcp_suite::stdio::serve_lines;
use rmcp::ServiceExt;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    runtime,
};
use tower_mcp::{JsonRpcService, StdioTransport, protocol::JsonRpcRequest};

use super::{
    Score,
    call::{Era, FIRST, Template},
    check::Checker,
};
use crate::rows::Who;

/// Bytes that wait in a pair.
const CAPACITY: usize = 1 << 16;

/// Calls the contestant's own function, if it has one that takes a message without a wire.
pub(crate) fn direct(who: Who, time: Duration) -> Result<Score> {
    on_one_thread(async {
        match who {
            Who::Ceiling => drive(time, async |call| ceiling_answer(&call)).await,
            Who::Ours => {
                let server = everything_server::server();
                drive(time, async |call| server.handle(call).await.ok_or_else(unanswered)).await
            }
            Who::Rmcp => paired(who, time).await,
            Who::TowerMcp => {
                let mut service = JsonRpcService::new(peer_tower_mcp::router());
                drive(time, async |call| {
                    let request: JsonRpcRequest = serde_json::from_slice(&call)?;
                    Ok(serde_json::to_vec(&service.call_single(request).await?)?.into())
                })
                .await
            }
        }
    })
}

/// Calls a contestant that serves the other end of a pair of byte streams.
pub(crate) fn pair(who: Who, time: Duration) -> Result<Score> {
    on_one_thread(paired(who, time))
}

fn on_one_thread(load: impl Future<Output = Result<Score>>) -> Result<Score> {
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(load)
}

async fn paired(who: Who, time: Duration) -> Result<Score> {
    let (near, far) = tokio::io::duplex(CAPACITY);
    let serving = tokio::spawn(serve(who, far));
    let (reader, mut writer) = tokio::io::split(near);
    let mut reader = BufReader::new(reader);
    let score = drive(time, async |call| {
        writer.write_all(&call).await?;
        writer.write_all(b"\n").await?;
        let mut line = Vec::new();
        ensure!(reader.read_until(b'\n', &mut line).await? > 0, "the server ended");
        Ok(line.into())
    })
    .await;
    serving.abort();
    score
}

/// Serves one end of a pair.
async fn serve(who: Who, far: DuplexStream) -> Result<()> {
    let (reader, writer) = tokio::io::split(far);
    match who {
        Who::Ceiling => serve_ceiling(reader, writer).await?,
        Who::Ours => serve_lines(everything_server::server(), reader, writer).await?,
        Who::Rmcp => drop(peer_rmcp::server().serve((reader, writer)).await?.waiting().await?),
        Who::TowerMcp => StdioTransport::new(peer_tower_mcp::router()).run_with_streams(reader, writer).await?,
    }
    Ok(())
}

async fn serve_ceiling(reader: ReadHalf<DuplexStream>, mut writer: WriteHalf<DuplexStream>) -> Result<()> {
    let mut lines = BufReader::new(reader).split(b'\n');
    while let Some(line) = lines.next_segment().await? {
        let answer = ceiling::answer(&line)?.ok_or_else(unanswered)? + "\n";
        writer.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

fn ceiling_answer(call: &[u8]) -> Result<Bytes> {
    Ok(ceiling::answer(call)?.ok_or_else(unanswered)?.into())
}

fn unanswered() -> anyhow::Error {
    anyhow::anyhow!("a call was taken for a notification")
}

/// One call at a time. Every contestant gets bytes of its own, as from a wire.
async fn drive(time: Duration, mut answer: impl AsyncFnMut(Bytes) -> Result<Bytes>) -> Result<Score> {
    let mut calls = Template::new(Era::Modern);
    let mut checker = Checker::new();
    let (start, mut answered) = (Instant::now(), 0);
    while start.elapsed() < time {
        let number = FIRST + answered;
        checker.check(&answer(calls.numbered(number).to_vec().into()).await?, number)?;
        answered += 1;
    }
    Ok(Score::since(start, answered))
}
