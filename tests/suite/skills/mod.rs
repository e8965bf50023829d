//! Skills, served and loaded.

mod client;
#[cfg(unix)]
mod directory;
mod server;

use mcp_core::{Server, implementation};
use mcp_skills::{Digest, SkillFiles, Skills};

/// A `SKILL.md`.
fn skill_md(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: What {name} is for\n---\n{body}")
}

fn refunds() -> SkillFiles {
    SkillFiles::new(skill_md("refunds", "See references/policy.md."))
        .under("acme/billing")
        .file("references/policy.md", "At most 30 days.")
        .file("references/de/policy.md", "Höchstens 30 Tage.")
        .file("logo.png", b"\x89PNG\xff".to_vec())
        .file("scripts/pay out.ts", "export {}")
}

const REFUNDS: &str = "skill://acme/billing/refunds/SKILL.md";

fn serving(skills: Skills) -> Server {
    Server::builder(implementation!()).with(skills).build()
}

fn digest(bytes: impl AsRef<[u8]>) -> String {
    Digest::of(bytes.as_ref()).to_string()
}
