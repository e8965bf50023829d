//! The fixtures that the official conformance suite prescribes.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_suite::{
    Context, Prompt, Resource, ResourceTemplate, ServerBuilder, Tool, ToolError,
    jsonrpc::Raw,
    server::PromptArguments,
    types::{
        CallToolResult, ClientCapability, Completion, Content, LogLevel, PromptArgument, PromptMessage,
        ResourceContents,
    },
    uri_template::Variables,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Next to no sound.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// Adds them all.
pub(crate) fn add_to(builder: ServerBuilder) -> ServerBuilder {
    let builder = tools().into_iter().fold(builder, ServerBuilder::tool);
    let builder = resources().into_iter().fold(builder, ServerBuilder::resource).template(template());
    prompts().into_iter().fold(builder, ServerBuilder::prompt)
}

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_simple_text", simple_text).describe("Returns a simple text"),
        Tool::new("test_error_handling", error_handling).describe("Always fails"),
        Tool::new("test_missing_capability", missing_capability)
            .describe("Needs sampling of the client")
            .needs(ClientCapability::Sampling),
        Tool::new("test_image_content", || async { Ok::<_, ToolError>(image()) }).describe("Returns a picture"),
        Tool::new("test_audio_content", || async { Ok::<_, ToolError>(Content::audio(decoded(WAV), "audio/wav")) })
            .describe("Returns a sound"),
        Tool::new("test_embedded_resource", embedded_resource).describe("Returns a resource"),
        Tool::new("test_multiple_content_types", multiple_content_types)
            .describe("Returns a text, a picture, a resource"),
        Tool::new("test_tool_with_progress", with_progress).describe("Tells of progress"),
        Tool::new("test_tool_with_logging", with_logging).describe("Says what it does"),
        Tool::new("test_logging_tool", logging_tool).describe("Says one thing to whoever asks for it"),
        Tool::new("test_reconnection", reconnection).describe("Disconnects, and answers who comes back"),
        Tool::with_schema("json_schema_2020_12_tool", json_schema(), |_, arguments| async move {
            Ok(CallToolResult::text(arguments.as_str()))
        })
        .describe("Tool with JSON Schema 2020-12 features"),
        Tool::new("test_custom_header", custom_header).describe("Has an argument that is mirrored in a header"),
    ]
}

fn decoded(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).unwrap_or_default()
}

fn image() -> Content {
    Content::image(decoded(PNG), "image/png")
}

async fn simple_text() -> Result<&'static str, ToolError> {
    Ok("This is a simple text response for testing.")
}

async fn error_handling() -> Result<(), ToolError> {
    Err(ToolError::new("This tool intentionally returns an error for testing"))
}

async fn missing_capability() -> Result<&'static str, ToolError> {
    Ok("the client has sampling")
}

async fn embedded_resource() -> Result<Content, ToolError> {
    let contents = ResourceContents::text("This is an embedded resource content.");
    Ok(Content::resource(contents.uri("test://embedded-resource").mime_type("text/plain")))
}

async fn multiple_content_types() -> Result<CallToolResult, ToolError> {
    let contents = ResourceContents::text(r#"{"test":"data","value":123}"#);
    let resource = Content::resource(contents.uri("test://mixed-content-resource").mime_type("application/json"));
    Ok([Content::text("Multiple content types test:"), image(), resource].into_iter().collect())
}

async fn with_progress(context: Context) -> Result<&'static str, ToolError> {
    for step in [0, 50, 100] {
        context.progress(step.into(), Some(100.0), format!("Completed step {step} of 100")).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok("Tool with progress executed successfully")
}

async fn with_logging(context: Context) -> Result<&'static str, ToolError> {
    for step in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        context.log(LogLevel::Info, "", step).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok("Tool with logging executed successfully")
}

async fn reconnection(context: Context) -> Result<&'static str, ToolError> {
    context.disconnect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(
        "Reconnection test completed successfully. If you received this, the client properly reconnected after stream closure.",
    )
}

