//! What a server offers as something that a server of this process offers: calls go on to where it lives, and what is
//! said about them comes back.

mod forward;
mod passing;

use std::sync::Arc;

use forward::forward;
pub(crate) use passing::{Passing, Question, Whose};

use crate::{
    Client, Context, Era, Error, Exchange, MirrorPlan, Prompt, Resource, ResourceTemplate, Tool, ToolError,
    client::{CallOptions, call::Ask},
    method::{CallTool, Complete, GetPrompt, ReadResource},
    server::PromptArguments,
    types::{
        CallToolParams, CompleteParams, Completion, GetPromptParams, PromptDefinition, ReadResourceResult,
        ResourceDefinition, ResourceParams, ResourceTemplateDefinition, ToolDefinition,
    },
    uri_template::{UriTemplate, Variables},
};

/// Calls the tool of that name where it lives.
///
/// # Errors
/// When its schema has a bad `x-mcp-header`.
pub(crate) fn tool(client: &Client, definition: ToolDefinition) -> Result<Tool, Error> {
    let (client, name) = (client.clone(), Arc::<str>::from(definition.name.as_str()));
    let mirror = MirrorPlan::compile(&definition.input_schema)?;
    let call = move |exchange: Exchange| {
        let (client, name, mirror) = (client.clone(), name.clone(), mirror.clone());
        let arguments = exchange.head.arguments.clone();
        let (context, guard) = Context::new(exchange);
        guard.during(async move {
            let params = CallToolParams { name: name.to_string(), arguments };
            let is_modern = client.revision().era() == Era::Modern;
            let mirrored = if is_modern { mirror.pairs(params.arguments.as_ref()) } else { Vec::new() };
            forward::<CallTool>(&client, &context, &name, params, mirrored).await
        })
    };
    let tool = Tool::raw(definition.name.clone(), definition.input_schema.clone(), Arc::new(call));
    tool.defined(definition).prepared()
}

/// Fills in the prompt of that name where it lives.
pub(crate) fn prompt(client: &Client, definition: PromptDefinition) -> Prompt {
    let (here, name) = (client.clone(), Arc::<str>::from(definition.name.as_str()));
    let get = move |context: Context, arguments: PromptArguments| {
        let (client, name) = (here.clone(), name.clone());
        async move {
            let params = GetPromptParams { name: name.to_string(), arguments: arguments.0 };
            forward::<GetPrompt>(&client, &context, &name, params, Vec::new()).await
        }
    };
    let mut prompt = Prompt::new(definition.name.clone(), get);
    if completes(client) {
        for argument in definition.arguments.iter().map(|argument| argument.name.clone()) {
            let (client, of, what) = (client.clone(), definition.name.clone(), argument.clone());
            prompt = prompt.complete(argument, move |_, value, known| {
                complete(client.clone(), CompleteParams::prompt(of.clone(), what.clone(), value), known)
            });
        }
    }
    prompt.defined(definition)
}

/// Reads the resource of that URI where it lives.
pub(crate) fn resource(client: &Client, definition: ResourceDefinition) -> Resource {
    let (client, uri) = (client.clone(), Arc::<str>::from(definition.uri.as_str()));
    let read = move |context: Context| read(client.clone(), context, uri.to_string());
    Resource::new(definition.uri.clone(), definition.name.clone(), read).defined(definition)
}

/// Reads what fits a template where it lives.
pub(crate) fn template(client: &Client, definition: ResourceTemplateDefinition) -> ResourceTemplate {
    let here = client.clone();
    let read = move |context: Context, _: Variables| {
        let uri = context.exchange().uri().unwrap_or_default().to_owned();
        read(here.clone(), context, uri)
    };
    let mut template = ResourceTemplate::new(definition.uri_template.clone(), definition.name.clone(), read);
    if let (true, Ok(parsed)) = (completes(client), UriTemplate::parse(&definition.uri_template)) {
        for variable in parsed.names().map(str::to_owned) {
            let (client, of, what) = (client.clone(), definition.uri_template.clone(), variable.clone());
            template = template.complete(variable, move |_, value, known| {
                complete(client.clone(), CompleteParams::template(of.clone(), what.clone(), value), known)
            });
        }
    }
    template.defined(definition)
}

async fn read(client: Client, context: Context, uri: String) -> Result<ReadResourceResult, ToolError> {
    let params = ResourceParams { uri: uri.clone() };
    forward::<ReadResource>(&client, &context, &uri, params, Vec::new()).await
}

fn completes(client: &Client) -> bool {
    client.server_capabilities().completions.is_some()
}

async fn complete(client: Client, params: CompleteParams, known: PromptArguments) -> Result<Completion, ToolError> {
    let known = known.iter().fold(params, |params, (name, value)| params.given(name, value));
    let mut options = CallOptions::new();
    options.whose = Whose::Nobody;
    let completed = client.ask_with::<Complete>(Ask::new(&known), &mut options).await;
    Ok(completed.map_err(forward::passed)?.completion)
}
