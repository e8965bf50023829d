//! `soak run --seconds N --out FOLDER [--write FOLDER --record FILE]`: loads a server for so long and judges what it
//! leaves behind. `soak serve SOCKET` and `soak stdio` are the servers that it starts.

mod chart;
mod counters;
mod judge;
mod load;
mod report;
mod run;
mod sample;
mod server;
mod system;
mod tally;
mod watched;

use std::{alloc::System, error::Error, process::ExitCode};

use cap::Cap;

/// How many bytes are allocated is part of what is watched.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str =
    "usage: soak run --seconds N --out FOLDER [--write FOLDER --record FILE] | soak serve SOCKET | soak stdio";

#[tokio::main]
async fn main() -> ExitCode {
    match dispatch(std::env::args().skip(1).collect()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(words: Vec<String>) -> Result {
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", socket] => server::serve(socket.as_ref()).await,
        ["stdio"] => server::serve_stdio().await,
        ["run", settings @ ..] => run::run(&run::Settings::read(settings)?).await,
        _ => Err(USAGE.into()),
    }
}
