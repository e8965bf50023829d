//! Prompts and templates, whose arguments are texts.

use std::sync::Arc;

use mcp_core::ErrorKind;
use mcp_suite::{
    Context, Prompt, Resource, ResourceTemplate, ToolError,
    prelude::{prompt, resource},
    server::PromptArguments,
    types::{CacheHint, CompleteParams, Completion, PromptArgument},
    uri_template::Variables,
};
use serde_json::json;

use super::*;

/// Asks for a review
#[prompt(name = "code.review", title = "Review")]
async fn review(
    /// What is to be reviewed
    code: String,
    #[complete(styles)] style: Option<String>,
    #[arg(default = 3)] lines: u32,
) -> Result<String, ToolError> {
    Ok(format!("{code} {style:?} {lines}"))
}

async fn styles(_: Context, typed: String, known: PromptArguments) -> Result<Completion, ToolError> {
    Ok([format!("{typed}…"), known.get("code").unwrap_or_default().to_owned()].into_iter().collect())
}

#[prompt]
async fn raw(_: Context, #[args] arguments: PromptArguments) -> Result<String, ToolError> {
    Ok(arguments.get("any").unwrap_or_default().to_owned())
}

fn server() -> Server {
    let desk = Arc::new(Desk("desk"));
    let server = builder().prompt(review_prompt()).prompt(raw_prompt()).state(7_u8).resource(log_resource());
    server.template(user_template()).template(any_template()).template(desk.drawer_template()).build()
}

#[tokio::test]
async fn a_prompts_arguments_are_read_and_told() {
    let built = Prompt::new("code.review", |_, _| async { Ok::<_, ToolError>("") }).describe("Asks for a review");
    let built =
        built.title("Review").argument(PromptArgument::new("code").describe("What is to be reviewed").required());
    let built = built.argument(PromptArgument::new("style")).argument(PromptArgument::new("lines"));
    assert_eq!(review_prompt().definition(), built.definition());

    let client = client(server(), Revision::LATEST).await;
    for (arguments, said) in
        [(json!({ "code": "x" }), "x None 3"), (json!({ "code": "x", "style": "s", "lines": "4" }), "x Some(\"s\") 4")]
    {
        let result = client.get_prompt("code.review", arguments).await.unwrap();
        assert_eq!(result.messages[0].content.as_text(), Some(said));
    }
    let error = client.get_prompt("code.review", json!({ "code": "x", "lines": "many" })).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidParams);
    assert!(error.to_string().contains("`lines`: invalid digit"), "{error}");
    let result = client.get_prompt("raw", json!({ "any": "thing" })).await.unwrap();
    assert_eq!(result.messages[0].content.as_text(), Some("thing"));
    let completion = CompleteParams::prompt("code.review", "style", "a").given("code", "c");
    assert_eq!(client.complete(completion).await.unwrap().values, ["a…", "c"]);
}

/// What happened
#[resource("file:///log", name = "the log", mime_type = "text/plain", size = 3, cache = CacheHint::default(), annotate = json())]
async fn log(context: &Context, number: &u8) -> Result<String, ToolError> {
    Ok(format!("{} {number}", context.revision()))
}

fn json() -> mcp_suite::jsonrpc::Raw {
    mcp_suite::jsonrpc::Raw::encode(&json!({ "priority": 1 })).unwrap()
}

#[resource("users:///{id}{?page}")]
async fn user(page: Option<u8>, id: u64) -> Result<String, ToolError> {
    Ok(format!("{id} {page:?}"))
}

#[resource("any:///{+path}", title = "Anything")]
async fn any(_: Context, #[args] variables: Variables) -> Result<String, ToolError> {
    Ok(variables.get("path").unwrap_or_default().to_owned())
}

struct Desk(&'static str);

impl Desk {
    /// A drawer
    #[resource("desk:///{name}")]
    async fn drawer(&self, #[complete(self.names)] name: String) -> Result<String, ToolError> {
        Ok(format!("{} {name}", self.0))
    }

    async fn names(&self, _: Context, typed: String, _: PromptArguments) -> Result<Completion, ToolError> {
        Ok([format!("{} {typed}", self.0)].into_iter().collect())
    }
}

#[tokio::test]
async fn a_templates_variables_are_parameters() {
    let client = client(server(), Revision::LATEST).await;
    for (uri, said) in [
        ("users:///5", "5 None"),
        ("users:///5?page=2", "5 Some(2)"),
        ("any:///a/b", "a/b"),
        ("desk:///top", "desk top"),
    ] {
        assert_eq!(client.read_resource(uri).await.unwrap().contents[0].as_text(), Some(said));
    }
    for uri in ["users:///me", "users:///5?page=many"] {
        assert_eq!(client.read_resource(uri).await.unwrap_err().kind(), ErrorKind::NotFound, "{uri}");
    }
    let completion = CompleteParams::template("desk:///{name}", "name", "t");
    assert_eq!(client.complete(completion).await.unwrap().values, ["desk t"]);
}

#[tokio::test]
async fn the_uri_says_whether_it_is_a_resource_or_a_template() {
    let log = |_| async { Ok::<_, ToolError>("") };
    let built = Resource::new("file:///log", "the log", log).describe("What happened").mime_type("text/plain");
    assert_eq!(log_resource().definition(), built.size(3).annotate(json()).definition());
    let any = |_, _| async { Ok::<_, ToolError>("") };
    let built = ResourceTemplate::new("any:///{+path}", "any", any).title("Anything");
    assert_eq!(any_template().definition(), built.definition());
    let read = client(server(), Revision::LATEST).await.read_resource("file:///log").await.unwrap();
    assert_eq!(read.contents[0].as_text(), Some(&*format!("{} 7", Revision::LATEST)));
}
