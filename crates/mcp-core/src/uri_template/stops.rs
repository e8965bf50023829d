//! Which characters end a value.

use super::part::{Expression, Operator, Part};

/// A set of ASCII characters, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stops(u128);

impl Stops {
    /// For the values of the expression that is `parts[index]`.
    pub(super) fn of(parts: &[Part], index: usize, expression: &Expression) -> Self {
        let (before, after) = (&parts[..index], &parts[index + 1..]);
        let mut stops = Self(0);
        stops.add(own(expression.operator));
        if expression.names.len() > 1 {
            stops.add(expression.operator.separator());
        }
        for next in after.iter().map_while(operator) {
            stops.add(next.first());
        }
        match expression.operator {
            // A path does not reach into the query that the template has after it.
            Operator::Reserved => {
                for symbol in ["?", "#"] {
                    stops.add(if after.iter().any(|part| has(part, symbol)) { symbol } else { "" });
                }
            }
            // `?a={a}&b={b}`: a second `&b=` is no part of `a`.
            Operator::Simple if before.iter().any(|part| has(part, "?")) => stops.add("&"),
            _ => {}
        }
        stops
    }

    fn add(&mut self, characters: &str) {
        for byte in characters.bytes() {
            self.0 |= 1 << byte;
        }
    }

    pub(super) fn has(self, byte: u8) -> bool {
        byte.is_ascii() && self.0 & (1 << byte) != 0
    }
}

/// Whatever stands around the expression.
fn own(operator: Operator) -> &'static str {
    match operator {
        Operator::Simple | Operator::Label | Operator::Segment => "/?#",
        Operator::Parameter => "/?#;",
        Operator::Query | Operator::Continuation => "&#",
        Operator::Reserved | Operator::Fragment => "",
    }
}

fn operator(part: &Part) -> Option<Operator> {
    match part {
        Part::Literal(_) => None,
        Part::Expression(expression) => Some(expression.operator),
    }
}

fn has(part: &Part, symbol: &str) -> bool {
    match part {
        Part::Literal(text) => text.contains(symbol),
        Part::Expression(expression) => expression.operator.first() == symbol,
    }
}
