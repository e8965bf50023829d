//! Servers that the fixture for everybody does not have.

use std::{sync::Arc, time::Duration};

use mcp_core::{
    Context, Json, Limits, ResourceTemplate, Revision, Server, Tool, ToolError, implementation,
    jsonrpc::Raw,
    types::{CallToolResult, ClientCapability, Content, LogLevel, ToolAnnotations},
    uri_template::Variables,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// Names that some kits refuse and others cut: all of them must work.
pub(crate) const ODD_NAMES: [&str; 9] = [
    "a/b",
    "a.b",
    "a-b_c",
    "a b",
    "größe",
    " padded ",
    "=?base64?QUJD?=",
    "a\nb",
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl_64_letters_and_more_than_that_up_to_129_so_that_nothing_cuts_it_off",
];

/// A server whose tools are odd in one way each; it accepts all revisions where none is named.
pub(crate) fn odd(limits: Limits, revisions: &[Revision]) -> Server {
    let names = ODD_NAMES.into_iter().map(|name| Tool::new(name, move || async move { Ok::<_, ToolError>(name) }));
    let revisions = if revisions.is_empty() { Revision::ALL } else { revisions };
    let mut builder = Server::builder(implementation!()).limits(limits).revisions(revisions.iter().copied());
    for tool in names.chain(tools()) {
        builder = builder.tool(tool);
    }
    builder.build()
}

/// A server of templates whose literals no URI can hold as they are; each resource is the value of its variable.
pub(crate) fn templated() -> Server {
    let read = |_: Context, variables: Variables| async move {
        Ok::<_, ToolError>(variables.get("n").unwrap_or_default().to_owned())
    };
    let template = |template: &str| ResourceTemplate::new(template, template, read);
    Server::builder(implementation!())
        .template(template("file:///docs/naïve/{n}"))
        .template(template("file:///my docs/{n}"))
        .build()
}

fn tools() -> Vec<Tool> {
    let object = || Raw::parse(r#"{"type":"object"}"#).expect("a schema");
    vec![
        Tool::with_schema("mirror", object(), mirror).describe("Returns its arguments as they came"),
        Tool::with_schema("routed", routed(), mirror)
            .describe("Returns its arguments, some of which are in headers too"),
        Tool::with_schema("strict", strict(), mirror)
            .describe("Returns its arguments, which its schema knows all about"),
        Tool::new("bounded", bounded).describe("Takes what the schema bounds and the type does not"),
        Tool::new("liar", list)
            .output_schema(strict())
            .validate_output(true)
            .describe("Returns what it did not promise"),
        Tool::new("lines", lines).describe("Returns text with every kind of line end"),
        Tool::new("numbers", numbers).describe("Takes numbers of every width"),
        Tool::new("list", list).describe("Returns structured content that is no object"),
        Tool::new("nothing", nothing).describe("Returns nothing"),
        Tool::new("late_panic", late_panic).describe("Tells of progress, waits, and panics"),
        Tool::new("announce", announce).describe("Tells of progress, and then never ends"),
        Tool::new("early_panic", early_panic).describe("Panics before there is a future"),
        Tool::new("own_limit", own_limit).timeout(Duration::from_millis(40)).describe("Has a time limit of its own"),
        Tool::new("needs_roots", nothing).needs(ClientCapability::Roots).needs(ClientCapability::Sampling),
        Tool::new("chatty", chatty).describe("Tells of progress without ever waiting"),
        Tool::new("unsteady", unsteady).describe("Tells of progress that does not grow"),
        Tool::new("pretty", pretty).title("Pretty").annotate(ToolAnnotations::default()),
        Tool::new("says", says).describe("Says something to nobody"),
        Tool::new("whoami", whoami).describe("Names the client and the revision"),
    ]
}

/// What is annotated has each type that may be, and stands at two depths.
fn routed() -> Raw {
    let schema = r#"{"type":"object","properties":{
        "region":{"type":["string","null"],"x-mcp-header":"Region"},
        "priority":{"type":["integer","null"],"x-mcp-header":"Priority"},
        "where":{"type":"object","properties":{"dry":{"type":["boolean","null"],"x-mcp-header":"Dry-Run"}}},
        "query":{"type":"string"}}}"#;
    Raw::parse(schema).expect("a schema")
}

