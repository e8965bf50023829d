//! A server with the tool `add`, written with rmcp as its documentation shows it.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use serde::Deserialize;

/// What `add` takes.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// The type of the server.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Adder;

/// The server.
#[must_use]
pub fn server() -> Adder {
    Adder
}

#[tool_router(server_handler)]
impl Adder {
    #[tool(description = "Add two integers")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (a + b).to_string()
    }
}
