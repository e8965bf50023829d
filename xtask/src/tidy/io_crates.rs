//! `mcp-jsonrpc` and `mcp-core` open no socket, file or process: neither their dependencies nor the features that they
//! turn on bring I/O. Dev-dependencies are free.

use crate::tidy::Problem;
use crate::tidy::arrows::declares;
use crate::tidy::repository::Repository;
use crate::workspace::{Dependency, Package};

/// Crates whose purpose is I/O or HTTP.
const IO_CRATES: &[&str] = &[
    "async-io",
    "async-net",
    "async-process",
    "async-std",
    "async-tungstenite",
    "axum",
    "axum-core",
    "eventsource-stream",
    "h2",
    "http",
    "http-body",
    "http-body-util",
    "hyper",
    "hyper-util",
    "mio",
    "native-tls",
    "nix",
    "redis",
    "reqwest",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "tokio-native-tls",
    "tokio-rustls",
    "tokio-tungstenite",
    "tonic",
    "tower-http",
    "tungstenite",
    "ureq",
];

/// Features of tokio and of the crates around it that bring I/O, or choose the runtime for the user.
const IO_FEATURES: &[&str] = &["net", "fs", "process", "io-std", "signal", "full", "rt-multi-thread"];

/// The crates that this is about, and what each must not use beyond the above.
const PURE: &[(&str, &[&str])] = &[("mcp-jsonrpc", &["futures-util", "tokio", "tokio-util"]), ("mcp-core", &[])];

/// Every I/O crate and feature that a pure crate declares.
pub(crate) fn check(repository: &Repository) -> Vec<Problem> {
    let pure = |package: &Package| PURE.iter().find(|(name, _)| *name == package.name);
    let packages = repository.libraries().filter_map(|package| Some((package, pure(package)?.1)));
    packages.flat_map(|(package, banned)| check_package(repository, package, banned)).collect()
}

fn check_package(repository: &Repository, package: &Package, banned: &[&str]) -> Vec<Problem> {
    let name = &package.name;
    let crates = io_crates(package, banned)
        .map(|dependency| (dependency, format!("{name} does no I/O, so it must not depend on `{dependency}`")));
    let features = declared_features(package).chain(enabled_features(package));
    let features =
        features.filter(|(dependency, feature)| is_io_feature(dependency, feature)).map(|(dependency, feature)| {
            (dependency, format!("{name} does no I/O, so it must not turn on `{dependency}/{feature}`"))
        });
    let problems = crates.chain(features).map(|(dependency, message)| {
        let line = repository.line_of(&package.manifest, |line| declares(line, dependency));
        Problem::new(&package.manifest, line, message)
    });
    problems.collect()
}

fn io_crates<'a>(package: &'a Package, banned: &'a [&str]) -> impl Iterator<Item = &'a str> {
    normal(package)
        .map(|dependency| dependency.name.as_str())
        .filter(|name| IO_CRATES.contains(name) || banned.contains(name))
}

/// The features that stand beside a dependency.
fn declared_features(package: &Package) -> impl Iterator<Item = (&str, &str)> {
    normal(package)
        .flat_map(|dependency| dependency.features.iter().map(|feature| (dependency.name.as_str(), feature.as_str())))
}

/// The features that the package's own features turn on: `tokio/net`, `tokio?/net`.
fn enabled_features(package: &Package) -> impl Iterator<Item = (&str, &str)> {
    let values = package.features.values().flatten();
    values.filter_map(|value| value.split_once('/')).map(|(name, feature)| (name.trim_end_matches('?'), feature))
}

fn normal(package: &Package) -> impl Iterator<Item = &Dependency> {
    package.dependencies.iter().filter(|dependency| dependency.kind.is_none())
}

fn is_io_feature(name: &str, feature: &str) -> bool {
    name.starts_with("tokio") && IO_FEATURES.contains(&feature)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repository::made_up::{dependency, dev_dependency, package};

    fn lines(repository: &Repository) -> Vec<String> {
        check(repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_io_crate_is_found() {
        let repository = package("crates", "mcp-core", &[dependency("bytes", &[]), dependency("axum", &[])]);
        let expected = "crates/mcp-core/Cargo.toml:3: mcp-core does no I/O, so it must not depend on `axum`";
        assert_eq!(lines(&repository), [expected]);
    }

    #[test]
    fn an_io_feature_is_found_and_the_others_are_free() {
        let repository = package("crates", "mcp-core", &[dependency("tokio", &["rt", "net", "sync"])]);
        let expected = "crates/mcp-core/Cargo.toml:2: mcp-core does no I/O, so it must not turn on `tokio/net`";
        assert_eq!(lines(&repository), [expected]);
    }

    #[test]
    fn an_io_feature_behind_a_feature_of_the_crate_is_found() {
        for value in ["tokio/fs", "tokio?/fs"] {
            let mut repository = package("crates", "mcp-core", &[dependency("tokio", &[])]);
            repository.packages[0].features = [("disk".to_owned(), vec![value.to_owned()])].into();
            assert_eq!(lines(&repository).len(), 1, "{value}");
        }
    }

    #[test]
    fn json_rpc_knows_no_async() {
        assert_eq!(lines(&package("crates", "mcp-jsonrpc", &[dependency("tokio", &["sync"])])).len(), 1);
    }

    #[test]
    fn dev_dependencies_and_transports_are_free() {
        assert_eq!(lines(&package("crates", "mcp-core", &[dev_dependency("axum")])).len(), 0);
        assert_eq!(lines(&package("crates", "mcp-http", &[dependency("axum", &[])])).len(), 0);
    }
}
