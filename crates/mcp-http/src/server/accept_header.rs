//! What a client takes as the answer to a POST, and whether its body is JSON: the `Accept` and `Content-Type` headers.
//!
//! Specification: *Streamable HTTP, Sending Messages; RFC 9110, 12.5.1*.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

/// How an answer may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// As JSON only. Notifications have no way to go.
    Json,
    /// As an event stream only, be it of one event.
    EventStream,
    /// As either, with nothing against JSON: JSON, unless a notification comes first.
    Either,
    /// As either, but an event stream is preferred: one event even where JSON would do.
    EventStreamFirst,
}

impl Wanted {
    /// Whether an answer without notifications goes as JSON; else it goes as one event.
    pub(crate) fn answers_json(self) -> bool {
        matches!(self, Self::Json | Self::Either)
    }

    /// Whether the answer may become an event stream when a notification comes first.
    pub(crate) fn may_stream(self) -> bool {
        !matches!(self, Self::Json)
    }

    /// The same for a server or a connection that never streams (`streaming(false)`, HTTP/1.0).
    pub(crate) fn json_only(self) -> Result<Self, NotAcceptable> {
        match self {
            Self::Json | Self::Either | Self::EventStreamFirst => Ok(Self::Json),
            Self::EventStream => Err(NotAcceptable),
        }
    }
}

/// The client takes no form that the answer can have: 406.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Accept header allows no form that the answer can have; send 'application/json, text/event-stream'")]
pub(crate) struct NotAcceptable;

/// Reads the `Accept` headers, all of them as one list.
///
/// An event stream must be asked for, by its name or as `text/*`: who sends `*/*` takes anything, but reads JSON. Only
/// where JSON is ruled out does `*/*` stand for an event stream.
pub(crate) fn wanted(headers: &HeaderMap) -> Result<Wanted, NotAcceptable> {
    let mut values = headers.get_all(ACCEPT).iter();
    let Some(first) = values.next() else { return Ok(Wanted::Json) };
    if values.next().is_none()
        && let Some(wanted) = usual(first.as_bytes())
    {
        return Ok(wanted);
    }
    judged(headers.get_all(ACCEPT).iter().map(HeaderValue::as_bytes))
}

fn judged<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Wanted, NotAcceptable> {
    let mut ranges = Ranges::default();
    values.into_iter().for_each(|value| ranges.read(value));
    ranges.judge()
}

