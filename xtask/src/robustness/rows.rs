//! What the tests told of themselves: rows, each for a table.

use std::collections::HashSet;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Doing, Error, Result};

/// The table whose rows are cases of `tests/suite/cases`, which the page adds up.
const CASES: &str = "cases";

/// Every row, in the order in which they were told.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<Row>);

#[derive(Debug, Deserialize)]
struct Row {
    table: String,
    /// Each the head of a column and what stands under it.
    cells: Vec<(String, String)>,
}

impl Row {
    fn cell(&self, head: &str) -> &str {
        self.cells.iter().find(|(known, _)| known == head).map_or("", |(_, cell)| cell)
    }
}

/// One run of a case.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) title: String,
    pub(crate) wire: String,
    pub(crate) passed: bool,
    /// Whether it is the first of its title with this input; the others are on other wires.
    pub(crate) is_first: bool,
}

/// A table as it stands on the page.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The rows of the file that the tests wrote.
pub(crate) fn read(path: &Path) -> Result<Rows> {
    let text = std::fs::read_to_string(path).doing(|| format!("reading {}", path.display()))?;
    parse(&text)
}

/// The rows of `text`, one a line.
pub(crate) fn parse(text: &str) -> Result<Rows> {
    let rows = text.lines().map(serde_json::from_str).collect::<std::result::Result<Vec<Row>, _>>();
    rows.map(Rows).map_err(|error| Error::new(format!("a row of the tests: {error}")))
}

impl Rows {
    /// The runs of cases.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let mut seen = HashSet::new();
        let rows = self.0.iter().filter(|row| row.table == CASES);
        let case = |row: &Row| Case {
            title: row.cell("title").to_owned(),
            wire: row.cell("wire").to_owned(),
            passed: row.cell("result") == "ok",
            is_first: seen.insert((row.cell("title").to_owned(), row.cell("run").to_owned())),
        };
        rows.map(case).collect()
    }

    /// The names of the other tables, in alphabetical order.
    pub(crate) fn tables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|row| row.table.as_str()).filter(|name| *name != CASES).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// A table: its columns as its first row has them, and its rows in alphabetical order, since tests end in any.
    pub(crate) fn table(&self, name: &str) -> Table {
        let of_it: Vec<&Row> = self.0.iter().filter(|row| row.table == name).collect();
        let heads: Vec<String> =
            of_it.first().map_or_else(Vec::new, |row| row.cells.iter().map(|(head, _)| head.clone()).collect());
        let cells = |row: &&Row| heads.iter().map(|head| row.cell(head).to_owned()).collect();
        let mut rows: Vec<Vec<String>> = of_it.iter().map(cells).collect();
        rows.sort();
        Table { heads, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_columns_in_order_and_its_rows_sorted() {
        let rows = parse(concat!(
            r#"{"table":"Faults","cells":[["fault","stall"],["tried","2"]]}"#,
            "\n",
            r#"{"table":"Faults","cells":[["fault","reset"],["tried","10"]]}"#,
            "\n",
            r#"{"table":"cases","cells":[["title","x"]]}"#,
        ))
        .unwrap();
        assert_eq!(rows.tables(), ["Faults"]);
        let table = rows.table("Faults");
        assert_eq!(table.heads, ["fault", "tried"]);
        assert_eq!(table.rows, [["reset", "10"], ["stall", "2"]]);
    }

    #[test]
    fn what_is_no_row_is_an_error() {
        assert!(parse("{}").is_err());
    }
}
