//! Runs conversations in HTTP: headers, statuses and bodies as they are on the wire.

use std::panic::AssertUnwindSafe;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use mcp_core::origin::{Hosts, Origins};
use mcp_http::Routes;
use mcp_test::{
    mismatch,
    transcript::{Case, Shape, Step, Variant, Words, unescape, well_formed},
};
use serde_json::Value;

use super::{Connection, Event, Post, Response, Served, events};
use crate::{messages::server, report, transcript::parse};

fn run_file(text: &str) {
    let cases = parse(text).unwrap_or_else(|why| panic!("{why}"));
    let wanted = std::env::var("CASE").unwrap_or_default();
    let cases = cases.iter().filter(|case| case.title.contains(&wanted));
    let variants = |case: &Case| case.variants().unwrap_or_else(|why| panic!("{}: {why}", case.title));
    let runs: Vec<(&Case, Variant)> =
        cases.flat_map(|case| variants(case).into_iter().map(move |variant| (case, variant))).collect();
    assert!(!runs.is_empty() || !wanted.is_empty(), "no cases");
    let outcome = async |(case, variant): &(&Case, Variant)| {
        let outcome = or_panic(run(case, variant)).await;
        report::case(&case.title, variant, "http", outcome.is_ok());
        outcome.err().map(|why| format!("{}{variant} {why}", case.title))
    };
    // Some at once, so that their waits overlap.
    let outcomes = stream::iter(runs.iter().map(outcome)).buffer_unordered(16);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let failures: Vec<String> = runtime.block_on(outcomes.filter_map(std::future::ready).collect());
    assert!(failures.is_empty(), "{} of {} runs failed:\n\n{}\n", failures.len(), runs.len(), failures.join("\n\n"));
}

/// What panics fails alone, and the other cases still run.
pub(crate) async fn or_panic(run: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned())).unwrap_or_else(|| "a panic".to_owned()))
    })
}

async fn run(case: &Case, variant: &Variant) -> Result<(), String> {
    let served = Served::with(routes(case)?, case.setting("bind").unwrap_or("127.0.0.1")).await;
    let mut words = Words::new(variant).with("port", served.address.port().to_string());
    let mut connection = None;
    let mut steps = case.steps.as_slice();
    while let Some(first) = steps.first() {
        let asked = steps.iter().take_while(|step| step.mark.starts_with('>')).count();
        let answered = steps[asked..].iter().take_while(|step| step.mark.starts_with('<')).count();
        if asked == 0 || answered == 0 {
            return Err(format!("line {}: a request and what is answered belong together", first.line));
        }
        let exchange = Exchange { words: &words, served: &served, modern: variant.speaks };
        let (response, open) = exchange
            .run(&steps[..asked], &steps[asked..asked + answered], connection)
            .await
            .map_err(|(line, why)| format!("line {line}: {why}"))?;
        (words, connection) = (learned(words, &response), open);
        steps = &steps[asked + answered..];
    }
    still_serves(&served, case).await
}

/// What the next request can speak of: the session that has begun, and the events of the stream before.
fn learned<'a>(words: Words<'a>, response: &Response) -> Words<'a> {
    let blocks = response.text().split("\n\n").filter(|block| block.contains("event: message"));
    let ids = blocks.filter_map(|block| block.strip_prefix("id: ")?.lines().next());
    let events = ids.enumerate().map(|(index, id)| (format!("event{}", index + 1), id));
    let session = response.head.header("mcp-session-id").map(|id| ("session".to_owned(), id));
    events.chain(session).fold(words, |words, (word, text)| words.with(word, text))
}

/// Whatever was asked, the server serves the next caller.
async fn still_serves(served: &Served, case: &Case) -> Result<(), String> {
    let path = case.setting("path").unwrap_or("/mcp");
    let post = Post::to(&format!("POST {path}"), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let status = served.send(post.header("Host", "localhost")).await.status();
    if [200, 400].contains(&status) { Ok(()) } else { Err(format!("at the end: a ping's status is {status}")) }
}

fn routes(case: &Case) -> Result<Routes, String> {
    let mut routes = Routes::new(server(case)?);
    if case.setting("sessions").is_none() {
        routes = routes.stateless();
    }
    if let Some(path) = case.setting("path") {
        routes = routes.path(path);
    }
    if let Some(origins) = case.setting("origins") {
        let origins = match origins {
            "any" => Origins::any(),
            list => Origins::list(list.split_whitespace()).map_err(|error| error.to_string())?,
        };
        routes = routes.origins(origins);
    }
    if let Some(hosts) = case.setting("hosts") {
        let allow = |hosts: Hosts, host: &str| hosts.allow(host).map_err(|error| error.to_string());
        routes = routes.hosts(match hosts {
            "any" => Hosts::any(),
            list => list.split_whitespace().try_fold(Hosts::loopback(), allow)?,
        });
    }
    Ok(routes.streaming(case.setting("streaming") != Some("no")))
}

struct Exchange<'a> {
    words: &'a Words<'a>,
    served: &'a Served,
    modern: Option<mcp_core::Revision>,
}

