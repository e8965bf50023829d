//! One run: the server is started, loaded, left in peace, and judged.

use std::{fs, path::PathBuf, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{
    Result, chart,
    judge::{Facts, judge},
    load::load,
    report,
    sample::{Client, Phase, Sample, table},
    system,
    watched::Watched,
};

/// How often is looked.
const EVERY: Duration = Duration::from_secs(1);

/// How long the counts may take to be back where they were: what is open then has its time, and its grace.
const REST: Duration = Duration::from_secs(90);

/// From this time on a run says something about memory, and is written down.
pub(crate) const LONG: Duration = Duration::from_secs(5 * 60);

/// What the run is told.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    time: Duration,
    /// Where samples go.
    out: PathBuf,
    /// Where the plot of a long run goes.
    write: Option<PathBuf>,
    /// The file in which a long run is written down.
    record: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn read(words: &[&str]) -> Result<Self> {
        let mut settings = Self::default();
        let mut words = words.iter();
        while let (Some(flag), Some(value)) = (words.next(), words.next()) {
            match *flag {
                "--seconds" => settings.time = Duration::try_from_secs_f64(value.parse()?)?,
                "--out" => settings.out = value.into(),
                "--write" => settings.write = Some(value.into()),
                "--record" => settings.record = Some(value.into()),
                _ => return Err(format!("there is no {flag}").into()),
            }
        }
        Ok(settings)
    }
}

/// Runs, tells, and fails where a verdict is bad.
pub(crate) async fn run(settings: &Settings) -> Result {
    let facts = observed(settings.time).await?;
    let verdicts = judge(&facts);
    report::print(&facts, &verdicts);
    fs::create_dir_all(&settings.out)?;
    fs::write(settings.out.join("samples.csv"), table(&facts.samples))?;
    let plot = chart::render(&facts.samples);
    fs::write(settings.out.join("soak.svg"), &plot)?;
    println!("samples and plot: {}", settings.out.display());
    let bad: Vec<_> = verdicts.iter().filter(|verdict| !verdict.is_good).map(|verdict| verdict.about).collect();
    if !bad.is_empty() {
        return Err(format!("not as it should be: {}", bad.join(", ")).into());
    }
    if settings.time >= LONG {
        if let Some(folder) = &settings.write {
            fs::write(folder.join("soak.svg"), plot)?;
        }
        if let Some(file) = &settings.record {
            fs::write(file, report::record(&facts, &verdicts))?;
        }
    }
    Ok(())
}

async fn observed(time: Duration) -> Result<Facts> {
    let mut watched = Watched::start().await?;
    let begun = Instant::now();
    // The first answers make what is there for all further ones.
    for _ in 0..3 {
        watched.status().await?;
    }
    let start = sample(&mut watched, begun, Phase::Load).await?;
    let mut samples = vec![start];
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut loading = load(watched.address, watched.socket(), time).await?;
    while loading.goes_on() {
        ticks.tick().await;
        samples.push(sample(&mut watched, begun, Phase::Load).await?);
    }
    let field = loading.field.clone();
    drop(loading);
    let rest = Instant::now();
    loop {
        ticks.tick().await;
        let now = sample(&mut watched, begun, Phase::Rest).await?;
        samples.push(now);
        if now.is_at_rest_like(&start) || rest.elapsed() > REST {
            break;
        }
    }
    Ok(Facts {
        time,
        kinds: field.tally.kinds(),
        total: field.tally.total(),
        complaints: field.tally.complaints(),
        samples,
    })
}

async fn sample(watched: &mut Watched, begun: Instant, phase: Phase) -> Result<Sample> {
    Ok(Sample {
        second: begun.elapsed().as_secs(),
        phase,
        server: system::usage(watched.id)?,
        status: watched.status().await?,
        client: Client {
            usage: system::usage(std::process::id())?,
            tasks: Handle::current().metrics().num_alive_tasks(),
        },
    })
}
