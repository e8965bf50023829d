use std::cmp::Reverse;

use super::part::Part;

/// How narrow a template is, by [`UriTemplate::specificity`](super::UriTemplate::specificity); the most specific is the
/// smallest.
///
/// First counts how many characters are literal, more of them being more specific; then how many variables take slashes
/// (`{+x}` and `{#x}`), fewer of them being so; then how many variables there are, again fewer. Of templates that all
/// match a URI, `min_by_key` takes the most specific one, and of equals the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    literal: Reverse<usize>,
    wide: usize,
    variables: usize,
}

impl Specificity {
    pub(super) fn of(parts: &[Part]) -> Self {
        let mut specificity = Self { literal: Reverse(0), wide: 0, variables: 0 };
        for part in parts {
            match part {
                Part::Literal(text) => specificity.literal.0 += text.chars().count(),
                Part::Expression(expression) => {
                    let variables = expression.names.len();
                    specificity.variables += variables;
                    specificity.wide += if expression.operator.keeps_reserved() { variables } else { 0 };
                }
            }
        }
        specificity
    }
}
