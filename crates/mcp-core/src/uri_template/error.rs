use super::UriTemplate;

/// Why a text is not a URI template that can be matched, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("URI template, byte {position}: {flaw}")]
pub struct UriTemplateError {
    pub(super) position: usize,
    pub(super) flaw: Flaw,
}

impl UriTemplateError {
    /// Where in the template, in bytes from its beginning.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    #[error("it is longer than {} bytes", UriTemplate::LONGEST)]
    TooLong,
    #[error("it has more than {} variables", UriTemplate::MOST_VARIABLES)]
    TooManyVariables,
    #[error("'{{' without its '}}'")]
    Unclosed,
    #[error("'}}' without its '{{'")]
    Unopened,
    #[error("the expression names no variable")]
    Empty,
    #[error("{0:?} is not an operator; there are + # . / ; ? &")]
    Operator(char),
    #[error("'{}' is not a name; it has letters, digits, '_', escapes, and '.' between them", crate::shown(.0))]
    Name(String),
    #[error("the variable '{0}' stands there a second time, and the two could differ")]
    Duplicate(String),
    #[error("the modifier ':' is not supported: it shows only the beginning of a value")]
    Prefix,
    #[error("the modifier '*' is not supported: a value is one text and no list; '{{+name}}' takes several segments")]
    Explode,
    #[error("nothing tells where this expression begins and the one before it ends; put a literal between them")]
    Adjacent,
    #[error("'%' without two hex digits after it")]
    Escape,
    #[error("a control character")]
    Control,
}
