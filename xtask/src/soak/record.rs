//! What is kept of the last long run.

use std::fs;

use super::RECORD;
use crate::error::{Doing, Result};
use crate::workspace;

/// Names and values, in the order of the report; none where there was no long run yet.
pub(crate) fn record() -> Result<Vec<(String, String)>> {
    let path = workspace::root().join(RECORD);
    if !path.exists() {
        return Ok(Vec::new());
    }
    fs::read_to_string(path).map(|text| parse(&text)).doing(|| format!("reading {RECORD}"))
}

fn parse(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_a_value() {
        let rows = parse("minutes: 30\nmemory: RSS 1 MiB: no growth\n");
        let expected = [("minutes", "30"), ("memory", "RSS 1 MiB: no growth")];
        assert_eq!(rows, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
