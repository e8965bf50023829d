//! Runs conversations in messages: the same text on every wire and for every revision that it names.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use mcp_core::{Era, Revision, Server};
use serde_json::Value;

use crate::{
    duplex::{How, Peer, Wire},
    fixture,
    transcript::{Case, Shape, Step, Variant, Words, mismatch, parse, unescape, well_formed},
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
        outcome.err().map(|why| format!("{} [{}] {why}", case.title, told(variant, wire)))
    };
    if wire.has_made_up_time() {
        return runs.iter().filter_map(|run| runtime(wire).block_on(outcome(run))).collect();
    }
    let outcomes = stream::iter(runs.iter().map(outcome)).buffer_unordered(16);
    runtime(wire).block_on(outcomes.filter_map(std::future::ready).collect())
}

fn told(variant: &Variant, wire: Wire) -> String {
    let revision = variant.speaks.map(|revision| format!(" {revision}")).unwrap_or_default();
    let cells = if variant.cells.is_empty() { String::new() } else { format!(" with {}", variant.cells.join(" || ")) };
    format!("{}{revision}{cells}", wire.name())
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
    };
    able && case.setting("on").is_none_or(|wires| {
        let known = |name: &str| Wire::ALL.iter().any(|wire| wire.name() == name);
        assert!(wires.split_whitespace().all(known), "{}: an unknown wire in `{wires}`", case.title);
        wires.split_whitespace().any(|name| name == wire.name())
    })
}

pub(crate) fn server(case: &Case) -> Result<Server, String> {
    let (limits, accepts) = (case.limits()?, case.accepts()?);
    match case.setting("server") {
        Some("odd") => Ok(fixture::odd(limits, &accepts)),
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
    };
    let words = Words { variant, port: None };
    let mut talk = Talk { peer, wire, era: variant.speaks.map(Revision::era), last: String::new(), fences: 0 };
    if let Some(revision) = variant.speaks.filter(|revision| revision.era() == Era::Legacy && wire != Wire::Http) {
        talk.shake_hands(revision).await.map_err(|why| format!("at the handshake: {why}"))?;
    }
    let mut steps = case.steps.as_slice();
    while let Some(first) = steps.first() {
        let together = steps.iter().take_while(|step| talk.any_order(step)).count().max(1);
        let (now, later) = steps.split_at(together);
        talk.steps(now, &words).await.map_err(|why| format!("line {}: {why}", first.line))?;
        steps = later;
    }
    talk.end(case.steps.iter().any(|step| step.mark == "eof")).await.map_err(|why| format!("at the end: {why}"))
}

/// A conversation on its way.
struct Talk {
    peer: Peer,
    wire: Wire,
    era: Option<Era>,
    /// The last message, as it came.
    last: String,
    fences: u32,
}

impl Talk {
    /// Whether a step's message may come before or after those of its neighbours.
    fn any_order(&self, step: &Step) -> bool {
        step.mark == "<?" || (step.mark == "<" && self.wire == Wire::Http)
    }

    async fn steps(&mut self, steps: &[Step], words: &Words<'_>) -> Result<(), String> {
        let texts = steps.iter().map(|step| words.expand(&step.text)).collect::<Result<Vec<_>, _>>()?;
        let (mark, text) = (steps[0].mark.as_str(), texts[0].as_str());
        match mark {
            "<?" | "<" => self.expect(&texts).await,
            "<*" => self.skip(text).await,
            ">" => self.peer.send(How::Message, text.as_bytes()).await,
            ">b" => self.peer.send(How::Message, &unescape(text)?).await,
            ">raw" => self.peer.send(How::Raw, &unescape(text)?).await,
            ">drip" => self.peer.send(How::Drip, text.as_bytes()).await,
            "<=" if self.last.contains(text) => Ok(()),
            "<!" if !self.last.contains(text) => Ok(()),
            "<=" | "<!" => Err(format!("`{mark} {text}` does not hold for {}", self.last)),
            "<-" => self.nothing_more().await,
            "eof" => self.peer.end_input().await,
            "wait" => {
                let ms = text.parse().map_err(|_| format!("`{text}` is no number of ms"))?;
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(())
            }
            other => Err(format!("`{other}` is no step of a conversation in messages")),
        }
    }

