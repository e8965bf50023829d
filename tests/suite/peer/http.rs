//! A peer over HTTP/1.1, written by hand down to the bytes: servers in the wild do what no HTTP library would.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The method of HTTP.
    pub(crate) verb: String,
    /// The path.
    pub(crate) path: String,
    /// The headers in order, their names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body as JSON; null where it is none.
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) text: String,
    /// When it was there.
    pub(crate) at: Instant,
    /// Which of the connections it came on, counted from 0.
    pub(crate) connection: usize,
}

impl Request {
    /// The one header of that name.
    ///
    /// # Panics
    /// When it is there more than once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(seen, _)| *seen == name.to_ascii_lowercase());
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} is there twice");
        value
    }

    /// The method of JSON-RPC; empty where there is none.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What a request is answered with.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<Piece>,
    /// Whether the length is told; if not, the body comes in chunks.
    sized: bool,
    cut: Cut,
    end: End,
    wait: Duration,
    hook: Option<Hook>,
    /// Where the answer comes from, where it is not known yet.
    later: Option<Later>,
}

/// An answer that somebody else gives.
type Later = Arc<Mutex<Option<oneshot::Receiver<Answer>>>>;

/// What is run right before an answer is written.
#[derive(Clone)]
struct Hook(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

#[derive(Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// What comes out of there, until it ends.
    From(Source),
}

type Source = Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Vec<u8>>>>;

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(200)])),
            Self::Pause(pause) => write!(f, "{pause:?}"),
            Self::From(_) => f.write_str("what is still to come"),
        }
    }
}

/// Where a body is cut into chunks; each is read by itself at the other side.
#[derive(Debug, Clone)]
enum Cut {
    Nowhere,
    At(usize),
    Every(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// In order.
    Finish,
    /// Not at all: the connection stays open and says nothing more.
    Never,
    /// The connection is closed, whatever was promised.
    HangUp,
}

impl Answer {
    /// A body of known length. `$id` in it stands for the request's id, unless it is a string (`"$id"`).
    pub(crate) fn new(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let answer = Self {
            status,
            headers: Vec::new(),
            pieces: vec![Piece::Bytes(body.into())],
            sized: true,
            cut: Cut::Nowhere,
            end: End::Finish,
            wait: Duration::ZERO,
            hook: None,
            later: None,
        };
        if media_type.is_empty() { answer } else { answer.header("content-type", media_type) }
    }

    /// A status and nothing else.
    pub(crate) fn status(status: u16) -> Self {
        Self::new(status, "", "")
    }

    /// JSON as it stands.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// A response with that result.
    pub(crate) fn result(result: Value) -> Self {
        Self::new(200, "application/json", format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{result}}}"#))
    }

