//! `everything-client demo --server-bin PATH`, `everything-client interop …`, `everything-client authorized …`, or the
//! conformance suite's client fixture: `everything-client … URL`.

mod authorization;
mod conformance;
mod demo;
mod interop;

use std::{error::Error, process::ExitCode};

const USAGE: &str = "usage: everything-client demo --server-bin PATH \
                     | everything-client interop ERA CALLS (http URL | ws URL | stdio COMMAND...) \
                     | everything-client authorized URL FILE TOOL... | everything-client URL";

#[tokio::main]
async fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everything-client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Vec<String>) -> Result<(), Box<dyn Error>> {
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["demo", "--server-bin", server] => demo::run(server).await,
        ["interop", era, calls, wire, target @ ..] => interop::run(era, calls, wire, target).await,
        ["authorized", url, file, tools @ ..] => authorization::call(url, file, tools).await,
        [.., url] if url.starts_with("http") => conformance::run(url).await,
        _ => Err(USAGE.into()),
    }
}
