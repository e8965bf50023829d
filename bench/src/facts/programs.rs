//! The programs: what each depends on, and what it does.
//!
//! All programs of a set can do the same. Where a peer's own crate is not all that its users need, both are counted.

use std::path::Path;

/// A program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    /// What it can do.
    set: &'static str,
    /// By what it does that.
    by: &'static str,
    dependencies: &'static [Dependency],
    /// A server with the tool `add`; without, the program is there to be counted.
    source: Option<&'static str>,
    /// Whether it is built from nothing.
    pub(super) is_cold: bool,
    /// How many crates it is claimed to have at most.
    most_crates: Option<u32>,
}

/// A line of a manifest.
#[derive(Debug, Clone, Copy)]
struct Dependency {
    name: &'static str,
    /// One of our own has none.
    version: Option<&'static str>,
    has_defaults: bool,
    features: &'static [&'static str],
}

pub(super) const CRATES: &str = "crates";

const SERVER: &str = "server";
const STDIO: &str = "server, stdio";
const HTTP: &str = "server, HTTP";
const BOTH: &str = "server and client, HTTP";
const DEFAULT: &str = "our default features";

const MODERN: &str = "protocol-2026-07-28";
const RMCP_SERVICE: &str = "transport-streamable-http-server";
const RMCP_REQWEST: &str = "transport-streamable-http-client-reqwest";

const TOKIO: Dependency = with_defaults("tokio", "1", &["macros", "rt-multi-thread"]);
const TOKIO_NET: Dependency = with_defaults("tokio", "1", &["macros", "net", "rt-multi-thread"]);
const SERDE: Dependency = with_defaults("serde", "1", &["derive"]);
const SCHEMARS: Dependency = with_defaults("schemars", "1", &[]);
const AXUM: Dependency = without_defaults("axum", "0.8", &["http1", "tokio"]);

pub(crate) const PROGRAMS: &[Program] = &[
    Program::counted(SERVER, "ours", &[ours("mcp-core", &[])]).of_at_most(55),
    Program::counted(SERVER, "ours with validate", &[ours("mcp-core", &["validate"])]),
    Program::counted(SERVER, "rmcp without macros", &[without_defaults("rmcp", "~3.11", &["server"])]),
    Program::counted(SERVER, "tower-mcp with stdio", &[tower_mcp(&[MODERN])]),
    Program::counted(STDIO, "ours", &[ours("mcp-suite", &["stdio"]), SCHEMARS, SERDE, TOKIO])
        .that_serves(include_str!("sources/ours_stdio.rs")),
    Program::counted(STDIO, "ours with validate", &[ours("mcp-suite", &["stdio", "validate"]), SCHEMARS, SERDE, TOKIO])
        .that_serves(include_str!("sources/ours_stdio.rs")),
    Program::counted(STDIO, "rmcp", &[rmcp(&["server", "transport-io"]), SERDE, TOKIO])
        .that_serves(include_str!("sources/rmcp_stdio.rs")),
    Program::counted(STDIO, "tower-mcp", &[tower_mcp(&[MODERN]), SCHEMARS, SERDE, TOKIO])
        .that_serves(include_str!("sources/tower_mcp_stdio.rs")),
    Program::counted(HTTP, "ours", &[ours("mcp-suite", &["http-server"]), SCHEMARS, SERDE, TOKIO])
        .that_serves(include_str!("sources/ours_http.rs"))
        .built_cold()
        .of_at_most(75),
    Program::counted(
        HTTP,
        "ours with validate",
        &[ours("mcp-suite", &["http-server", "validate"]), SCHEMARS, SERDE, TOKIO],
    )
    .that_serves(include_str!("sources/ours_http.rs")),
    Program::counted(HTTP, "rmcp without axum", &[rmcp(&["server", RMCP_SERVICE])]),
    Program::counted(HTTP, "rmcp", &[rmcp(&["server", RMCP_SERVICE]), AXUM, SERDE, TOKIO_NET])
        .that_serves(include_str!("sources/rmcp_http.rs"))
        .built_cold(),
    Program::counted(HTTP, "tower-mcp", &[tower_mcp(&["http", MODERN]), SCHEMARS, SERDE, TOKIO])
        .that_serves(include_str!("sources/tower_mcp_http.rs"))
        .built_cold(),
    Program::counted(BOTH, "ours", &[ours("mcp-suite", &["http"])]).of_at_most(115),
    Program::counted(BOTH, "ours with validate", &[ours("mcp-suite", &["http", "validate"])]),
    Program::counted(BOTH, "rmcp without axum", &[rmcp(&["server", "client", RMCP_SERVICE, RMCP_REQWEST])]),
    Program::counted(BOTH, "tower-mcp with TLS", &[tower_mcp(&["http", "http-client", MODERN])]),
    Program::counted(DEFAULT, "ours without validate", &[ours("mcp-suite", &["http", "stdio", "tls", "ws"])]),
    Program::counted(DEFAULT, "ours", &[Dependency { has_defaults: true, ..ours("mcp-suite", &[]) }]),
];