    /// A response with that error.
    pub(crate) fn error(status: u16, code: i64, message: &str) -> Self {
        Self::new(
            status,
            "application/json",
            format!(r#"{{"jsonrpc":"2.0","id":$id,"error":{{"code":{code},"message":"{message}"}}}}"#),
        )
    }

    /// A stream of events, as text or bytes.
    pub(crate) fn events(text: impl Into<Vec<u8>>) -> Self {
        let mut answer = Self::new(200, "text/event-stream", text);
        answer.sized = false;
        answer
    }

    /// A stream with one event for each message; the value `"$id"` in them stands for the request's id.
    pub(crate) fn stream(messages: impl IntoIterator<Item = Value>) -> Self {
        let events = messages.into_iter().map(|mut message| {
            message["jsonrpc"] = "2.0".into();
            format!("data: {}\n\n", message.to_string().replace(r#":"$id""#, ":$id"))
        });
        Self::events(events.collect::<String>())
    }

    /// No answer: the connection is closed.
    pub(crate) fn hang_up() -> Self {
        Self { status: 0, end: End::HangUp, ..Self::status(0) }
    }

    /// No answer: the connection stays open.
    pub(crate) fn silence() -> Self {
        Self { status: 0, end: End::Never, ..Self::status(0) }
    }

    /// What comes out of there; no answer, and a connection that stays open, where nothing does.
    pub(crate) fn later(answer: oneshot::Receiver<Self>) -> Self {
        Self { later: Some(Arc::new(Mutex::new(Some(answer)))), ..Self::silence() }
    }

    /// The same with a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same after a while.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The same; `hook` is run right before it is written.
    pub(crate) fn on_writing(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hook = Some(Hook(Arc::new(hook)));
        self
    }

    /// The same, and after a while more of the body.
    pub(crate) fn then(mut self, pause: Duration, more: impl Into<Vec<u8>>) -> Self {
        self.pieces.extend([Piece::Pause(pause), Piece::Bytes(more.into())]);
        self.sized = false;
        self
    }

    /// The same, and then all that comes out of there: the body ends with it.
    pub(crate) fn then_from(mut self, source: Source) -> Self {
        self.pieces.push(Piece::From(source));
        self.sized = false;
        self
    }

    /// The same in two chunks.
    pub(crate) fn cut_at(mut self, at: usize) -> Self {
        (self.cut, self.sized) = (Cut::At(at), false);
        self
    }

    /// The same in chunks of so many bytes.
    pub(crate) fn cut_every(mut self, bytes: usize) -> Self {
        (self.cut, self.sized) = (Cut::Every(bytes), false);
        self
    }

    /// The same, but the body never ends.
    pub(crate) fn without_end(mut self) -> Self {
        (self.end, self.sized) = (End::Never, false);
        self
    }

    /// The same, but the connection is closed before the body's end.
    pub(crate) fn broken_off(mut self) -> Self {
        (self.end, self.sized) = (End::HangUp, false);
        self
    }
}

/// What answers requests.
type Rule = dyn Fn(&Request) -> Answer + Send + Sync;

/// An HTTP server that lives as long as this.
pub(crate) struct HttpPeer {
    address: SocketAddr,
    log: Arc<Log>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    requests: Mutex<Vec<Request>>,
    /// Which requests the client gave up: it closed the connection before the answer's end.
    given_up: Mutex<Vec<Request>>,
    changed: Notify,
}

impl HttpPeer {
    /// A server that answers by rule.
    pub(crate) async fn start(rule: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, log) = (listener.local_addr().unwrap(), Arc::<Log>::default());
        let accepting = tokio::spawn(accept(listener, log.clone(), Arc::new(rule)));
        Self { address, log, accepting }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where the MCP endpoint would be.
    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin())
    }

    /// What came so far, but for GETs: that of a client that listens comes when it comes.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.requests.lock().unwrap().iter().filter(|request| request.verb != "GET").cloned().collect()
    }

    /// The GETs that came so far.
    pub(crate) fn gets(&self) -> Vec<Request> {
        self.log.requests.lock().unwrap().iter().filter(|request| request.verb == "GET").cloned().collect()
    }

    /// The methods of JSON-RPC that came, and `DELETE` and its like for what is no POST.
    pub(crate) fn methods(&self) -> Vec<String> {
        let name = |r: &Request| if r.verb == "POST" { r.method().to_owned() } else { r.verb.clone() };
        self.requests().iter().map(name).collect()
    }

    /// Waits until the requests are like that.
    ///
    /// # Panics
    /// When they are not within 10 s.
    pub(crate) async fn until(&self, what: &str, reached: impl Fn(&[Request]) -> bool) {
        self.wait(what, |log| reached(&log.requests.lock().unwrap())).await;
    }

    /// Waits until the client gave up a request of that method.
    ///
    /// # Panics
    /// When it does not within 10 s.
    pub(crate) async fn given_up(&self, method: &str) {
        let is_given_up = |log: &Log| log.given_up.lock().unwrap().iter().any(|request| request.method() == method);
        self.wait(&format!("{method} is given up"), is_given_up).await;
    }

    /// Waits until the client gave up the request of that id.
    ///
    /// # Panics
    /// When it does not within 10 s.
    pub(crate) async fn given_up_id(&self, id: &Value) {
        let is_given_up = |log: &Log| log.given_up.lock().unwrap().iter().any(|request| request.body["id"] == *id);
        self.wait(&format!("the request {id} is given up"), is_given_up).await;
    }

