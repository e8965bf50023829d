#![allow(unused_variables)]

use mcp::{Ask, Context, Principal, ToolError, prompt, resource, tool};

struct Form {
    x: u8,
}

impl Form {
    #[tool]
    async fn of_self(&self, #[arg(default = vec![Self::MOST])] most: Vec<u8>) -> Result<(), ToolError> {
        Ok(())
    }

    #[tool]
    async fn self_itself(&self, other: Option<Self>) -> Result<(), ToolError> {
        Ok(())
    }
}

#[tool]
async fn two_contexts(one: Context, other: &Context) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn borrowed(text: &str) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn slice(list: &[u8]) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn exclusive(state: &mut u8) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn exclusive_context(context: &mut Context) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn shared(state: std::sync::Arc<u8>) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn perhaps_context(context: Option<Context>) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn perhaps_asked(#[ask("Now?")] form: Option<Ask<Form>>) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn conditional(#[cfg(unix)] path: String) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn perhaps(extension: Option<&u8>) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn any(argument: impl ToString) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn two_wholes(Form { x }: Form, other: u8) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn unasked(form: Ask<Form>) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn asked(#[ask("Now?")] form: Form) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn no_question(#[ask(now)] form: Ask<Form>) -> Result<(), ToolError> {
    Ok(())
}

#[tool(blocking)]
fn blocking(#[ask("Now?")] form: Ask<Form>) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn defaulted(#[arg(default = 1)] context: Context) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn whole_with_default(#[args] #[arg(default = form())] form: Form) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn renamed(#[serde(rename = "x")] who: Principal) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn no_default(#[arg(flatten)] x: u8) -> Result<(), ToolError> {
    Ok(())
}

#[tool]
async fn completed(#[complete(x)] x: u8) -> Result<(), ToolError> {
    Ok(())
}

#[prompt]
async fn schema(#[serde(default)] x: String) -> Result<String, ToolError> {
    Ok(x)
}

#[resource("x:/y")]
async fn no_variable(x: String) -> Result<String, ToolError> {
    Ok(x)
}

#[resource("x:/{y}")]
async fn another_variable(x: String) -> Result<String, ToolError> {
    Ok(x)
}

#[resource("x:/{y}")]
async fn one_more(x: String, y: String) -> Result<String, ToolError> {
    Ok(x + &y)
}

#[resource("x:/{y")]
async fn open(y: String) -> Result<String, ToolError> {
    Ok(y)
}

fn main() {}
