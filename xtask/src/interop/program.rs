//! A client program of `tests/interop`, or our own client: they share one command line and one way to report.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::error::{Doing, Error, Result};
use crate::interop::call::{Call, Heard};
use crate::interop::peer::{Outcomes, Session};
use crate::process::{self, Said};

/// A session takes seconds; this is for a peer that waits for an answer that never comes.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the program against `target`: a command and its arguments, or a URL.
pub(crate) fn visit(mut program: Command, session: &Session, target: &[OsString]) -> Outcomes {
    let calls: Value = session.calls().iter().filter_map(|call| call.told()).collect();
    program.args([session.era.word(), &calls.to_string(), session.wire.word()]).args(target);
    judge(session, &process::listen(&mut program, LIMIT)?)
}

/// The command as the words that another program starts it by.
pub(crate) fn words(command: &Command) -> Vec<OsString> {
    std::iter::once(command.get_program()).chain(command.get_args()).map(Into::into).collect()
}

fn judge(session: &Session, said: &Said) -> Outcomes {
    let ending = || format!("the program ended with {}: {}", said.status, said.stderr.trim());
    let lines: Vec<Heard> = said.stdout.lines().map(read).collect::<Result<_>>()?;
    let revision = lines.iter().find_map(|line| line.revision.as_deref());
    match revision {
        None => return Err(Error::new(format!("no revision was agreed on; {}", ending()))),
        Some(revision) if revision == session.revision() => {}
        Some(other) => return Err(Error::new(format!("{other} is spoken, not {}", session.revision()))),
    }
    let outcomes: Vec<Result> = session.calls().iter().map(|call| outcome(session, call, &lines)).collect();
    if !said.status.success() && outcomes.iter().all(Result::is_ok) {
        return Err(Error::new(ending()));
    }
    Ok(outcomes)
}

fn outcome(session: &Session, call: &Call, lines: &[Heard]) -> Result {
    match lines.iter().find(|line| line.is_about(call)) {
        Some(heard) => call.judge(heard, session.flaw(call).is_some()),
        None => Err(Error::new(format!("nothing was reported of `{}`", call.name()))),
    }
}

fn read(line: &str) -> Result<Heard> {
    serde_json::from_str(line).doing(|| format!("the report has a line that is none: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::peer::{Era, Wire};
    use crate::interop::{python, typescript};

    /// What comes of a report of the Python client over stdio, by a program that ended by `script`.
    fn of(report: &str, script: &str) -> Outcomes {
        let session = Session { peer: &python::CLIENT_V2, wire: Wire::Stdio, era: Era::Modern };
        let mut shell = Command::new("sh");
        let status = shell.args(["-c", script]).status().unwrap();
        judge(&session, &Said { status, stdout: report.to_owned(), stderr: "why".to_owned() })
    }

    const GOOD: &str = r#"{"revision":"2026-07-28"}
{"tool":"add","text":"7","failed":false,"progress":[]}
{"tool":"fail","text":"on purpose","failed":true,"progress":[]}
{"tool":"count","text":"3","failed":false,"progress":[1,2,3]}
{"resource":"test://static-text","text":"This is the content of the static text resource."}
{"prompt":"test_prompt_with_arguments","text":"Prompt with arguments: arg1='one', arg2='two'"}
{"question":"question","text":"Hello, Ada!"}
{"cancel":"hang","text":"stopped"}
{"change":"register","text":"later"}
"#;

    #[test]
    fn a_whole_report_is_good() {
        assert!(of(GOOD, "exit 0").unwrap().iter().all(Result::is_ok));
    }

    #[test]
    fn a_call_that_is_not_reported_has_failed() {
        let outcomes = of(GOOD.rsplit_once("\n{").unwrap().0, "exit 1").unwrap();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1);
        assert!(outcomes.last().unwrap().is_err());
    }

    #[test]
    fn a_program_that_ends_badly_after_its_calls_has_failed() {
        let message = of(GOOD, "exit 3").unwrap_err().to_string();
        assert!(message.contains("exit status: 3: why"), "{message}");
    }

    #[test]
    fn another_revision_than_the_one_asked_for_fails_every_call() {
        assert!(of(&GOOD.replace("2026-07-28", "2025-11-25"), "exit 0").is_err());
        assert!(of("", "exit 0").is_err());
    }

    #[test]
    fn a_known_flaw_forgives_lost_progress_on_its_wire_alone() {
        let lines = [read(r#"{"tool":"count","text":"3","progress":[]}"#).unwrap()];
        let count = typescript::CLIENT_V2.calls.iter().find(|call| call.name() == "count").unwrap();
        let on = |wire| Session { peer: &typescript::CLIENT_V2, wire, era: Era::Modern };
        assert!(outcome(&on(Wire::Stdio), count, &lines).is_ok());
        assert!(outcome(&on(Wire::Http), count, &lines).is_err());
    }
}