    /// Waits until the client gave up a GET.
    ///
    /// # Panics
    /// When it does not within 10 s.
    pub(crate) async fn hung_up(&self) {
        self.wait("a GET is given up", |log| log.given_up.lock().unwrap().iter().any(|request| request.verb == "GET"))
            .await;
    }

    async fn wait(&self, what: &str, reached: impl Fn(&Log) -> bool) {
        let wait = async {
            loop {
                let changed = self.log.changed.notified();
                if reached(&self.log) {
                    return;
                }
                changed.await;
            }
        };
        let in_time = timeout(Duration::from_secs(10), wait).await;
        assert!(in_time.is_ok(), "waited in vain until {what}; so far {:?}", self.methods());
    }
}

impl Drop for HttpPeer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Answers `server/discover` as a modern server; the rest is `rule`'s.
pub(crate) fn modern(rule: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> impl Fn(&Request) -> Answer {
    move |request| match request.method() {
        "server/discover" => Answer::result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "peer", "version": "1" } },
        })),
        _ => rule(request),
    }
}

/// Refuses `server/discover` as servers of `revision` do, and shakes hands without a session; other POSTs are `rule`'s, and
/// there is no stream to GET.
pub(crate) fn legacy(
    revision: &'static str,
    rule: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Request) -> Answer {
    listening(revision, move |request| if request.verb == "GET" { Answer::status(405) } else { rule(request) })
}

/// The same, and what is to GET is `rule`'s too.
pub(crate) fn listening(
    revision: &'static str,
    rule: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Request) -> Answer {
    move |request| match request.method() {
        "server/discover" => Answer::new(400, "text/plain", "Bad Request: Server not initialized"),
        "initialize" => Answer::result(json!({
            "protocolVersion": revision, "capabilities": { "tools": {} },
            "serverInfo": { "name": "peer", "version": "1" },
        })),
        "notifications/initialized" => Answer::status(202),
        _ => rule(request),
    }
}

/// The same, with the session `s-1`.
pub(crate) fn with_session(rule: impl Fn(&Request) -> Answer) -> impl Fn(&Request) -> Answer {
    move |request| match request.method() {
        "initialize" => rule(request).header("Mcp-Session-Id", "s-1"),
        _ if request.verb == "DELETE" => Answer::status(204),
        _ => rule(request),
    }
}

async fn accept(listener: TcpListener, log: Arc<Log>, rule: Arc<Rule>) {
    // Dropped with this task, and with them the connections.
    let mut connections = tokio::task::JoinSet::new();
    for number in 0.. {
        let Ok((stream, _)) = listener.accept().await else { return };
        connections.spawn(converse(stream, number, log.clone(), rule.clone()));
    }
}

/// Answers on one connection until either side has had enough.
async fn converse(mut stream: TcpStream, number: usize, log: Arc<Log>, rule: Arc<Rule>) {
    let mut unread = Vec::new();
    while let Some(mut request) = read(&mut stream, &mut unread).await {
        request.connection = number;
        log.requests.lock().unwrap().push(request.clone());
        log.changed.notify_waiters();
        let answer = rule(&request);
        match write(&mut stream, &request, answer).await {
            Outcome::Finished => {}
            Outcome::HungUp => return,
            Outcome::GivenUp => {
                log.given_up.lock().unwrap().push(request);
                return log.changed.notify_waiters();
            }
        }
    }
}

async fn read(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Request> {
    let end_of_head = loop {
        if let Some(at) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        more(stream, unread).await?;
    };
    let head: Vec<u8> = unread.drain(..end_of_head + 4).collect();
    // Header values may be any bytes; each becomes a character.
    let head: String = head.iter().map(|byte| char::from(*byte)).collect();
    let mut lines = head.trim_end().split("\r\n");
    let mut start = lines.next()?.split(' ');
    let (verb, path) = (start.next()?.to_owned(), start.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, length)| length.parse().unwrap());
    while unread.len() < length {
        more(stream, unread).await?;
    }
    let bytes: Vec<u8> = unread.drain(..length).collect();
    let (body, text) =
        (serde_json::from_slice(&bytes).unwrap_or_default(), String::from_utf8_lossy(&bytes).into_owned());
    Some(Request { verb, path, headers, body, text, at: Instant::now(), connection: 0 })
}