impl Program {
    const fn counted(set: &'static str, by: &'static str, dependencies: &'static [Dependency]) -> Self {
        Self { set, by, dependencies, source: None, is_cold: false, most_crates: None }
    }

    const fn that_serves(self, source: &'static str) -> Self {
        Self { source: Some(source), ..self }
    }

    const fn built_cold(self) -> Self {
        Self { is_cold: true, ..self }
    }

    const fn of_at_most(self, crates: u32) -> Self {
        Self { most_crates: Some(crates), ..self }
    }

    /// The most that this project claims in that unit.
    pub(super) fn claim(&self, unit: &str) -> Option<f64> {
        self.most_crates.filter(|_| unit == CRATES).map(f64::from)
    }

    pub(super) fn who(&self) -> String {
        format!("{}: {}", self.set, self.by)
    }

    pub(super) fn serves(&self) -> bool {
        self.source.is_some()
    }

    /// The package's name: that of the program, as far as it is letters.
    pub(super) fn package(&self) -> String {
        let who = self.who().to_lowercase();
        who.split(|char: char| !char.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("-")
    }

    pub(super) fn source(&self) -> &'static str {
        self.source.unwrap_or("fn main() {}\n")
    }

    /// The manifest, where our crates are in the folder `crates`.
    pub(super) fn manifest(&self, crates: &Path) -> String {
        let dependencies: String = self.dependencies.iter().map(|dependency| dependency.line(crates)).collect();
        format!(
            "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}",
            self.package()
        )
    }
}

impl Dependency {
    fn line(&self, crates: &Path) -> String {
        let Self { name, has_defaults, features, .. } = self;
        let from = match self.version {
            Some(version) => format!("version = {version:?}"),
            None => format!("path = {:?}", format!("{}/{name}", crates.display())),
        };
        format!("{name} = {{ {from}, default-features = {has_defaults}, features = {features:?} }}\n")
    }
}

const fn ours(name: &'static str, features: &'static [&'static str]) -> Dependency {
    Dependency { name, version: None, has_defaults: false, features }
}

/// The macros are one of its default features.
const fn rmcp(features: &'static [&'static str]) -> Dependency {
    with_defaults("rmcp", "~3.11", features)
}

const fn tower_mcp(features: &'static [&'static str]) -> Dependency {
    with_defaults("tower-mcp", "~0.25", features)
}

const fn with_defaults(name: &'static str, version: &'static str, features: &'static [&'static str]) -> Dependency {
    Dependency { name, version: Some(version), has_defaults: true, features }
}

const fn without_defaults(name: &'static str, version: &'static str, features: &'static [&'static str]) -> Dependency {
    Dependency { name, version: Some(version), has_defaults: false, features }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_manifest_says_what_the_program_depends_on() {
        const PROGRAM: Program =
            Program::counted(BOTH, "ours & theirs", &[ours("mcp-core", &["validate", "derive"]), SCHEMARS]);
        let manifest = PROGRAM.manifest(Path::new("/a/crates"));
        assert!(manifest.contains("name = \"server-and-client-http-ours-theirs\""), "{manifest}");
        let ours = r#"mcp-core = { path = "/a/crates/mcp-core", default-features = false, features = ["validate", "derive"] }"#;
        assert!(manifest.contains(ours), "{manifest}");
        assert!(
            manifest.ends_with("schemars = { version = \"1\", default-features = true, features = [] }\n"),
            "{manifest}"
        );
    }

    #[test]
    fn no_two_programs_are_in_one_folder() {
        let packages: BTreeSet<String> = PROGRAMS.iter().map(Program::package).collect();
        assert_eq!(packages.len(), PROGRAMS.len());
    }

    #[test]
    fn what_is_built_does_something() {
        assert!(PROGRAMS.iter().all(|program| program.serves() || !program.is_cold));
    }
}
