use super::part::{Expression, Operator, Part};
use crate::percent;

pub(super) fn expand<'v>(parts: &[Part], mut value: impl FnMut(&str) -> Option<&'v str>) -> String {
    let mut uri = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => percent::encode_illegal(text, &mut uri),
            Part::Expression(expression) => fill(expression, &mut value, &mut uri),
        }
    }
    uri
}

/// Variables without a value leave nothing behind, not even a separator.
fn fill<'v>(expression: &Expression, value: &mut impl FnMut(&str) -> Option<&'v str>, uri: &mut String) {
    let operator = expression.operator;
    let mut before = operator.first();
    for name in &expression.names {
        let Some(value) = value(name) else { continue };
        uri.push_str(before);
        before = operator.separator();
        if operator.named() {
            uri.push_str(name);
            uri.push_str(equals(operator, value));
        }
        match operator.keeps_reserved() {
            true => percent::encode_illegal(value, uri),
            false => percent::encode(value, uri),
        }
    }
}

/// A path parameter without a value is its name alone.
fn equals(operator: Operator, value: &str) -> &'static str {
    if operator == Operator::Parameter && value.is_empty() { "" } else { "=" }
}
