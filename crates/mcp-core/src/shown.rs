/// How many characters of what a peer sent an error repeats.
pub(crate) const SHOWN: usize = 200;

/// A peer's text as an error shows it: at most 200 characters, and nothing in it that could forge a log line or a
/// terminal command.
///
/// ```
/// assert_eq!(mcp_core::shown("a\u{1b}\n"), "a\\u{1b}\\n");
/// ```
#[must_use]
pub fn shown(text: &str) -> String {
    shown_within(text, SHOWN)
}

/// The same with another bound, in characters.
pub(crate) fn shown_within(text: &str, most: usize) -> String {
    let start = start(text, most);
    let mut shown: String = start.chars().flat_map(char::escape_debug).collect();
    if start.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Its first 200 characters, as they are.
pub(crate) fn bounded(text: &str) -> &str {
    start(text, SHOWN)
}

fn start(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_bounded() {
        let exact = "\u{e9}".repeat(SHOWN);
        assert_eq!((bounded(&exact), shown(&exact)), (&*exact, exact.clone()));
        let longer = format!("{exact}e");
        assert_eq!((bounded(&longer), shown(&longer)), (&*exact, format!("{exact}…")));
    }
}
