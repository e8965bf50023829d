//! Runs one function, for Callgrind, and says how many calls were measured.

use std::process::ExitCode;

use budget::FUNCTIONS;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
        eprintln!("there is no function `{name}`");
        return ExitCode::FAILURE;
    };
    println!("{}", function.run(&mut measured));
    ExitCode::SUCCESS
}

/// Callgrind collects while this runs; it knows it by its name.
#[inline(never)]
fn measured(run: &mut dyn FnMut()) {
    run();
}
