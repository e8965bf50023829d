//! Notes which compiler builds the benchmark.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(compiler).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    println!("cargo::rustc-env=COMPILER={}", String::from_utf8_lossy(&said).trim());
}
