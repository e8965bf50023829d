use std::{fs, path::Path};

use mcp_core::Server;

use super::{Case, Conversation, Variant, bless::Blessed, parse};
use crate::{Failure, RawClient};

/// Runs every case of a file against servers in memory, each against one of its own, and tells all that fail.
///
/// The format is that of [`transcript`](crate::transcript). A relative path begins at the package's folder, where cargo
/// runs tests. With tokio's paused time, waits cost nothing.
///
/// With `MCP_TEST_BLESS=1` in the environment the file is written anew first: where a case does not hold, its `<` lines
/// become what the server answered, and a case that has only `>` lines gets them. All other lines stay, as `<?` and `<=`,
/// and so does a case that runs more than once, by `with` or `speak`; what does not hold in spite of it fails. Read what
/// changed before you commit it.
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
    let mut text = fs::read_to_string(path).map_err(|error| format!("{error}; {HOW_TO_BEGIN}"))?;
    if blesses && let Some(blessed) = bless(&text, server).await? {
        fs::write(path, &blessed).map_err(|error| error.to_string())?;
        text = blessed;
    }
    let (mut runs, mut failures) = (0, Vec::new());
    for case in &parse(&text)? {
        let variants = variants_of(case)?;
        runs += variants.len();
        failures.extend(failures_of(case, &variants, server).await);
    }
    if failures.is_empty() {
        return Ok(());
    }
    let count = failures.len();
    let what_now = if blesses { WHAT_STAYS } else { HOW_TO_BLESS };
    Err(format!("{count} of {runs} runs failed:\n\n{}\n\n{what_now}\n", failures.join("\n\n")).into())
}

const HOW_TO_BEGIN: &str = "write its `== ` and `> ` lines, and MCP_TEST_BLESS=1 adds what the server answers";
const HOW_TO_BLESS: &str = "If the server is right, MCP_TEST_BLESS=1 writes what it answers into the file.";
const WHAT_STAYS: &str =
    "MCP_TEST_BLESS=1 writes `<` lines only, and only in cases that run once; what is left is to be mended by hand.";

/// The file with what the server answers, where that is not what it says.
async fn bless(text: &str, server: &impl Fn() -> Server) -> Result<Option<String>, Failure> {
    let mut blessed = Blessed::new(text);
    for case in &parse(text)? {
        let variants = variants_of(case)?;
        if let ([variant], false) = (variants.as_slice(), failures_of(case, &variants, server).await.is_empty()) {
            let conversation = Conversation::new(RawClient::connect(server()));
            blessed.case(case, variant, conversation).await.map_err(|why| why.at(&case.title))?;
        }
    }
    Ok(blessed.changed())
}

fn variants_of(case: &Case) -> Result<Vec<Variant>, Failure> {
    case.variants().map_err(|why| why.at(&case.title))
}

async fn failures_of(case: &Case, variants: &[Variant], server: &impl Fn() -> Server) -> Vec<String> {
    let mut failures = Vec::new();
    for variant in variants {
        let mut conversation = Conversation::new(RawClient::connect(server()));
        if let Err(why) = conversation.play(case, variant).await {
            failures.push(format!("{}{variant} {why}", case.title));
        }
    }
    failures
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

    #[tokio::test(start_paused = true)]
    async fn lines_that_are_not_plain_stay_and_new_ones_come_where_they_hold() {
        let pong = |id: u8| PONG.replace("\"id\":1", &format!("\"id\":{id}"));
        let ping = |id: u8| PING.replace("\"id\":1", &format!("\"id\":{id}"));
        let (ping2, pong2) = (ping(2), pong(2));
        let text = |new1: &str, new2: &str| {
            format!(
                "== a text within\n{PING}\n{new1}<= \"id\":1\n# Kept.\n<! error\n<-\n\
                 == more than was\n{PING}\n{ping2}\n<? {{\"id\":1,\n  \"result\":{{}}}}\n<= 1\n{new2}<-\n\
                 == none of these\n{PING}\n{new1}<* {{\"method\":\"x\"}}\n"
            )
        };
        let before = text("< {\"id\":8}\n", "").replacen("< {\"id\":8}\n", "", 1);
        let (after, outcome) = blessed("hand.txt", &before).await;
        outcome.unwrap();
        assert_eq!(after, text(&format!("{PONG}\n"), &format!("{pong2}\n")));
    }

    #[tokio::test(start_paused = true)]
    async fn lines_that_are_not_plain_and_do_not_hold_stay_and_fail() {
        for (answers, why) in [
            (format!("<? {{\"id\":7}}\n{PONG}"), "line 3: id: expected 7, got 1"),
            (format!("{PONG}\n<= pong"), "line 4: `<= pong` does not hold"),
            (format!("{PONG}\n<! result"), "line 4: `<! result` does not hold"),
            ("<* {\"method\":\"x\"}".to_owned(), "line 3: method: "),
        ] {
            let case = format!("== by hand\n{PING}\n{answers}\n");
            let (text, outcome) = blessed("fails.txt", &case).await;
            assert_eq!(text, case);
            let told = outcome.unwrap_err().to_string();
            assert!(told.contains(why) && told.contains("MCP_TEST_BLESS=1 writes `<` lines only"), "{told}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_ends_of_lines_stay() {
        for (end, last) in [("\r\n", "\r\n"), ("\r\n", ""), ("\n", ""), ("\n", "\n")] {
            let file = |answer: &str, added: &str| {
                let lines = ["# A file.", "== wrong", PING, answer, "", "== new", PING];
                format!("{}{added}{last}", lines.join(end))
            };
            let (text, outcome) = blessed("ends.txt", &file("< {\"id\":7}", "")).await;
            outcome.unwrap();
            assert_eq!(text, file(PONG, &format!("{end}{PONG}")), "{end:?} {last:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_fails_or_is_missing_names_the_way_to_bless_it() {
        let path = std::env::temp_dir().join(format!("mcp-test-{}-how.txt", std::process::id()));
        let missing = check(&path, &server, false).await.unwrap_err().to_string();
        assert!(missing.contains("MCP_TEST_BLESS=1 adds"), "{missing}");
        fs::write(&path, format!("== a\n{PING}\n")).unwrap();
        let failing = check(&path, &server, false).await.unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(failing.contains("MCP_TEST_BLESS=1 writes what it answers"), "{failing}");
    }
}