async fn more(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(unread).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

enum Outcome {
    Finished,
    HungUp,
    GivenUp,
}

async fn write(stream: &mut TcpStream, request: &Request, mut answer: Answer) -> Outcome {
    let later = answer.later.take().and_then(|later| later.lock().unwrap().take());
    if let Some(later) = later {
        answer = tokio::select! {
            answer = later => answer.unwrap_or_else(|_| Answer::silence()),
            _ = idle(stream, Duration::from_secs(600)) => return Outcome::GivenUp,
        };
    }
    if !idle(stream, answer.wait).await {
        return Outcome::GivenUp;
    }
    if let Some(Hook(hook)) = &answer.hook {
        hook();
    }
    if answer.status != 0 && !speak(stream, request, &answer).await {
        return Outcome::GivenUp;
    }
    match answer.end {
        End::Finish => Outcome::Finished,
        End::HangUp => Outcome::HungUp,
        End::Never if idle(stream, Duration::from_secs(600)).await => Outcome::HungUp,
        End::Never => Outcome::GivenUp,
    }
}

/// Lets time pass; false if the client closed the connection meanwhile.
async fn idle(stream: &TcpStream, duration: Duration) -> bool {
    let gone = async {
        // Nothing is sent on a connection that waits for an answer, but its end.
        while !matches!(stream.peek(&mut [0]).await, Ok(0) | Err(_)) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(duration, gone).await.is_err()
}

/// Writes the answer as far as it goes; false if the client closed the connection meanwhile.
async fn speak(stream: &mut TcpStream, request: &Request, answer: &Answer) -> bool {
    let id = request.body["id"].to_string();
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let bodiless = matches!(answer.status, 204 | 304);
    match &answer.pieces[..] {
        _ if bodiless => head += "\r\n",
        [Piece::Bytes(body)] if answer.sized => {
            let body = fill_in(body, &id);
            head += &format!("content-length: {}\r\n\r\n", body.len());
            return stream.write_all(&[head.as_bytes(), &body].concat()).await.is_ok();
        }
        _ => head += "transfer-encoding: chunked\r\n\r\n",
    }
    if stream.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    for piece in answer.pieces.iter().filter(|_| !bodiless) {
        let written = match piece {
            Piece::Pause(pause) => idle(stream, *pause).await,
            Piece::Bytes(bytes) => stream.write_all(&chunks(&fill_in(bytes, &id), &answer.cut)).await.is_ok(),
            Piece::From(source) => pass_on(stream, source).await,
        };
        if !written {
            return false;
        }
    }
    bodiless || answer.end != End::Finish || stream.write_all(b"0\r\n\r\n").await.is_ok()
}

/// False if the client closed the connection meanwhile.
async fn pass_on(stream: &mut TcpStream, source: &Source) -> bool {
    let mut source = source.lock().await;
    loop {
        let bytes = tokio::select! {
            bytes = source.recv() => bytes,
            _ = idle(stream, Duration::from_secs(600)) => return false,
        };
        let Some(bytes) = bytes else { return true };
        if stream.write_all(&chunks(&bytes, &Cut::Nowhere)).await.is_err() {
            return false;
        }
    }
}

fn fill_in(body: &[u8], id: &str) -> Vec<u8> {
    const MARK: &[u8] = b"$id";
    let (mut filled, mut rest) = (Vec::with_capacity(body.len()), body);
    while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
        let is_string = at > 0 && rest[at - 1] == b'"';
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(if is_string { MARK } else { id.as_bytes() });
        rest = &rest[at + MARK.len()..];
    }
    filled.extend_from_slice(rest);
    filled
}

fn chunks(bytes: &[u8], cut: &Cut) -> Vec<u8> {
    let parts: Vec<&[u8]> = match cut {
        Cut::Nowhere => vec![bytes],
        Cut::At(at) => vec![&bytes[..*at], &bytes[*at..]],
        Cut::Every(size) => bytes.chunks(*size).collect(),
    };
    // An empty chunk would be the last one.
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.flat_map(|part| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat()).collect()
}
