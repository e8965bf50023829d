//! Tables: aligned for a terminal, or in Markdown.

/// One contestant in one row; what is not known is empty.
#[derive(Default)]
pub(super) struct Line {
    pub(super) row: String,
    pub(super) contestant: String,
    pub(super) median: String,
    pub(super) spread: String,
    pub(super) ours_is: String,
    pub(super) claim: String,
    pub(super) cpu: String,
    pub(super) peak: String,
    pub(super) allocations: String,
}

const HEADER: [&str; 9] =
    ["row", "contestant", "median", "spread", "ours is", "claim", "CPU µs", "peak MiB", "allocations"];

/// The columns of words; the others are numbers and stand to the right.
const WORDS: [bool; 9] = [true, true, false, false, false, true, false, false, false];

impl Line {
    fn cells(&self) -> [&str; 9] {
        [
            &self.row,
            &self.contestant,
            &self.median,
            &self.spread,
            &self.ours_is,
            &self.claim,
            &self.cpu,
            &self.peak,
            &self.allocations,
        ]
    }
}

/// For a terminal. An empty line stands before each row.
pub(super) fn text(lines: &[Line]) -> String {
    let cells: Vec<[&str; 9]> = lines.iter().map(Line::cells).collect();
    let widths: [usize; 9] = std::array::from_fn(|column| width(&cells, column));
    let mut text = aligned(&HEADER, &widths);
    for cells in &cells {
        if !cells[0].is_empty() {
            text.push('\n');
        }
        text += &aligned(cells, &widths);
    }
    text
}

fn width(lines: &[[&str; 9]], column: usize) -> usize {
    let widths = lines.iter().chain([&HEADER]).map(|cells| cells[column].chars().count());
    widths.max().unwrap_or_default()
}

fn aligned(cells: &[&str; 9], widths: &[usize; 9]) -> String {
    let cells =
        cells.iter().zip(widths).zip(WORDS).map(|((cell, &width), is_word)| {
            if is_word { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
}

/// In Markdown, without the columns that nobody fills.
pub(super) fn markdown(lines: &[Line]) -> String {
    let cells: Vec<[&str; 9]> = lines.iter().map(Line::cells).collect();
    let used: Vec<usize> = (0..9).filter(|column| cells.iter().any(|cells| !cells[*column].is_empty())).collect();
    let line = |cells: &[&str; 9]| {
        let cells: Vec<&str> = used.iter().map(|column| cells[*column]).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule: Vec<&str> = used.iter().map(|column| if WORDS[*column] { "---" } else { "---:" }).collect();
    let body: String = cells.iter().map(line).collect();
    format!("{}|{}|\n{body}", line(&HEADER), rule.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(row: &str, contestant: &str, median: &str) -> Line {
        let (row, contestant, median) = (row.to_owned(), contestant.to_owned(), median.to_owned());
        Line { row, contestant, median, ..Line::default() }
    }

    #[test]
    fn numbers_stand_to_the_right_and_a_row_is_set_apart() {
        let text = text(&[line("http", "ceiling", "100k calls/s"), line("", "ours", "9400 calls/s")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..], ["", "http  ceiling     100k calls/s", "      ours        9400 calls/s"]);
    }

    #[test]
    fn markdown_has_no_empty_columns() {
        let text = markdown(&[line("http", "ceiling", "100k"), line("", "ours", "9400")]);
        assert_eq!(
            text,
            "| row | contestant | median |\n|---|---|---:|\n| http | ceiling | 100k |\n|  | ours | 9400 |\n"
        );
    }
}
