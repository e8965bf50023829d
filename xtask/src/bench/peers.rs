//! The programs of `bench/peers`, made with what the registries bring. Each that cannot be made is left out, and that is
//! said.

use std::path::PathBuf;
use std::process::Command;

use crate::bench::build;
use crate::error::{Error, Result};
use crate::node::Node;
use crate::python::Python;
use crate::workspace;

/// A peer: its name, and how it is made.
type Peer = (&'static str, fn() -> Result<Command>);

const RUST: &[Peer] = &[("turbomcp", turbomcp)];
const OTHERS: &[Peer] = &[("node", node), ("python", python)];

/// Makes them, those that are not in Rust unless they are to be left out. Returns names and command lines.
pub(crate) fn make(skip_npm: bool) -> Vec<(&'static str, String)> {
    let others = if skip_npm { &[] } else { OTHERS };
    RUST.iter().chain(others).filter_map(made).collect()
}

fn made((name, make): &Peer) -> Option<(&'static str, String)> {
    match make().and_then(|command| line(&command)) {
        Ok(line) => Some((*name, line)),
        Err(error) => {
            eprintln!("{name} is left out: {error}");
            None
        }
    }
}

fn turbomcp() -> Result<Command> {
    build("bench/peers/turbomcp", "peer-turbomcp").map(Command::new)
}

fn node() -> Result<Command> {
    Node::with(&[])?.project(&folder("node"), "server.mjs")
}

fn python() -> Result<Command> {
    let folder = folder("python");
    Ok(Python::of(&folder.join("requirements.txt"))?.run(&folder.join("server.py")))
}

fn folder(name: &str) -> PathBuf {
    workspace::root().join("bench/peers").join(name)
}

/// The command in one line, which the benchmark takes apart at its spaces.
fn line(command: &Command) -> Result<String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    match words.iter().find(|word| word.contains(char::is_whitespace)) {
        Some(word) => Err(Error::new(format!("`{word}` has a space in it"))),
        None => Ok(words.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_cannot_be_made_costs_itself_alone() {
        let peers: &[Peer] =
            &[("fails", || Err(Error::new("no network"))), ("works", || Ok(Command::new("/bin/server")))];
        assert_eq!(peers.iter().filter_map(made).collect::<Vec<_>>(), [("works", "/bin/server".to_owned())]);
    }

    #[test]
    fn a_line_is_what_comes_apart_again() {
        let mut command = Command::new("/bin/python");
        assert_eq!(line(command.args(["-B", "server.py"])).unwrap(), "/bin/python -B server.py");
        assert!(line(&Command::new("/My Files/server")).is_err());
    }
}
