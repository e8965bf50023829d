//! A call within a session: it goes on when its connection is lost, and the client can come back for the answer.

use std::{
    future::{Future, ready},
    pin::pin,
    sync::Arc,
};

use axum::{body::Body, response::Response};
use futures_util::future::{Either, join_all};
use http::StatusCode;
use mcp_core::{
    Arrival, BoxFuture, Exchange, Fault, Reply,
    method::{Method, Ping},
    server::{Answer, CallEvent, CallStream},
};
use mcp_jsonrpc::{Bytes, Malformed, Message, encode};
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit, time::sleep};

use super::{
    Sessions,
    channel::Channel,
    live::{Call, Live, Turn},
    reader::Reader,
};
use crate::server::{accept_header::Wanted, refusal::Refusal, respond, sse};

/// Answers a request. The future does not hold the exchange, which is large.
pub(super) fn call(
    sessions: &Sessions,
    live: &Arc<Live>,
    wanted: Wanted,
    mut exchange: Exchange,
) -> impl Future<Output = Response> {
    let server = &sessions.0.server;
    let stream = wanted.may_stream().then(|| CallStream::new(sessions.limits()));
    if let Some(stream) = &stream {
        match exchange.revision().primes_streams() {
            true => stream.attach_resumable(&mut exchange),
            false => stream.attach(&mut exchange),
        }
    }
    match Run::start(sessions, live, exchange) {
        Ok(run) => Either::Left(respond(run, stream, wanted)),
        Err(busy) => Either::Right(ready(respond::at_once(server, wanted, &busy))),
    }
}

/// Answers the requests of a batch, each of which is a call like any other but cannot stream.
pub(super) async fn batch(
    sessions: &Sessions,
    live: &Arc<Live>,
    arrival: &Arrival<'_>,
    items: Vec<Result<Message, Malformed>>,
) -> Option<Bytes> {
    let server = &sessions.0.server;
    let begin = |item| begin_item(sessions, live, arrival, item).transpose();
    let started: Vec<_> = items.into_iter().filter_map(begin).collect();
    let answers = join_all(started.into_iter().map(async |started| match started {
        Ok(mut run) => run.finish().await,
        Err(reply) => Some(reply),
    }));
    let answers: Vec<_> = answers.await.iter().flatten().map(|reply| server.encode(reply)).collect();
    sessions.renew(live).await;
    (!answers.is_empty()).then(|| encode::batch(&answers))
}

/// Begins a request of a batch, or says why not; there is nothing to answer to other messages.
fn begin_item(
    sessions: &Sessions,
    live: &Arc<Live>,
    arrival: &Arrival<'_>,
    item: Result<Message, Malformed>,
) -> Result<Option<Run>, Reply> {
    let server = &sessions.0.server;
    match server.admit(item, arrival)? {
        Message::Request(request) => Run::start(sessions, live, server.accept(request, arrival.clone())?).map(Some),
        _ => Ok(None),
    }
}

async fn respond(run: Run, stream: Option<CallStream>, wanted: Wanted) -> Response {
    let (sessions, live) = (run.sessions.clone(), run.live.clone());
    let server = &sessions.0.server;
    let mut surviving = Surviving(Some(run));
    let Some(run) = &mut surviving.0 else { return nothing(wanted) };
    let first = run.first(stream.as_ref()).await;
    if let First::Reply(_) = &first {
        // It is answered, and its session begins to be idle.
        surviving.0.take();
        sessions.renew(&live).await;
    }
    let has_said = stream.as_ref().is_some_and(|stream| !stream.is_empty());
    match (first, stream) {
        (First::Reply(reply), Some(stream)) if has_said || !wanted.answers_json() => {
            // What was said before goes out on a stream, and the answer behind it.
            stream_out(&sessions, &live, stream, Either::Left(reply)).await
        }
        (First::Reply(reply), _) => respond::at_once(server, wanted, &reply),
        (First::Event | First::Quiet, Some(stream)) => match surviving.0.take() {
            Some(run) => stream_out(&sessions, &live, stream, Either::Right(run)).await,
            None => nothing(wanted),
        },
        (First::Cancelled | First::Event | First::Quiet, _) => {
            surviving.0.take();
            nothing(wanted)
        }
        (First::Ended, _) => {
            let run = surviving.0.take();
            Refusal::Gone.answer(run.as_ref().map(|run| &run.call.id))
        }
    }
}

/// The call goes on in a task of its own, whoever reads its stream.
async fn stream_out(sessions: &Sessions, live: &Arc<Live>, stream: CallStream, rest: Either<Reply, Run>) -> Response {
    let channel = live.open_for_call(sessions.limits());
    let number = channel.attach();
    let reader = Reader::new(sessions, live, &channel, number).unprimed();
    let (sessions, live) = (sessions.clone(), live.clone());
    tokio::spawn(async move {
        let ended = live.ended.clone();
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            () = pump(&sessions, &live, &channel, stream, rest) => {}
        }
        channel.complete();
        live.close_for_call(&channel);
    });
    sse::response(reader.into_events())
}

