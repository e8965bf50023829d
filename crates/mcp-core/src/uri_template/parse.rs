//! From text to parts. What could not be matched later is refused here.

use std::sync::Arc;

use super::{
    UriTemplate, UriTemplateError,
    error::Flaw,
    part::{Expression, Operator, Part},
};
use crate::percent;

type Refusal<T> = Result<T, UriTemplateError>;

pub(super) fn parse(source: &str) -> Refusal<(Vec<Part>, Vec<Arc<str>>)> {
    if source.len() > UriTemplate::LONGEST {
        return Err(at(UriTemplate::LONGEST, Flaw::TooLong));
    }
    let mut reader = Reader::default();
    let mut start = 0;
    while let Some(found) = source[start..].find(['{', '}']) {
        let open = start + found;
        reader.literal(&source[start..open], start)?;
        if source.as_bytes()[open] == b'}' {
            return Err(at(open, Flaw::Unopened));
        }
        let inside = &source[open + 1..];
        let length = inside.find(['{', '}']).filter(|&end| inside.as_bytes()[end] == b'}');
        let length = length.ok_or_else(|| at(open, Flaw::Unclosed))?;
        reader.expression(&inside[..length], open)?;
        start = open + length + 2;
    }
    reader.literal(&source[start..], start)?;
    Ok((reader.parts, reader.names))
}

#[derive(Default)]
struct Reader {
    parts: Vec<Part>,
    names: Vec<Arc<str>>,
}

impl Reader {
    fn literal(&mut self, text: &str, start: usize) -> Refusal<()> {
        for (offset, character) in text.char_indices() {
            if character.is_control() {
                return Err(at(start + offset, Flaw::Control));
            }
            if character == '%' && percent::escape(text.as_bytes(), offset).is_none() {
                return Err(at(start + offset, Flaw::Escape));
            }
        }
        if !text.is_empty() {
            self.parts.push(Part::Literal(text.to_owned()));
        }
        Ok(())
    }

    /// What stands between the braces, the first of which is at `open`.
    fn expression(&mut self, inside: &str, open: usize) -> Refusal<()> {
        let (operator, list) = operator(inside, open)?;
        if list.is_empty() {
            return Err(at(open, Flaw::Empty));
        }
        // Without a symbol of its own before the value, only a literal can end the variable before it.
        if operator.first().is_empty() && matches!(self.parts.last(), Some(Part::Expression(_))) {
            return Err(at(open, Flaw::Adjacent));
        }
        let mut position = open + 1 + inside.len() - list.len();
        let mut names = Vec::new();
        for spec in list.split(',') {
            names.push(self.name(spec, position)?);
            position += spec.len() + 1;
        }
        self.parts.push(Part::Expression(Expression { operator, names }));
        Ok(())
    }

    fn name(&mut self, spec: &str, position: usize) -> Refusal<Arc<str>> {
        if let Some(modifier) = spec.find([':', '*']) {
            let flaw = if spec.as_bytes()[modifier] == b':' { Flaw::Prefix } else { Flaw::Explode };
            return Err(at(position + modifier, flaw));
        }
        if !spec.split('.').all(is_word) {
            return Err(at(position, Flaw::Name(spec.to_owned())));
        }
        if self.names.iter().any(|name| **name == *spec) {
            return Err(at(position, Flaw::Duplicate(spec.to_owned())));
        }
        if self.names.len() == UriTemplate::MOST_VARIABLES {
            return Err(at(position, Flaw::TooManyVariables));
        }
        let name: Arc<str> = spec.into();
        self.names.push(Arc::clone(&name));
        Ok(name)
    }
}

/// The operator, and the list of names after it.
fn operator(inside: &str, open: usize) -> Refusal<(Operator, &str)> {
    match inside.chars().next() {
        Some(symbol) if symbol.is_ascii_punctuation() && !matches!(symbol, '_' | '%') => match Operator::of(symbol) {
            Some(operator) => Ok((operator, &inside[1..])),
            None => Err(at(open + 1, Flaw::Operator(symbol))),
        },
        _ => Ok((Operator::Simple, inside)),
    }
}

/// Whether it can stand between the dots of a name.
fn is_word(word: &str) -> bool {
    let bytes = word.as_bytes();
    let legal = |(at, byte): (usize, &u8)| match byte {
        b'%' => percent::escape(bytes, at).is_some(),
        _ => byte.is_ascii_alphanumeric() || *byte == b'_',
    };
    !word.is_empty() && bytes.iter().enumerate().all(legal)
}

fn at(position: usize, flaw: Flaw) -> UriTemplateError {
    UriTemplateError { position, flaw }
}
