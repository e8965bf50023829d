//! One call that goes on to another server. Progress, cancellation and errors pass; so do questions, whichever of the two
//! eras is on either side.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use mcp_jsonrpc::{ByteString, Raw};
use tokio::sync::mpsc;

use super::passing::{Question, Running, Whose};
use crate::{
    Client, Context, Era, Error, ErrorKind, Fault, Revision, ToolError,
    client::{
        CallOptions,
        call::Ask,
        input::{Input, InputRequest, InputRequired},
        result::{self, Answer},
    },
    lock::lock,
    mcp_code,
    method::{Method, question},
    types::{
        ClientCapabilities, ClientCapability, CreateMessageParams, ElicitParams, ListRootsResult, Progress, TASKS,
        WrittenSampling,
    },
};

/// The arguments of a modern call that travel in headers too.
type Mirrored = Vec<(ByteString, ByteString)>;

/// Where progress goes: to whichever round of the call is on.
pub(super) type Listener = Arc<Mutex<Context>>;

/// Makes the call there, for whoever made it here.
pub(super) async fn forward<M>(
    client: &Client,
    context: &Context,
    name: &str,
    params: M::Params,
    mirrored: Mirrored,
) -> Result<M::Result, ToolError>
where
    M: Method + Send + 'static,
    M::Params: Clone + Send + Sync + 'static,
{
    let result = match client.revision().era() {
        Era::Modern => forward_modern::<M>(client, context, Ask::named(&params, name), mirrored).await?,
        Era::Legacy if asks_nobody(&context.client_capabilities()) => {
            let mut options = options(context, &Arc::new(Mutex::new(context.clone())));
            options.whose = Whose::Nobody;
            client.result_of::<M>(Ask::named(&params, name), &mut options).await.map_err(passed)?
        }
        Era::Legacy => forward_legacy::<M>(client, context, name, params).await?,
    };
    result::decode::<M>(&result).map_err(passed)
}

fn asks_nobody(capabilities: &ClientCapabilities) -> bool {
    [&capabilities.elicitation, &capabilities.sampling, &capabilities.roots].into_iter().all(Option::is_none)
}

/// What the caller said about the call, and who hears of its progress.
fn options(context: &Context, listener: &Listener) -> CallOptions {
    let mut options = CallOptions::new();
    let meta = context.meta().and_then(|meta| meta.decode::<BTreeMap<String, Raw>>().ok());
    for (key, value) in meta.into_iter().flatten() {
        options.pass_meta(&key, &value);
    }
    if context.exchange().progress_token().is_some() {
        let listener = listener.clone();
        options = options.on_progress(move |Progress { progress, total, message, .. }| {
            lock(&listener).progress(progress, total, message.unwrap_or_default());
        });
    }
    options
}

/// A modern server asks with its answer. Each of its answers is remembered, so that a call of several rounds here goes
/// through each of its rounds there once.
async fn forward_modern<M: Method>(
    client: &Client,
    context: &Context,
    mut ask: Ask<'_, M::Params>,
    mirrored: Mirrored,
) -> Result<Raw, ToolError> {
    let mut options = options(context, &Arc::new(Mutex::new(context.clone())));
    let mut capabilities = context.client_capabilities();
    // A task there would be none of the caller's, who knows only the tasks of this server.
    capabilities.extensions.remove(TASKS);
    (options.capabilities, options.mirrored) = (Some(Raw::encode(&capabilities)?), mirrored);
    for round in 0..=client.limits().input_rounds {
        let mut complete = None;
        let answering = async || match client.round::<M>(&ask, &mut options).await.map_err(passed)? {
            Answer::InputRequired(asked) => Ok(asked),
            Answer::Task(_) => Err(ToolError::new("The server made a task of a call that may be none")),
            Answer::Complete(result) => {
                // Not to be remembered: nothing comes behind it.
                complete = Some(result);
                Err(ToolError::new("the call is complete"))
            }
        };
        let asked = context.once::<InputRequired, _, _>(&format!("round {round}"), answering).await;
        if let Some(result) = complete {
            return Ok(result);
        }
        ask.input = answered(context, client.revision(), round, asked?).await?;
    }
    Err(ToolError::new("The server wants to know still more"))
}

async fn answered(context: &Context, revision: Revision, round: u32, asked: InputRequired) -> Result<Input, ToolError> {
    let questions = asked.input_requests.into_iter().flatten().map(|(key, question)| async move {
        let answer = pass(context, revision, &format!("{round} {key}"), &question).await?;
        Ok((key, answer))
    });
    let answers: BTreeMap<ByteString, Raw> = join_all(questions).await.into_iter().collect::<Result<_, ToolError>>()?;
    let responses = (!answers.is_empty()).then(|| Raw::encode(&answers)).transpose()?;
    Ok(Input { responses, state: asked.request_state })
}

