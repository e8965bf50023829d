//! A template as the steps by which a URI is matched.
//!
//! It is built from its end, so that each step knows the one after it. A step that can be passed without taking a
//! character therefore leads to a smaller index only, which is the order in which the matcher fills its table.

use super::{
    part::{Expression, Operator, Part},
    stops::Stops,
};

pub(super) type Index = usize;

#[derive(Debug)]
pub(super) enum Step {
    /// The whole URI has been read.
    End,
    /// Exactly this text.
    Text { text: String, then: Index },
    /// One way or, failing that, the other.
    Fork { first: Index, other: Index },
    /// A value, as long as it can be, up to one of the stops.
    Value { variable: usize, stops: Stops, empty: bool, then: Index },
    /// A parameter without `=`: its value is empty.
    Bare { variable: usize, then: Index },
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) start: Index,
}

impl Program {
    pub(super) fn of(parts: &[Part]) -> Self {
        let mut builder = Builder { steps: vec![Step::End] };
        let mut start = 0;
        let mut variable: usize = parts.iter().map(variables).sum();
        for (index, part) in parts.iter().enumerate().rev() {
            variable -= variables(part);
            start = match part {
                Part::Literal(text) => builder.text(text.clone(), start),
                Part::Expression(expression) => {
                    let stops = Stops::of(parts, index, expression);
                    builder.expression(&Slot { expression, variable, stops }, start)
                }
            };
        }
        Self { steps: builder.steps, start }
    }
}

fn variables(part: &Part) -> usize {
    match part {
        Part::Literal(_) => 0,
        Part::Expression(expression) => expression.names.len(),
    }
}

/// An expression, with the number of its first variable.
struct Slot<'p> {
    expression: &'p Expression,
    variable: usize,
    stops: Stops,
}

struct Builder {
    steps: Vec<Step>,
}

impl Builder {
    fn push(&mut self, step: Step) -> Index {
        self.steps.push(step);
        self.steps.len() - 1
    }

    fn text(&mut self, text: String, then: Index) -> Index {
        self.push(Step::Text { text, then })
    }

    fn expression(&mut self, slot: &Slot<'_>, then: Index) -> Index {
        match slot.expression.operator.named() {
            true => self.parameters(slot, then),
            false => self.positional(slot, then),
        }
    }

    /// Values in their order. Each but a plain first one can be missing, together with those after it.
    fn positional(&mut self, &Slot { expression, variable, stops }: &Slot<'_>, then: Index) -> Index {
        let operator = expression.operator;
        let plain = operator.first().is_empty();
        let mut entry = then;
        for place in (0..expression.names.len()).rev() {
            let empty = place > 0 || !plain;
            let value = self.push(Step::Value { variable: variable + place, stops, empty, then: entry });
            if !empty {
                return value;
            }
            let before = if place == 0 { operator.first() } else { operator.separator() };
            let present = self.text(before.to_owned(), value);
            entry = self.push(Step::Fork { first: present, other: then });
        }
        entry
    }

    /// Names with their values, in any order: after each of them, the fork `more` offers all of them again.
    fn parameters(&mut self, slot: &Slot<'_>, then: Index) -> Index {
        let operator = slot.expression.operator;
        let texts = self.steps.len();
        let more = self.any_of(slot, operator.separator(), &[], then);
        let mut after = Vec::new();
        for variable in (slot.variable..).take(slot.expression.names.len()) {
            after.push(self.after_name(variable, slot.stops, more));
        }
        // Only now is it known where the names lead.
        for (step, known) in self.steps[texts..].iter_mut().zip(&after) {
            if let Step::Text { then, .. } = step {
                *then = *known;
            }
        }
        if operator == Operator::Query { self.any_of(slot, operator.first(), &after, then) } else { more }
    }

    /// One of the names after `before`, or else what comes `then`. The texts of the names stand first, in their order.
    fn any_of(&mut self, slot: &Slot<'_>, before: &str, after: &[Index], then: Index) -> Index {
        let names = &slot.expression.names;
        let texts = self.steps.len();
        for (place, name) in names.iter().enumerate() {
            self.text(format!("{before}{name}"), after.get(place).copied().unwrap_or_default());
        }
        (texts..texts + names.len()).rev().fold(then, |other, first| self.push(Step::Fork { first, other }))
    }

    fn after_name(&mut self, variable: usize, stops: Stops, then: Index) -> Index {
        let value = self.push(Step::Value { variable, stops, empty: true, then });
        let equals = self.text("=".to_owned(), value);
        let bare = self.push(Step::Bare { variable, then });
        self.push(Step::Fork { first: equals, other: bare })
    }
}
