//! Methods that an extension adds, and what both sides make of one that the other lacks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_core::{
    Client, Context, Era, ErrorKind, Fault, Limits, Server, Tool, ToolError, implementation,
    jsonrpc::Raw,
    method::Method,
    types::{ClientCapability, ElicitParams, ElicitResult},
};
use mcp_test::RawClient;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const GREETINGS: &str = "com.example/greetings";

#[derive(Serialize, Deserialize)]
struct Name {
    name: String,
}

#[derive(Serialize, Deserialize)]
struct Greeting {
    text: String,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    meta: Option<Raw>,
    #[serde(rename = "resultType", default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

macro_rules! methods {
    ($($kind:ident = $name:literal, $eras:expr, $params:ty, $asks:expr;)*) => {
        $(
            struct $kind;

            impl Method for $kind {
                const NAME: &'static str = $name;
                const ERAS: &'static [Era] = $eras;
                const MAY_ASK: bool = $asks;
                type Params = $params;
                type Result = Greeting;
            }
        )*
    };
}

methods! {
    Greet = "greetings/greet", &[Era::Legacy, Era::Modern], Name, false;
    Ask = "greetings/ask", &[Era::Modern], Value, true;
    Fail = "greetings/fail", &[Era::Modern], Name, false;
    Core = "tools/call", &[Era::Modern], Value, false;
}

fn said(text: impl Into<String>) -> Result<Greeting, Fault> {
    Ok(Greeting { text: text.into(), meta: None, kind: None })
}

async fn greet(_: Context, Name { name }: Name) -> Result<Greeting, Fault> {
    let meta = Some(Raw::parse(r#"{"mood":"good"}"#).unwrap());
    Ok(Greeting { text: format!("Hello, {name}"), meta, kind: Some("of its own".into()) })
}

async fn ask(context: Context, _: Value) -> Result<Greeting, Fault> {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let form = ElicitParams::form("Who?", Raw::encode(&schema).unwrap());
    let answer: Value = context.elicit("who", form).await?.content.unwrap().decode().unwrap();
    said(format!("Hello, {}", answer["name"].as_str().unwrap()))
}

async fn fail(_: Context, Name { name }: Name) -> Result<Greeting, Fault> {
    match name.as_str() {
        "panic" => panic!("a secret"),
        "fault" => Err(Fault::InvalidParams("nobody is called that".into())),
        "failure" => Err(ToolError::new("out of words").into()),
        _ => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            said("late")
        }
    }
}

async fn needs(context: Context) -> Result<String, ToolError> {
    Ok(context.require_client_extension(GREETINGS)?.as_str().to_owned())
}

async fn falls_back(context: Context) -> Result<String, ToolError> {
    Ok(context.client_extension(GREETINGS).map_or("without".into(), |settings| settings.as_str().to_owned()))
}

fn server() -> Server {
    let mut limits = Limits::default();
    limits.handler_timeout = Some(Duration::from_secs(5));
    Server::builder(implementation!())
        .limits(limits)
        .extension(GREETINGS, Raw::parse(r#"{"loud":true}"#).unwrap())
        .method::<Greet, _>(greet)
        .method::<Ask, _>(ask)
        .method::<Fail, _>(fail)
        .tool(Tool::new("needs", needs))
        .tool(Tool::new("needs_by_word", falls_back).needs(ClientCapability::Extension(GREETINGS)))
        .tool(Tool::new("falls_back", falls_back))
        .build()
}

#[tokio::test]
async fn a_method_of_an_extension_answers_in_its_eras() {
    let mut modern = RawClient::modern(server());
    let answer = modern.request("greetings/greet", json!({ "name": "Ada" })).await;
    let result = &answer["result"];
    assert_eq!((&result["text"], &result["resultType"]), (&json!("Hello, Ada"), &json!("complete")), "{answer}");
    assert_eq!(result["_meta"]["mood"], "good");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "suite");

    let mut legacy = RawClient::legacy(server()).await;
    let answer = legacy.request("greetings/greet", json!({ "name": "Ada" })).await;
    assert_eq!(answer["result"], json!({ "text": "Hello, Ada", "_meta": { "mood": "good" } }));
    let unknown = legacy.request("greetings/fail", json!({ "name": "panic" })).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let unknown = modern.request("greetings/else", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}

/// A result is one object with each member once: a text that says so twice reads differently in different readers.
#[tokio::test]
async fn no_member_of_a_result_is_there_twice() {
    let server = server();
    let meta = super::modern_meta();
    let request =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "greetings/greet", "params": { "name": "A", "_meta": meta } });
    let answer = server.handle(request.to_string()).await.unwrap();
    let text = String::from_utf8(answer.to_vec()).unwrap();
    for member in ["\"_meta\"", "\"resultType\"", "\"text\""] {
        assert_eq!(text.matches(member).count(), 1, "{text}");
    }
}

#[tokio::test]
async fn parameters_that_do_not_fit_name_the_field() {
    let mut client = RawClient::modern(server());
    for (params, part) in [
        (json!({ "name": 7 }), "`name`: invalid type"),
        (json!({}), "missing field `name`"),
        (json!({ "name": ["x"] }), "`name`"),
    ] {
        let answer = client.request("greetings/greet", params.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(answer["error"]["code"] == -32602 && message.contains(part), "{params}: {answer}");
    }
    for params in ["[]", "7", "\"x\""] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"greetings/greet","params":{params}}}"#);
        let answer = server().handle(message).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert!(answer["error"].is_object(), "{params}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_errors_and_what_a_panic_said_stays_here() {
    let mut client = RawClient::modern(server());
    for (name, code, message) in [
        ("panic", -32603, "Internal error"),
        ("fault", -32602, "Invalid params: nobody is called that"),
        ("failure", -32603, "out of words"),
    ] {
        let answer = client.request("greetings/fail", json!({ "name": name })).await;
        assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(code), &json!(message)));
    }
    let answer = client.request("greetings/fail", json!({ "name": "sleep" })).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
}