/// Whether a `Content-Type` is JSON, whatever its parameters.
pub(crate) fn is_json(content_type: Option<&HeaderValue>) -> bool {
    let Some(value) = content_type else { return false };
    let media_type = value.as_bytes().split(|&b| b == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(JSON.as_bytes())
}

/// What clients send, byte for byte, so that almost no request is parsed.
fn usual(value: &[u8]) -> Option<Wanted> {
    match value {
        b"application/json, text/event-stream"
        | b"application/json,text/event-stream"
        | b"text/event-stream, application/json"
        | b"text/event-stream,application/json" => Some(Wanted::Either),
        b"application/json" | b"*/*" => Some(Wanted::Json),
        b"text/event-stream" => Some(Wanted::EventStream),
        _ => None,
    }
}

/// A weight in thousandths. Zero is a refusal.
type Weight = u16;

/// The ranges that bear on the two forms, each with its weight; the higher one if it is given twice.
#[derive(Debug, Default)]
struct Ranges {
    named: bool,
    json: Option<Weight>,
    event_stream: Option<Weight>,
    application: Option<Weight>,
    text: Option<Weight>,
    any: Option<Weight>,
}

impl Ranges {
    fn read(&mut self, value: &[u8]) {
        for element in split(value, b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty()) {
            // A malformed element still shows that the client asked for something.
            self.named = true;
            let Some((range, weight)) = element_of(element) else { continue };
            let slot = match () {
                () if range.eq_ignore_ascii_case(JSON.as_bytes()) => &mut self.json,
                () if range.eq_ignore_ascii_case(EVENT_STREAM.as_bytes()) => &mut self.event_stream,
                () if range.eq_ignore_ascii_case(b"application/*") => &mut self.application,
                () if range.eq_ignore_ascii_case(b"text/*") => &mut self.text,
                () if range == b"*/*" => &mut self.any,
                () => continue,
            };
            *slot = (*slot).max(Some(weight));
        }
    }

    /// The most specific range decides, whatever the weight of the others.
    fn judge(&self) -> Result<Wanted, NotAcceptable> {
        if !self.named {
            // An empty header asks for as little as an absent one.
            return Ok(Wanted::Json);
        }
        let json = self.json.or(self.application).or(self.any).unwrap_or(0);
        let fallback = if json == 0 { self.any } else { None };
        let event_stream = self.event_stream.or(self.text).or(fallback).unwrap_or(0);
        match (json, event_stream) {
            (0, 0) => Err(NotAcceptable),
            (_, 0) => Ok(Wanted::Json),
            (0, _) => Ok(Wanted::EventStream),
            (json, event_stream) if event_stream > json => Ok(Wanted::EventStreamFirst),
            _ => Ok(Wanted::Either),
        }
    }
}

/// One element of the list: its range and its weight, 1 if it has none. `None` if it is malformed.
fn element_of(element: &[u8]) -> Option<(&[u8], Weight)> {
    let mut parts = split(element, b';').map(<[u8]>::trim_ascii);
    let range = parts.next()?;
    for part in parts {
        let mut sides = part.splitn(2, |&b| b == b'=').map(<[u8]>::trim_ascii);
        if sides.next().is_some_and(|name| name.eq_ignore_ascii_case(b"q")) {
            return Some((range, weight(sides.next()?)?));
        }
    }
    Some((range, 1000))
}

/// `0` or `1` with at most three decimals, and not above 1.
fn weight(text: &[u8]) -> Option<Weight> {
    let (whole, decimals) = match text {
        [whole] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let digit = |b: &u8| b.is_ascii_digit().then(|| Weight::from(b - b'0'));
    let mut weight = digit(whole)?;
    for place in 0..3 {
        weight = weight * 10 + decimals.get(place).map_or(Some(0), digit)?;
    }
    (weight <= 1000).then_some(weight)
}

/// Splits at a separator that stands outside of quoted strings.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |&b| {
        let literal = std::mem::take(&mut escaped);
        match b {
            _ if literal => false,
            b'\\' => {
                escaped = quoted;
                false
            }
            b'"' => {
                quoted = !quoted;
                false
            }
            b => b == separator && !quoted,
        }
    })
}

