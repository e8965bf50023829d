//! A peer as a child process: a shell script, where only a real process will do.

use mcp_suite::stdio::Child;

/// A child process that runs `script` in the system's shell. A client's ids count from 0, so that a script may answer
/// without reading them; [`answer`] writes such a line.
pub(crate) fn shell(script: &str) -> Child {
    Child::new("sh").arg("-c").arg(script)
}

/// The line of a script that reads one message and answers `{"id":ID,"result":RESULT}`.
pub(crate) fn answer(id: u64, result: &str) -> String {
    format!("read -r line; {}", say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)))
}

/// The line of a script that writes one line. There must be no apostrophe in it.
pub(crate) fn say(line: &str) -> String {
    assert!(!line.contains('\''), "{line}");
    format!("printf '%s\\n' '{line}'\n")
}
