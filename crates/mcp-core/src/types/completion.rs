use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The parameters of `completion/complete`.
///
/// Specification: *Completion*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteParams {
    /// Of what an argument is completed.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument.
    pub argument: CompletionArgument,
    /// What is known beside it.
    #[serde(
        default,
        deserialize_with = "super::lenient::null_is_default",
        skip_serializing_if = "CompletionContext::is_empty"
    )]
    pub context: CompletionContext,
}

impl CompleteParams {
    /// An argument of a prompt, as far as it is typed.
    pub fn prompt(name: impl Into<String>, argument: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(CompletionReference::Prompt { name: name.into() }, argument.into(), value.into())
    }

    /// A variable of a resource template, as far as it is typed.
    pub fn template(template: impl Into<String>, variable: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(CompletionReference::Resource { uri: template.into() }, variable.into(), value.into())
    }

    fn new(reference: CompletionReference, name: String, value: String) -> Self {
        Self { reference, argument: CompletionArgument { name, value }, context: CompletionContext::default() }
    }

    /// Says what another argument is already.
    #[must_use]
    pub fn given(mut self, argument: impl Into<String>, value: impl Into<String>) -> Self {
        self.context.arguments.insert(argument.into(), value.into());
        self
    }
}

/// Of what an argument is completed.
///
/// Specification: *Completion, Reference Types*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum CompletionReference {
    /// Of a prompt, by its name.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The prompt's name.
        name: String,
    },
    /// Of a resource template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The template, or a URI.
        uri: String,
    },
}

/// An argument that is being typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionArgument {
    /// Its name.
    pub name: String,
    /// What stands there so far.
    pub value: String,
}

/// What is known beside an argument that is being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionContext {
    /// The arguments that are filled in already.
    #[serde(default, deserialize_with = "super::lenient::null_is_default")]
    pub arguments: BTreeMap<String, String>,
}

impl CompletionContext {
    fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }
}

/// What an argument may become: the values on this page, best first, and how many there are.
///
/// Specification: *Completion, Completion Results*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// At most 100.
    pub values: Vec<String>,
    /// How many there are in all, if that is known.
    #[serde(default, deserialize_with = "super::lenient::whole_or_none", skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more.
    #[serde(default, deserialize_with = "super::lenient::or_default")]
    pub has_more: bool,
}

impl Completion {
    /// The most values of one answer.
    pub const MOST: usize = 100;

    /// The first values of many, which are counted.
    pub fn of(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut values: Vec<String> = values.into_iter().map(Into::into).collect();
        let total = values.len();
        values.truncate(Self::MOST);
        Self { has_more: total > values.len(), total: u64::try_from(total).ok(), values }
    }

    /// The same, with at most [`MOST`](Self::MOST) values.
    pub(crate) fn capped(mut self) -> Self {
        if self.values.len() > Self::MOST {
            self.total = self.total.or(u64::try_from(self.values.len()).ok());
            self.values.truncate(Self::MOST);
            self.has_more = true;
        }
        self
    }
}

/// Values are collected, and counted.
impl<S: Into<String>> FromIterator<S> for Completion {
    fn from_iter<I: IntoIterator<Item = S>>(values: I) -> Self {
        Self::of(values)
    }
}

/// The result of `completion/complete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteResult {
    /// What the argument may become.
    pub completion: Completion,
}

impl From<Completion> for CompleteResult {
    fn from(completion: Completion) -> Self {
        Self { completion }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_values_are_told_and_the_rest_is_counted() {
        for (count, told, has_more) in [(0, 0, false), (100, 100, false), (101, 100, true)] {
            let completion = Completion::of((0..count).map(|value| value.to_string()));
            assert_eq!((completion.values.len(), completion.total, completion.has_more), (told, Some(count), has_more));
        }
        let by_hand = Completion { values: vec![String::new(); 150], ..Completion::default() }.capped();
        assert_eq!((by_hand.values.len(), by_hand.total, by_hand.has_more), (100, Some(150), true));
    }

    #[test]
    fn references_are_told_apart_by_their_type() {
        let read = |json: &str| serde_json::from_str::<CompleteParams>(json);
        let params = read(r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}"#).unwrap();
        assert_eq!(params.reference, CompletionReference::Prompt { name: "p".into() });
        assert!(read(r#"{"ref":{"type":"ref/tool","name":"p"},"argument":{"name":"a","value":""}}"#).is_err());
        assert!(read(r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":5}}"#).is_err());
    }
}
