use std::{collections::VecDeque, fmt, io};

use mcp_core::{
    BoxFuture, Era, Error, FrameSink, FrameSource, Revision, Server, Wire,
    jsonrpc::{Bytes, Frame},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    Failure, message, mismatch,
    patience::{patience, suspicion},
};

/// A client that says what it is told, for a server to be tested with: JSON goes both ways as it is, right or wrong.
///
/// [`say`](Self::say), [`hear`](Self::hear) and what is made of them panic where the server fails; the others tell why
/// in a [`Failure`]. It is waited 30 s for what is expected, and an hour where tokio's time is paused.
///
/// ```
/// use mcp_core::{Server, Tool, ToolError, implementation};
/// use mcp_test::{RawClient, assert_like};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// async fn greet() -> Result<&'static str, ToolError> { Ok("hello") }
/// let server = Server::builder(implementation!()).tool(Tool::new("greet", greet)).build();
///
/// let mut client = RawClient::connect(server.clone());
/// client.say(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
/// assert_like(&json!({ "id": 1, "result": {} }), &client.hear().await);
/// client.end().await.unwrap();
///
/// let mut client = RawClient::modern(server);
/// let answer = client.call("greet", json!({})).await;
/// assert_like(&json!({ "result": { "content": [{ "text": "hello" }] } }), &answer);
/// client.silence().await.unwrap();
/// # });
/// ```
#[must_use = "a client that is dropped has disconnected"]
pub struct RawClient {
    /// None once the input has ended.
    sink: Option<Box<dyn Out>>,
    incoming: UnboundedReceiver<Incoming>,
    /// What came while something else was waited for.
    aside: VecDeque<Incoming>,
    /// None once it was seen to end.
    serving: Option<JoinHandle<Result<(), Error>>>,
    speaks: Option<Revision>,
    requests: u64,
}

/// A message, or what is wrong with what came instead.
type Incoming = Result<Bytes, Failure>;

impl RawClient {
    /// A client of `server` over a pair in memory, which has said nothing yet.
    pub fn connect(server: Server) -> Self {
        let (here, there) = mcp_core::memory();
        Self::over(here, mcp_core::server::serve(server, there))
    }

    /// A client of `server` that speaks the newest revision of the modern era.
    pub fn modern(server: Server) -> Self {
        let mut client = Self::connect(server);
        client.speaks = Some(Revision::LATEST);
        client
    }

    /// A client of `server` that has shaken hands in the newest revision of the legacy era.
    ///
    /// # Panics
    /// When the server does not agree.
    pub async fn legacy(server: Server) -> Self {
        let mut client = Self::connect(server);
        if let Err(why) = client.open(Revision::LATEST_LEGACY).await {
            panic!("{why}");
        }
        client
    }

    /// A client over any wire, at whose other end `serving` is a server, or waits for one that is elsewhere.
    pub fn over<W: Wire>(wire: W, serving: impl Future<Output = Result<(), Error>> + Send + 'static) -> Self {
        let (source, sink) = wire.split();
        let (sender, incoming) = unbounded_channel();
        tokio::spawn(read(source, sender));
        Self {
            sink: Some(Box::new(sink)),
            incoming,
            aside: VecDeque::new(),
            serving: Some(tokio::spawn(serving)),
            speaks: None,
            requests: 0,
        }
    }

    /// Begins to speak a revision: with the handshake in the legacy era, without a word in the modern one, whose
    /// requests say it each.
    ///
    /// # Errors
    /// When the server does not agree to it.
    pub async fn open(&mut self, revision: Revision) -> Result<(), Failure> {
        self.speaks = Some(revision);
        if revision.era() == Era::Modern {
            return Ok(());
        }
        let answer = self.ask("initialize", message::initialize(revision)).await?;
        let agreed = json!({ "result": { "protocolVersion": revision.as_str() } });
        if let Some(why) = mismatch(&agreed, &answer) {
            return Err(Failure::new(format!("{why}: {answer}")).at("at the handshake"));
        }
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await
    }

    /// The revision that [`request`](Self::request) speaks, once one is opened.
    #[must_use]
    pub fn speaks(&self) -> Option<Revision> {
        self.speaks
    }

    /// Sends one message, be it JSON or not.
    ///
    /// # Errors
    /// When the server takes none any more.
    pub async fn send(&mut self, message: impl AsRef<[u8]>) -> Result<(), Failure> {
        let sink = self.sink.as_mut().ok_or("the input has ended already")?;
        let frame = Bytes::copy_from_slice(message.as_ref());
        sink.send(frame).await.map_err(|error| Failure::new(error.to_string()))
    }

    /// The next message, as it came.
    ///
    /// # Errors
    /// When none comes.
    pub async fn next(&mut self) -> Result<Bytes, Failure> {
        match self.aside.pop_front() {
            Some(message) => message,
            None => self.receive().await,
        }
    }

    /// Says a message: text, or a [`Value`].
    ///
    /// # Panics
    /// When the server takes none any more.
    pub async fn say(&mut self, message: impl ToString) {
        if let Err(why) = self.send(message.to_string()).await {
            panic!("the server does not read: {why}");
        }
    }