async fn logging_tool(context: Context) -> Result<&'static str, ToolError> {
    context.log(LogLevel::Info, "", "Diagnostic trace logging activated").await;
    Ok("Logging evaluated")
}

/// What a schema may hold that no Rust type says.
fn json_schema() -> Raw {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef", "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" }, "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] }, "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    Raw::encode(&schema).unwrap_or(Raw::empty_object())
}

#[derive(Deserialize, JsonSchema)]
struct Region {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

async fn custom_header(Region { region }: Region) -> Result<String, ToolError> {
    Ok(format!("region: {region}"))
}

fn resources() -> Vec<Resource> {
    let text = "This is the content of the static text resource.";
    vec![
        Resource::fixed("test://static-text", "static-text", text)
            .title("Static Text Resource")
            .describe("A static text resource for testing")
            .mime_type("text/plain"),
        Resource::fixed("test://static-binary", "static-binary", decoded(PNG))
            .title("Static Binary Resource")
            .describe("A static binary resource (image) for testing")
            .mime_type("image/png"),
        Resource::fixed("test://watched-resource", "watched-resource", "Watched resource content")
            .title("Watched Resource")
            .describe("A resource to subscribe to")
            .mime_type("text/plain"),
    ]
}

fn template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "template", data)
        .title("Resource Template")
        .describe("A resource template with parameter substitution")
        .mime_type("application/json")
        .complete("id", |_, typed, _| async move { Ok(beginning_with(&typed, &["1", "12", "123"])) })
}

async fn data(_: Context, variables: Variables) -> Result<String, ToolError> {
    let id = variables.get("id").unwrap_or_default();
    if id == "none" {
        return Err(ToolError::not_found());
    }
    Ok(json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string())
}

fn prompts() -> Vec<Prompt> {
    let argument = |name: &str, description: &str| PromptArgument::new(name).describe(description).required();
    vec![
        Prompt::new("test_simple_prompt", simple_prompt).describe("A simple prompt without arguments"),
        Prompt::new("test_prompt_with_arguments", with_arguments)
            .describe("A prompt with required arguments")
            .argument(argument("arg1", "First test argument"))
            .argument(argument("arg2", "Second test argument"))
            .complete("arg1", |_, typed, _| async move { Ok(beginning_with(&typed, &["testValue1", "testValue2"])) }),
        Prompt::new("test_prompt_with_embedded_resource", with_resource)
            .describe("A prompt that includes an embedded resource")
            .argument(argument("resourceUri", "URI of the resource to embed")),
        Prompt::new("test_prompt_with_image", with_image).describe("A prompt that includes image content"),
    ]
}

fn beginning_with(typed: &str, values: &[&str]) -> Completion {
    values.iter().filter(|value| value.starts_with(typed)).copied().collect()
}

async fn simple_prompt(_: Context, _: PromptArguments) -> Result<&'static str, ToolError> {
    Ok("This is a simple prompt for testing.")
}

async fn with_arguments(_: Context, arguments: PromptArguments) -> Result<String, ToolError> {
    let value = |name| arguments.get(name).unwrap_or_default();
    Ok(format!("Prompt with arguments: arg1='{}', arg2='{}'", value("arg1"), value("arg2")))
}

async fn with_resource(_: Context, arguments: PromptArguments) -> Result<Vec<PromptMessage>, ToolError> {
    let contents = ResourceContents::text("Embedded resource content for testing.").mime_type("text/plain");
    let contents = contents.uri(arguments.get("resourceUri").unwrap_or_default());
    Ok(vec![
        PromptMessage::user(Content::resource(contents)),
        PromptMessage::user("Please process the embedded resource above."),
    ])
}

async fn with_image(_: Context, _: PromptArguments) -> Result<Vec<PromptMessage>, ToolError> {
    Ok(vec![PromptMessage::user(image()), PromptMessage::user("Please analyze the image above.")])
}
