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

/// Why JSON that a peer sent is not what was expected, in words that are ours alone: `serde` repeats the value that it found.
pub(crate) fn misfit(error: &serde_json::Error) -> String {
    let (told, line, column) = (error.to_string(), error.line(), error.column());
    match told.rsplit_once(", expected ") {
        // What is no JSON is told in words that have nothing of it.
        _ if !error.is_data() => told,
        Some((_, expected)) => format!("expected {expected}"),
        None if told.starts_with("missing field") || told.starts_with("duplicate field") => told,
        None => format!("it fits no further than line {line} column {column}"),
    }
}

/// A message, or some of one: a log gets no more of it than its size, as it may be nobody else's to read.
#[derive(Clone, Copy)]
pub(crate) struct Size<'a>(pub(crate) &'a [u8]);

impl std::fmt::Debug for Size<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
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
    fn a_misfit_is_told_without_what_was_found() {
        let told = |json: &str| misfit(&serde_json::from_str::<Vec<crate::types::ToolDefinition>>(json).unwrap_err());
        for (json, words) in [
            (r#""secret""#, "expected a sequence at line 1 column 8"),
            (r#"[{"name":"secret","description":[]}]"#, "expected a string at line 1 column 32"),
            (r#"[{"name":"secret"}]"#, "missing field `inputSchema` at line 1 column 18"),
            (r#"[{"name":"secret","name":"secret"}]"#, "duplicate field `name` at line 1 column 24"),
            ("[secret]", "expected value at line 1 column 2"),
        ] {
            let told = told(json);
            assert!(!told.contains("secret"), "{told}");
            assert_eq!(told, words);
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
