//! `docs/http.md` says what is so: its `curl` lines are run, and its limits compared.

use std::{collections::HashMap, process::Stdio};

use mcp_core::Limits;
use mcp_http::Routes;
use tokio::process::Command;

use super::{Served, raw::soon};

const PAGE: &str = include_str!("../../../docs/http.md");

/// Where the page's server listens.
const ADDRESS: &str = "127.0.0.1:8080";

/// What is printed behind each command's output.
const END: &str = "=== the end of a command ===";

/// A command of the page, and what it says must come of it.
#[derive(Debug, Default)]
struct Example {
    command: String,
    output: Vec<String>,
}

/// The fenced blocks of the page in that language.
fn blocks(language: &str) -> impl Iterator<Item = &str> {
    let fences = PAGE.split("\n```").skip(1).step_by(2);
    fences.filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in blocks("console").flat_map(str::lines) {
        if let Some(command) = line.strip_prefix("$ ") {
            examples.push(Example { command: command.to_owned(), output: Vec::new() });
            continue;
        }
        let last = examples.last_mut().unwrap_or_else(|| panic!("a block begins without a command: {line}"));
        if last.output.is_empty() && goes_on(&last.command) {
            last.command += "\n";
            last.command += line;
        } else if !line.trim().is_empty() {
            last.output.push(line.trim().to_owned());
        }
    }
    examples
}

/// Whether a command has more lines: within quotes, or behind a backslash.
fn goes_on(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}

/// Whether a text is what the page says, where `…` is anything.
fn fits(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The same with lines, where a line of `…` is any number of them.
fn all_fit(lines: &[&str], patterns: &[String]) -> bool {
    match patterns.split_first() {
        None => lines.is_empty(),
        Some((any, patterns)) if any == "…" => (0..=lines.len()).any(|from| all_fit(&lines[from..], patterns)),
        Some((pattern, patterns)) => {
            lines.split_first().is_some_and(|(line, lines)| fits(line, pattern) && all_fit(lines, patterns))
        }
    }
}

/// Runs the script without what this machine's user has set up for curl.
async fn shell(script: String) -> String {
    assert!(Command::new("curl").arg("--version").output().await.is_ok(), "curl is needed, to run docs/http.md");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("CURL_HOME", "/nonexistent").env("NO_PROXY", "*").env("no_proxy", "*");
    let running = command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true).output();
    let output = soon("the commands of docs/http.md", running).await.expect("sh");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_page_does_what_the_page_says() {
    let served = Served::with(Routes::new(everything_server::server()), "127.0.0.1").await;
    let examples = examples();
    // One shell for all, so that what one sets the next ones have.
    let script: String =
        examples.iter().map(|example| format!("{}\nprintf '\\n{END}\\n'\n", example.command)).collect();
    let said = shell(script.replace(ADDRESS, &served.address.to_string())).await;
    let outputs: Vec<&str> = said.split(END).collect();
    assert_eq!(outputs.len(), examples.len() + 1, "{said}");
    for (example, output) in examples.iter().zip(outputs) {
        let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let (command, expected) = (&example.command, example.output.join("\n"));
        assert!(all_fit(&lines, &example.output), "$ {command}\n{}\n\nThe page says:\n{expected}", lines.join("\n"));
    }
}

#[test]
fn no_command_of_the_page_is_left_out() {
    let commands = examples();
    let runs = |verb: &str| commands.iter().filter(|example| example.command.contains(verb)).count();
    assert!(runs("curl") >= 9 && runs("post") >= 9, "{commands:?}");
    let run: usize = commands.iter().map(|example| example.command.matches("curl -").count()).sum();
    assert_eq!(PAGE.matches("curl -").count(), run, "a command stands outside of a `console` block");
}

/// An amount in the page's words, or as `Debug` has it, in ones, bytes or seconds.
fn amount(text: &str) -> Option<u64> {
    let text = text.replace(',', "");
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text[digits.len()..].trim() {
        "" | "s" => 1,
        "min" => 60,
        "h" => 3600,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * unit)
}

#[test]
fn the_limits_of_the_page_have_their_defaults() {
    let limits = format!("{:#?}", Limits::default());
    let defaults: HashMap<&str, &str> =
        limits.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": ")).collect();
    let table = PAGE.split_once("| limit | default |").expect("the table").1;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        let default = defaults.get(row[1].trim_matches('`')).unwrap_or_else(|| panic!("there is no limit {}", row[1]));
        assert_eq!(amount(row[2]), amount(default), "{}", row[1]);
    }
}

#[test]
fn a_text_fits_what_the_page_says_and_no_other() {
    for (text, pattern, is_fit) in [
        ("id: 7-0", "id: …-0", true),
        ("id: 7-1", "id: …-0", false),
        ("abc", "a…b…c", true),
        ("abc", "…b", false),
        ("abc", "abc", true),
        ("abcd", "abc", false),
        ("{\"a\":1}", "{…}", true),
    ] {
        assert_eq!(fits(text, pattern), is_fit, "{text} {pattern}");
    }
    let patterns = ["a", "…", "c"].map(str::to_owned);
    assert!(all_fit(&["a", "c"], &patterns) && all_fit(&["a", "b", "b", "c"], &patterns));
    assert!(
        !all_fit(&["a", "b"], &patterns) && !all_fit(&["b", "c"], &patterns) && !all_fit(&["a", "c", "d"], &patterns)
    );
    assert!(goes_on("post -d '{") && goes_on("curl \\") && !goes_on("post -d '{\n}'"));
}
