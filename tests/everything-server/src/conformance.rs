//! The fixtures that the official conformance suite prescribes.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_suite::{
    Context, Prompt, Resource, ResourceTemplate, ServerBuilder, Tool, ToolError,
    jsonrpc::Raw,
    server::PromptArguments,
    types::{
        CallToolResult, ClientCapability, Completion, Content, CreateMessageParams, ElicitParams, ElicitResult,
        LogLevel, PromptArgument, PromptMessage, ResourceContents, SamplingMessage,
    },
    uri_template::Variables,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Next to no sound.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// Adds them all.
pub(crate) fn add_to(builder: ServerBuilder) -> ServerBuilder {
    let builder = tools().into_iter().chain(asking_tools()).fold(builder, ServerBuilder::tool);
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
        Tool::new("test_sampling", sampling).describe("Has the client's model say something"),
        Tool::new("test_elicitation", elicitation).describe("Asks the user"),
        Tool::new("test_elicitation_sep1034_defaults", elicitation_defaults).describe("Asks with defaults"),
        Tool::new("test_elicitation_sep1330_enums", elicitation_enums).describe("Asks with choices"),
        Tool::with_schema("json_schema_2020_12_tool", json_schema(), |_, arguments| async move {
            Ok(CallToolResult::text(arguments.as_str()))
        })
        .describe("Tool with JSON Schema 2020-12 features"),
        Tool::new("test_custom_header", custom_header).describe("Has an argument that is mirrored in a header"),
    ]
}

/// Tools that ask the client, in whichever era.
fn asking_tools() -> Vec<Tool> {
    let named = |name: &str| format!("test_input_required_result_{name}");
    vec![
        Tool::new(named("elicitation"), ask_name).describe("Asks for a name"),
        Tool::new(named("sampling"), ask_capital).describe("Asks the model for a capital"),
        Tool::new(named("list_roots"), ask_roots).describe("Asks for the roots"),
        Tool::new(named("request_state"), ask_confirmation).describe("Asks for a confirmation"),
        Tool::new(named("tampered_state"), ask_confirmation).describe("Asks for a confirmation that cannot be forged"),
        Tool::new(named("multiple_inputs"), ask_all).describe("Asks three things at once"),
        Tool::new(named("multi_round"), ask_twice).describe("Asks one thing, and then another"),
        Tool::new(named("capabilities"), ask_what_is_possible).describe("Asks for what the client has"),
        Tool::new("test_trigger_tool_change", change_tools).describe("Changes the list of tools"),
        Tool::new("test_trigger_prompt_change", change_prompts).describe("Changes the list of prompts"),
        Tool::new("test_streaming_elicitation", ask_while_streaming).describe("Tells of progress, and then asks"),
    ]
}

/// A form of one field.
async fn field(context: &Context, key: &str, message: &str, name: &str, kind: &str) -> Result<Value, ToolError> {
    let schema = json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name] });
    let answer = context.elicit(key, ElicitParams::form(message, Raw::encode(&schema)?)).await?;
    let content: Value = answer.content.unwrap_or(Raw::empty_object()).decode()?;
    Ok(content[name].clone())
}

async fn text_field(context: &Context, key: &str, message: &str, name: &str) -> Result<String, ToolError> {
    let value = field(context, key, message, name, "string").await?;
    Ok(value.as_str().unwrap_or("nobody").to_owned())
}

async fn said(context: &Context, key: &str, prompt: &str, tokens: u64) -> Result<String, ToolError> {
    let params = CreateMessageParams::new([SamplingMessage::user(prompt)], tokens);
    Ok(context.sample(key, params).await?.to_text())
}

pub(crate) async fn ask_name(context: Context) -> Result<String, ToolError> {
    Ok(format!("Hello, {}!", text_field(&context, "user_name", "What is your name?", "name").await?))
}

async fn ask_capital(context: Context) -> Result<String, ToolError> {
    said(&context, "capital_question", "What is the capital of France?", 100).await
}

async fn ask_roots(context: Context) -> Result<String, ToolError> {
    Ok(format!("Found {} root(s)", context.roots("client_roots").await?.len()))
}

/// Says so only if the state came back with the answer: it knows which request was the first.
async fn ask_confirmation(context: Context) -> Result<String, ToolError> {
    let first = context.once("first", async || Ok::<_, ToolError>(context.sequence())).await?;
    let ok = field(&context, "confirm", "Please confirm", "ok", "boolean").await?;
    let has_state = first < context.sequence();
    Ok(format!("{} {ok}", if has_state { "state-ok" } else { "no state" }))
}

