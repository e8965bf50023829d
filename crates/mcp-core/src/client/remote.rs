//! A server's tools as tools of this process.

use std::sync::Arc;

use mcp_jsonrpc::Raw;

use crate::{Client, Error, Exchange, Tool, types::ToolDefinition};

/// Calls the tool of that name where it lives.
///
/// # Errors
/// When its schema has a bad `x-mcp-header`.
pub(crate) fn tool(client: &Client, definition: ToolDefinition) -> Result<Tool, Error> {
    let (client, name) = (client.clone(), Arc::<str>::from(definition.name.as_str()));
    let call = move |exchange: Exchange| {
        let (client, name) = (client.clone(), name.clone());
        let arguments = exchange.head.arguments.unwrap_or(Raw::empty_object());
        async move { Ok(client.call_raw(&name, arguments).await?) }
    };
    let mut tool = Tool::raw(definition.name.clone(), definition.input_schema.clone(), Arc::new(call));
    tool.definition = definition;
    tool.prepared()
}
