//! The first lines of the files that a message passes through, so that a reader can follow it:
//!
//! ```text
//! //! Server path 5 of 9: decides the era. Before: `crates/…/a.rs`. After: `crates/…/b.rs` | `crates/…/c.rs`.
//! ```
//!
//! A header may go on over several `//!` lines, up to an empty one. Files that share a step may say which is whose:
//! `4 of 9 (modern era): `. A file on both paths has two headers, one below the other.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::Problem;
use crate::tidy::repository::Repository;

const PAGE: &str = "docs/architecture.md";

/// One header: a step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    path: String,
    line: usize,
    role: &'static str,
    number: usize,
    count: usize,
    /// The files named before and after, in the order written.
    before: Vec<String>,
    after: Vec<String>,
}

/// Everything in the headers that would lead a reader astray.
pub(crate) fn check(repository: &Repository) -> Vec<Problem> {
    let mut headers = Vec::new();
    let mut problems = Vec::new();
    for (path, text) in repository.library_sources() {
        for (line, words) in paragraphs(text) {
            match read(path, line, &words) {
                Some(Ok(header)) => headers.push(header),
                Some(Err(message)) => problems.push(Problem::new(path, line, message)),
                None => {}
            }
        }
    }
    problems.extend(headers.iter().flat_map(|header| check_header(repository, header)));
    problems.extend(["Server", "Client"].iter().flat_map(|role| check_numbers(role, &headers)));
    problems
}

/// The headers that stand at the top of a file, each with its line and its whole text.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let top = text.lines().enumerate().map_while(|(index, line)| Some((index + 1, line.strip_prefix("//! ")?)));
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    for (number, line) in top {
        match paragraphs.last_mut() {
            Some((_, paragraph)) if role_of(line).is_none() => *paragraph = format!("{paragraph} {line}"),
            _ => paragraphs.push((number, line.to_owned())),
        }
    }
    paragraphs.retain(|(_, paragraph)| role_of(paragraph).is_some());
    paragraphs
}

fn role_of(line: &str) -> Option<(&'static str, &str)> {
    ["Server", "Client"].into_iter().find_map(|role| {
        let rest = line.strip_prefix(role)?.strip_prefix(" path ")?;
        rest.starts_with(|character: char| character.is_ascii_digit()).then_some((role, rest))
    })
}

/// Reads a header, or says what is wrong with it.
fn read(path: &str, line: usize, paragraph: &str) -> Option<Result<Header, String>> {
    let (role, rest) = role_of(paragraph)?;
    let Some((number, count, what)) = numbers(rest) else {
        return Some(Err(format!("a path header begins `{role} path N of M: `")));
    };
    let (what, after) = split(what, "After:");
    let (what, before) = split(what, "Before:");
    if what.trim().is_empty() {
        return Some(Err("a path header says what the file does".to_owned()));
    }
    let header =
        Header { path: path.to_owned(), line, role, number, count, before: files(before), after: files(after) };
    Some(Ok(header))
}

/// Takes `N of M: ` off, or `N of M (modern era): ` where several files share a step.
fn numbers(rest: &str) -> Option<(usize, usize, &str)> {
    let (numbers, what) = rest.split_once(": ")?;
    let numbers = numbers.split_once(" (").map_or(numbers, |(numbers, _)| numbers);
    let (number, count) = numbers.split_once(" of ")?;
    Some((number.parse().ok()?, count.parse().ok()?, what))
}

fn split<'a>(text: &'a str, word: &str) -> (&'a str, &'a str) {
    text.split_once(word).unwrap_or((text, ""))
}

