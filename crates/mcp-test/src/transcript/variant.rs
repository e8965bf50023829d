use mcp_core::Revision;

use crate::{Failure, transcript::Case};

/// One run of a case: one `with` line, one revision.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Variant {
    /// The cells of the `with` line.
    pub cells: Vec<String>,
    /// The revision.
    pub speaks: Option<Revision>,
}

impl Variant {
    /// A run with these cells in that revision.
    #[must_use]
    pub fn new(cells: Vec<String>, speaks: Option<Revision>) -> Self {
        Self { cells, speaks }
    }
}

impl Case {
    /// Every run of the case.
    ///
    /// # Errors
    /// When `speak` names a revision that there is not.
    pub fn variants(&self) -> Result<Vec<Variant>, Failure> {
        let rows: Vec<Vec<String>> = match self.all("with").collect::<Vec<_>>().as_slice() {
            [] => vec![Vec::new()],
            rows => rows.iter().map(|row| row.split("||").map(|cell| cell.trim().to_owned()).collect()).collect(),
        };
        let speaks = self.speaks()?;
        let each = |row: &Vec<String>| {
            speaks.iter().map(|speaks| Variant { cells: row.clone(), speaks: *speaks }).collect::<Vec<_>>()
        };
        Ok(rows.iter().flat_map(each).collect())
    }

    fn speaks(&self) -> Result<Vec<Option<Revision>>, Failure> {
        let Some(words) = self.setting("speak") else { return Ok(vec![None]) };
        let mut revisions = Vec::new();
        for word in words.split_whitespace() {
            match word {
                "all" => revisions.extend(Revision::ALL),
                "modern" => revisions.push(Revision::LATEST),
                "legacy" => {
                    revisions.extend(Revision::ALL.iter().filter(|revision| **revision <= Revision::LATEST_LEGACY));
                }
                date => revisions.push(Revision::parse(date).ok_or_else(|| format!("no revision `{date}`"))?),
            }
        }
        Ok(revisions.into_iter().map(Some).collect())
    }
}

/// What tells a run from the others of its case: ` [2025-11-25 with 1 || 2]`.
impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let revision = self.speaks.map(|revision| revision.to_string());
        let cells = (!self.cells.is_empty()).then(|| format!("with {}", self.cells.join(" || ")));
        let words: Vec<String> = [revision, cells].into_iter().flatten().collect();
        if words.is_empty() { Ok(()) } else { write!(f, " [{}]", words.join(" ")) }
    }
}
