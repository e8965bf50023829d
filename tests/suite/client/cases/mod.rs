//! Runs conversations with a client: the same text on every wire and in every era that it names.
//! [`transcript`](crate::transcript) says what the steps mean.

mod http;
mod run;
mod shared;
mod stage;
mod user;

use std::time::Duration;

use mcp_core::Era;
use mcp_test::transcript::{Case, Step, Variant};

use self::{http::Http, run::Run, shared::Shared};
use crate::{
    duplex::Wire,
    http::or_panic,
    report,
    transcript::{accepts, parse_client},
};

/// A wire, and over HTTP whether answers are streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    On(Wire),
    Sse,
}

const WAYS: [(&str, Way); 5] = [
    ("memory", Way::On(Wire::Memory)),
    ("lines", Way::On(Wire::Lines)),
    ("http", Way::On(Wire::Http)),
    ("sse", Way::Sse),
    ("ws", Way::On(Wire::Ws)),
];

/// How long is waited for what is expected where the world is waited for.
const REAL_PATIENCE: Duration = Duration::from_secs(30);

/// How long is waited for what is expected; where time is made up, waiting costs nothing.
fn patience(wire: Wire) -> Duration {
    if wire.has_made_up_time() { Duration::from_secs(3600) } else { REAL_PATIENCE }
}

/// What the server of a case offers that does not say it itself.
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}"#;

/// Runs every case of a file that can run that way; all that fail are told at once.
///
/// `CASE=C005` runs only the cases whose title has that in it.
fn run_file(text: &str, name: &str) {
    let cases = parse_client(text).unwrap_or_else(|why| panic!("{why}"));
    let (wanted, way) = (std::env::var("CASE").unwrap_or_default(), way(name));
    let (mut count, mut failures) = (0, Vec::new());
    for case in cases.iter().filter(|case| case.title.contains(&wanted)) {
        let variants = case.variants().unwrap_or_else(|why| panic!("{}: {why}", case.title));
        for variant in variants.iter().filter(|variant| runs_on(case, variant, name)) {
            count += 1;
            let outcome = runtime(way).block_on(or_panic(run(case, variant, way)));
            report::case(&case.title, variant, name, outcome.is_ok());
            failures.extend(outcome.err().map(|why| format!("{} on {name}{variant} {why}", case.title)));
        }
    }
    assert!(count > 0 || !wanted.is_empty(), "no case runs on {name}");
    assert!(failures.is_empty(), "{} of {count} runs failed:\n\n{}\n", failures.len(), failures.join("\n\n"));
}

fn way(name: &str) -> Way {
    WAYS.iter().find(|(known, _)| *known == name).map(|(_, way)| *way).expect("a wire of that name")
}

fn wire(way: Way) -> Wire {
    match way {
        Way::On(wire) => wire,
        Way::Sse => Wire::Http,
    }
}

/// Each run has a runtime of its own, and with it its own time and its own warnings.
fn runtime(way: Way) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(wire(way).has_made_up_time()).build().expect("a runtime")
}

async fn run(case: &Case, variant: &Variant, way: Way) -> Result<(), String> {
    let upgrades = case.steps.iter().any(|step| step.mark == ">" && step.text.starts_with("GET "));
    match way {
        Way::On(Wire::Memory) => Run::new(case, variant, Wire::Memory, Shared::memory())?.play().await,
        Way::On(Wire::Ws) => Run::new(case, variant, Wire::Ws, Shared::ws(upgrades).await)?.play().await,
        Way::On(Wire::Http) | Way::Sse => {
            let http = Http::start(settings(case, variant, way)).await;
            Run::new(case, variant, Wire::Http, http)?.play().await
        }
        Way::On(_) => Run::new(case, variant, Wire::Lines, Shared::lines())?.play().await,
    }
}

fn settings(case: &Case, variant: &Variant, way: Way) -> http::Settings {
    let asks = |verb: &str| case.steps.iter().any(|step| step.mark == ">" && step.text.starts_with(verb));
    http::Settings {
        streams: way == Way::Sse,
        cuts: has(case, &["cut"]),
        is_legacy: is_legacy(case, variant),
        session: case.setting("session").map(str::to_owned),
        own: ["GET", "DELETE"].into_iter().filter(|verb| asks(verb)).collect(),
        notifications: variant.speaks.is_none() && has(case, &["<status"]),
    }
}

fn is_legacy(case: &Case, variant: &Variant) -> bool {
    let spoken = accepts(case).unwrap_or_default();
    let mut spoken = variant.speaks.iter().chain(&spoken).map(|revision| revision.era()).peekable();
    spoken.peek().is_some() && spoken.all(|era| era == Era::Legacy)
}

fn has(case: &Case, marks: &[&str]) -> bool {
    case.steps.iter().any(|step| marks.contains(&step.mark.as_str()))
}

/// Whether it is to run there, and can.
fn runs_on(case: &Case, variant: &Variant, name: &str) -> bool {
    if let Some(names) = case.setting("on") {
        let known = |name: &str| WAYS.iter().any(|(known, _)| *known == name);
        assert!(names.split_whitespace().all(known), "{}: an unknown wire in `{names}`", case.title);
        return names.split_whitespace().any(|wanted| wanted == name);
    }
    let (is_plain, is_instant) = (!case.steps.iter().any(is_http), !has(case, &["wait", "took"]));
    let has_frames = has(case, &["<f", ">f"]);
    match way(name) {
        Way::On(Wire::Http) => {
            !has_frames
                && is_instant
                && (!is_plain || !has(case, &["<raw", "<x", "close", "cut"]) && answers_once(case))
        }
        Way::Sse => !has_frames && is_instant && is_plain && (is_legacy(case, variant) || says_on_request(case)),
        Way::On(Wire::Ws) => is_plain && is_instant && !has(case, &["<raw"]),
        Way::On(Wire::Memory) => is_plain && !has_frames && !has(case, &["<raw"]),
        Way::On(_) => is_plain && !has_frames,
    }
}

