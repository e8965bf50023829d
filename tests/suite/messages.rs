//! Runs conversations in messages: the same text on every wire and for every revision that it names.

use futures_util::{StreamExt as _, stream};
use mcp_core::Server;
use mcp_test::transcript::{Case, Variant};

use crate::{
    duplex::{Peer, Wire},
    fixture, report,
    transcript::{accepts, limits, parse},
};

/// Runs every case of a file that can run on `wire`; all that fail are told at once.
///
/// `CASE=C001` runs only the cases whose title has that in it.
fn run_file(text: &str, wire: Wire) {
    let cases = parse(text).unwrap_or_else(|why| panic!("{why}"));
    let wanted = std::env::var("CASE").unwrap_or_default();
    let cases = cases.iter().filter(|case| case.title.contains(&wanted) && runs_on(case, wire));
    let variants = |case: &Case| case.variants().unwrap_or_else(|why| panic!("{}: {why}", case.title));
    let runs: Vec<(&Case, Variant)> =
        cases.flat_map(|case| variants(case).into_iter().map(move |variant| (case, variant))).collect();
    assert!(!runs.is_empty() || !wanted.is_empty(), "no case runs on {}", wire.name());
    let failures = run_all(&runs, wire);
    assert!(failures.is_empty(), "{} of {} runs failed:\n\n{}\n", failures.len(), runs.len(), failures.join("\n\n"));
}

/// Where time is made up, each run has a time of its own; elsewhere some go on at once, so that their waits overlap.
fn run_all(runs: &[(&Case, Variant)], wire: Wire) -> Vec<String> {
    let outcome = async |(case, variant): &(&Case, Variant)| {
        let outcome = run(case, variant, wire).await;
        report::case(&case.title, variant, wire.name(), outcome.is_ok());
        outcome.err().map(|why| format!("{} on {}{variant} {why}", case.title, wire.name()))
    };
    if wire.has_made_up_time() {
        return runs.iter().filter_map(|run| runtime(wire).block_on(outcome(run))).collect();
    }
    let outcomes = stream::iter(runs.iter().map(outcome)).buffer_unordered(16);
    runtime(wire).block_on(outcomes.filter_map(std::future::ready).collect())
}

/// Time is made up where nothing outside of the process is waited for, so waiting costs nothing there.
fn runtime(wire: Wire) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(wire.has_made_up_time()).build().expect("a runtime")
}

fn runs_on(case: &Case, wire: Wire) -> bool {
    let is_plain = ["server", "limits", "accepts"].iter().all(|name| case.setting(name).is_none());
    let is_raw = case.steps.iter().any(|step| matches!(step.mark.as_str(), ">raw" | ">drip"));
    let ends = case.steps.iter().any(|step| step.mark == "eof");
    let able = match wire {
        Wire::Memory => !is_raw,
        Wire::Lines => true,
        Wire::Stdio => is_plain,
        Wire::Http => !is_raw && !ends,
        // What is too long ends the connection there, as does the end of what is said.
        Wire::Ws => !is_raw && !ends && !case.all("limits").any(|limits| limits.contains("message_bytes")),
    };
    able && case.setting("on").is_none_or(|wires| {
        let known = |name: &str| Wire::ALL.iter().any(|wire| wire.name() == name);
        assert!(wires.split_whitespace().all(known), "{}: an unknown wire in `{wires}`", case.title);
        wires.split_whitespace().any(|name| name == wire.name())
    })
}

pub(crate) fn server(case: &Case) -> Result<Server, String> {
    let (limits, accepts) = (limits(case)?, accepts(case)?);
    match case.setting("server") {
        Some("odd") => Ok(fixture::odd(limits, &accepts)),
        Some("templated") => Ok(fixture::templated()),
        None | Some("everything") if accepts.is_empty() => Ok(everything_server::server_with(limits)),
        other => Err(format!("no server {other:?} that `accepts` revisions")),
    }
}

async fn run(case: &Case, variant: &Variant, wire: Wire) -> Result<(), String> {
    let peer = match wire {
        Wire::Memory => Peer::memory(server(case)?),
        Wire::Lines => Peer::lines(server(case)?),
        Wire::Stdio => Peer::stdio(),
        Wire::Http => Peer::http(server(case)?, variant.speaks).await,
        Wire::Ws => Peer::ws(server(case)?).await,
    };
    Ok(peer.into_conversation().play(case, variant).await?)
}

/// A test for each file and wire.
macro_rules! files {
    ($($file:ident: $($wire:ident)*;)*) => {
        $(mod $file {
            use super::{Wire, run_file};

            const TEXT: &str = include_str!(concat!("cases/", stringify!($file), ".txt"));

            $(#[test]
            #[expect(non_snake_case, reason = "named after the wire")]
            fn $wire() {
                run_file(TEXT, Wire::$wire);
            })*
        })*
    };
}

files! {
    batches: Memory Lines Stdio Http Ws;
    cancel: Memory Lines Stdio Http Ws;
    changes: Memory Lines Stdio Http Ws;
    framing: Memory Lines Stdio Http Ws;
    input_required: Memory Lines Stdio Http Ws;
    jsonrpc: Memory Lines Stdio Http Ws;
    lifecycle: Memory Lines Stdio Http Ws;
    listen: Memory Lines Stdio Http Ws;
    logging: Memory Lines Stdio Http Ws;
    prompts: Memory Lines Stdio Http Ws;
    resources: Memory Lines Stdio Http Ws;
    skills: Memory Lines Stdio Http Ws;
    tasks: Memory Lines Stdio Http Ws;
    tools: Memory Lines Stdio Http Ws;
}

/// The runner itself must see what is wrong.
mod runner {
    use super::*;

    fn failure(text: &str, wire: Wire) -> String {
        let case = &parse(text).unwrap()[0];
        let variant = &case.variants().unwrap()[0];
        runtime(wire).block_on(run(case, variant, wire)).unwrap_err()
    }

    #[test]
    fn it_fails_where_the_server_does_something_else() {
        const PING: &str = r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for (steps, why) in [
            (r#"< {"id":2}"#, "line 3: id: expected"),
            ("< {}\n< {}", "line 4: no message"),
            ("", "at the end: a message that nothing expects"),
            ("<-", "line 3: a message that nothing expects"),
            ("eof", "at the end: a message at the end"),
            ("eof\n< {}\n< {}", "line 5: the server has ended"),
            ("< {}\n<! result", "line 4: `<! result` does not hold"),
            ("< {}\n<= error", "line 4: `<= error` does not hold"),
            ("< {}\n< 200 OK", "line 4: trailing characters"),
            ("< {}\n<e {}", "line 4: `<e` is no step"),
            ("<? {\"id\":1}\n<? {\"id\":2}", "line 3: no message"),
            ("<* {\"id\":2}", "line 3: id: expected"),
        ] {
            let error = failure(&format!("== A\n{PING}\n{steps}"), Wire::Memory);
            assert!(error.starts_with(why), "{steps}: {error}");
        }
    }

    #[test]
    fn it_fails_on_what_a_wire_cannot_do() {
        assert!(failure("== A\n>raw x", Wire::Memory).contains("`>raw` is no step"));
        assert!(failure("== A\neof\n> x", Wire::Lines).contains("ended already"));
    }

    #[test]
    fn it_fails_on_a_second_answer_even_a_late_one() {
        let text = r#"== A
speak: 2025-06-18
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":5000}}}
"#;
        assert!(failure(text, Wire::Memory).contains("slept 5000 ms"));
    }
}
