//! Which arguments of a tool travel in HTTP headers too, for both sides.
//!
//! Specification: *Streamable HTTP, Custom Headers from Tool Parameters*.

mod compile;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use mcp_jsonrpc::{ByteString, Raw};
pub use value::MirroredValue;

use crate::Error;

/// Which arguments of a tool travel in `Mcp-Param-*` headers too, as the `x-mcp-header` annotations in its schema say.
///
/// Cloning is cheap.
///
/// ```
/// use mcp_core::{MirrorPlan, jsonrpc::Raw};
///
/// let schema = Raw::parse(r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#)?;
/// let plan = MirrorPlan::compile(&schema)?;
/// let arguments = Raw::parse(r#"{"region":"us-west1"}"#)?;
/// let (name, value) = plan.extract(&arguments).next().unwrap();
/// assert_eq!((name, value.as_str()), ("Region", "us-west1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Specification: *Tools, x-mcp-header*.
#[derive(Debug, Clone, Default)]
pub struct MirrorPlan(Arc<[Mirrored]>);

/// One annotated property.
#[derive(Debug)]
struct Mirrored {
    /// The properties that lead to it, from the outermost.
    path: Vec<String>,
    /// What follows `Mcp-Param-`.
    name: ByteString,
}

impl MirrorPlan {
    /// Reads the annotations of a tool's input schema.
    ///
    /// A property may be nullable beside its type; any other type than `string`, `integer` and `boolean` is refused.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidParams`](crate::ErrorKind) when an annotation breaks a rule of the specification; the error
    /// names the property.
    pub fn compile(input_schema: &Raw) -> Result<Self, Error> {
        compile::compile(input_schema).map(|mirrored| Self(mirrored.into()))
    }

    /// Whether no argument is mirrored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What `arguments` give the headers: what follows `Mcp-Param-`, and the value. Those without a value are left out.
    pub fn extract(&self, arguments: &Raw) -> impl Iterator<Item = (&str, MirroredValue)> {
        self.each(Some(arguments)).filter_map(|(name, value)| Some((name, value?)))
    }

    /// The same for every header that the tool knows, with `None` where `arguments` have no value for it.
    pub fn each(&self, arguments: Option<&Raw>) -> impl Iterator<Item = (&str, Option<MirroredValue>)> {
        self.0.iter().map(move |mirrored| (&*mirrored.name, mirrored.value_in(arguments)))
    }

    /// The extracted pairs as a client keeps them for its transport.
    pub(crate) fn pairs(&self, arguments: Option<&Raw>) -> Vec<(ByteString, ByteString)> {
        let pair = |mirrored: &Mirrored| Some((mirrored.name.clone(), mirrored.value_in(arguments)?.into_text()));
        self.0.iter().filter_map(pair).collect()
    }
}

impl Mirrored {
    fn value_in(&self, arguments: Option<&Raw>) -> Option<MirroredValue> {
        let (first, rest) = self.path.split_first()?;
        let value = rest.iter().try_fold(arguments?.member(first)?, |within, step| within.member(step))?;
        MirroredValue::of(&value)
    }
}
