//! Reading Rust source line by line, as far as the checks need it.

/// The lines of `text` with their numbers from 1, but for comment lines.
pub(crate) fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    numbered(text).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The code that is in a release: what comes after `#[cfg(test)]` is left out. Where the attribute stands on a single
/// line's item, as in `#[cfg(test)] mod tests;`, the code goes on after that item.
pub(crate) fn release_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut test_item = false;
    let mut test_rest = false;
    code(text).filter(move |(_, line)| {
        let line = line.trim();
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            test_item = true;
        }
        let in_test = test_item || test_rest;
        if test_item && !is_attribute(line) {
            test_rest |= !line.ends_with(';');
            test_item = false;
        }
        !in_test
    })
}

/// Whether the line is nothing but attributes, so that the item is still to come.
fn is_attribute(line: &str) -> bool {
    line.is_empty() || (line.starts_with("#[") && line.ends_with(']'))
}

/// Whether `path` holds tests alone: `tests.rs`, or anything in a `tests` folder of the sources.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.split('/').skip(2).any(|part| part == "tests" || part == "tests.rs")
}

/// Whether `word` stands in `line` on its own, not as part of a longer identifier.
pub(crate) fn positions_of_word<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = line[..*at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Vec<usize> {
        release_code(text).map(|(line, _)| line).collect()
    }

    #[test]
    fn an_inline_test_module_ends_the_release_code() {
        assert_eq!(release("a();\n#[cfg(test)]\nmod tests {\n    b();\n}\n"), [1]);
    }

    #[test]
    fn a_test_module_in_its_own_file_does_not_hide_what_follows() {
        assert_eq!(release("#[cfg(test)]\nmod tests;\na();\n"), [3]);
        assert_eq!(release("#[cfg(test)] mod tests;\na();\n"), [2]);
    }

    #[test]
    fn an_attribute_between_belongs_to_the_test_item() {
        assert_eq!(release("#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\na();\n"), [4]);
    }

    #[test]
    fn comments_are_no_code() {
        assert_eq!(code("//! a\n/// b\n  // c\nd\n").map(|(line, _)| line).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn test_files_are_told_by_their_name_or_folder() {
        assert!(is_test_file("crates/a/src/server/tests.rs"));
        assert!(is_test_file("crates/a/src/tests/list.rs"));
        assert!(!is_test_file("crates/a/src/contests.rs"));
        assert!(!is_test_file("tests/suite/main.rs"), "the top folder of that name is not a folder of the sources");
    }

    #[test]
    fn a_word_is_not_found_inside_another() {
        assert_eq!(positions_of_word("is_legacy legacy legacy_era", "legacy").collect::<Vec<_>>(), [10]);
    }
}
