//! The newcomer's tour: our client against our server on each wire, in both eras.

use std::{
    error::Error,
    process::Stdio,
    time::{Duration, Instant},
};

use mcp_suite::{Client, Era, Revision, client::IntoTransport, http::Http, implementation, stdio::Child, ws::Ws};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

/// One line of the table.
struct Row {
    wire: &'static str,
    era: &'static str,
    outcome: Result<Seen, String>,
}

struct Seen {
    revision: Revision,
    tools: usize,
    sum: i64,
    took: Duration,
}

/// Prints the table.
///
/// # Errors
/// When a row is not as it should be.
pub(crate) async fn run(server: &str) -> Result<(), Box<dyn Error>> {
    let (_process, url) = http_server(server).await?;
    let mut rows = Vec::new();
    for (era, revisions) in
        [("modern", of(Era::Modern)), ("legacy", of(Era::Legacy)), ("either", Revision::ALL.to_vec())]
    {
        let mut row = |wire, outcome| rows.push(Row { wire, era, outcome });
        row("memory", visit(everything_server::server(), &revisions).await);
        row("stdio", visit(Child::new(server).arg("stdio"), &revisions).await);
        row("http", visit(Http::new(&url), &revisions).await);
        row("ws", visit(Ws::new(url.replacen("http", "ws", 1)), &revisions).await);
    }
    print(&rows);
    print!("{}", how_to_connect(server));
    if rows.iter().all(|row| row.outcome.is_ok()) { Ok(()) } else { Err("a row is not ok".into()) }
}

fn of(era: Era) -> Vec<Revision> {
    Revision::ALL.iter().copied().filter(|revision| revision.era() == era).collect()
}

/// Starts the HTTP server, which lives as long as what is returned, and reads its address off its first line.
async fn http_server(server: &str) -> Result<(tokio::process::Child, String), Box<dyn Error>> {
    let mut process = Command::new(server)
        .args(["http", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stderr = process.stderr.take().ok_or("the server has no stderr")?;
    let line = timeout(Duration::from_secs(10), BufReader::new(stderr).lines().next_line()).await??;
    let line = line.ok_or("the server said nothing")?;
    let url = line.strip_prefix("listening on ").ok_or_else(|| format!("the server said: {line}"))?;
    Ok((process, url.to_owned()))
}

async fn visit(transport: impl IntoTransport, revisions: &[Revision]) -> Result<Seen, String> {
    let look = async {
        let start = Instant::now();
        let builder = Client::builder(implementation!()).revisions(revisions.iter().copied());
        let client = builder.connect(transport).await?;
        let tools = client.tools().await?.len();
        let sum = client.call("add", json!({ "a": 2, "b": 5 })).await?;
        let seen = Seen { revision: client.revision(), tools, sum, took: start.elapsed() };
        client.disconnect().await;
        Ok::<_, mcp_suite::Error>(seen)
    };
    match timeout(Duration::from_secs(30), look).await {
        Ok(Ok(seen)) if seen.sum != 7 => Err(format!("add(2, 5) is {}", seen.sum)),
        Ok(Ok(seen)) => Ok(seen),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it took longer than 30 s".into()),
    }
}

fn print(rows: &[Row]) {
    println!("{:<8} {:<8} {:<12} {:>6} {:>10} {:>9}", "wire", "client", "spoken", "tools", "add(2, 5)", "took");
    for Row { wire, era, outcome } in rows {
        match outcome {
            Ok(Seen { revision, tools, sum, took }) => {
                let took = format!("{:.1} ms", took.as_secs_f64() * 1000.0);
                println!("{wire:<8} {era:<8} {:<12} {tools:>6} {sum:>10} {took:>9}  ok", revision.as_str());
            }
            Err(why) => println!("{wire:<8} {era:<8} FAILED: {why}"),
        }
    }
}

fn how_to_connect(server: &str) -> String {
    format!(
        "\nTo connect a client of your own:\n\
         \x20 stdio  let it start   {server} stdio\n\
         \x20 http   start          {server} http --listen 127.0.0.1:8080\n\
         \x20        and give it    http://127.0.0.1:8080/mcp\n\
         \x20 ws     the same       ws://127.0.0.1:8080/mcp\n"
    )
}
