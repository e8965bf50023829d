//! A server whose tools print, and start processes that print; it is served on the process's own streams, and the ends
//! of that differ.

use std::{process::Stdio, sync::Arc, time::Duration};

use mcp_suite::{Error, Limits, Server, Tool, ToolError, implementation, stdio};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;

/// Serves it until it is over in the way that `how` names, and prints a line then. What runs has an hour.
///
/// # Errors
/// When a stream fails, or `how` is unknown.
pub async fn serve_noisy(how: &str) -> Result<(), Box<dyn std::error::Error>> {
    let end = Arc::<Notify>::default();
    let (server, ended) = (noisy_server(end.clone()), async move { end.notified().await });
    match how {
        "returned" => stdio::Stdio::new().serve_until(server, ended).await?,
        "unguarded" => stdio::Stdio::new().guard(false).serve_until(server, ended).await?,
        "deaf" => stdio::Stdio::new().signals(false).serve_until(server, ended).await?,
        "dropped" => tokio::select! {
            served = stdio::serve(server) => served?,
            () = ended => {}
        },
        "panicked" => {
            let panics = async move {
                ended.await;
                panic!("as it was told to");
            };
            let serving = tokio::spawn(stdio::Stdio::new().serve_until(server, panics));
            assert!(serving.await.is_err_and(|error| error.is_panic()));
        }
        "twice" => twice(server.clone(), stdio::serve(server)).await?,
        _ => return Err("noisy returned | unguarded | deaf | dropped | panicked | twice".into()),
    }
    if how == "dropped" {
        // A dropped future cannot wait for its task to be over.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!("afterwards");
    Ok(())
}

/// The second of two is refused, and the first goes on.
async fn twice(server: Server, first: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let second = async {
        tokio::task::yield_now().await;
        eprintln!("{}", stdio::serve(server).await.expect_err("the streams are taken"));
        std::future::pending().await
    };
    tokio::select! {
        biased;
        served = first => served,
        never = second => never,
    }
}

fn noisy_server(end: Arc<Notify>) -> Server {
    Server::builder(implementation!())
        .limits(Limits::default().shutdown_grace(Duration::from_secs(3600)))
        .tool(Tool::new("print", print).describe("Prints, as does a process that it starts"))
        .tool(Tool::new("steal", steal).describe("Starts a process that reads stdin, and tells what it read"))
        .tool(Tool::new("sleep", sleep).describe("Waits for some milliseconds"))
        .tool(Tool::new("end", move || ended(end.clone())).describe("Ends serving"))
        .build()
}

async fn print() -> Result<(), ToolError> {
    println!("a handler prints");
    let status = tokio::process::Command::new("sh").arg("-c").arg("echo a child prints").stdin(Stdio::null()).status();
    if !status.await?.success() {
        return Err(ToolError::new("the child failed"));
    }
    print!("and does not end its line");
    Ok(())
}

async fn steal() -> Result<String, ToolError> {
    let child = tokio::process::Command::new("cat").stdin(Stdio::inherit()).stdout(Stdio::piped()).spawn()?;
    let read = child.wait_with_output().await?;
    if !read.status.success() {
        return Err(ToolError::new("it shares stdin with the server"));
    }
    Ok(format!("read <{}>", String::from_utf8_lossy(&read.stdout)))
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u64,
}

async fn sleep(Sleep { ms }: Sleep) -> Result<String, ToolError> {
    eprintln!("sleeping");
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(format!("slept {ms} ms"))
}

async fn ended(end: Arc<Notify>) -> Result<(), ToolError> {
    end.notify_one();
    Ok(())
}