impl Exchange<'_> {
    /// Asks and judges the answer; what is returned is that, and the connection, if the server left it open.
    async fn run(
        &self,
        asked: &[Step],
        answered: &[Step],
        connection: Option<Connection>,
    ) -> Result<(Response, Option<Connection>), (usize, String)> {
        let post = self.request(asked).map_err(|why| (asked[0].line, why))?;
        let mut connection = match connection {
            Some(connection) => connection,
            None => self.served.connect().await,
        };
        connection.write_what_goes(&post.bytes(self.served.address)).await;
        let Some(response) = connection.response_to(&post).await else {
            return Err((asked[0].line, "the server closed the connection and answered nothing".to_owned()));
        };
        let mut rest = events_of(&response);
        let mut wants_closed = false;
        for step in answered {
            wants_closed |= step.mark == "<" && step.text == "closed";
            self.judge(step, &response, &mut rest)
                .map_err(|why| (step.line, format!("{why}\n  got {} {}", response.status(), shown(&response))))?;
        }
        let line = answered[answered.len() - 1].line;
        if let Some(message) = rest.iter().find(|event| matches!(event, Event::Message(_))) {
            return Err((line, format!("an event that nothing expects: {message:?}")));
        }
        if wants_closed && !connection.is_closed().await {
            return Err((line, "the server does not close the connection".to_owned()));
        }
        let open = (response.keeps_open && !wants_closed).then_some(connection);
        Ok((response, open))
    }

    fn request(&self, steps: &[Step]) -> Result<Post, String> {
        let head = steps.iter().position(|step| step.mark == ">" && step.text.is_empty()).unwrap_or(steps.len());
        let (head, body) = (&steps[..head], steps.get(head + 1..).unwrap_or_default());
        let (target, headers) = head.split_first().ok_or("a request has a first line")?;
        let mut bytes = Vec::new();
        for (index, step) in body.iter().enumerate() {
            if index > 0 {
                bytes.push(b'\n');
            }
            let text = self.words.expand(&step.text)?;
            bytes.extend(if step.mark == ">b" { unescape(&text)? } else { text.into_bytes() });
        }
        let target = self.words.expand(&target.text)?;
        let (target, version) = match target.split_once(" HTTP/") {
            Some((target, version)) => (target, format!("HTTP/{version}")),
            None => (target.as_str(), "HTTP/1.1".to_owned()),
        };
        let post = Post::to(target, bytes).version(&version);
        let post = self.modern.map_or(post.clone(), |revision| post.speaks(revision));
        headers.iter().try_fold(post, |post, step| self.header(post, &step.text))
    }

    fn header(&self, post: Post, line: &str) -> Result<Post, String> {
        let line = self.words.expand(line)?;
        let (beside, line) = line.strip_prefix("+ ").map_or((false, line.as_str()), |line| (true, line));
        if let Some(name) = line.strip_prefix('-') {
            return Ok(post.never(name));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| format!("`{line}` is no header"))?;
        let value = unescape(value.strip_prefix(' ').unwrap_or(value))?;
        Ok(if beside { post.add(name, value) } else { post.header(name, value) })
    }

    fn judge(&self, step: &Step, response: &Response, rest: &mut Vec<Event>) -> Result<(), String> {
        let text = self.words.expand(&step.text)?;
        match step.mark.as_str() {
            "<" if text == "closed" => Ok(()),
            "<" if text == "empty" => expect(response.body.is_empty(), "a body where none is expected"),
            "<" if text.starts_with(['{', '[']) => self.judge_json(&text, response),
            "<" if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                expect(response.status().to_string() == text, &format!("expected the status {text}"))
            }
            "<" => judge_header(&text, response),
            "<e" => self.judge_event(&text, response, rest),
            "<k" => {
                let is_comment = |event: &Event| *event == Event::Comment("keep-alive".to_owned());
                expect(events_of(response).iter().any(is_comment), "no keep-alive came")
            }
            "<=" => expect(response.text().contains(&text), &format!("the body does not contain {text}")),
            "<!" => expect(!response.text().contains(&text), &format!("the body contains {text}")),
            other => Err(format!("`{other}` is no step of a conversation in HTTP")),
        }
    }

    fn judge_json(&self, expected: &str, response: &Response) -> Result<(), String> {
        let kind = response.head.header("content-type");
        expect(kind == Some("application/json"), &format!("JSON is not of the type {kind:?}"))?;
        self.judge_message(expected, &response.body)
    }

    fn judge_event(&self, expected: &str, response: &Response, rest: &mut Vec<Event>) -> Result<(), String> {
        let kind = response.head.header("content-type");
        expect(response.is_stream(), &format!("a stream is not of the type {kind:?}"))?;
        expect(response.head.header("cache-control") == Some("no-cache"), "a cache may keep the stream")?;
        let next = rest.iter().position(|event| matches!(event, Event::Message(_)));
        let Event::Message(data) = rest.remove(next.ok_or("the stream ended before this event")?) else {
            return Err("a comment".to_owned());
        };
        self.judge_message(expected, data.as_bytes())
    }

    fn judge_message(&self, expected: &str, message: &[u8]) -> Result<(), String> {
        let expected: Value = serde_json::from_str(expected).map_err(|error| format!("{error}: {expected}"))?;
        let era = self.modern.map(mcp_core::Revision::era);
        let message = well_formed(message, Shape::OneOrBatch, era)?;
        mismatch(&expected, &message).map_or(Ok(()), |why| Err(why.to_string()))
    }
}

