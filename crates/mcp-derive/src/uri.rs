//! The variables of a URI template, as far as a macro needs to know them. All else is checked where it is registered.

/// Whether it is a template, and not a URI.
pub(crate) fn is_template(uri: &str) -> bool {
    uri.contains(['{', '}'])
}

/// The names of its variables, without operators and modifiers.
///
/// Specification: *RFC 6570, section 2*.
pub(crate) fn variables(template: &str) -> Result<Vec<String>, &'static str> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find(['{', '}']) {
        let Some(inner) = rest[start..].strip_prefix('{') else { return Err("a `}` without its `{`") };
        let Some((expression, after)) = inner.split_once('}') else { return Err("a `{` without its `}`") };
        let list = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        for variable in list.split(',') {
            let name = variable.split_once(':').map_or(variable, |(name, _)| name).trim_end_matches('*');
            if name.is_empty() {
                return Err("a variable without a name");
            }
            names.push(name.to_owned());
        }
        rest = after;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_without_operators_and_modifiers() {
        assert_eq!(variables("a:///{x}/{+path}{?q,page:3,tags*}").unwrap(), ["x", "path", "q", "page", "tags"]);
        assert_eq!(variables("a:///b").unwrap(), [""; 0]);
        for bad in ["{", "}", "{a", "{}", "{a,}", "{?}", "{a}}"] {
            assert!(variables(bad).is_err(), "{bad}");
        }
    }
}