async fn ask_all(context: Context) -> Result<String, ToolError> {
    let (name, greeting, roots) = tokio::join!(
        text_field(&context, "user_name", "What is your name?", "name"),
        said(&context, "greeting", "Generate a greeting", 50),
        context.roots("client_roots"),
    );
    Ok(format!("{} {} with {} root(s)", greeting?, name?, roots?.len()))
}

async fn ask_twice(context: Context) -> Result<String, ToolError> {
    let name = text_field(&context, "step1", "Step 1: What is your name?", "name").await?;
    let color = text_field(&context, "step2", "Step 2: What is your favorite color?", "color").await?;
    Ok(format!("{name} likes {color}"))
}

async fn ask_what_is_possible(context: Context) -> Result<String, ToolError> {
    if context.client_capabilities().elicitation.is_some() {
        return ask_name(context).await;
    }
    said(&context, "greeting", "Generate a greeting", 50).await
}

async fn ask_while_streaming(context: Context) -> Result<String, ToolError> {
    context.progress(1.0, Some(2.0), "about to ask").await;
    ask_name(context).await
}

/// Puts a tool in its own place.
async fn change_tools(context: Context) -> Result<(), ToolError> {
    let tools = context.server().tools();
    tools.get("test_simple_text").map_or(Ok(()), |tool| Ok(tools.replace(tool)?))
}

async fn change_prompts(context: Context) -> Result<(), ToolError> {
    let prompts = context.server().prompts();
    prompts.get("test_simple_prompt").map_or(Ok(()), |prompt| Ok(prompts.replace(prompt)?))
}

async fn prompt_with_context(context: Context, _: PromptArguments) -> Result<String, ToolError> {
    let about = text_field(&context, "user_context", "What context should the prompt use?", "context").await?;
    Ok(format!("Use this context: {about}"))
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

#[derive(Deserialize, JsonSchema)]
struct Sampling {
    /// The prompt to send to the LLM
    prompt: String,
}

async fn sampling(context: Context, Sampling { prompt }: Sampling) -> Result<String, ToolError> {
    let params = CreateMessageParams::new([SamplingMessage::user(prompt)], 100);
    Ok(format!("LLM response: {}", context.sample("sample", params).await?.to_text()))
}

#[derive(Deserialize, JsonSchema)]
struct Elicitation {
    /// The message to show the user
    message: String,
}

async fn elicitation(context: Context, Elicitation { message }: Elicitation) -> Result<String, ToolError> {
    let schema = json!({ "type": "object", "required": ["username", "email"], "properties": {
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    } });
    Ok(format!("User response: {}", asked(&context, message, &schema).await?))
}

/// What the user made of a form.
async fn asked(context: &Context, message: impl Into<String>, schema: &Value) -> Result<String, ToolError> {
    let ElicitResult { action, content, .. } =
        context.elicit("form", ElicitParams::form(message, Raw::encode(schema)?)).await?;
    let content = content.unwrap_or(Raw::empty_object());
    Ok(format!("action={}, content={}", action.as_str(), content.as_str()))
}

async fn elicitation_defaults(context: Context) -> Result<String, ToolError> {
    let schema = json!({ "type": "object", "required": [], "properties": {
        "name": { "type": "string", "description": "User name", "default": "John Doe" },
        "age": { "type": "integer", "description": "User age", "default": 30 },
        "score": { "type": "number", "description": "User score", "default": 95.5 },
        "status": { "type": "string", "description": "User status",
            "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "description": "Verification status", "default": true },
    } });
    let message = "Please review and update the form fields with defaults";
    Ok(format!("Elicitation completed: {}", asked(&context, message, &schema).await?))
}

async fn elicitation_enums(context: Context) -> Result<String, ToolError> {
    let titled = |values: &[(&str, &str)]| -> Vec<Value> {
        values.iter().map(|(value, title)| json!({ "const": value, "title": title })).collect()
    };
    let choices = |what: &str| {
        titled(&[
            ("value1", &format!("First {what}")),
            ("value2", &format!("Second {what}")),
            ("value3", &format!("Third {what}")),
        ])
    };
    let schema = json!({ "type": "object", "required": [], "properties": {
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "oneOf": choices("Option") },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
        "titledMulti": { "type": "array", "items": { "anyOf": choices("Choice") } },
    } });
    let message = "Please select options from the enum fields";
    Ok(format!("Elicitation completed: {}", asked(&context, message, &schema).await?))
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
        Prompt::new("test_input_required_result_prompt", prompt_with_context)
            .describe("A prompt that asks for context"),
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
