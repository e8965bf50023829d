use super::*;

/// What an event is, as text: type, data, id.
type Told = (String, String, Option<String>);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The events of a stream that is nowhere too long, and what it says about coming back.
fn events_of(chunks: &[&[u8]]) -> (Vec<Told>, Option<Duration>) {
    let (mut decoder, mut events) = (EventDecoder::new(4096), Vec::new());
    for chunk in chunks {
        decoder.feed(chunk);
        while let Some(event) = decoder.next_event() {
            let event = event.unwrap();
            events.push((text(&event.kind), text(&event.data), event.id.map(|id| text(&id))));
        }
    }
    (events, decoder.retry())
}

fn messages(chunks: &[&[u8]]) -> Vec<Result<String, TooLong>> {
    let (mut decoder, mut messages) = (EventDecoder::new(32), Vec::new());
    for chunk in chunks {
        decoder.feed(chunk);
        while let Some(event) = decoder.next_event() {
            match event {
                Ok(event) if event.is_message() => messages.push(Ok(text(&event.data))),
                Ok(_) => {}
                Err(error) => {
                    messages.push(Err(error));
                    return messages;
                }
            }
        }
    }
    messages
}

fn whole(stream: &str) -> Vec<Result<String, TooLong>> {
    messages(&[stream.as_bytes()])
}

#[test]
fn lines_end_as_they_like_wherever_they_are_cut() {
    let stream = "\u{feff}event: message\r\ndata: {\"a\":\r\ndata: \"\u{4f60}\"}\r\n\r\n: note\rdata:x\n\r";
    let expected = vec![Ok("{\"a\":\n\"\u{4f60}\"}".to_owned()), Ok("x".to_owned())];
    for end in ["\r\n", "\n", "\r"] {
        let stream = stream.replace("\r\n", end);
        assert_eq!(whole(&stream), expected, "{end:?}");
        for cut in 1..stream.len() {
            let (left, right) = stream.as_bytes().split_at(cut);
            assert_eq!(messages(&[left, right]), expected, "{end:?} {cut}");
        }
    }
}

#[test]
fn what_is_no_message() {
    for stream in ["id: 1\nretry: 5\ndata:\n\n", "event: ping\ndata: x\n\n", ": note\n\n", "data: unfinished\n", "data"]
    {
        assert_eq!(whole(stream), [], "{stream:?}");
    }
    assert_eq!(whole("event: ping\ndata: x\n\ndata: y\n\n"), [Ok("y".to_owned())]);
}

#[test]
fn an_id_is_of_the_event_that_names_it() {
    let ids = |stream: &str| -> Vec<Option<String>> {
        events_of(&[stream.as_bytes()]).0.into_iter().map(|event| event.2).collect()
    };
    let some = |id: &str| Some(id.to_owned());
    assert_eq!(ids("id: 1\ndata:\n\ndata: x\n\nid:2\n\nid\ndata: x\n\n"), [some("1"), None, some("2"), some("")]);
    assert_eq!(ids("id: a\0b\ndata: x\n\nid: a: b\n\n"), [None, some("a: b")], "an id with NUL is none");
    assert_eq!(ids("id: 1\nid: 2\ndata: x\n\nid: 3\n"), [some("2")], "what is unfinished has no id");
    let long = "x".repeat(MAX_EVENT_ID);
    let stream = format!("id: {long}\ndata: x\n\nid: {long}x\ndata: x\n\n");
    assert_eq!(ids(&stream), [some(&long), None], "a long id is none");
}

#[test]
fn retry_is_digits_alone() {
    let retry = |stream: &str| events_of(&[stream.as_bytes()]).1;
    assert_eq!(retry("retry: 1500\n"), Some(Duration::from_millis(1500)));
    assert_eq!(retry("retry:0\n\n"), Some(Duration::ZERO));
    for bad in ["retry: -1", "retry: 1.5", "retry: 1s", "retry:  5", "retry:", "retry", "retry: ١"] {
        assert_eq!(retry(&format!("{bad}\n\n")), None, "{bad}");
        assert_eq!(retry(&format!("retry: 7\n{bad}\n\n")), Some(Duration::from_millis(7)), "{bad}");
    }
    for long in ["3600001", "18446744073709551616", "99999999999999999999999999"] {
        assert_eq!(retry(&format!("retry: {long}\n")), Some(MAX_RETRY), "{long}");
    }
}

#[test]
fn the_cap_at_its_edge() {
    let data = |len: usize| format!("data: {}\n\n", "x".repeat(len));
    assert_eq!(whole(&data(32)), [Ok("x".repeat(32))]);
    assert_eq!(whole(&data(33)), [Err(TooLong(32))]);
    assert_eq!(whole(&format!("data: {}\n{}", "x".repeat(16), data(16))), [Err(TooLong(32))]);
    assert_eq!(whole(&"x".repeat(100)), [Err(TooLong(32))]);
    assert_eq!(whole(&": keep-alive\n\n".repeat(100)), []);
}

/// The standard's algorithm, on a text that is all there.
fn read_at_once(stream: &str) -> (Vec<Told>, Option<Duration>) {
    let text = stream.strip_prefix('\u{feff}').unwrap_or(stream).replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut wait) = (Vec::new(), None);
    let (mut kind, mut data, mut id) = (String::new(), String::new(), None);
    // What is behind the last line end is no line.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() => {
                let event = (std::mem::take(&mut kind), std::mem::take(&mut data), id.take());
                let data = event.1.strip_suffix('\n').unwrap_or_default().to_owned();
                if !data.is_empty() || event.2.is_some() {
                    events.push((event.0, data, event.2));
                }
            }
            "data" => data = data + value + "\n",
            "event" => kind = value.to_owned(),
            "id" if !value.contains('\0') => id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                wait = Some(Duration::from_millis(value.parse().unwrap()).min(MAX_RETRY));
            }
            _ => {}
        }
    }
    (events, wait)
}

/// Streams made of what streams are made of, in any order, cut at every byte, into two and into single bytes.
#[test]
fn any_stream_cut_at_every_byte_is_what_it_is_at_once() {
    const PARTS: &[&str] = &[
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "\r\r",
        "\r\n\r\n",
        "\u{feff}",
        ":",
        " ",
        "data",
        "data:",
        "data: ",
        "data: x",
        "id",
        "id: ",
        "id: 7",
        "id:a\0b",
        "event: ping",
        "event: message",
        "retry: 10",
        "retry: x",
        ": note",
        "\u{1f600}",
        "x",
    ];
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..400 {
        let mut stream = if round % 3 == 0 { "\u{feff}".to_owned() } else { String::new() };
        for _ in 0..12 {
            // Marsaglia's xorshift: the same streams in every run.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            stream += PARTS[(random % PARTS.len() as u64) as usize];
        }
        let (expected, wait) = read_at_once(&stream);
        let bytes = stream.as_bytes();
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(events_of(&[left, right]), (expected.clone(), wait), "{stream:?} cut at {cut}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(events_of(&single), (expected, wait), "{stream:?} in single bytes");
    }
}

#[test]
fn fuzz_seeds() {
    for seed in 0..=255u8 {
        let stream = b"\xef\xbb\xbfid:1\rretry: 9\rdata:a\r\ndata: b\r\rdata:cccccccccccccccc\n\nevent:x\ndata:y\n\n";
        fuzz(&[&[seed], stream.as_slice()].concat());
    }
}