    async fn next(&mut self) -> Result<Value, String> {
        let message = self.peer.next().await?;
        self.last = String::from_utf8_lossy(&message).into_owned();
        well_formed(&message, Shape::OneOrBatch, self.era).map_err(|why| format!("{why}: {}", self.last))
    }

    /// As many messages as there are texts, each of which fits one of them.
    async fn expect(&mut self, texts: &[String]) -> Result<(), String> {
        let json = |text: &String| serde_json::from_str(text).map_err(|error| format!("{error}: {text}"));
        let mut open = texts.iter().map(json).collect::<Result<Vec<Value>, String>>()?;
        while !open.is_empty() {
            let message = self.next().await.map_err(|why| format!("{why}, expected {}", listed(&open)))?;
            let Some(index) = open.iter().position(|expected| mismatch(expected, &message).is_none()) else {
                let why = mismatch(&open[0], &message).unwrap_or_default();
                return Err(format!("{why}\n  expected {}\n  got      {}", listed(&open), self.last));
            };
            open.remove(index);
        }
        Ok(())
    }

    /// Passes over what is like `text`; that the next message is not is seen with a ping, which must be answered in spite
    /// of it.
    async fn skip(&mut self, text: &str) -> Result<(), String> {
        const MOST: usize = 20_000;
        let expected: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
        let fence = self.fence().await?;
        for _ in 0..MOST {
            let message = self.next().await?;
            match mismatch(&expected, &message) {
                _ if message["id"] == fence => return Ok(()),
                None => {}
                Some(why) => return Err(format!("{why}\n  got {}", self.last)),
            }
        }
        Err(format!("a ping is not answered while {MOST} messages like this one come"))
    }

    /// Nothing is on its way any more, and the server still answers.
    async fn nothing_more(&mut self) -> Result<(), String> {
        self.peer.silence().await?;
        let fence = self.fence().await?;
        let message = self.next().await?;
        if message["id"] == fence { Ok(()) } else { Err(format!("instead of a ping's answer: {}", self.last)) }
    }

    async fn end(&mut self, input_has_ended: bool) -> Result<(), String> {
        if !input_has_ended {
            self.nothing_more().await?;
        }
        self.peer.end().await
    }

    /// Asks what every server answers at once; the id, which no case uses, tells the answer from others.
    async fn fence(&mut self) -> Result<u32, String> {
        self.fences += 1;
        let fence = 900 + self.fences;
        let ping = match self.era {
            Some(Era::Modern) => {
                let variant = Variant { cells: Vec::new(), speaks: Some(Revision::LATEST) };
                let words = Words { variant: &variant, port: None };
                words.expand(&format!(
                    r#"{{"jsonrpc":"2.0","id":{fence},"method":"server/discover","params":{{$(meta)}}}}"#
                ))?
            }
            _ => format!(r#"{{"jsonrpc":"2.0","id":{fence},"method":"ping"}}"#),
        };
        self.peer.send(How::Message, ping.as_bytes()).await?;
        Ok(fence)
    }

    async fn shake_hands(&mut self, revision: Revision) -> Result<(), String> {
        let params = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"suite","version":"1"}}}}"#
        );
        let initialize = format!(r#"{{"jsonrpc":"2.0","id":"handshake","method":"initialize","params":{params}}}"#);
        self.peer.send(How::Message, initialize.as_bytes()).await?;
        self.expect(&[format!(r#"{{"id":"handshake","result":{{"protocolVersion":"{revision}"}}}}"#)]).await?;
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.peer.send(How::Message, initialized).await
    }
}

fn listed(open: &[Value]) -> String {
    open.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ")
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
    batches: Memory Lines Stdio Http;
    cancel: Memory Lines Stdio Http;
    framing: Memory Lines Stdio Http;
    jsonrpc: Memory Lines Stdio Http;
    lifecycle: Memory Lines Stdio Http;
    tools: Memory Lines Stdio Http;
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
            (r#"< {"id":2}"#, "line 3: at $.id"),
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
            ("<* {\"id\":2}", "line 3: at $.id"),
        ] {
            let error = failure(&format!("== A\n{PING}\n{steps}"), Wire::Memory);
            assert!(error.starts_with(why), "{steps}: {error}");
        }
    }

    #[test]
    fn it_fails_on_what_a_wire_cannot_do() {
        assert!(failure("== A\n>raw x", Wire::Memory).contains("no meaning on memory"));
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
