//! A crate that depends on `mcp-suite` alone, under another name.

use mcp::{Ask, Context, Server, ToolError, implementation, prompt, resource, tool};
use std::sync::Arc;

/// Adds
#[tool]
async fn add(/** The first */ a: i64, #[arg(default = 1)] b: i64) -> Result<i64, ToolError> {
    Ok(a + b)
}

#[derive(mcp::__private::serde::Deserialize, mcp::schemars::JsonSchema)]
#[serde(crate = "mcp::__private::serde")]
#[schemars(crate = "mcp::schemars")]
struct Yes {
    yes: bool,
}

/// Where a type is another's name, the compiler sees through it.
type Outcome<T> = Result<T, ToolError>;

#[tool]
async fn both(#[ask("Now?")] now: Ask<Yes>, #[ask("{when}?")] then: Ask<Yes>, when: String) -> Outcome<bool> {
    Ok(now.yes && then.yes && when.is_empty())
}

#[prompt]
async fn greet(name: String) -> Outcome<String> {
    Ok(name)
}

struct Desk;

impl Desk {
    #[resource("desk:///{drawer}")]
    async fn open(&self, context: &Context, drawer: String) -> Outcome<String> {
        Ok(format!("{drawer} {}", context.revision()))
    }
}

// A test that is compiled in its own function finds the one beside it.
fn main() {
    #[tool(blocking)]
    fn inner() -> Outcome<()> {
        Ok(())
    }
    let desk = Arc::new(Desk);
    let server = Server::builder(implementation!()).tool(add_tool()).tool(both_tool()).tool(inner_tool());
    server.prompt(greet_prompt()).template(desk.open_template()).build();
}