fn judge_header(text: &str, response: &Response) -> Result<(), String> {
    if let Some(name) = text.strip_prefix('-') {
        return expect(response.head.header(name).is_none(), &format!("there is a header {name}"));
    }
    let (name, value) = text.split_once(": ").ok_or_else(|| format!("`{text}` is no header"))?;
    let actual = response.head.header(name).ok_or_else(|| format!("there is no header {name}"))?;
    let fits = match value.strip_prefix('~') {
        Some(part) => actual.contains(part),
        None => actual == value,
    };
    expect(fits, &format!("expected {text}, got {actual}"))
}

fn events_of(response: &Response) -> Vec<Event> {
    if response.is_stream() { events(response.text()) } else { Vec::new() }
}

fn shown(response: &Response) -> String {
    String::from_utf8_lossy(&response.body).chars().take(500).collect()
}

fn expect(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// A test for each file.
macro_rules! files {
    ($($file:ident)*) => {
        $(#[test]
        fn $file() {
            run_file(include_str!(concat!("../cases/", stringify!($file), ".txt")));
        })*
    };
}

files! { http http_modern http_accept http_guards http_sessions }

/// The runner itself must see what is wrong.
mod runner {
    use super::*;

    fn failure(text: &str) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let case = &parse(text).unwrap()[0];
        let variant = &case.variants().unwrap()[0];
        runtime.block_on(run(case, variant)).unwrap_err()
    }

    #[test]
    fn it_fails_where_the_server_does_something_else() {
        const PING: &str = "> POST /mcp\n>\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        for (steps, why) in [
            ("< 202", "line 5: expected the status 202"),
            ("< 200\n< {\"id\":2}", "line 6: id: expected"),
            ("< 200\n< Allow: POST", "line 6: there is no header Allow"),
            ("< 200\n< Content-Type: text/plain", "line 6: expected Content-Type"),
            ("< 200\n< -Content-Type", "line 6: there is a header"),
            ("< 200\n<e {}", "line 6: a stream is not of the type"),
            ("< 200\n< empty", "line 6: a body where none"),
            ("< 200\n<k", "line 6: no keep-alive"),
            ("< 200\n<! jsonrpc", "line 6: the body contains"),
            ("< 200\n<= error", "line 6: the body does not contain"),
            ("", "line 2: a request and what is answered"),
        ] {
            let error = failure(&format!("== A\n{PING}\n{steps}"));
            assert!(error.starts_with(why), "{steps}: {error}");
        }
        let stream =
            "== A\n> POST /mcp\n> Accept: text/event-stream\n>\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        for (steps, why) in [
            ("< 200", "line 6: an event that nothing expects"),
            ("<e {\"id\":1}\n<e {}", "line 7: the stream ended before"),
            ("<e {\"id\":2}", "line 6: id: expected"),
            ("< {\"id\":1}", "line 6: JSON is not of the type"),
        ] {
            let error = failure(&format!("{stream}\n{steps}"));
            assert!(error.starts_with(why), "{steps}: {error}");
        }
    }
}
