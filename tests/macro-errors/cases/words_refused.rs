use mcp::{ToolError, prompt, resource, tool};

#[tool(readonly)]
async fn unknown() -> Result<(), ToolError> {
    Ok(())
}

#[prompt(timeout = LONG)]
async fn of_tools() -> Result<String, ToolError> {
    Ok(String::new())
}

#[resource("x:/{id}", size = 5)]
async fn of_resources(id: String) -> Result<String, ToolError> {
    Ok(id)
}

#[tool(title = "a", title = "b")]
async fn twice() -> Result<(), ToolError> {
    Ok(())
}

#[tool(title)]
async fn no_value() -> Result<(), ToolError> {
    Ok(())
}

#[tool(read_only = "yes")]
async fn no_bool() -> Result<(), ToolError> {
    Ok(())
}

#[tool(asks = Form)]
async fn no_types() -> Result<(), ToolError> {
    Ok(())
}

#[tool(blocking = true)]
fn no_word() -> Result<(), ToolError> {
    Ok(())
}

#[tool(task, read_only, task_when_told)]
async fn two_beginnings() -> Result<(), ToolError> {
    Ok(())
}

#[resource]
async fn no_uri() -> Result<String, ToolError> {
    Ok(String::new())
}

fn main() {}
