pub(crate) async fn add(context: Context, Add { a, b }: Add) -> Result<i64, ToolError> {
    Ok(a + b)
}
/// The tool of `add`, for a server.
#[must_use]
pub(crate) fn add_tool() -> ::mcp_suite::Tool {
    ::mcp_suite::Tool::new("sum", add).describe(ABOUT)
}
