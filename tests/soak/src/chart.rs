//! The plot: a panel a quantity over the time of the run, in the looks of the other charts. Written by hand, as it is
//! little.

use std::fmt::Write as _;

use crate::sample::{Phase, Sample};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 880.0;
const TOP: f64 = 50.0;
const PANEL: f64 = 80.0;
const STEP: f64 = 120.0;
/// So many points show all that can be seen.
const POINTS: usize = 300;

/// What of a sample a line follows.
type Value = fn(&Sample) -> f64;

/// One quantity: of the server, and of the client where that has it too.
struct Panel {
    name: &'static str,
    server: Value,
    client: Option<Value>,
}

const PANELS: &[Panel] = &[
    Panel {
        name: "resident memory, MiB",
        server: |sample| float(sample.server.rss) / 1024.0,
        client: Some(|sample| float(sample.client.usage.rss) / 1024.0),
    },
    Panel { name: "allocated, MiB", server: |sample| size(sample.status.heap) / 1_048_576.0, client: None },
    Panel {
        name: "tasks of the runtime",
        server: |sample| size(sample.status.tasks),
        client: Some(|sample| size(sample.client.tasks)),
    },
    Panel {
        name: "open files",
        server: |sample| size(sample.server.files),
        client: Some(|sample| size(sample.client.usage.files)),
    },
    Panel { name: "legacy sessions", server: |sample| size(sample.status.sessions), client: None },
    Panel { name: "requests in flight", server: |sample| signed(sample.status.in_flight), client: None },
    Panel { name: "tasks of clients that are kept", server: |sample| size(sample.status.kept), client: None },
];

fn float(value: u64) -> f64 {
    // What does not fit is far beyond what can be drawn.
    f64::from(u32::try_from(value).unwrap_or(u32::MAX))
}

fn size(value: usize) -> f64 {
    float(value as u64)
}

fn signed(value: i64) -> f64 {
    float(value.max(0).unsigned_abs())
}

pub(crate) fn render(samples: &[Sample]) -> String {
    let height = TOP + STEP * size(PANELS.len());
    let end = samples.last().map_or(1, |sample| sample.second.max(1));
    let x = |second: u64| LEFT + (RIGHT - LEFT) * float(second) / float(end);
    let rest = samples.iter().find(|sample| sample.phase == Phase::Rest).map(|sample| x(sample.second));
    let mut body = String::new();
    for (index, panel) in PANELS.iter().enumerate() {
        body += &drawn(panel, samples, &x, TOP + STEP * size(index), rest);
    }
    format!("{}{body}{}</svg>\n", head(height), axis(end, height))
}

fn head(height: f64) -> String {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title desc">
<title id="title">A server under load for hours, and after it</title>
<desc id="desc">For each quantity a panel over the time of the run: memory, tasks, files, sessions, requests. Behind the vertical line the load is over.</desc>
<style>
text {{ font: 12px system-ui, sans-serif; fill: #1f2328; }}
.name {{ font-weight: 600; }}
.grid {{ stroke: #d1d9e0; }}
.rest {{ stroke: #1f2328; stroke-dasharray: 4; }}
.server, .client {{ fill: none; stroke-width: 1.5; }}
.server {{ stroke: #0969da; }}
.client {{ stroke: #9a6700; }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #f0f6fc; }}
.grid {{ stroke: #3d444d; }}
.rest {{ stroke: #f0f6fc; }}
.server {{ stroke: #4493f8; }}
.client {{ stroke: #d29922; }}
}}
</style>
<path class="server" d="M10 17h16"/><text x="30" y="22">the server</text>
<path class="client" d="M120 17h16"/><text x="140" y="22">the program that loads it</text>
<path class="rest" d="M320 17h16"/><text x="340" y="22">the load is over</text>
"#
    )
}

fn drawn(panel: &Panel, samples: &[Sample], x: &impl Fn(u64) -> f64, top: f64, rest: Option<f64>) -> String {
    let values = [Some(panel.server), panel.client];
    let most = samples.iter().flat_map(|sample| values.iter().flatten().map(|value| value(sample)));
    let most = most.fold(1.0, f64::max);
    let (base, name) = (top + PANEL, panel.name);
    let mut drawn = format!(
        "<text class=\"name\" x=\"{LEFT}\" y=\"{:.0}\">{name}</text>\
         <line class=\"grid\" x1=\"{LEFT}\" y1=\"{base:.0}\" x2=\"{RIGHT}\" y2=\"{base:.0}\"/>\
         <line class=\"grid\" x1=\"{LEFT}\" y1=\"{top:.0}\" x2=\"{RIGHT}\" y2=\"{top:.0}\"/>\
         <text x=\"{:.0}\" y=\"{base:.0}\" text-anchor=\"end\">0</text>\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{most:.0}</text>\n",
        top - 6.0,
        LEFT - 8.0,
        LEFT - 8.0,
        top + 4.0,
    );
    if let Some(rest) = rest {
        // Writing to a string cannot fail.
        let _ = writeln!(
            drawn,
            "<line class=\"rest\" x1=\"{rest:.1}\" y1=\"{top:.0}\" x2=\"{rest:.1}\" y2=\"{base:.0}\"/>"
        );
    }
    for (class, value) in ["server", "client"].into_iter().zip(values) {
        let Some(value) = value else { continue };
        let points = points(samples, value, |second, value| (x(second), base - PANEL * value / most));
        let _ = writeln!(drawn, "<path class=\"{class}\" d=\"M{points}\"/>");
    }
    drawn
}

/// The line, of few points; each stands for the mean of those around it.
fn points(samples: &[Sample], value: Value, place: impl Fn(u64, f64) -> (f64, f64)) -> String {
    let width = samples.len().div_ceil(POINTS).max(1);
    let points = samples.chunks(width).map(|chunk| {
        let mean = chunk.iter().map(value).sum::<f64>() / size(chunk.len());
        let (x, y) = place(chunk[chunk.len() / 2].second, mean);
        format!("{x:.1} {y:.1}")
    });
    points.collect::<Vec<_>>().join("L")
}

fn axis(end: u64, height: f64) -> String {
    let y = height - STEP + PANEL + 20.0;
    let label = |x: f64, anchor: &str, text: &str| {
        format!("<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{text}</text>\n")
    };
    let minutes = float(end) / 60.0;
    label(LEFT, "start", "0 min") + &label(RIGHT, "end", &format!("{minutes:.1} min"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{counters::Status, sample::Client, system::Usage};

    fn sample(second: u64, phase: Phase) -> Sample {
        let server = Usage { rss: 1024 * (second + 1), threads: 1, files: 1 };
        Sample { second, phase, server, status: Status::default(), client: Client::default() }
    }

    #[test]
    fn a_plot_names_each_panel_and_shows_where_the_load_ends() {
        let samples: Vec<_> = (0..1000).map(|second| sample(second, Phase::Load)).collect();
        let plot = render(&samples);
        for part in ["<title", "<desc", "prefers-color-scheme", ">open files</text>", ">1000</text>"] {
            assert!(plot.contains(part), "{part} in {plot}");
        }
        assert!(!plot.contains("<line class=\"rest\"") && plot.len() < 100_000, "{}", plot.len());
        let samples = [sample(0, Phase::Load), sample(1, Phase::Rest)];
        assert!(render(&samples).contains("<line class=\"rest\" x1=\"880.0\""));
    }
}
