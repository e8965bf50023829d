//! A server's tools as tools of this process.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mcp_jsonrpc::Raw;

use crate::{
    Client, Exchange, Tool, ToolError,
    server::Handler,
    types::{CallToolResult, ToolDefinition},
};

/// Calls the tool of that name where it lives.
struct Remote {
    client: Client,
    name: Arc<str>,
}

impl Handler for Remote {
    fn call(&self, exchange: Exchange) -> BoxFuture<'static, Result<CallToolResult, ToolError>> {
        let (client, name) = (self.client.clone(), self.name.clone());
        let arguments = exchange.head.arguments.unwrap_or(Raw::empty_object());
        Box::pin(async move { Ok(client.call_raw(&name, arguments).await?) })
    }
}

pub(crate) fn tool(client: &Client, definition: ToolDefinition) -> Tool {
    let remote = Remote { client: client.clone(), name: definition.name.as_str().into() };
    let mut tool = Tool::raw(definition.name.clone(), definition.input_schema.clone(), Arc::new(remote));
    tool.definition = definition;
    tool
}