/// Any bytes are read as something; what is known byte for byte, as what it says; and order means nothing.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    let read = judged([data]);
    assert!(usual(data).is_none_or(|wanted| Ok(wanted) == read));
    let parts: Vec<&[u8]> = split(data, b',').collect();
    assert_eq!(judged(parts.iter().rev().copied()), read);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuzzer_holds_for_what_is_known() {
        for input in ["", "*/*", "application/json, text/event-stream", "text/*;q=0.5,a;b=\"c,d\"", "a;q=2, \"", "\\,"]
        {
            fuzz(input.as_bytes());
        }
    }

    fn wanted_of(values: &[&str]) -> Result<Wanted, NotAcceptable> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        wanted(&headers)
    }

    fn each(values: &[&str], expected: Result<Wanted, NotAcceptable>) {
        for value in values {
            assert_eq!(wanted_of(&[value]), expected, "{value}");
        }
    }

    #[test]
    fn absent_and_empty_headers_are_answered_with_json() {
        assert_eq!(wanted_of(&[]), Ok(Wanted::Json));
        each(&["", " ", ",", " , ,"], Ok(Wanted::Json));
        assert_eq!(wanted_of(&["", ""]), Ok(Wanted::Json));
    }

    #[test]
    fn json_alone_is_answered_with_json() {
        each(
            &[
                "application/json",
                "Application/JSON",
                "application/json;charset=utf-8",
                "application/json; q=0.1",
                "application/*",
                "*/*",
                "*/*;q=0.001",
                "application/json, text/plain, */*",
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                "application/json, text/event-stream;q=0",
                "*/*, text/event-stream;q=0",
                "application/json, text/*;q=0",
            ],
            Ok(Wanted::Json),
        );
    }

    #[test]
    fn an_event_stream_alone_is_answered_with_one_event() {
        each(
            &[
                "text/event-stream",
                "TEXT/Event-Stream",
                "text/*",
                "text/event-stream;q=0.5",
                "text/event-stream, application/json;q=0",
                "text/event-stream, application/json;q=0, */*",
                "text/event-stream, application/*;q=0, */*",
                "text/event-stream, */*;q=0",
                "application/json;q=0, */*;q=0.5",
            ],
            Ok(Wanted::EventStream),
        );
    }

    #[test]
    fn both_on_a_tie_or_json_preferred_is_either() {
        each(
            &[
                "application/json, text/event-stream",
                "application/json,text/event-stream",
                "text/event-stream, application/json",
                "text/event-stream,application/json",
                "Application/Json ,\tText/Event-Stream",
                "application/json, text/event-stream, */*",
                "application/*, text/*",
                "text/event-stream, */*",
                "application/json;q=0.5, text/event-stream;q=0.5",
                "application/json;q=0.5, text/event-stream;q=0.500",
                "application/json, text/event-stream;q=0.9",
                "application/json;q=0.002, text/event-stream;q=0.001",
                "text/event-stream;q=0.1, */*;q=0.2",
            ],
            Ok(Wanted::Either),
        );
    }

    #[test]
    fn a_preferred_event_stream_is_told_apart() {
        each(
            &[
                "application/json;q=0.9, text/event-stream",
                "text/event-stream;q=0.002, application/json;q=0.001",
                "text/event-stream, */*;q=0.1",
                "text/*, application/*;q=0.5",
            ],
            Ok(Wanted::EventStreamFirst),
        );
    }

    #[test]
    fn neither_is_not_acceptable() {
        each(
            &[
                "text/html",
                "application/xml, text/html",
                "application/jsonx",
                "application/json-seq",
                "application/json+x",
                "xapplication/json",
                "text/json",
                "application/json;q=0",
                "application/json;q=0.000",
                "application/json;q=0, text/event-stream;q=0",
                "*/*;q=0",
                "text/html, */*;q=0",
                "application/json;q=0, text/event-stream;q=0, */*",
            ],
            Err(NotAcceptable),
        );
    }

    #[test]
    fn malformed_elements_are_ignored() {
        each(
            &[
                "garbage",
                "json",
                "application",
                "application/",
                "/json",
                "*",
                "*/json",
                "application/json/x",
                "application /json",
                "application/json;q=2",
                "application/json;q=1.001",
                "application/json;q=0.1234",
                "application/json;q=.5",
                "application/json;q=-1",
                "application/json;q=+1",
                "application/json;q=01",
                "application/json;q=1e0",
                "application/json;q=0,5",
                "application/json;q=\"1\"",
                "application/json;q=",
                "application/json;q",
                ";q=1",
                "é",
            ],
            Err(NotAcceptable),
        );
        each(&["garbage, application/json", "application/json;;", "application/json;x;=;y="], Ok(Wanted::Json));
        each(&["application/json;q=x, text/event-stream", "text/event-stream, é/*"], Ok(Wanted::EventStream));
    }

    #[test]
    fn the_most_specific_range_decides() {
        each(
            &[
                "*/*, application/json;q=0.1, text/event-stream;q=0.2",
                "application/*, application/json;q=0.1, text/event-stream;q=0.2",
                "text/event-stream;q=0.2, application/*;q=0.1, */*",
                "text/*;q=0.1, text/event-stream;q=0.9, application/json;q=0.5",
            ],
            Ok(Wanted::EventStreamFirst),
        );
        each(&["*/*;q=0, application/json", "application/*;q=0, application/json"], Ok(Wanted::Json));
    }

    #[test]
    fn a_range_given_twice_has_its_higher_weight() {
        each(&["application/json;q=0.1, application/json;v=2, text/event-stream;q=0.5"], Ok(Wanted::Either));
        each(&["application/json, application/json;q=0"], Ok(Wanted::Json));
    }

    #[test]
    fn parameters_other_than_q_are_ignored() {
        each(
            &[
                "application/json;charset=utf-8;Q=0.5, text/event-stream;q=0.6",
                "application/json ; q=0.5 , text/event-stream ; q=1.",
                "application/json;q=0.5;v=1;q=1, text/event-stream;q=1.000",
                "application/json;p=\"a,text/html;q=1\";q=0.5, text/event-stream",
                "application/json;p=\"\\\",;q=1\";q=0.5, text/event-stream",
                "application/json;p=\\;q=0.5, text/event-stream",
            ],
            Ok(Wanted::EventStreamFirst),
        );
        // An open quote takes the rest of the header with it.
        each(&["application/json;p=\", text/event-stream"], Ok(Wanted::Json));
    }

    #[test]
    fn several_headers_are_one_list() {
        assert_eq!(wanted_of(&["application/json", "text/event-stream"]), Ok(Wanted::Either));
        assert_eq!(wanted_of(&["text/event-stream", "application/json;q=0.5"]), Ok(Wanted::EventStreamFirst));
        assert_eq!(wanted_of(&["application/json", "text/html"]), Ok(Wanted::Json));
        assert_eq!(wanted_of(&["", "text/html"]), Err(NotAcceptable));
        assert_eq!(wanted_of(&["application/json;p=\"", "text/event-stream"]), Ok(Wanted::Either));
    }

    #[test]
    fn what_is_usual_is_what_parsing_says() {
        let values = [
            "application/json",
            "text/event-stream",
            "*/*",
            "application/json, text/event-stream",
            "text/event-stream",
        ]
        .into_iter()
        .chain(["application/json,text/event-stream", "text/event-stream,application/json"])
        .chain(["text/event-stream, application/json"]);
        for value in values {
            let mut ranges = Ranges::default();
            ranges.read(value.as_bytes());
            assert_eq!(usual(value.as_bytes()).ok_or(NotAcceptable), ranges.judge(), "{value}");
        }
    }

    #[test]
    fn the_caller_learns_how_to_answer() {
        for (wanted, answers_json, may_stream, json_only) in [
            (Wanted::Json, true, false, Ok(Wanted::Json)),
            (Wanted::Either, true, true, Ok(Wanted::Json)),
            (Wanted::EventStreamFirst, false, true, Ok(Wanted::Json)),
            (Wanted::EventStream, false, true, Err(NotAcceptable)),
        ] {
            assert_eq!(wanted.answers_json(), answers_json, "{wanted:?}");
            assert_eq!(wanted.may_stream(), may_stream, "{wanted:?}");
            assert_eq!(wanted.json_only(), json_only, "{wanted:?}");
        }
    }

    #[test]
    fn a_content_type_is_json_by_its_media_type_alone() {
        let json = |value: &str| is_json(Some(&HeaderValue::from_bytes(value.as_bytes()).unwrap()));
        for value in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "application/json ;charset=UTF-8",
            " application/json ",
            "application/json;",
        ] {
            assert!(json(value), "{value}");
        }
        for value in [
            "",
            ";",
            "application/jsonx",
            "application/jso",
            "application/json-rpc",
            "application/vnd.api+json",
            "text/json",
            "text/plain;application/json",
            "application/json, text/plain",
            "application/json charset=utf-8",
            "application/*",
            "*/*",
            "é",
        ] {
            assert!(!json(value), "{value}");
        }
        assert!(!is_json(None));
    }
}
