//! What counts depend on beside our code.

use std::process::Command;

use crate::error::{Doing, Result};
use crate::{process, workspace};

/// Facts about the machine and its tools, each with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conditions(pub(super) Vec<(String, String)>);

impl Conditions {
    /// Those of this machine.
    pub(super) fn here() -> Result<Self> {
        let compiler = said(Command::new("rustc").arg("-vV"))?;
        let (version, target) = (first_line(&compiler), after("host: ", &compiler));
        let facts = [
            ("target", target),
            ("compiler", version),
            ("libc", said(Command::new("getconf").arg("GNU_LIBC_VERSION")).unwrap_or_else(|_| "unknown".to_owned())),
            ("valgrind", said(Command::new("valgrind").arg("--version"))?),
            ("processor", processor().to_owned()),
        ];
        Ok(Self(facts.map(|(name, fact)| (name.to_owned(), fact.trim().to_owned())).into()))
    }

    /// The differences to those of another measurement, as a person reads them.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let differ = self.0.iter().filter_map(|(name, fact)| {
            let there = other.get(name);
            (there != Some(fact)).then(|| format!("{name} is `{fact}`, was `{}`", there.unwrap_or("not told")))
        });
        differ.collect()
    }

    /// Whether programs of both have the same instructions to count at all.
    pub(super) fn are_comparable(&self, other: &Self) -> bool {
        self.get("target") == other.get("target")
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, fact)| fact.as_str())
    }
}

/// Valgrind shows programs the AVX2 of the processor, and hides what is newer.
fn processor() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return if std::is_x86_feature_detected!("avx2") { "with AVX2" } else { "without AVX2" };
    #[cfg(not(target_arch = "x86_64"))]
    "any"
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.current_dir(workspace::root()).output().doing(|| process::shown(command))?;
    process::expect_success(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn after(start: &str, text: &str) -> String {
    text.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(target: &str, compiler: &str) -> Conditions {
        Conditions([("target", target), ("compiler", compiler)].map(|(a, b)| (a.to_owned(), b.to_owned())).into())
    }

    #[test]
    fn another_compiler_is_told_and_compared_all_the_same() {
        let (now, before) = (conditions("x86_64", "rustc 2"), conditions("x86_64", "rustc 1"));
        assert_eq!(now.differences(&before), ["compiler is `rustc 2`, was `rustc 1`"]);
        assert!(now.are_comparable(&before));
        assert_eq!(now.differences(&now), [""; 0]);
    }

    #[test]
    fn another_target_is_not_compared() {
        assert!(!conditions("aarch64", "rustc 1").are_comparable(&conditions("x86_64", "rustc 1")));
    }
}
