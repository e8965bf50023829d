//! Whether arguments and results have the shape that a tool's schemas promise.
//!
//! Arguments are decoded into the handler's type first, which says most of it. The schema is asked where there is no
//! type, where it asserts more than the type can, and, to name every field, after decoding has failed. All of that is the
//! feature `validate`; without it, schemas are told and not checked.

#[cfg(not(feature = "validate"))]
mod absent;
#[cfg(feature = "validate")]
mod asserts;
#[cfg(feature = "validate")]
mod schema;
#[cfg(test)]
#[cfg(feature = "validate")]
mod tests;

use std::sync::{Arc, OnceLock};

#[cfg(not(feature = "validate"))]
use absent::{Schema, asserts_more, asserts_nothing};
#[cfg(feature = "validate")]
use asserts::{asserts_more, asserts_nothing};
use mcp_jsonrpc::Raw;
#[cfg(feature = "validate")]
use schema::Schema;

use crate::{
    Error, ErrorKind, Fault, Revision, ToolError,
    types::{CallToolResult, ToolDefinition},
};

/// Where the input schema of a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// Whoever made the tool wrote it: nothing else holds the arguments to it.
    Hand,
    /// The type of the arguments, into which they are decoded.
    Type,
    /// Another server, which checks for itself.
    Remote,
}

/// What is checked of the calls of one tool.
#[derive(Debug)]
pub(crate) struct Checks {
    /// The tool's name, for the log.
    tool: String,
    input: Input,
    /// Present where results are to be checked.
    output: Option<Schema>,
    /// Whether structured content was promised that no type sees to.
    promises: bool,
}

#[derive(Debug)]
enum Input {
    /// Nothing is.
    Unchecked,
    /// Every call's arguments.
    Always(Schema),
    /// Only those that did not decode; the schema is compiled for the first of them, if it can be.
    Misfits(Raw, OnceLock<Option<Schema>>),
}

impl Checks {
    /// What is to be checked, if anything is.
    ///
    /// # Errors
    /// When a schema that is to be checked against is no good.
    pub(crate) fn of(
        definition: &ToolDefinition,
        author: Author,
        checks_output: bool,
        promises: bool,
    ) -> Result<Option<Arc<Self>>, Error> {
        let input = Input::of(&definition.input_schema, author).map_err(|error| about("input", &error))?;
        let output = definition.output_schema.as_ref().filter(|_| checks_output);
        let output = output.map(Schema::compile).transpose().map_err(|error| about("output", &error))?.flatten();
        if output.is_none() && !promises && matches!(input, Input::Unchecked) {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self { tool: definition.name.clone(), input, output, promises })))
    }

    /// Whether results are checked.
    pub(crate) fn checks_output(&self) -> bool {
        self.output.is_some() || self.promises
    }

    /// Checks arguments for which decoding is not enough.
    pub(crate) fn arguments(&self, text: &str) -> Result<(), ToolError> {
        match &self.input {
            Input::Always(schema) => schema.misfits(text).map_or(Ok(()), |misfits| Err(invalid(&misfits))),
            Input::Unchecked | Input::Misfits(..) => Ok(()),
        }
    }

    /// What is wrong with arguments that do not decode, if the schema knows.
    pub(crate) fn explain(&self, text: &str) -> Option<ToolError> {
        let schema = match &self.input {
            Input::Unchecked => return None,
            Input::Always(schema) => schema,
            Input::Misfits(raw, compiled) => compiled.get_or_init(|| Schema::compile(raw).ok().flatten()).as_ref()?,
        };
        schema.explain(text).map(|misfits| invalid(&misfits))
    }

    /// The result, or a failure in its place: what it should have been is the server's business, and goes to the log.
    ///
    /// # Errors
    /// When there is no structured content in a revision that was told of some.
    pub(crate) fn result(&self, result: CallToolResult, revision: Revision) -> Result<CallToolResult, Fault> {
        if result.is_error {
            return Ok(result);
        }
        let Some(value) = &result.structured_content else {
            tracing::error!(tool = self.tool, "a tool's result has no structured content, though it declares a schema");
            return if revision >= Revision::V2025_06_18 { Err(Fault::Internal) } else { Ok(result) };
        };
        let Some(misfits) = self.output.as_ref().and_then(|schema| schema.misfits(value.as_str())) else {
            return Ok(result);
        };
        tracing::error!(tool = self.tool, misfits, "a tool's result does not have its declared shape");
        Ok(CallToolResult::error("The tool failed: its result does not have its declared shape"))
    }
}

impl Input {
    fn of(schema: &Raw, author: Author) -> Result<Self, Error> {
        match author {
            Author::Remote => Ok(Self::Unchecked),
            Author::Hand if asserts_nothing(schema) => Ok(Self::Unchecked),
            Author::Type if !asserts_more(schema) => Ok(Self::Misfits(schema.clone(), OnceLock::new())),
            Author::Type | Author::Hand => Ok(Schema::compile(schema)?.map_or(Self::Unchecked, Self::Always)),
        }
    }
}

/// Whether a value is one of a schema; a schema that is no good asserts nothing, and nothing is asserted without the feature.
pub(crate) fn fits(schema: &Raw, value: &Raw) -> bool {
    let schema = Schema::compile(schema).ok().flatten();
    schema.is_none_or(|schema| schema.misfits(value.as_str()).is_none())
}

fn about(which: &str, error: &Error) -> Error {
    Error::new(ErrorKind::InvalidParams, format!("the {which} schema: {error}"))
}

fn invalid(misfits: &str) -> ToolError {
    ToolError::new(format!("Invalid arguments: {misfits}"))
}