/// Sends what the call says, and then its answer.
async fn pump(sessions: &Sessions, live: &Arc<Live>, channel: &Channel, stream: CallStream, rest: Either<Reply, Run>) {
    // Beside the call, which a slow reader does not hold up.
    let mut saying = pin!(async {
        while let Some(event) = stream.next_event().await {
            say(sessions, channel, event).await;
        }
    });
    let reply = match rest {
        Either::Left(reply) => Some(reply),
        Either::Right(mut run) => {
            let reply = tokio::select! {
                biased;
                () = &mut saying => return,
                reply = run.finish() => reply,
            };
            if reply.is_some() {
                sessions.renew(live).await;
            }
            // With a call that was cancelled its questions are taken back, which is still to be said.
            drop(run);
            reply
        }
    };
    stream.close();
    saying.await;
    let Some(reply) = reply else { return };
    let (frame, patience) = (sessions.0.server.encode(&reply), sessions.limits().stall_timeout);
    channel.send(sessions.log(), frame, true, patience).await;
}

async fn say(sessions: &Sessions, channel: &Channel, event: CallEvent) {
    let patience = sessions.limits().stall_timeout;
    match event {
        CallEvent::Frame(frame) => channel.send(sessions.log(), frame, false, patience).await,
        CallEvent::Disconnect => channel.hang_up_gently(patience).await,
        _ => {}
    }
}

/// The answer to a call that was cancelled: none, but HTTP wants one.
fn nothing(wanted: Wanted) -> Response {
    if wanted.may_stream() {
        return sse::response(futures_util::stream::empty());
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// What comes first of a call.
enum First {
    Reply(Reply),
    /// It says something.
    Event,
    /// Nothing, for so long that whatever lies between might give the connection up.
    Quiet,
    Cancelled,
    Ended,
}

/// A call that runs.
struct Run {
    sessions: Sessions,
    live: Arc<Live>,
    answering: Answering,
    call: Call,
}

impl Run {
    /// Begins a call; where too much waits already, the answer is that.
    fn start(sessions: &Sessions, live: &Arc<Live>, exchange: Exchange) -> Result<Self, Reply> {
        let bytes = exchange.params().map_or(0, |params| params.as_bytes().len());
        // Whether the server is alive shows at once, however much it has to do.
        let turn = if exchange.method() == Ping::NAME { Some(Turn::Any) } else { live.turn(bytes, sessions.limits()) };
        let Some(turn) = turn else { return Err(sessions.0.server.refuse(&exchange, Fault::Busy)) };
        let call = live.begin(exchange.id());
        let answering = Answering::start(sessions, live, turn, exchange);
        Ok(Self { sessions: sessions.clone(), live: live.clone(), answering, call })
    }

    async fn first(&mut self, stream: Option<&CallStream>) -> First {
        let said = async {
            match stream {
                Some(stream) => stream.ready().await,
                None => std::future::pending().await,
            }
        };
        let (cancelled, ended) = (self.call.cancelled.clone(), self.live.ended.clone());
        let quiet = self.sessions.limits().keep_alive;
        let may_stream = stream.is_some();
        tokio::select! {
            biased;
            () = ended.cancelled() => First::Ended,
            () = cancelled.cancelled() => First::Cancelled,
            reply = self.held() => First::Reply(reply),
            () = said => First::Event,
            () = sleep(quiet), if may_stream => First::Quiet,
        }
    }

    /// Its answer; none if it is cancelled.
    async fn finish(&mut self) -> Option<Reply> {
        let cancelled = self.call.cancelled.clone();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            reply = self.held() => Some(reply),
        }
    }

    /// Its answer, for which the session is held.
    async fn held(&mut self) -> Reply {
        self.sessions.hold(&self.live, &mut self.answering.answer).await
    }
}

/// The answer in the making, which may have to wait for its turn.
struct Answering {
    answer: Either<Answer, BoxFuture<'static, Reply>>,
    /// Its turn, if it came at once.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Answering {
    fn start(sessions: &Sessions, live: &Arc<Live>, turn: Turn, exchange: Exchange) -> Self {
        let changes = changes_session(exchange.method());
        let turn = match turn {
            Turn::Now(permit) if !changes => {
                return Self { answer: Either::Left(sessions.0.server.call(exchange)), _permit: Some(permit) };
            }
            turn => turn,
        };
        let (sessions, live) = (sessions.clone(), live.clone());
        let answer = async move {
            let _permit = turn.has_come().await;
            let reply = sessions.0.server.call(exchange).await;
            // Before it is answered, and whether or not anybody waits for that.
            if changes {
                sessions.save(&live).await;
            }
            reply
        };
        Self { answer: Either::Right(Box::pin(answer)), _permit: None }
    }
}

/// Whether a method changes what is kept of a session.
fn changes_session(method: &str) -> bool {
    matches!(method, "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe")
}

/// A call whose connection may be lost: the rest of it runs on, for what it does.
struct Surviving(Option<Run>);

impl Drop for Surviving {
    fn drop(&mut self) {
        // Without a runtime there is nothing that it could go on in.
        if let Some(mut run) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                let ended = run.live.ended.clone();
                tokio::select! {
                    biased;
                    () = ended.cancelled() => {}
                    answer = run.finish() => if answer.is_some() {
                        tracing::debug!("the answer to a call was lost with its connection");
                        run.sessions.renew(&run.live).await;
                    }
                }
            });
        }
    }
}
