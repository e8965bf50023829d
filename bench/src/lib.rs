//! What the programs of the benchmark share: the contestants, and the load.

pub mod ceiling;
pub mod load;
pub mod ours;
pub mod peer_rmcp;
pub mod peer_tower_mcp;

use std::fmt;

use tokio::net::TcpListener;

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the programs of this package name all of them")]
pub enum Who {
    /// The least that a program can do.
    Ceiling,
    /// This project.
    Ours,
    /// `serde_json` with types made for the messages.
    SerdeJson,
    /// `serde_json` with its tree of values.
    Value,
    /// The official Rust SDK.
    Rmcp,
    /// The crate `tower-mcp`.
    TowerMcp,
    /// The crate `turbomcp`.
    TurboMcp,
    /// The official TypeScript SDK.
    Node,
    /// The official Python SDK.
    Python,
}

impl Who {
    /// As it is called in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ceiling => "ceiling",
            Self::Ours => "ours",
            Self::SerdeJson => "serde_json",
            Self::Value => "serde_json::Value",
            Self::Rmcp => "rmcp",
            Self::TowerMcp => "tower-mcp",
            Self::TurboMcp => "turbomcp",
            Self::Node => "node",
            Self::Python => "python",
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many tools a server of the benchmark has if it is told nothing else.
pub const TOOLS: usize = 5;

/// What a tool says of itself that only fills a list.
pub const FILLER: &str = "Does this and that, as the name says";

/// The schema of what such a tool takes.
pub const FILLER_SCHEMA: &str =
    r#"{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}}}"#;

/// Names of as many tools as make `tools` of [`TOOLS`].
pub fn fillers(tools: usize) -> impl Iterator<Item = String> {
    (TOOLS..tools).map(|index| format!("tool_{index:03}"))
}

/// The number of tools in `WORD… --tools N`.
///
/// # Errors
/// When it is no number.
pub fn tools(words: &[String]) -> Result<usize, std::num::ParseIntError> {
    let flag = words.iter().position(|word| word == "--tools");
    flag.and_then(|flag| words.get(flag + 1)).map_or(Ok(TOOLS), |number| number.parse())
}

/// Listens on a free loopback port and says where in the first line of stderr.
///
/// # Errors
/// When there is no such port.
pub async fn listen(scheme: &str) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on {scheme}://{}/mcp", listener.local_addr()?);
    Ok(listener)
}