#[tokio::test]
async fn a_method_may_ask_its_client() {
    let answered = |_| async { ElicitResult::accept(json!({ "name": "Ada" })) };
    let client = Client::builder(implementation!()).on_elicit(answered).connect(server()).await.unwrap();
    assert_eq!(client.request::<Ask>(&json!({})).await.unwrap().text, "Hello, Ada");
}

#[tokio::test]
async fn one_side_without_the_extension_is_refused_or_falls_back() {
    let settings = Raw::parse(r#"{"quiet":1}"#).unwrap();
    let has = Client::builder(implementation!()).extension(GREETINGS, settings).connect(server()).await.unwrap();
    let lacks = Client::connect(server()).await.unwrap();
    for tool in ["needs", "needs_by_word", "falls_back"] {
        assert_eq!(has.call::<String>(tool, ()).await.unwrap(), r#"{"quiet":1}"#, "{tool}");
    }
    for tool in ["needs", "needs_by_word"] {
        let error = lacks.call::<String>(tool, ()).await.unwrap_err();
        let object = error.object().unwrap();
        assert_eq!(object.code, -32021);
        assert!(object.data.as_ref().unwrap().as_str().contains(GREETINGS), "{object:?}");
    }
    assert_eq!(lacks.call::<String>("falls_back", ()).await.unwrap(), "without");

    assert_eq!(has.server_extension(GREETINGS).unwrap().as_str(), r#"{"loud":true}"#);
    assert!(has.require_server_extension(GREETINGS).is_ok());
    assert_eq!(has.server_extension("com.example/other"), None);
    let error = has.require_server_extension("com.example/other").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MethodNotFound);
    assert!(error.to_string().contains("com.example/other"));
}

#[tokio::test]
async fn a_method_that_the_era_lacks_is_not_sent() {
    let legacy = Client::builder(implementation!()).revisions([mcp_core::Revision::V2025_11_25]);
    let legacy = legacy.connect(server()).await.unwrap();
    assert_eq!(legacy.request::<Greet>(&Name { name: "Ada".into() }).await.unwrap().text, "Hello, Ada");
    let error = legacy.request::<Fail>(&Name { name: "fault".into() }).await.map(|greeting| greeting.text).unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::MethodNotFound, mcp_core::Blame::Caller));
    assert!(error.object().is_none(), "{error:?}");
}