    /// The next message.
    ///
    /// # Panics
    /// When none comes, or one that is not JSON.
    pub async fn hear(&mut self) -> Value {
        match self.next().await.and_then(|message| read_json(&message)) {
            Ok(message) => message,
            Err(why) => panic!("expected a message: {why}"),
        }
    }

    /// Sends a request as the revision wants it, with `_meta` in the modern era, and returns the response to it. What
    /// comes before the response is there to be [heard](Self::hear) afterwards. Ids count from 1.
    ///
    /// # Panics
    /// When there is no response.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        match self.ask(method, params).await {
            Ok(answer) => answer,
            Err(why) => panic!("expected the answer to {method}: {why}"),
        }
    }

    /// Calls a tool, as [`request`](Self::request) does; what is returned is the response, be it a result or an error.
    ///
    /// # Panics
    /// When there is no response.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        self.requests += 1;
        let id = self.requests;
        self.send(message::request(self.speaks, id, method, params).to_string()).await?;
        loop {
            let came = self.receive().await?;
            let message = read_json(&came)?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
            self.aside.push_back(Ok(came));
        }
    }

    async fn receive(&mut self) -> Incoming {
        let patience = patience();
        match timeout(patience, self.incoming.recv()).await {
            Ok(Some(message)) => message,
            Ok(None) => Err("the server has ended the connection".into()),
            Err(_) => Err(format!("no message in {patience:?}").into()),
        }
    }

    /// What comes until nothing comes any more: for 30 ms, or five minutes where tokio's time is paused.
    ///
    /// # Errors
    /// When something else than a message comes.
    pub async fn rest(&mut self) -> Result<Vec<Bytes>, Failure> {
        let mut messages = self.aside.drain(..).collect::<Result<Vec<_>, _>>()?;
        while let Ok(Some(message)) = timeout(suspicion(), self.incoming.recv()).await {
            messages.push(message?);
        }
        Ok(messages)
    }

    /// Nothing comes: for 30 ms, or for five minutes where tokio's time is paused.
    ///
    /// # Errors
    /// When a message comes, or the server ends the connection.
    pub async fn silence(&mut self) -> Result<(), Failure> {
        if let Some(message) = self.aside.pop_front() {
            return Err(format!("a message that nothing expects: {}", shown(&message)).into());
        }
        match timeout(suspicion(), self.incoming.recv()).await {
            Err(_) => Ok(()),
            Ok(None) => Err("the server has ended the connection".into()),
            Ok(Some(message)) => Err(format!("a message that nothing expects: {}", shown(&message)).into()),
        }
    }

    /// Ends the input: the client says nothing more, and still hears.
    ///
    /// # Errors
    /// When the wire fails.
    pub async fn end_input(&mut self) -> Result<(), Failure> {
        let Some(mut sink) = self.sink.take() else { return Ok(()) };
        sink.close().await.map_err(|error| Failure::new(error.to_string()))
    }

    /// Ends the input, where that is still to be done, and sees the server end in good order, without another word.
    ///
    /// # Errors
    /// When the server says something more, does not end, or fails.
    pub async fn end(&mut self) -> Result<(), Failure> {
        self.end_input().await?;
        let next = match self.aside.pop_front() {
            Some(message) => Ok(Some(message)),
            None => timeout(patience(), self.incoming.recv()).await,
        };
        match next {
            Ok(None) => {}
            Ok(Some(message)) => return Err(format!("a message at the end: {}", shown(&message)).into()),
            Err(_) => return Err("the server does not end its side".into()),
        }
        let Some(serving) = self.serving.take() else { return Ok(()) };
        match timeout(patience(), serving).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => Err(format!("serving failed: {error}").into()),
            Ok(Err(error)) => Err(format!("serving ended badly: {error}").into()),
            Err(_) => Err("the server does not end".into()),
        }
    }
}

async fn read(mut source: impl FrameSource, sender: UnboundedSender<Incoming>) {
    loop {
        let incoming = match source.next().await {
            Ok(Some(Frame::Line(bytes))) => Ok(bytes),
            Ok(Some(other)) => Err(Failure::new(format!("{other:?}"))),
            Ok(None) => return,
            Err(error) => {
                let _ = sender.send(Err(Failure::new(error.to_string())));
                return;
            }
        };
        let _ = sender.send(incoming);
    }
}

fn read_json(message: &Bytes) -> Result<Value, Failure> {
    serde_json::from_slice(message).map_err(|error| format!("{error}: {message:?}").into())
}

fn shown(message: &Incoming) -> String {
    match message {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(why) => why.to_string(),
    }
}

/// A sink of any kind.
trait Out: Send {
    fn send(&mut self, frame: Bytes) -> BoxFuture<'_, io::Result<()>>;
    fn close(&mut self) -> BoxFuture<'_, io::Result<()>>;
}

impl<S: FrameSink> Out for S {
    fn send(&mut self, frame: Bytes) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move { FrameSink::send(self, &mut vec![frame]).await })
    }

    fn close(&mut self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(FrameSink::close(self))
    }
}

impl fmt::Debug for RawClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawClient").field("speaks", &self.speaks).finish_non_exhaustive()
    }
}
