/// Add two integers
async fn add(a: i64, b: i64) -> Result<i64, ToolError> {
    Ok(a + b)
}
/// The tool of `add`, for a server.
#[must_use]
fn add_tool() -> ::mcp_suite::Tool {
    #[derive(
        ::mcp_suite::__private::serde::Deserialize,
        ::mcp_suite::__private::schemars::JsonSchema
    )]
    #[serde(crate = "::mcp_suite::__private::serde")]
    #[schemars(crate = "::mcp_suite::__private::schemars")]
    struct __Arguments {
        /// The first one
        a: i64,
        b: i64,
    }
    ::mcp_suite::Tool::new("add", |__Arguments { a, b }: __Arguments| add(a, b))
        .describe("Add two integers")
        .timeout(SHORT)
        .annotate(::mcp_suite::types::ToolAnnotations::default().read_only(true))
}
