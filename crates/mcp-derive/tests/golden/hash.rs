fn hash(text: String, salt: &Salt) -> Result<u64, ToolError> {
    Ok(0)
}
/// The tool of `hash`, for a server.
#[must_use]
fn hash_tool() -> ::mcp_suite::Tool {
    #[derive(
        ::mcp_suite::__private::serde::Deserialize,
        ::mcp_suite::__private::schemars::JsonSchema
    )]
    #[serde(crate = "::mcp_suite::__private::serde")]
    #[schemars(crate = "::mcp_suite::__private::schemars")]
    struct __Arguments {
        text: String,
    }
    ::mcp_suite::Tool::blocking(
        "hash",
        |context: ::mcp_suite::Context, __Arguments { text }: __Arguments| {
            let salt = context.state::<Salt>()?;
            hash(text, salt)
        },
    )
}
