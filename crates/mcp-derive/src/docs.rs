//! Doc comments as descriptions.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// What a doc comment says to a model: its text without the indentation, up to the first heading, since what stands under
/// `# Errors` or `# Panics` is for whoever calls the function.
pub(crate) fn description(attributes: &[Attribute]) -> Option<String> {
    let text = attributes.iter().filter_map(text).collect::<Vec<_>>().join("\n");
    let lines = || before_heading(&text);
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let least = lines().filter(|line| !line.trim().is_empty()).map(indentation).min()?;
    let unindented: Vec<_> = lines().map(|line| line.get(least..).unwrap_or_default().trim_end()).collect();
    Some(unindented.join("\n").trim().to_owned())
}

pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

fn text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if is_doc(attribute) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The lines up to the first heading. What looks like one in a block of code is a comment.
fn before_heading(text: &str) -> impl Iterator<Item = &str> {
    let mut open = None;
    text.lines().take_while(move |line| {
        let fence = ["```", "~~~"].into_iter().find(|fence| line.trim_start().starts_with(fence));
        match open {
            None => open = fence,
            Some(_) if fence == open => open = None,
            Some(_) => {}
        }
        open.is_some() || !is_heading(line)
    })
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start().trim_start_matches('#');
    rest.len() < line.trim_start().len() && rest.starts_with(' ')
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, parse_quote};

    use super::*;

    #[test]
    fn a_comment_in_a_block_of_code_is_no_heading() {
        let item: ItemFn = parse_quote! {
            /// Runs a script:
            /// ```sh
            /// # on each host
            /// ~~~
            /// # still code
            /// ```
            /// and says so
            /// # Errors
            fn run() {}
        };
        let described = "Runs a script:\n```sh\n# on each host\n~~~\n# still code\n```\nand says so";
        assert_eq!(description(&item.attrs).unwrap(), described);
    }

    #[test]
    fn lines_are_unindented_and_headings_end_them() {
        let described = |item: ItemFn| description(&item.attrs);
        let item = parse_quote! {
            /// Deploys a service:
            ///
            ///   - to staging
            /// #1 among our tools
            ///
            /// # Errors
            /// When it is down.
            fn deploy() {}
        };
        assert_eq!(described(item).unwrap(), "Deploys a service:\n\n  - to staging\n#1 among our tools");
        assert_eq!(described(parse_quote! { fn silent() {} }), None);
        assert_eq!(described(parse_quote! { #[doc = ""] #[doc(hidden)] fn silent() {} }), None);
        assert_eq!(described(parse_quote! { #[doc = " # Errors"] fn silent() {} }), None);
    }
}
