//! `tests/corpus.txt`: the faults of others that the tests hold this implementation to, and which test is whose.

use crate::error::{Doing, Error, Result};
use crate::workspace;

/// Where the list is, from the root.
pub(crate) const PATH: &str = "tests/corpus.txt";

/// One line of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// From 1.
    pub(crate) line: usize,
    /// `C001`, `D01`.
    pub(crate) number: String,
    /// `server`, `client` or `both`.
    pub(crate) side: String,
    /// What must hold.
    pub(crate) words: String,
}

/// The list of this repository.
pub(crate) fn read() -> Result<Vec<Fault>> {
    let text = std::fs::read_to_string(workspace::root().join(PATH)).doing(|| format!("reading {PATH}"))?;
    parse(&text).map_err(|(line, why)| Error::new(format!("{PATH}:{line}: {why}")))
}

/// The faults in the order in which they stand, or the first line that is none.
pub(crate) fn parse(text: &str) -> std::result::Result<Vec<Fault>, (usize, String)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut faults: Vec<Fault> = Vec::new();
    for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty() && !text.starts_with('#')) {
        let fault = fault(line, text).ok_or((line, "expected `NUMBER SIDE | WHAT MUST HOLD`".to_owned()))?;
        if faults.iter().any(|other| other.number == fault.number) {
            return Err((line, format!("a second {}", fault.number)));
        }
        faults.push(fault);
    }
    Ok(faults)
}

fn fault(line: usize, text: &str) -> Option<Fault> {
    let (head, words) = text.split_once(" | ")?;
    let (number, side) = head.split_once(' ')?;
    let known = numbers_of(number) == [number] && ["server", "client", "both"].contains(&side);
    known.then(|| Fault { line, number: number.to_owned(), side: side.to_owned(), words: words.to_owned() })
}

/// The numbers that a case's title, or a test function's name, begins with: `C001 C002 an id`, `c001_an_id`.
pub(crate) fn numbers_of(name: &str) -> Vec<String> {
    let words = name.split([' ', '_']);
    words.take_while(|word| is_number(word)).map(str::to_ascii_uppercase).collect()
}

/// `C` and three digits, or `D` and two.
fn is_number(word: &str) -> bool {
    let digits = |digits: &str, count| digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_digit());
    match word.split_at_checked(1) {
        Some(("C" | "c", rest)) => digits(rest, 3),
        Some(("D" | "d", rest)) => digits(rest, 2),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_fault() {
        let fault = |number: &str, line| Fault { line, number: number.into(), side: "both".into(), words: "it".into() };
        assert_eq!(parse("# a\n\nC001 both | it\nD01 both | it\n").unwrap(), [fault("C001", 3), fault("D01", 4)]);
        for (text, line) in [
            ("C001 both it", 1),
            ("C01 both | it", 1),
            ("\nc001 both | it", 2),
            ("C001 peer | it", 1),
            ("C001 both | it\nC001 both | it", 2),
        ] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text}");
        }
    }

    #[test]
    fn a_test_has_a_number_where_its_name_begins_with_one() {
        assert_eq!(numbers_of("C001 an id"), ["C001"]);
        assert_eq!(numbers_of("C163 C164 variables of C165"), ["C163", "C164"]);
        assert_eq!(numbers_of("c001_d01_an_id"), ["C001", "D01"]);
        for name in ["cancel_01", "c01_x", "C0011 x", "d001_x", "C00é x", "é", "", "an id of C001"] {
            assert!(numbers_of(name).is_empty(), "{name}");
        }
    }
}
