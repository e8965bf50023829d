//! Measures our server beside its peers and the ceilings, and prints a table; `cargo xtask bench` builds and starts it.

mod contest;
mod cores;
mod load;
mod report;
mod rows;
mod server;
mod settings;
mod statistics;

use anyhow::{Context, Result};

use crate::{report::Report, settings::Settings};

fn main() -> Result<()> {
    let settings = Settings::read(std::env::args().skip(1))?;
    let mut report = Report::new();
    for row in settings.rows() {
        eprintln!("{}: {} …", row.name, row.about);
        report.add(row, &contest::run(row, &settings).with_context(|| format!("the row `{}`", row.name))?);
    }
    let seconds = settings.time.as_secs_f64();
    println!("\n{}", report.render());
    println!(
        "Medians of rounds ({}) of {seconds} s; {}.",
        settings.rounds,
        report::versions(include_str!("../Cargo.lock"))
    );
    println!("Quote ratios of one run, never rates: what they are is in bench/README.md.");
    Ok(())
}
