//! The fixtures that the official conformance suite prescribes.

use mcp_suite::{Tool, ToolError, types::ClientCapability};

pub(crate) fn all() -> Vec<Tool> {
    vec![
        Tool::new("test_simple_text", simple_text).describe("Returns a simple text"),
        Tool::new("test_error_handling", error_handling).describe("Always fails"),
        Tool::new("test_missing_capability", missing_capability)
            .describe("Needs sampling of the client")
            .needs(ClientCapability::Sampling),
    ]
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
