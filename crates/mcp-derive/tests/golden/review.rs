/// Ask for a review
async fn review(
    code: String,
    style: Option<String>,
    lines: u32,
) -> Result<String, ToolError> {
    Ok(code)
}
/// The prompt of `review`, for a server.
#[must_use]
fn review_prompt() -> ::mcp_suite::Prompt {
    ::mcp_suite::Prompt::new(
            "review",
            |_, arguments| async move {
                let code: String = arguments.parse("code")?;
                let style: Option<String> = arguments.parse_optional("style")?;
                let lines: u32 = arguments.parse_optional("lines")?.unwrap_or_else(|| 3);
                review(code, style, lines).await
            },
        )
        .describe("Ask for a review")
        .argument(
            ::mcp_suite::types::PromptArgument::new("code")
                .describe("What is to be reviewed")
                .required(),
        )
        .argument(::mcp_suite::types::PromptArgument::new("style"))
        .complete("style", styles)
        .argument(::mcp_suite::types::PromptArgument::new("lines"))
}
