//! What a server asks its client while it answers: the user, the model, the directories. A legacy server asks in requests
//! of its own, a modern one with the answer to a request, which is then made again.
//!
//! Specification: *Elicitation; Sampling; Roots; Multi Round-Trip Requests*.

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use mcp_jsonrpc::{ByteString, ErrorObject, Raw, code};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Blame, BoxFuture, Era, Error, ErrorKind, Limits, Revision,
    client::visits::Visits,
    contained::Contained,
    mcp_code,
    method::question,
    shown::misfit,
    types::{
        ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitMode, ElicitParams,
        ElicitResult, Root, WrittenSampling,
    },
    validate,
};

type Handler<P, R> = Arc<dyn Fn(P) -> BoxFuture<'static, Result<R, Error>> + Send + Sync>;

/// Who answers what a server asks. What nobody answers is not offered.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(super) form: Option<Handler<ElicitParams, ElicitResult>>,
    pub(super) url: Option<Handler<ElicitParams, ElicitResult>>,
    pub(super) sample: Option<Handler<CreateMessageParams, CreateMessageResult>>,
    pub(super) samples_tools: bool,
    pub(super) roots: Option<Handler<(), Vec<Root>>>,
    /// Questions are whoever's the call is that they are about, so that anything may be asked.
    pub(super) passes: bool,
    pub(super) visits: Arc<Visits>,
    /// The extensions of the protocol that the application has, and their settings.
    pub(super) extensions: BTreeMap<String, Raw>,
}

