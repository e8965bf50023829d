//! The macros: what they make is what the builders make, and each parameter gets what its type says.

mod answers;
mod arguments;
mod call;
mod same;
mod texts;

use mcp_suite::{Client, Revision, Server, ServerBuilder, implementation, types::ElicitParams, types::ElicitResult};
use serde_json::{Value, json};

/// One revision of each era.
const ERAS: [Revision; 2] = [Revision::LATEST, Revision::LATEST_LEGACY];

fn builder() -> ServerBuilder {
    Server::builder(implementation!())
}

/// A client whose user gives each question, told apart by its words, the same fields.
async fn client(server: Server, revision: Revision) -> Client {
    let client = Client::builder(implementation!()).revisions([revision]);
    let client = client.on_elicit(|question: ElicitParams| async move {
        ElicitResult::accept(json!({ "name": format!("<{}>", question.message), "go": true }))
    });
    client.connect(server).await.unwrap()
}

/// What a tool of that name says in the newest revision, or its failure's words.
async fn said(server: Server, tool: &str, arguments: Value) -> String {
    let client = client(server, Revision::LATEST).await;
    client.call::<String>(tool, arguments).await.unwrap_or_else(|error| error.to_string())
}

fn schema(tool: &mcp_suite::Tool) -> Value {
    tool.definition().input_schema.decode().unwrap()
}
