use mcp::{ToolError, prompt, resource, tool};

#[tool]
fn not_async() -> Result<(), ToolError> {
    Ok(())
}

#[prompt]
fn not_async_either() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool(blocking)]
async fn blocking() -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn cannot_fail() {}

#[tool]
async fn cannot_fail_either() -> i64 {
    5
}

#[prompt]
async fn nor_this() -> Vec<String> {
    Vec::new()
}

#[resource("x:z")]
async fn nor_that() -> &'static str {
    "z"
}

#[tool]
async fn generic<T>() -> Result<(), ToolError> {
    Ok(())
}

#[resource("x:y")]
async fn borrows<'a>(context: &'a mcp::Context) -> Result<&'a str, ToolError> {
    Ok(context.revision().as_str())
}

#[tool]
struct NoFunction;

struct State;

impl State {
    #[tool]
    async fn by_value(self) -> Result<(), ToolError> {
        Ok(())
    }

    #[tool]
    async fn mutable(&mut self) -> Result<(), ToolError> {
        Ok(())
    }
}

fn main() {}
