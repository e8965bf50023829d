//! An authorization server that we did not write: our client registers there, logs in, is stepped up, and refreshes.
//!
//! Our own resource server has no part in it yet: what checks tokens is the program in `tests/interop`. Where it has, keys that
//! are changed at the authorization server belong here too.

use serde::Deserialize;

use crate::error::{Doing, Error, Result};
use crate::interop::bench::{Bench, Installed};
use crate::node::NpmPackage;
use crate::{process, workspace};

pub(crate) const PACKAGE: NpmPackage = NpmPackage { name: "oidc-provider", version: "9.13.3" };

/// Two tools that need no arguments, and what they say.
const TOOLS: [(&str, &str); 2] = [
    ("test_simple_text", "This is a simple text response for testing."),
    ("test_tool_with_logging", "Tool with logging executed successfully"),
];

/// What the authorization server is asked for, a run of the client each.
const ASKED: [&[&str]; 2] = [
    &[
        "registration",
        "login for mcp offline_access",
        "authorization_code",
        "login for mcp other offline_access",
        "authorization_code",
    ],
    &["refresh_token"],
];

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Run {
    asked: Vec<String>,
    said: Vec<String>,
}

/// Holds both runs; an error if anything else was asked for, or said.
pub(crate) fn run(bench: &Bench, installed: &Installed) -> Result {
    eprintln!("{} {}", PACKAGE.name, PACKAGE.version);
    let folder = workspace::scratch()?.join("authorization");
    let file = folder.join("logins");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).doing(|| format!("clearing {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).doing(|| format!("creating {}", folder.display()))?;
    let serving = bench.fixtures.serve(&[])?;
    let mut program = installed.node.program("authorization_server.mjs")?;
    program.arg(&serving.url).arg(&bench.fixtures.client).arg(&file).args(TOOLS.map(|(tool, _)| tool));
    let said = process::listen(&mut program, LIMIT)?;
    let runs = said.stdout.lines().map(serde_json::from_str).collect::<std::result::Result<Vec<Run>, _>>();
    let runs = runs.doing(|| format!("reading what {} says", PACKAGE.name))?;
    if runs == expected() {
        return Ok(());
    }
    Err(Error::new(format!("{}: {runs:?}, and {:?} is expected:\n{}", PACKAGE.name, expected(), said.stderr)))
}

const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

fn expected() -> [Run; 2] {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let texts = TOOLS.map(|(_, text)| text);
    [Run { asked: owned(ASKED[0]), said: owned(&texts) }, Run { asked: owned(ASKED[1]), said: owned(&texts[..1]) }]
}
