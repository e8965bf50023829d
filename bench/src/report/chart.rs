//! The chart: for each row a group of bars, one a contestant, from the line that is ours to where the contestant is, on
//! a logarithmic scale. Written by hand, as it is little.

use std::fmt::Write;

use bench::Who;

use super::Section;
use crate::statistics::short;

const WIDTH: f64 = 900.0;
/// Where the names of rows and contestants end.
const LEFT: f64 = 250.0;
/// Where the figures begin.
const RIGHT: f64 = 820.0;
const BAR: f64 = 14.0;
const STEP: f64 = 20.0;
const GAP: f64 = 14.0;
const TOP: f64 = 70.0;

/// One bar: whose, and how good it is where ours is 1.
struct Bar<'a> {
    row: &'a str,
    label: &'a str,
    is_bound: bool,
    value: f64,
}

/// Where a value stands between the worst and the best.
struct Scale {
    lowest: f64,
    highest: f64,
}

impl Scale {
    /// Whole powers of ten around all values and 1.
    fn of<'a>(bars: impl IntoIterator<Item = &'a Bar<'a>>) -> Self {
        let logs = bars.into_iter().map(|bar| bar.value.log10());
        let (lowest, highest) = logs.fold((0.0_f64, 0.0_f64), |(low, high), log| (low.min(log), high.max(log)));
        Self { lowest: lowest.floor().min(-1.0), highest: highest.ceil().max(1.0) }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (value.log10() - self.lowest) / (self.highest - self.lowest)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        #[expect(clippy::cast_possible_truncation, reason = "whole numbers of few digits")]
        let (lowest, highest) = (self.lowest as i32, self.highest as i32);
        (lowest..=highest).map(|power| 10_f64.powi(power))
    }
}

pub(super) fn render(sections: &[Section]) -> String {
    let groups: Vec<Vec<Bar<'_>>> = sections.iter().map(bars).filter(|bars| !bars.is_empty()).collect();
    let scale = Scale::of(groups.iter().flatten());
    let height = TOP + groups.iter().map(|bars| GAP + STEP * bench::load::float(bars.len() as u64)).sum::<f64>() + GAP;
    let (mut body, mut y) = (String::new(), TOP);
    for bars in &groups {
        y += GAP;
        for (index, bar) in bars.iter().enumerate() {
            body += &drawn(bar, index == 0, &scale, y);
            y += STEP;
        }
    }
    format!("{}{}{body}</svg>\n", head(height), axis(&scale, height))
}

/// Those of a row, beside ours.
fn bars(section: &Section) -> Vec<Bar<'_>> {
    let bars = section.results.outcomes.iter().filter_map(|outcome| {
        let value = 1.0 / section.ratio(outcome)?;
        let is_bound = matches!(outcome.who, Who::Ceiling | Who::SerdeJson | Who::Value);
        value.is_normal().then_some(Bar { row: section.row.name, label: &outcome.label, is_bound, value })
    });
    bars.collect()
}

fn head(height: f64) -> String {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title desc">
<title id="title">How good each contestant is where ours is 1</title>
<desc id="desc">For each row a bar a contestant on a logarithmic scale. A bar to the left of the line at 1 is worse than ours, one to the right is better. The figures are those of the tables.</desc>
<style>
text {{ font: 12px system-ui, sans-serif; fill: #1f2328; }}
.row {{ font-weight: 600; }}
.grid {{ stroke: #d1d9e0; }}
.ours {{ stroke: #1f2328; stroke-width: 2; }}
.peer {{ fill: #0969da; }}
.bound {{ fill: #9a6700; }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #f0f6fc; }}
.grid {{ stroke: #3d444d; }}
.ours {{ stroke: #f0f6fc; }}
.peer {{ fill: #4493f8; }}
.bound {{ fill: #d29922; }}
}}
</style>
<rect class="peer" x="10" y="10" width="{BAR}" height="{BAR}"/><text x="30" y="22">a peer</text>
<rect class="bound" x="90" y="10" width="{BAR}" height="{BAR}"/><text x="110" y="22">the least that a program can do</text>
<text x="320" y="22">left of 1: worse than ours; right of 1: better; the figure: ours is so many times better</text>
"#
    )
}

fn axis(scale: &Scale, height: f64) -> String {
    let mut axis = String::new();
    for tick in scale.ticks() {
        let x = scale.x(tick);
        let is_ours = tick.to_bits() == 1_f64.to_bits();
        let (class, name) = if is_ours { ("ours", "ours = 1".to_owned()) } else { ("grid", tick.to_string()) };
        // Writing to a string cannot fail.
        let _ = writeln!(
            axis,
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{height:.0}\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{name}</text>",
            TOP - 8.0
        );
    }
    axis
}

fn drawn(bar: &Bar<'_>, is_first: bool, scale: &Scale, y: f64) -> String {
    let (ours, other) = (scale.x(1.0), scale.x(bar.value));
    let (x, width) = (ours.min(other), (ours - other).abs());
    let (class, base) = (if bar.is_bound { "bound" } else { "peer" }, y + BAR - 2.0);
    let row = if is_first {
        format!("<text class=\"row\" x=\"10\" y=\"{base:.0}\">{}</text>", bar.row)
    } else {
        String::new()
    };
    let (label, figure, start, end) = (bar.label, short(1.0 / bar.value), LEFT - 10.0, RIGHT + 10.0);
    format!(
        "{row}<text x=\"{start}\" y=\"{base:.0}\" text-anchor=\"end\">{label}</text>\
         <rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{BAR}\"/>\
         <text x=\"{end}\" y=\"{base:.0}\">{figure} ×</text>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{outcome, section};

    #[test]
    fn who_is_worse_stands_to_the_left_of_ours_and_who_is_better_to_the_right() {
        let outcomes = vec![
            outcome(Who::Ceiling, "ceiling", 200.0),
            outcome(Who::Ours, "ours", 100.0),
            outcome(Who::Rmcp, "rmcp, JSON", 10.0),
        ];
        let http = section("http", outcomes);
        let bars = bars(&http);
        let scale = Scale::of(&bars);
        assert_eq!(bars.iter().map(|bar| bar.label).collect::<Vec<_>>(), ["ceiling", "rmcp, JSON"]);
        assert!(scale.x(bars[0].value) > scale.x(1.0) && scale.x(bars[1].value) < scale.x(1.0));
        assert_eq!(scale.ticks().collect::<Vec<_>>(), [0.1, 1.0, 10.0]);
    }

    #[test]
    fn a_chart_names_itself_and_each_contestant() {
        let outcomes = vec![outcome(Who::Ours, "ours", 2.0), outcome(Who::TowerMcp, "tower-mcp", 1.0)];
        let chart = render(&[section("start-up", outcomes)]);
        for part in ["<title", "<desc", "prefers-color-scheme", ">start-up</text>", ">tower-mcp</text>", "0.50 ×"] {
            assert!(chart.contains(part), "{part} in {chart}");
        }
    }
}
