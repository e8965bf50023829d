//! Runs a program against a URI: a table first, of which step can lead to the end from which byte on, then one walk
//! that never has to turn back. Backtracking alone would take exponential time on `{a}-{b}-{c}-…` and a long `-----`.

use std::ops::Range;

use super::program::{Index, Program, Step};
use crate::percent;

/// The decoded value of each variable. `None` inside is a variable that is missing.
pub(super) fn matches(program: &Program, variables: usize, uri: &[u8]) -> Option<Vec<Option<String>>> {
    let (start, at) = skip_literal(program, uri)?;
    let table = Table::fill(program, uri, at);
    let found = table.walk(start, at, variables)?;
    let decode = |range: Option<Range<usize>>| match range {
        Some(range) => percent::decode(&uri[range]).map(Some),
        None => Some(None),
    };
    found.into_iter().map(decode).collect()
}

/// Most URIs differ from most templates in their first literal, and then need no table.
fn skip_literal(program: &Program, uri: &[u8]) -> Option<(Index, usize)> {
    match &program.steps[program.start] {
        Step::Text { text, then } => Some((*then, text_end(text, uri, 0)?)),
        _ => Some((program.start, 0)),
    }
}

/// Where the text ends if it begins here. What a URI cannot hold may stand there all the same, or as its escape.
fn text_end(text: &str, uri: &[u8], mut at: usize) -> Option<usize> {
    for byte in text.bytes() {
        if uri.get(at) == Some(&byte) {
            at += 1;
        } else if !percent::is_legal(byte) && percent::escape(uri, at) == Some(byte) {
            at += 3;
        } else {
            return None;
        }
    }
    Some(at)
}

/// For each byte of the URI and each step, whether the rest of the URI can be matched from there. One bit each.
pub(super) struct Table<'m> {
    program: &'m Program,
    uri: &'m [u8],
    bits: Vec<u64>,
    /// How many cells were computed.
    pub(super) cells: usize,
}

impl<'m> Table<'m> {
    /// From the end backwards, down to the byte `from`: each cell needs only those that are there already.
    pub(super) fn fill(program: &'m Program, uri: &'m [u8], from: usize) -> Self {
        let bits = (uri.len() + 1) * program.steps.len();
        let mut table = Self { program, uri, bits: vec![0; bits.div_ceil(64)], cells: 0 };
        for at in (from..=uri.len()).rev() {
            for step in 0..program.steps.len() {
                if table.leads_on(step, at) {
                    let bit = table.bit(step, at);
                    table.bits[bit / 64] |= 1 << (bit % 64);
                }
                table.cells += 1;
            }
        }
        table
    }

    fn bit(&self, step: Index, at: usize) -> usize {
        at * self.program.steps.len() + step
    }

    fn get(&self, step: Index, at: usize) -> bool {
        let bit = self.bit(step, at);
        self.bits[bit / 64] & (1 << (bit % 64)) != 0
    }

    fn leads_on(&self, step: Index, at: usize) -> bool {
        match &self.program.steps[step] {
            Step::End => at == self.uri.len(),
            Step::Text { text, then } => text_end(text, self.uri, at).is_some_and(|end| self.get(*then, end)),
            Step::Fork { first, other } => self.get(*first, at) || self.get(*other, at),
            Step::Bare { then, .. } => self.get(*then, at),
            Step::Value { empty, then, .. } => {
                let longer = self.next(step, at).is_some_and(|next| self.get(step, next) || self.get(*then, next));
                longer || (*empty && self.get(*then, at))
            }
        }
    }

    /// The end of the byte or escape here, if the value can have it. An escape is never split.
    fn next(&self, step: Index, at: usize) -> Option<usize> {
        let Step::Value { stops, .. } = &self.program.steps[step] else { return None };
        match *self.uri.get(at)? {
            b'%' => percent::escape(self.uri, at).map(|_| at + 3),
            byte => (!stops.has(byte)).then_some(at + 1),
        }
    }

    /// The first way to the end, with the place of each variable. `None` when there is no way, or when a parameter
    /// comes twice on it.
    pub(super) fn walk(&self, mut step: Index, mut at: usize, variables: usize) -> Option<Vec<Option<Range<usize>>>> {
        let mut found = vec![None; variables];
        if !self.get(step, at) {
            return None;
        }
        loop {
            let start = at;
            let (then, variable) = match &self.program.steps[step] {
                Step::End => return Some(found),
                Step::Text { text, then } => {
                    at = text_end(text, self.uri, at)?;
                    (*then, None)
                }
                Step::Fork { first, other } => (if self.get(*first, at) { *first } else { *other }, None),
                Step::Bare { variable, then } => (*then, Some(*variable)),
                Step::Value { variable, then, .. } => {
                    at = self.value_end(step, *then, at)?;
                    (*then, Some(*variable))
                }
            };
            if variable.is_some_and(|variable| found[variable].replace(start..at).is_some()) {
                return None;
            }
            step = then;
        }
    }

    /// Where the longest value ends from which the walk can go on.
    fn value_end(&self, step: Index, then: Index, mut at: usize) -> Option<usize> {
        let mut end = None;
        loop {
            if self.get(then, at) {
                end = Some(at);
            }
            match self.next(step, at) {
                Some(next) => at = next,
                None => return end,
            }
        }
    }
}