/// Whether a step is about a request, or an answer, of HTTP.
fn is_http(step: &Step) -> bool {
    step.mark == "<status" || step.mark == ">" && !step.text.starts_with(['{', '['])
}

fn is_request(step: &Step) -> bool {
    step.mark == ">" && !step.text.contains(r#""method":"notifications/"#) && !step.text.contains(r#""result":"#)
}

fn speaks(step: &Step) -> bool {
    ["<", "<b", "<raw", "<x", "<ok", "<status"].contains(&step.mark.as_str())
}

/// Whether each request is answered with one message, and nothing else is said.
fn answers_once(case: &Case) -> bool {
    let mut waiting = 0;
    case.steps.iter().all(|step| {
        waiting += i32::from(is_request(step)) - i32::from(speaks(step));
        waiting >= 0
    })
}

/// Whether something is said only while a request waits for its answer: where nobody asks, a modern server cannot speak.
fn says_on_request(case: &Case) -> bool {
    let mut waiting = 0;
    case.steps.iter().all(|step| {
        waiting += i32::from(is_request(step));
        let fits = !speaks(step) || waiting > 0;
        waiting -= i32::from(step.mark == "<ok" || step.mark == "<" && step.text.contains(r#""id":$id"#));
        fits
    })
}

mod files {
    use super::run_file;

    /// A test for each file and wire.
    macro_rules! files {
        ($($file:ident: $($wire:ident)*;)*) => {
            $(mod $file {
                use super::run_file;

                const TEXT: &str = include_str!(concat!("../../cases/client/", stringify!($file), ".txt"));

                $(#[test]
                fn $wire() {
                    run_file(TEXT, stringify!($wire));
                })*
            })*
        };
    }

    files! {
        jsonrpc: memory lines http sse ws;
        sse: sse;
        http: http;
        lifecycle: memory lines http sse ws;
        lines: lines;
        cancel: memory lines http sse ws;
        tools: memory lines http sse ws;
        resources: memory lines http sse ws;
        websocket: ws;
    }
}

/// The runner itself must see what is wrong.
mod runner {
    use super::*;

    fn failure(text: &str, name: &str) -> String {
        let case = &parse_client(text).unwrap()[0];
        let variant = &case.variants().unwrap()[0];
        runtime(way(name)).block_on(or_panic(run(case, variant, way(name)))).unwrap_err()
    }

    #[test]
    fn it_fails_where_the_client_does_something_else() {
        const CALL: &str = "call a\n> {\"method\":\"tools/call\"}\n";
        for (steps, why) in [
            ("= \"b\"", "line 5: Timeout"),
            ("<ok \"b\"\n= \"c\"", "line 6: $: expected"),
            ("<ok \"b\"\n! Timeout", "line 6: there is no error"),
            ("<ok \"b\"", "at the end: nobody asked what became"),
            ("<ok \"b\"\n= \"b\"\n=~ c", "line 7: `=~ c` does not hold"),
            ("<ok \"b\"\n= \"b\"\ntook 5", "line 7: it took 0 ms"),
            ("<ok {\"content\":5}\n! Timeout", "line 6: it is not `Timeout`"),
            ("<ok {\"content\":5}\n! peer ~nothing of this", "line 6: `! nothing of this`"),
            ("<ok \"b\"\n= \"b\"\n> {}", "line 7: waited in vain for what is expected"),
            ("<ok \"b\"\n= \"b\"\nheard 5", "line 7: waited in vain for what is heard"),
            ("<ok \"b\"\n= \"b\"\nwarned x", "line 7: there are 0 warnings"),
            ("<ok \"b\"\n= \"b\"\n>! tools/call", "line 7: `>! tools/call` does not hold"),
            ("<ok \"b\"\n= \"b\"\n>= tools/list", "line 7: `>= tools/list` does not hold"),
            ("<ok \"b\"\n= \"b\"\n<f 1 x", "line 7: this wire cannot carry"),
            ("<ok \"b\"\n= \"b\"\n> Name: value", "line 7: waited in vain"),
            (
                "< {\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n<ok \"b\"\n= \"b\"",
                "at the end: nobody asked for what",
            ),
        ] {
            let steps = steps.replace("{\"method\":\"notifications", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications");
            let error = failure(&format!("== A\nspeak: 2025-06-18\n{CALL}{steps}"), "memory");
            assert!(error.starts_with(why), "{steps}: {error}");
        }
    }

    #[test]
    fn it_fails_where_a_message_comes_that_nothing_expects() {
        let error = failure("== A\nspeak: modern\ncall a\nping\n> {\"method\":\"tools/call\"}\n>-", "memory");
        assert!(error.starts_with("line 6: params.name: expected") || error.contains("method: expected"), "{error}");
        let gone = failure("== A\nspeak: modern\ncall a\n> {}\ncut\n! TransportClosed\n<ok 5", "memory");
        assert!(gone.starts_with("line 7: waited in vain") || gone.contains("no connection"), "{gone}");
    }
}
