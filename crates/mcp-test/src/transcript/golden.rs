use std::{fs, path::Path};

use mcp_core::Server;

use super::{Case, Conversation, Variant, bless::Blessed, parse};
use crate::{Failure, RawClient};

/// Runs every case of a file against servers in memory, each against one of its own, and tells all that fail.
///
/// The format is that of [`transcript`](crate::transcript). A relative path begins at the package's folder, where cargo
/// runs tests. With tokio's paused time, waits cost nothing.
///
/// With `MCP_TEST_BLESS=1` in the environment the file is written anew instead: where a case does not hold, its `<` lines
/// become what the server answered, and a case that has only `>` lines gets them. A case that runs more than once, by
/// `with` or `speak`, is left as it is. Read what changed before you commit it.
///
/// ```no_run
/// # fn server() -> mcp_core::Server { mcp_core::Server::builder(mcp_core::implementation!()).build() }
/// #[tokio::test(start_paused = true)]
/// async fn the_server_answers_as_it_always_did() {
///     mcp_test::golden("tests/golden/tools.txt", server).await;
/// }
/// ```
///
/// # Panics
/// When the file cannot be read or is none, and with all cases that fail.
pub async fn golden(path: impl AsRef<Path>, server: impl Fn() -> Server) {
    let blesses = std::env::var("MCP_TEST_BLESS").is_ok_and(|value| !["", "0"].contains(&value.as_str()));
    if let Err(why) = check(path.as_ref(), &server, blesses).await {
        panic!("{}: {why}", path.as_ref().display());
    }
}

pub(crate) async fn check(path: &Path, server: &impl Fn() -> Server, blesses: bool) -> Result<(), Failure> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut blessed = Blessed::new(&text);
    let (mut runs, mut failures) = (0, Vec::new());
    for case in &parse(&text)? {
        let variants = case.variants().map_err(|why| why.at(&case.title))?;
        runs += variants.len();
        let Some(failed) = failures_of(case, &variants, server).await else { continue };
        if let ([variant], true) = (variants.as_slice(), blesses) {
            let client = RawClient::connect(server());
            blessed.case(case, variant, Conversation::new(client)).await.map_err(|why| why.at(&case.title))?;
        } else {
            failures.extend(failed);
        }
    }
    if let Some(text) = blessed.changed() {
        fs::write(path, text).map_err(|error| error.to_string())?;
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("{} of {runs} runs failed:\n\n{}\n", failures.len(), failures.join("\n\n")).into())
}

async fn failures_of(case: &Case, variants: &[Variant], server: &impl Fn() -> Server) -> Option<Vec<String>> {
    let mut failures = Vec::new();
    for variant in variants {
        let mut conversation = Conversation::new(RawClient::connect(server()));
        if let Err(why) = conversation.play(case, variant).await {
            failures.push(format!("{}{variant} {why}", case.title));
        }
    }
    (!failures.is_empty()).then_some(failures)
}

#[cfg(test)]
mod tests {
    use mcp_core::{Tool, ToolError, implementation};

    use super::*;

    async fn greet() -> Result<&'static str, ToolError> {
        Ok("hello")
    }

    fn server() -> Server {
        Server::builder(implementation!()).tool(Tool::new("greet", greet)).build()
    }

    async fn blessed(name: &str, text: &str) -> (String, Result<(), Failure>) {
        let path = std::env::temp_dir().join(format!("mcp-test-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        let outcome = check(&path, &server, true).await;
        let again = check(&path, &server, false).await;
        assert_eq!(outcome.is_ok(), again.is_ok(), "what is blessed holds: {again:?}");
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        (text, outcome)
    }

    const PING: &str = r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    const PONG: &str = r#"< {"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[tokio::test(start_paused = true)]
    async fn a_blessed_file_says_what_the_server_answers_and_nothing_else_of_it_changes() {
        let text = format!(
            "# Greetings.\n\n== new\n{PING}\n\n== wrong\n{PING}\n< {{\"id\":2,\n    \"result\":{{}}}}\n# kept\n\
             == fine\n{PING}\n< {{\"id\":1}}\n== first comes nothing\n< {{}}\n{PING}\n{PING}\n{PONG}\n"
        );
        let (text, outcome) = blessed("new.txt", &text).await;
        outcome.unwrap();
        let expected = format!(
            "# Greetings.\n\n== new\n{PING}\n{PONG}\n\n== wrong\n{PING}\n{PONG}\n# kept\n\
             == fine\n{PING}\n< {{\"id\":1}}\n== first comes nothing\n{PING}\n{PING}\n{PONG}\n{PONG}\n"
        );
        assert_eq!(text, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_case_that_runs_more_than_once_is_left_as_it_is() {
        let case = format!("== twice\nwith: 1\nwith: 2\n{PING}\n< {{\"id\":7}}\n");
        let (text, outcome) = blessed("twice.txt", &case).await;
        assert_eq!(text, case);
        assert!(outcome.unwrap_err().to_string().contains("line 5: id: expected 7, got 1"));
    }
}