/// What stands in backticks.
fn files(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn check_header(repository: &Repository, header: &Header) -> Vec<Problem> {
    let mut messages = Vec::new();
    let named = header.before.iter().chain(&header.after);
    messages
        .extend(named.filter(|file| !repository.files.contains_key(*file)).map(|file| format!("there is no `{file}`")));
    if header.before.is_empty() && header.number > 1 {
        messages.push("the header names no file before this one".to_owned());
    }
    if header.after.is_empty() && header.number < header.count {
        messages.push("the header names no file after this one".to_owned());
    }
    if !repository.files.get(PAGE).is_some_and(|page| page.contains(&header.path)) {
        messages.push(format!("{PAGE} does not list this file"));
    }
    messages.into_iter().map(|message| Problem::new(&header.path, header.line, message)).collect()
}

/// The steps of a path run from 1 to one common M. Several files may share a step, where wires or eras branch.
fn check_numbers(role: &str, headers: &[Header]) -> Vec<Problem> {
    let mut by_number: BTreeMap<usize, &Header> = BTreeMap::new();
    let mut counts = BTreeSet::new();
    for header in headers.iter().filter(|header| header.role == role) {
        by_number.entry(header.number).or_insert(header);
        counts.insert(header.count);
    }
    let (Some(count), Some((_, last))) = (counts.last().copied(), by_number.last_key_value()) else {
        return Vec::new();
    };
    if counts.len() > 1 {
        let message = format!("the {role} headers disagree on the number of steps: {counts:?}");
        return vec![Problem::new(&last.path, last.line, message)];
    }
    let missing = (1..=count).filter(|number| !by_number.contains_key(number));
    let missing = missing.map(|number| format!("no file is step {number} of {count} of the {role} path"));
    let beyond = by_number.keys().filter(|number| !(1..=count).contains(*number));
    let beyond = beyond.map(|number| format!("{role} path {number} of {count} is out of range"));
    missing.chain(beyond).map(|message| Problem::new(&last.path, last.line, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repository::made_up;

    const A: &str = "crates/mcp-http/src/a.rs";
    const B: &str = "crates/mcp-core/src/b.rs";
    const FIRST: &str = "//! Server path 1 of 2: reads. After: `crates/mcp-core/src/b.rs`.\n\nfn a() {}\n";
    const SECOND: &str = "//! Server path 2 of 2: answers. Before: `crates/mcp-http/src/a.rs`.\n";
    const LIST: &str = "1. `crates/mcp-http/src/a.rs`\n2. `crates/mcp-core/src/b.rs`\n";

    fn found(first: &str, second: &str, page: &str) -> Vec<String> {
        let repository = made_up::files(&[(A, first), (B, second), (PAGE, page)]);
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_steps_that_name_each_other_are_fine() {
        assert_eq!(found(FIRST, SECOND, LIST).len(), 0);
    }

    #[test]
    fn a_renamed_neighbour_is_found() {
        let first = FIRST.replace("b.rs", "c.rs");
        assert_eq!(found(&first, SECOND, LIST), [format!("{A}:1: there is no `crates/mcp-core/src/c.rs`")]);
    }

    #[test]
    fn alternatives_are_all_looked_up() {
        let first = FIRST.replace("`.", "` | `crates/mcp-core/src/d.rs`.");
        assert_eq!(found(&first, SECOND, LIST), [format!("{A}:1: there is no `crates/mcp-core/src/d.rs`")]);
    }

    #[test]
    fn a_gap_is_found() {
        let expected = [format!("{B}:1: no file is step 2 of 3 of the Server path")];
        let (first, second) = (FIRST.replace("of 2", "of 3"), SECOND.replace("2 of 2", "3 of 3"));
        assert_eq!(found(&first, &second, LIST), expected);
    }

    #[test]
    fn different_counts_are_found() {
        let found = found(&FIRST.replace("of 2", "of 3"), SECOND, LIST);
        assert!(found[0].contains("disagree"), "{found:?}");
    }

    #[test]
    fn a_file_that_the_page_does_not_list_is_found() {
        let page = LIST.replace("a.rs", "z.rs");
        assert_eq!(found(FIRST, SECOND, &page), [format!("{A}:1: {PAGE} does not list this file")]);
    }

    #[test]
    fn a_step_in_the_middle_names_both_sides() {
        let middle = "//! Server path 1 of 2: reads.\n";
        assert_eq!(found(middle, SECOND, LIST), [format!("{A}:1: the header names no file after this one")]);
    }

    #[test]
    fn a_misspelt_header_is_found() {
        let found = found(&FIRST.replace("1 of 2", "1/2"), SECOND, LIST);
        assert!(found.contains(&format!("{A}:1: a path header begins `Server path N of M: `")), "{found:?}");
    }

    #[test]
    fn a_header_may_run_over_lines_and_a_file_may_have_two() {
        let first = "//! Server path 1 of 2: reads\n//! a lot. After: `crates/mcp-core/src/b.rs`.\n\
            //! Client path 1 of 1: the same.\n//!\n//! More.\n";
        assert_eq!(paragraphs(first).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(found(first, SECOND, LIST).len(), 0);
    }

    #[test]
    fn a_header_may_say_which_branch_it_is() {
        let first = FIRST.replace("1 of 2", "1 of 2 (modern era)");
        assert_eq!(found(&first, SECOND, LIST).len(), 0);
    }

    #[test]
    fn a_file_without_a_header_is_none_of_this() {
        assert_eq!(found("//! Server paths are explained elsewhere.\n", "", "").len(), 0);
    }
}