fn strict() -> Raw {
    let schema = r##"{"type":"object","required":["a"],"additionalProperties":false,"properties":{
        "a":{"type":"object","properties":{"b":{"type":"integer","minimum":3}}},
        "list":{"items":{"$ref":"#/$defs/word"}}},"$defs":{"word":{"pattern":"^[a-z]+$"}}}"##;
    Raw::parse(schema).expect("a schema")
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Bounded {
    #[schemars(length(max = 3))]
    word: String,
    level: Option<u8>,
}

async fn bounded(bounded: Bounded) -> Result<String, ToolError> {
    Ok(bounded.word)
}

async fn mirror(_: Context, arguments: Raw) -> Result<CallToolResult, ToolError> {
    Ok(CallToolResult::text(arguments.as_str()).structured(arguments))
}

async fn lines() -> Result<&'static str, ToolError> {
    Ok("a\nb\r\nc\u{2028}d\u{2029}e\u{85}f\u{0}g\u{7f}\"\\")
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Numbers {
    signed: Option<i64>,
    unsigned: Option<u64>,
    float: Option<f64>,
}

async fn numbers(numbers: Numbers) -> Result<Json<Numbers>, ToolError> {
    Ok(Json(numbers))
}

async fn list() -> Result<Json<Vec<u32>>, ToolError> {
    Ok(Json(vec![1, 2]))
}

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

async fn late_panic(context: Context) -> Result<(), ToolError> {
    context.progress(1.0, None, "so far so good").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    panic!("secret at {}", file!())
}

async fn announce(context: Context) -> Result<(), ToolError> {
    context.progress(1.0, None, "and then nothing").await;
    std::future::pending().await
}

fn early_panic() -> std::future::Ready<Result<(), ToolError>> {
    panic!("secret at {}", file!())
}

async fn own_limit() -> Result<(), ToolError> {
    std::future::pending().await
}

#[derive(Deserialize, JsonSchema)]
struct Times {
    times: u32,
}

async fn chatty(context: Context, Times { times }: Times) -> Result<u32, ToolError> {
    for step in 1..=times {
        drop(context.progress(step.into(), Some(times.into()), ""));
    }
    Ok(times)
}

async fn unsteady(context: Context) -> Result<(), ToolError> {
    for step in [1.0, 1.0, 0.5, f64::NAN, f64::INFINITY, 2.0] {
        context.progress(step, Some(f64::NAN), "").await;
    }
    Ok(())
}

async fn pretty() -> Result<CallToolResult, ToolError> {
    let block = Raw::parse("{\n  \"type\": \"image\",\r\n  \"data\": \"AA==\", \"mimeType\": \"image/png\"\n}")?;
    let mut result = CallToolResult::default().with(Content::Other(block));
    result.meta = Some(Raw::parse("{\n  \"own\": 1\n}")?);
    Ok(result)
}

async fn says(context: Context) -> Result<(), ToolError> {
    context.log(LogLevel::Emergency, "", "x").await;
    Ok(())
}

async fn whoami(context: Context) -> Result<String, ToolError> {
    let name = context.client_info().map_or_else(|| "nobody".to_owned(), |client| client.name.into_owned());
    Ok(format!("{name} in {}", context.revision()))
}

/// A server with one tool `watched`, which never ends by itself, and what wakes when its call is over.
pub(crate) fn watched(limits: Limits) -> (Server, Arc<Notify>) {
    let fired = Arc::new(Notify::new());
    let handler = {
        let fired = fired.clone();
        move |context: Context| {
            let fired = fired.clone();
            async move {
                let over = context.cancelled();
                tokio::spawn(async move {
                    over.await;
                    fired.notify_one();
                });
                std::future::pending::<Result<(), ToolError>>().await
            }
        }
    };
    let server = Server::builder(implementation!()).limits(limits).tool(Tool::new("watched", handler)).build();
    (server, fired)
}
