//! The workspace's own commands, run as `cargo xtask COMMAND`. One module a command; `COMMANDS` is the whole list.

mod arguments;
mod autobahn;
mod bench;
mod budget;
mod conformance;
mod corpus;
mod debian;
mod demo;
mod error;
mod fixtures;
mod fuzz;
mod interop;
mod loom;
mod miri;
mod nightly;
mod node;
mod process;
mod python;
mod robustness;
mod rust;
mod soak;
mod table;
mod test;
mod tidy;
mod verdict;
mod workspace;

use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::error::{Error, Result};

/// One command: how it is called, what it does in one line, and its function.
struct Command {
    name: &'static str,
    flags: &'static [&'static str],
    about: &'static str,
    run: fn(&Arguments) -> Result,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "demo",
        flags: &[],
        about: "builds the example server and client and shows them talking on every wire and in both eras",
        run: |_| demo::run(),
    },
    Command {
        name: "test",
        flags: &["--skip-npm"],
        about: "everything that a change must pass, from formatting to foreign peers",
        run: |arguments| test::run(arguments.has("--skip-npm")),
    },
    Command {
        name: "tidy",
        flags: &[],
        about: "the repository's own rules: dependency arrows, path headers, revision dates, crate files",
        run: |_| tidy::run(),
    },
    Command {
        name: "conformance",
        flags: &[],
        about: "runs the official MCP conformance suite against the example server and client",
        run: |_| conformance::run(),
    },
    Command {
        name: "interop",
        flags: &["--skip-npm", "--only PEER"],
        about: "clients and servers that we did not write talk to the example ones",
        run: |arguments| interop::run(arguments.has("--skip-npm"), arguments.value("--only")),
    },
    Command {
        name: "autobahn",
        flags: &[],
        about: "Autobahn's fuzzing client against our side of a WebSocket, where there is a Python 2.7",
        run: |_| autobahn::run().map(drop),
    },
    Command {
        name: "fuzz",
        flags: &["--smoke", "--long", "--only NAME"],
        about: "fuzzes each target for a minute (--smoke 5 s, --long 20 min)",
        run: |arguments| fuzz::run(fuzz::seconds(arguments)?, arguments.value("--only")),
    },
    Command {
        name: "miri",
        flags: &[],
        about: "runs what is pure of mcp-jsonrpc and mcp-core under Miri, where there is a nightly toolchain",
        run: |_| miri::run().map(drop),
    },
    Command {
        name: "loom",
        flags: &[],
        about: "runs what several threads share through every order of what they do",
        run: |_| loom::run(),
    },
    Command {
        name: "robustness",
        flags: &[],
        about: "runs the tests that try to break it, and writes docs/robustness.md",
        run: |_| robustness::run(),
    },
    Command {
        name: "soak",
        flags: &["--minutes N"],
        about: "loads a server with mixed work and faults (30 min), and judges its memory and what it leaves behind",
        run: |arguments| soak::run(soak::minutes(arguments)?),
    },
    Command {
        name: "bench",
        flags: &["NAME...", "--seconds N", "--rounds N", "--only ROWS", "--smoke", "--skip-npm"],
        about: "measures our server beside its peers and the ceilings: rounds (3) of 2 s each (--smoke: one of 0.2 s)",
        run: bench::run,
    },
    Command {
        name: "budget",
        flags: &["--only NAME", "--write"],
        about: "counts instructions and allocations of the hot functions, and fails where they are over the budget",
        run: |arguments| budget::run(arguments.value("--only"), arguments.has("--write")),
    },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error}");
            ExitCode::from(error.code())
        }
    }
}

fn dispatch(words: &[String]) -> Result {
    let (name, flags) = match words {
        [] => return help(),
        [name, ..] if ["help", "--help", "-h"].contains(&name.as_str()) => return help(),
        [name, flags @ ..] => (name, flags),
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(Error::new(format!("there is no command `{name}`; `cargo xtask --help` lists them")));
    };
    if flags.iter().any(|flag| flag == "--help" || flag == "-h") {
        println!("{}", usage(command));
        return Ok(());
    }
    (command.run)(&Arguments::read(command.name, command.flags, flags)?)
}

fn help() -> Result {
    println!("cargo xtask COMMAND\n");
    for command in COMMANDS {
        println!("  {}", usage(command));
    }
    Ok(())
}

fn usage(command: &Command) -> String {
    let flags: Vec<String> = command.flags.iter().map(|flag| format!("[{flag}]")).collect();
    let call = format!("{} {}", command.name, flags.join(" "));
    // What is too long for the first column has a line of its own.
    let gap = if call.len() > 26 { format!("\n{:29}", "") } else { " ".to_owned() };
    format!("{:<26}{gap}{}", call.trim_end(), command.about)
}
