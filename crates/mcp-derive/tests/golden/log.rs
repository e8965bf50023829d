async fn log() -> Result<String, ToolError> {
    read()
}
/// The resource of `log`, for a server.
#[must_use]
fn log_resource() -> ::mcp_suite::Resource {
    ::mcp_suite::Resource::new("file:///log", "log", |_| log()).size(7)
}
