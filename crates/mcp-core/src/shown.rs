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

/// An id that may open something to whoever reads it: a log gets no more of it than tells it from others.
#[derive(Clone, Copy)]
pub(crate) struct Elided<T>(pub(crate) T);

impl<T: AsRef<str>> std::fmt::Debug for Elided<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.0.as_ref();
        f.write_str(&shown(start(id, (id.len() / 4).min(6))))?;
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_an_id_is_elided() {
        for (id, shown) in [("", "…"), ("t-1", "…"), ("12345678", "12…"), (&*"ab".repeat(16), "ababab…")] {
            assert_eq!(format!("{:?}", Elided(id)), shown);
        }
    }

    #[test]
    fn what_comes_back_is_bounded() {
        let exact = "\u{e9}".repeat(SHOWN);
        assert_eq!((bounded(&exact), shown(&exact)), (&*exact, exact.clone()));
        let longer = format!("{exact}e");
        assert_eq!((bounded(&longer), shown(&longer)), (&*exact, format!("{exact}…")));
    }
}
