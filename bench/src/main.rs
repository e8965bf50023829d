//! Measures our server beside its peers and the ceilings; `cargo xtask bench` builds and starts it.

mod contest;
mod cores;
mod facts;
mod report;
mod rows;
mod server;
mod settings;
mod statistics;
mod system;
mod trials;

use anyhow::{Context, Result};

use crate::{report::Report, settings::Settings};

fn main() -> Result<()> {
    let settings = Settings::read(std::env::args().skip(1))?;
    let files = system::open_files();
    let mut report = Report::new(&settings);
    for row in settings.rows() {
        eprintln!("{}: {} …", row.name, row.about);
        match row.obstacle(files, &settings) {
            Some(why) => report.skip(row, why),
            None => report.add(row, contest::run(row, &settings).with_context(|| format!("the row `{}`", row.name))?),
        }
    }
    report.add_facts(facts::measure(&settings.facts())?);
    println!("\n{}", report.text());
    settings.write.as_deref().map_or(Ok(()), |folder| report.write(folder))
}