/// A legacy server asks while it answers. A modern caller is asked with an answer, and comes again; the call goes on
/// meanwhile, and waits for it.
async fn forward_legacy<M>(client: &Client, context: &Context, name: &str, params: M::Params) -> Result<Raw, ToolError>
where
    M: Method + Send + 'static,
    M::Params: Clone + Send + Sync + 'static,
{
    let (passing, patience) = (client.passing(), context.server().limits().request_state_ttl);
    let start = async || {
        let (listener, (asker, questions)) = (Arc::new(Mutex::new(context.clone())), mpsc::unbounded_channel());
        let mut options = options(context, &listener);
        options.whose = Whose::Call(asker);
        let (there, name) = (client.clone(), name.to_owned());
        let call = async move { there.result_of::<M>(Ask::named(&params, &name), &mut options).await };
        passing.begin(Running::new(call, questions, listener), patience, client.limits().waiting)
    };
    let number = context.once::<u64, ToolError, _>("call", start).await?;
    let returns = context.exchange().replay.is_some().then_some(patience);
    let mut held = passing.hold(number, returns);
    let Some(running) = held.as_mut().and_then(|held| held.running()) else {
        return Err(ToolError::new("The call was given up meanwhile"));
    };
    *lock(&running.listener) = context.clone();
    converse(context, client.revision(), running).await.map_err(passed)
}

/// Asks whoever made the call what the server asks, until it answers.
async fn converse(context: &Context, revision: Revision, running: &mut Running) -> Result<Raw, Error> {
    let ask = |number: u64, question: &Question| {
        let (key, asked, withdrawn) = (number.to_string(), question.asked.clone(), question.withdrawn.clone());
        async move {
            let answer = tokio::select! {
                answer = pass(context, revision, &key, &asked) => answer,
                () = withdrawn.cancelled() => Err(ToolError::new("The question was taken back")),
            };
            (number, answer)
        }
    };
    let mut asking: FuturesUnordered<_> = running.open.iter().map(|(number, open)| ask(*number, open)).collect();
    loop {
        tokio::select! {
            biased;
            Some((number, answer)) = asking.next(), if !asking.is_empty() => {
                if let Some(question) = running.open.remove(&number) {
                    question.answer(answer.map_err(refusal));
                }
            }
            Some(question) = running.questions.recv() => {
                running.asked += 1;
                asking.push(ask(running.asked, &question));
                running.open.insert(running.asked, question);
            }
            outcome = &mut running.outcome => {
                return outcome.unwrap_or_else(|_| Err(Error::new(ErrorKind::InternalError, "the call broke off")));
            }
        }
    }
}

/// Asks the caller what the server there asks, in the words of either's revision.
async fn pass(context: &Context, there: Revision, key: &str, asked: &InputRequest) -> Result<Raw, ToolError> {
    let params = asked.params.clone().unwrap_or(Raw::empty_object());
    let answer = match asked.method.as_str() {
        question::ELICIT => Raw::encode(&context.elicit(key, params.decode::<ElicitParams>()?).await?),
        question::CREATE_MESSAGE => {
            let said = context.sample(key, params.decode::<CreateMessageParams>()?).await?;
            Raw::encode(&WrittenSampling(&said, there))
        }
        question::LIST_ROOTS => Raw::encode(&ListRootsResult { roots: context.roots(key).await? }),
        other => return Err(ToolError::new(format!("The server asks `{}`", crate::shown(other)))),
    };
    Ok(answer?)
}

/// What a legacy server is told where its question found no answer.
fn refusal(error: ToolError) -> Error {
    let object = match error.fault() {
        Some(fault) => fault.to_error(Revision::LATEST_LEGACY),
        None => mcp_jsonrpc::ErrorObject::new(mcp_jsonrpc::code::INTERNAL_ERROR, error.message().to_owned()),
    };
    Error::from_object(object)
}

/// What the caller is told of an error there: the error itself, unless it is about how this side speaks to that server.
pub(super) fn passed(error: Error) -> ToolError {
    let Some(object) = error.object() else { return error.into() };
    match object.code {
        mcp_code::HEADER_MISMATCH | mcp_code::UNSUPPORTED_PROTOCOL_VERSION => error.into(),
        mcp_code::RESOURCE_NOT_FOUND => ToolError::not_found(),
        mcp_code::MISSING_CLIENT_CAPABILITY => {
            let data = object.data.as_ref();
            let required = data.and_then(|data| data.member("requiredCapabilities")?.decode().ok());
            let required: ClientCapabilities = required.unwrap_or_default();
            ToolError::faulty(Fault::MissingCapability(ClientCapability::named_in(&required)))
        }
        _ => ToolError::faulty(Fault::Other(object.clone())),
    }
}