/// A handler with its type erased.
pub(super) fn handler<P, R, F, Fut>(handle: F) -> Option<Handler<P, R>>
where
    F: Fn(P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Error>> + Send + 'static,
{
    Some(Arc::new(move |params| Box::pin(handle(params))))
}

impl Handlers {
    /// What follows from the handlers that there are.
    pub(crate) fn capabilities(&self, era: Era) -> ClientCapabilities {
        let object = |text: String| Some(Raw::assume_valid(text.into()));
        let passes = self.passes;
        let modes: Vec<_> = [("form", passes || self.form.is_some()), ("url", passes || self.url.is_some())]
            .into_iter()
            .filter(|(_, is_there)| *is_there)
            .map(|(mode, _)| format!(r#""{mode}":{{}}"#))
            .collect();
        // A modern server is told the roots in each call that asks for them.
        let roots = if era == Era::Legacy { r#"{"listChanged":true}"# } else { "{}" };
        let sampling = if passes || self.samples_tools { r#"{"tools":{}}"# } else { "{}" };
        ClientCapabilities {
            roots: object(roots.into()).filter(|_| passes || self.roots.is_some()),
            sampling: object(sampling.into()).filter(|_| passes || self.sample.is_some()),
            elicitation: (!modes.is_empty()).then(|| format!("{{{}}}", modes.join(","))).and_then(object),
            extensions: if era == Era::Modern { self.extensions.clone() } else { BTreeMap::new() },
            ..ClientCapabilities::default()
        }
    }

    /// The answer to one question.
    pub(crate) async fn answer(&self, method: &str, params: Option<&Raw>, revision: Revision) -> Result<Raw, Error> {
        let answering = pin!(self.ask(method, params, revision));
        Contained(answering).await.unwrap_or_else(|_| {
            let message = format!("the handler of `{method}` panicked");
            Err(Error::new(ErrorKind::HandlerFailed, message).blaming(Blame::Local))
        })
    }

    async fn ask(&self, method: &str, params: Option<&Raw>, revision: Revision) -> Result<Raw, Error> {
        match (method, &self.sample, &self.roots) {
            (question::ELICIT, ..) => self.elicit(read(method, params)?).await,
            (question::CREATE_MESSAGE, Some(sample), _) => {
                let params: CreateMessageParams = read(method, params)?;
                if params.tools.is_some() && !self.samples_tools {
                    return Err(refused("this client's model calls no tools"));
                }
                write(&WrittenSampling(&sample(params).await?, revision))
            }
            (question::LIST_ROOTS, _, Some(roots)) => {
                #[derive(Serialize)]
                struct Listed {
                    roots: Vec<Root>,
                }
                write(&Listed { roots: roots(()).await? })
            }
            _ => Err(not_offered(method)),
        }
    }

    async fn elicit(&self, params: ElicitParams) -> Result<Raw, Error> {
        let is_form = params.mode != Some(ElicitMode::Url);
        let handler = match (if is_form { &self.form } else { &self.url }, &self.form, &self.url) {
            (Some(handler), ..) => handler,
            (None, None, None) => return Err(not_offered(question::ELICIT)),
            _ => return Err(refused("this client's user cannot be asked in that mode")),
        };
        let schema = params.requested_schema.clone().filter(|_| is_form);
        let visit = params.elicitation_id.clone().filter(|_| !is_form);
        let mut result = handler(params).await?;
        if let (ElicitAction::Accept, Some(id)) = (result.action, visit) {
            self.visits.begin(id);
        }
        if let (ElicitAction::Accept, Some(schema)) = (result.action, schema) {
            let content = with_defaults(result.content.take(), &schema);
            if !validate::fits(&schema, &content) {
                let message = "the answer to a form does not have the schema that was asked for";
                return Err(Error::new(ErrorKind::HandlerFailed, message).blaming(Blame::Local));
            }
            result.content = Some(content);
        }
        write(&result)
    }
}

/// The pages that the user has to visit before a call can be made, where a legacy server says so.
///
/// Specification: *2025-11-25, Elicitation, URL Elicitation Required Error*.
pub(super) fn visits_required(error: &Error) -> Option<Vec<Raw>> {
    #[derive(Deserialize)]
    struct Required {
        elicitations: Vec<Raw>,
    }
    let object = error.object().filter(|object| object.code == mcp_code::URL_ELICITATION_REQUIRED)?;
    let required: Required = object.data.as_ref()?.decode().ok()?;
    (!required.elicitations.is_empty()).then_some(required.elicitations)
}

impl Handlers {
    /// Sends the user there, one page after the other, and waits until the server says that all is done; false if the user
    /// does not want to.
    pub(super) async fn visit(&self, pages: Vec<Raw>, revision: Revision) -> Result<bool, Error> {
        #[derive(Deserialize)]
        struct Answered {
            action: ElicitAction,
        }
        let mut ids = Vec::new();
        for page in &pages {
            let params: ElicitParams = read(question::ELICIT, Some(page))?;
            let Some(id) = params.elicitation_id.filter(|_| params.mode == Some(ElicitMode::Url)) else {
                return Ok(false);
            };
            let answer = self.answer(question::ELICIT, Some(page), revision).await?;
            if !answer.decode().is_ok_and(|answered: Answered| answered.action == ElicitAction::Accept) {
                return Ok(false);
            }
            ids.push(id);
        }
        self.visits.until_done(&ids).await;
        Ok(true)
    }
}

fn read<P: DeserializeOwned>(method: &str, params: Option<&Raw>) -> Result<P, Error> {
    let params = params.cloned().unwrap_or(Raw::empty_object());
    params.decode().map_err(|error| {
        let object = ErrorObject::new(code::INVALID_PARAMS, format!("the parameters of `{method}` do not fit"));
        let message = format!("the server's question `{method}` does not have its shape: {}", misfit(&error));
        Error::from_object(object).saying(message)
    })
}

fn write(result: &impl Serialize) -> Result<Raw, Error> {
    Raw::encode(result).map_err(|error| Error::caused(ErrorKind::HandlerFailed, "an answer is no JSON", error))
}

fn not_offered(method: &str) -> Error {
    let object = ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found");
    Error::from_object(object).saying(format!("the server asks `{}`, which was not offered", crate::shown(method)))
}

fn refused(why: &'static str) -> Error {
    Error::from_object(ErrorObject::new(code::INVALID_PARAMS, why))
}

/// Fields that were left out are what the form says they are by default. A default that its own field does not take is none.
///
/// Specification: *2025-11-25, Elicitation, Requested Schema*.
fn with_defaults(content: Option<Raw>, schema: &Raw) -> Raw {
    #[derive(Deserialize)]
    struct Form {
        #[serde(default)]
        properties: BTreeMap<ByteString, Raw>,
    }
    let content = content.unwrap_or(Raw::empty_object());
    let (Ok(form), Ok(mut fields)) = (schema.decode::<Form>(), content.decode::<BTreeMap<ByteString, Raw>>()) else {
        return content;
    };
    let given = fields.len();
    for (name, property) in form.properties {
        if let Some(default) = property.member("default").filter(|default| validate::fits(&property, default)) {
            fields.entry(name).or_insert(default);
        }
    }
    if fields.len() == given { content } else { Raw::encode(&fields).unwrap_or(content) }
}

/// What a modern server wants to know before it goes on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputRequired {
    #[serde(default)]
    pub(crate) input_requests: Option<BTreeMap<ByteString, InputRequest>>,
    /// What only the server understands, as it came.
    #[serde(default)]
    pub(crate) request_state: Option<Raw>,
}

/// One question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InputRequest {
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) params: Option<Raw>,
}

/// What a request carries that is made again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    pub(crate) responses: Option<Raw>,
    pub(crate) state: Option<Raw>,
}

impl InputRequired {
    /// Has all questions answered, some at once; the first that cannot be ends it.
    pub(crate) async fn answered(
        self,
        handlers: &Handlers,
        revision: Revision,
        limits: &Limits,
    ) -> Result<Input, Error> {
        let Some(questions) = self.input_requests else {
            return Ok(Input { responses: None, state: self.request_state });
        };
        let answers: BTreeMap<ByteString, Raw> = stream::iter(questions)
            .map(|(key, asked)| async move {
                let answer = handlers.answer(&asked.method, asked.params.as_ref(), revision).await?;
                Ok::<_, Error>((key, answer))
            })
            .buffer_unordered(limits.in_flight)
            .try_collect()
            .await?;
        Ok(Input { responses: Some(write(&answers)?), state: self.request_state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text).unwrap()
    }

    fn asking(answer: fn() -> ElicitResult) -> Handlers {
        Handlers { form: handler(move |_| async move { Ok(answer()) }), ..Handlers::default() }
    }

    async fn elicited(handlers: &Handlers, params: &str) -> Result<String, Error> {
        let answer = handlers.answer(question::ELICIT, Some(&raw(params)), Revision::LATEST).await;
        answer.map(|raw| raw.as_str().to_owned())
    }

    #[test]
    fn capabilities_follow_from_the_handlers() {
        let of = |handlers: &Handlers, era| serde_json::to_string(&handlers.capabilities(era)).unwrap();
        assert_eq!(of(&Handlers::default(), Era::Legacy), "{}");
        let mut handlers = asking(ElicitResult::decline);
        assert_eq!(of(&handlers, Era::Modern), r#"{"elicitation":{"form":{}}}"#);
        handlers.url = handlers.form.clone();
        handlers.roots = handler(|()| async { Ok(Vec::new()) });
        handlers.sample = handler(|_| async { Ok(CreateMessageResult::new("m", "x")) });
        assert_eq!(
            of(&handlers, Era::Legacy),
            r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#
        );
        (handlers.samples_tools, handlers.url) = (true, None);
        assert_eq!(of(&handlers, Era::Modern), r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{}}}"#);
    }

    #[tokio::test]
    async fn what_a_form_leaves_out_is_what_it_says_by_default() {
        let form = r#"{"message":"?","requestedSchema":{"type":"object","required":["a"],
            "properties":{"a":{"type":"number","default":1.50},"b":{"type":"string"},"c":{"type":"boolean","default":true}}}}"#;
        let filled = elicited(&asking(|| ElicitResult::accept(()).unwrap()), form).await.unwrap();
        assert_eq!(filled, r#"{"action":"accept","content":{"a":1.50,"c":true}}"#);
        let given = asking(|| ElicitResult::accept(serde_json::json!({"c": false, "a": 2})).unwrap());
        assert_eq!(elicited(&given, form).await.unwrap(), r#"{"action":"accept","content":{"a":2,"c":false}}"#);
        let no = elicited(&asking(ElicitResult::decline), form).await.unwrap();
        assert_eq!(no, r#"{"action":"decline"}"#);
    }

    #[cfg(feature = "validate")]
    #[tokio::test]
    async fn an_answer_that_does_not_fit_its_form_is_the_handlers_fault() {
        let form = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"number"}}}}"#;
        let wrong = asking(|| ElicitResult::accept(serde_json::json!({"a": "x"})).unwrap());
        let error = elicited(&wrong, form).await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::HandlerFailed, Blame::Local));
    }

    #[tokio::test]
    async fn what_nobody_answers_is_refused_in_words() {
        let handlers = asking(ElicitResult::decline);
        let url = elicited(&handlers, r#"{"mode":"url","message":"?","url":"https://x","elicitationId":"1"}"#).await;
        assert_eq!(url.unwrap_err().object().unwrap().code, code::INVALID_PARAMS);
        let odd = elicited(&handlers, r#"{"mode":"telepathy","message":"?"}"#).await;
        assert_eq!(odd.unwrap_err().object().unwrap().code, code::INVALID_PARAMS);
        for method in [question::CREATE_MESSAGE, question::LIST_ROOTS, "ping"] {
            let error = handlers.answer(method, None, Revision::LATEST).await.unwrap_err();
            assert_eq!(error.object().unwrap().code, code::METHOD_NOT_FOUND, "{method}");
        }
    }

    #[tokio::test]
    async fn d01_a_panic_in_a_handler_is_an_error() {
        let handlers = asking(|| panic!("oh"));
        let error = elicited(&handlers, r#"{"message":"?"}"#).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HandlerFailed);
        assert!(!error.to_string().contains("oh"));
    }
}
