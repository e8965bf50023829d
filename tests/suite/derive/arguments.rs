//! What a model fills in: the parameters of a tool.

use std::time::Duration;

use mcp_suite::{
    Context, Json, Limits, ServerBuilder, Tool, ToolError,
    prelude::tool,
    types::{ClientCapability, ToolAnnotations},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

/// What comes of a name that the parameters and the function share, of names of the expansion's own, and of keywords.
#[tool]
async fn city(city: String, context: u8, this: u8, arguments: u8, r#type: Option<String>) -> Result<String, ToolError> {
    Ok(format!("{city} {context} {this} {arguments} {}", r#type.unwrap_or_default()))
}

/// The same beside the call's own, and called something that nobody says.
#[tool]
async fn r#match(call: Context, mut context: String) -> Result<String, ToolError> {
    context.push_str(call.revision().as_str());
    Ok(context)
}

#[tokio::test]
async fn names_do_not_get_in_each_others_way() {
    let arguments = json!({ "city": "Oslo", "context": 1, "this": 2, "arguments": 3, "type": "t" });
    assert_eq!(said(builder().tool(city_tool()).build(), "city", arguments).await, "Oslo 1 2 3 t");
    let arguments = json!({ "context": "in " });
    let spoken = said(builder().tool(match_tool()).build(), "match", arguments).await;
    assert_eq!(spoken, format!("in {}", Revision::LATEST));
    assert_eq!(city("Oslo".into(), 1, 2, 3, None).await.unwrap(), "Oslo 1 2 3 ");
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Point {
    x: i64,
    y: i64,
}

/// Moves a point
///
///   - to the right
///
/// # Errors
/// Where the numbers end.
#[tool]
async fn shift(
    /// From where
    from: Point,
    /// How far,
    /// in steps
    #[arg(default = 2)]
    by: i64,
    #[serde(rename = "in")]
    #[schemars(range(min = 1, max = 9))]
    steps: Option<u8>,
) -> Result<Json<Point>, ToolError> {
    Ok(Json(Point { x: from.x + by * i64::from(steps.unwrap_or(1)), ..from }))
}

#[tokio::test]
async fn the_schema_says_what_stands_before_parameters() {
    let tool = shift_tool();
    let schema = schema(&tool);
    assert_eq!(tool.definition().description.as_deref(), Some("Moves a point\n\n  - to the right"));
    assert_eq!(schema["required"], json!(["from"]));
    assert_eq!(schema["properties"]["from"]["description"], "From where");
    let by = json!({ "type": "integer", "format": "int64", "default": 2, "description": "How far,\nin steps" });
    assert_eq!(schema["properties"]["by"], by);
    assert_eq!(schema["properties"]["in"]["maximum"], 9);
    assert!(tool.definition().output_schema.is_some() && schema.get("title").is_none());
    let client = client(builder().tool(tool).build(), Revision::LATEST).await;
    let from = json!({ "x": 1, "y": 5 });
    for (arguments, x) in [(json!({ "from": from }), 3), (json!({ "from": from, "in": 4, "by": 1 }), 5)] {
        assert_eq!(client.call::<Point>("shift", arguments).await.unwrap().x, x);
    }
    let failed = client.call::<Point>("shift", json!({ "from": from, "by": "far" })).await.unwrap_err();
    assert!(failed.to_string().contains("`by`"), "{failed}");
}

/// A type of the user's, called as a macro might call one of its own.
#[derive(Serialize, Deserialize, JsonSchema)]
struct NestArguments {
    x: i64,
}

#[tool]
async fn nest(
    one: NestArguments,
    #[arg(default = NestArguments { x: 2 })] other: NestArguments,
) -> Result<i64, ToolError> {
    Ok(one.x + other.x)
}

#[tokio::test]
async fn no_type_of_the_users_is_hidden() {
    let server = builder().tool(nest_tool()).build();
    assert_eq!(said(server, "nest", json!({ "one": { "x": 40 } })).await, "42");
}

#[tool]
async fn by_pattern(Point { x, y }: Point) -> Result<i64, ToolError> {
    Ok(x + y)
}

#[tool]
async fn by_mark(state: &i64, #[args] point: Point) -> Result<i64, ToolError> {
    Ok(state + point.x + point.y)
}

#[tokio::test]
async fn a_whole_is_all_arguments() {
    let by_hand = |_: Point| async { Ok::<_, ToolError>(()) };
    let expected = Tool::new("by_hand", by_hand).definition().input_schema.clone();
    for tool in [by_pattern_tool(), by_mark_tool()] {
        assert_eq!(tool.definition().input_schema, expected);
    }
    let server = builder().tool(by_pattern_tool()).tool(by_mark_tool()).state(10_i64).build();
    assert_eq!(said(server.clone(), "by_pattern", json!({ "x": 1, "y": 5 })).await, "6");
    assert_eq!(said(server, "by_mark", json!({ "x": 1, "y": 5 })).await, "16");
}

/// Overruled
#[tool(
    name = "all.words",
    title = "All words",
    describe = concat!("All ", "words"),
    timeout = Duration::from_millis(7),
    needs = ClientCapability::Roots,
    needs = ClientCapability::Sampling,
    validate_output = false,
    asks(Point),
    meta = object("meta"),
    output_schema = object("out"),
    icons = [],
    read_only,
    destructive = false,
    idempotent = true,
    open_world
)]
async fn words() -> Result<(), ToolError> {
    Ok(())
}

/// Takes long
#[tool(task)]
async fn long(seconds: u64) -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(format!("{seconds} s"))
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_says_so_runs_as_a_task() {
    let client = mcp_suite::Client::builder(implementation!()).tasks();
    let client = client.connect(builder().tool(long_tool()).build()).await.unwrap();
    let called = client.call_as_task("long", json!({ "seconds": 100 })).await.unwrap();
    let mcp_suite::client::Called::Task(task) = called else { panic!("{called:?}") };
    assert_eq!(task.wait().await.unwrap().to_text(), "100 s");
}

fn object(title: &str) -> mcp_suite::jsonrpc::Raw {
    mcp_suite::jsonrpc::Raw::encode(&json!({ "type": "object", "title": title })).unwrap()
}

#[test]
fn each_word_is_a_call_of_the_builder() {
    let hints = ToolAnnotations::default().read_only(true).destructive(false).idempotent(true).open_world(true);
    let built = Tool::new("all.words", words).describe("All words").title("All words").annotate(hints);
    let built = built.meta(object("meta")).output_schema(object("out")).icons([]);
    assert_eq!(words_tool().definition(), built.definition());
}

#[tokio::test(start_paused = true)]
async fn words_that_the_definition_does_not_show_are_heeded() {
    #[derive(Deserialize, JsonSchema)]
    struct Nested {
        _inner: Point,
    }
    #[tool(timeout = Duration::from_secs(1))]
    async fn sleep() -> Result<(), ToolError> {
        std::future::pending().await
    }
    #[tool(needs = ClientCapability::Sampling)]
    async fn need() -> Result<(), ToolError> {
        Ok(())
    }
    #[tool(asks(Nested))]
    async fn ask() -> Result<(), ToolError> {
        Ok(())
    }
    let server = builder().limits(Limits::default()).tool(sleep_tool()).tool(need_tool()).build();
    let slept = said(server.clone(), "sleep", json!({})).await;
    assert!(slept.contains("within 1000 ms"), "{slept}");
    assert!(said(server, "need", json!({})).await.contains("sampling"));
    let refused = |builder: ServerBuilder| builder.try_build().unwrap_err().to_string();
    assert!(refused(builder().tool(ask_tool())).contains("_inner"));
}

#[tool(blocking)]
fn thread(name: String, factor: &u32, context: Context) -> Result<String, ToolError> {
    assert!(!context.is_cancelled());
    Ok(format!("{name} {factor} {}", std::thread::current().name().is_some()))
}

#[tokio::test]
async fn what_blocks_has_a_thread_and_the_same_parameters() {
    let server = builder().tool(thread_tool()).state(7_u32).build();
    assert!(said(server, "thread", json!({ "name": "t" })).await.starts_with("t 7 "));
}
