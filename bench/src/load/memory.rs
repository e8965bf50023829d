//! Load within this process: a function that takes a message and gives its answer, or a pair of byte streams.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use mcp_suite::stdio::serve_lines;
use rmcp::ServiceExt;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    runtime,
};
use tower_mcp::{JsonRpcService, StdioTransport, protocol::JsonRpcRequest};

use super::{
    Effort, Score,
    call::{Era, FIRST, Template, Work},
    check::{Checker, number_of},
    typed,
    wire::Reply,
};
use crate::{TOOLS, Who, ceiling, ours, peer_rmcp, peer_tower_mcp};

/// Bytes that wait in a pair.
const CAPACITY: usize = 1 << 16;

/// Calls the contestant's own function, if it has one that takes a message without a wire.
///
/// # Errors
/// When an answer is wrong, or does not come.
pub fn direct(who: Who, work: Work, effort: Effort) -> Result<Score> {
    let tools = if let Work::List(tools) = work { tools } else { TOOLS };
    on_one_thread(async {
        match (who, work) {
            (Who::Ceiling, Work::List(_)) => {
                let mut same = Template::of_answer(ours_answers(work).await?)?;
                drive(work, effort, async |call| Ok(same.numbered(number_of(&call)?).to_vec().into())).await
            }
            (Who::Ceiling, _) => drive(work, effort, async |call| ceiling_answers(&call)).await,
            (Who::SerdeJson, _) => drive(work, effort, async |call| Ok(typed::answer(&call)?.into())).await,
            (Who::Ours, _) => {
                let server = ours::server(tools)?;
                drive(work, effort, async |call| server.handle(call).await.context(UNANSWERED)).await
            }
            (Who::Rmcp, Work::Add) => paired(who, effort).await,
            (Who::TowerMcp, _) => {
                let mut service = JsonRpcService::new(peer_tower_mcp::router(tools));
                drive(work, effort, async |call| {
                    let request: JsonRpcRequest = serde_json::from_slice(&call)?;
                    Ok(serde_json::to_vec(&service.call_single(request).await?)?.into())
                })
                .await
            }
            _ => bail!("no function of {who} does this work"),
        }
    })
}

/// Calls a contestant that serves the other end of a pair of byte streams.
///
/// # Errors
/// When an answer is wrong, or does not come.
pub fn pair(who: Who, effort: Effort) -> Result<Score> {
    on_one_thread(paired(who, effort))
}

fn on_one_thread(load: impl Future<Output = Result<Score>>) -> Result<Score> {
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(load)
}

async fn paired(who: Who, effort: Effort) -> Result<Score> {
    let (near, far) = tokio::io::duplex(CAPACITY);
    let serving = tokio::spawn(serve(who, far));
    let (reader, mut writer) = tokio::io::split(near);
    let mut reader = BufReader::new(reader);
    let score = drive(Work::Add, effort, async |call| {
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
        Who::Ours => serve_lines(ours::server(TOOLS)?, reader, writer).await?,
        Who::Rmcp => drop(peer_rmcp::server(TOOLS).serve((reader, writer)).await?.waiting().await?),
        Who::TowerMcp => StdioTransport::new(peer_tower_mcp::router(TOOLS)).run_with_streams(reader, writer).await?,
        other => bail!("{other} serves no byte streams"),
    }
    Ok(())
}

async fn serve_ceiling(reader: ReadHalf<DuplexStream>, mut writer: WriteHalf<DuplexStream>) -> Result<()> {
    let mut lines = BufReader::new(reader).split(b'\n');
    while let Some(line) = lines.next_segment().await? {
        let answer = ceiling::answer(&line)?.json().context(UNANSWERED)? + "\n";
        writer.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

const UNANSWERED: &str = "a call was taken for a notification";

fn ceiling_answers(call: &[u8]) -> Result<Bytes> {
    Ok(ceiling::answer(call)?.json().context(UNANSWERED)?.into())
}

/// The answer of our server to the first request, as bytes to be numbered.
///
/// # Errors
/// When it has none.
pub async fn ours_answers(work: Work) -> Result<Vec<u8>> {
    let tools = if let Work::List(tools) = work { tools } else { TOOLS };
    let call = Template::new(work, Era::Modern).into_bytes();
    Ok(ours::server(tools)?.handle(call).await.context(UNANSWERED)?.to_vec())
}

/// One call at a time. Every contestant gets bytes of its own, as from a wire. The clock runs only while one answers:
/// that a call is made up and its answer checked is nobody's time.
async fn drive(work: Work, effort: Effort, mut answer: impl AsyncFnMut(Bytes) -> Result<Bytes>) -> Result<Score> {
    let mut calls = Template::new(work, Era::Modern);
    let mut checker = Checker::new(work);
    let (start, mut answered, mut elapsed) = (Instant::now(), 0, Duration::ZERO);
    while effort.goes_on(start, answered) {
        let number = FIRST + answered;
        let call = calls.numbered(number).to_vec().into();
        let begun = Instant::now();
        let message = answer(call).await?;
        elapsed += begun.elapsed();
        checker.check(&Reply::alone(&message, message.len()), number)?;
        answered += 1;
    }
    Ok(Score::of(answered, elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Effort = Effort::Calls(3);

    #[test]
    fn everybody_answers_in_process() {
        for who in [Who::Ceiling, Who::SerdeJson, Who::Ours, Who::Rmcp, Who::TowerMcp] {
            assert_eq!(direct(who, Work::Add, FEW).unwrap().calls, 3, "{who}");
        }
        for who in [Who::Ceiling, Who::Ours, Who::TowerMcp] {
            assert_eq!(direct(who, Work::List(20), FEW).unwrap().calls, 3, "{who}");
        }
    }

    #[test]
    fn everybody_answers_over_a_pair() {
        for who in [Who::Ceiling, Who::Ours, Who::Rmcp, Who::TowerMcp] {
            assert_eq!(pair(who, FEW).unwrap().calls, 3, "{who}");
        }
    }

    #[test]
    fn ours_asks_and_tells_of_progress() {
        let answer = |work| on_one_thread_for(ours_answers(work));
        assert!(answer(Work::Ask).contains("input_required"));
        assert!(answer(Work::Progress).contains(r#""text":"100000005""#));
    }

    fn on_one_thread_for(answer: impl Future<Output = Result<Vec<u8>>>) -> String {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        String::from_utf8(runtime.block_on(answer).unwrap()).unwrap()
    }
}