#[tokio::test]
async fn what_peers_could_not_read_of_an_extension_is_an_error_where_it_is_named() {
    let long = Raw::parse("[]").unwrap();
    for (name, settings) in
        [("x.y/z", long), ("z", Raw::empty_object()), ("/z", Raw::empty_object()), ("x y/z", Raw::empty_object())]
    {
        let server = Server::builder(implementation!()).extension(name, settings.clone()).try_build();
        assert_eq!(server.unwrap_err().kind(), ErrorKind::InvalidParams, "{name}");
        let client = Client::builder(implementation!())
            .extension(name, settings)
            .connect(crate::server::extensions::server())
            .await;
        assert_eq!(client.unwrap_err().kind(), ErrorKind::InvalidParams, "{name}");
    }
}

#[tokio::test]
async fn a_method_has_one_handler_and_the_cores_stay_the_cores() {
    let twice = Server::builder(implementation!()).method::<Greet, _>(greet).method::<Greet, _>(greet);
    assert_eq!(twice.try_build().unwrap_err().kind(), ErrorKind::DuplicateRegistration);
    let core = Server::builder(implementation!()).method::<Core, _>(|_, _| async { said("mine") });
    assert_eq!(core.try_build().unwrap_err().kind(), ErrorKind::DuplicateRegistration);
}

const GREETED: &str = "notifications/greetings/greeted";

/// Says hello to each before it answers.
struct GreetAll;

impl Method for GreetAll {
    const NAME: &'static str = "greetings/all";
    const ERAS: &'static [Era] = &[Era::Legacy, Era::Modern];
    const NOTIFIES: bool = true;
    type Params = Value;
    type Result = Greeting;
}

async fn greet_all(context: Context, _: Value) -> Result<Greeting, Fault> {
    for name in ["Ada", "Alan", "Grace"] {
        context.notify(GREETED, json!({ "name": name })).await;
    }
    said("Hello, all")
}

/// A tool, which has no notifications of its own.
async fn quiet(context: Context) -> Result<(), ToolError> {
    context.notify(GREETED, json!({ "name": "nobody" }));
    Ok(())
}

#[tokio::test]
async fn an_extension_may_have_notifications_on_any_wire() {
    let server = || {
        let builder = Server::builder(implementation!()).method::<GreetAll, _>(greet_all);
        builder.tool(Tool::new("quiet", quiet)).build()
    };
    for revision in [mcp_core::Revision::LATEST, mcp_core::Revision::V2025_11_25] {
        for over_http in [false, true] {
            let heard = Arc::<Mutex<Vec<String>>>::default();
            let hear = heard.clone();
            let builder = Client::builder(implementation!()).revisions([revision]);
            let builder = builder.on_notification(GREETED, move |params| {
                let params: Value = params.unwrap().decode().unwrap();
                hear.lock().unwrap().push(params["name"].as_str().unwrap().to_owned());
            });
            let served = mcp_test::HttpServer::start(server()).await;
            let client = match over_http {
                true => builder.connect(mcp_http::Http::new(served.url())).await.unwrap(),
                false => builder.connect(server()).await.unwrap(),
            };
            client.call::<()>("quiet", ()).await.unwrap();
            assert_eq!(client.request::<GreetAll>(&json!({})).await.unwrap().text, "Hello, all");
            super::until("all are heard of", async || heard.lock().unwrap().len() == 3).await;
            assert_eq!(*heard.lock().unwrap(), ["Ada", "Alan", "Grace"], "{revision} {over_http}");
        }
    }
}
