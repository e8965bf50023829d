use std::sync::Arc;

/// A template is a sequence of these.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    Expression(Expression),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) operator: Operator,
    pub(super) names: Vec<Arc<str>>,
}

/// The RFC's operators, by the names of its sections 3.2.2 to 3.2.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Segment,
    Parameter,
    Query,
    Continuation,
}

/// The table of the RFC's appendix A.
impl Operator {
    pub(super) const fn of(symbol: char) -> Option<Self> {
        Some(match symbol {
            '+' => Self::Reserved,
            '#' => Self::Fragment,
            '.' => Self::Label,
            '/' => Self::Segment,
            ';' => Self::Parameter,
            '?' => Self::Query,
            '&' => Self::Continuation,
            _ => return None,
        })
    }

    /// What stands before its first value.
    pub(super) const fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Segment => "/",
            Self::Parameter => ";",
            Self::Query => "?",
            Self::Continuation => "&",
        }
    }

    /// What stands between its values.
    pub(super) const fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Segment => "/",
            Self::Parameter => ";",
            Self::Query | Self::Continuation => "&",
        }
    }

    /// Whether each value has its name before it.
    pub(super) const fn named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Whether its values keep the reserved characters.
    pub(super) const fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}
