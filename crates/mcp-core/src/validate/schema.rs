use jsonschema::{
    PatternOptions, ValidationError, Validator,
    paths::{Location, LocationSegment},
};
use mcp_jsonrpc::Raw;
use serde_json::Value;

use crate::{Error, ErrorKind, shown};

/// The longest schema, in bytes: compiling one takes a multiple of that.
const SCHEMA_BYTES: usize = 256 << 10;

/// The most misfits that are told.
const TOLD: usize = 10;

/// The longest value whose misfits are named, in bytes. The library makes all of them before it gives the first, and a
/// long array can have one an element.
const EXPLAINED_BYTES: usize = 64 << 10;

/// How far a pattern may backtrack before the value counts as a misfit.
const BACKTRACKING: usize = 100_000;

/// A compiled schema.
///
/// Dialects are 2020-12, unless `$schema` says otherwise, down to draft 4. `format` is an annotation, as 2020-12 has it.
pub(super) struct Schema(Validator);

impl Schema {
    /// # Errors
    /// When it is longer than 256 KiB, nests deeper than 128, is no valid schema of a known dialect, or refers to
    /// anything outside itself, which would have to be fetched.
    pub(super) fn compile(schema: &Raw) -> Result<Option<Self>, Error> {
        let bytes = schema.as_bytes().len();
        if bytes > SCHEMA_BYTES {
            return Err(refused(format!("it has {bytes} bytes, and {SCHEMA_BYTES} is the most")));
        }
        let schema: Value = schema.decode().map_err(|error| refused(shown(&error.to_string())))?;
        let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKING);
        let options = jsonschema::options().offline().with_pattern_options(patterns);
        match options.build(&schema) {
            Ok(validator) => Ok(Some(Self(validator))),
            Err(error) => Err(refused(told("", &error))),
        }
    }

    /// What of a JSON text does not fit, in words; `None` if all of it does.
    pub(super) fn misfits(&self, text: &str) -> Option<String> {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Some("they cannot be read".into()) };
        if self.0.is_valid(&value) {
            None
        } else if text.len() > EXPLAINED_BYTES {
            Some("they do not fit the schema, and are too long to say where".into())
        } else {
            self.named(&value)
        }
    }

    /// The same of a text that somebody else has refused, with better words than these for what is too long or no value.
    pub(super) fn explain(&self, text: &str) -> Option<String> {
        let is_short = text.len() <= EXPLAINED_BYTES;
        is_short.then(|| serde_json::from_str(text).ok()).flatten().and_then(|value| self.named(&value))
    }

    fn named(&self, value: &Value) -> Option<String> {
        let mut errors = self.0.iter_errors(value);
        let mut misfits: Vec<String> = errors.by_ref().take(TOLD).map(|error| told("arguments", &error)).collect();
        if errors.next().is_some() {
            misfits.push("and more".into());
        }
        (!misfits.is_empty()).then(|| misfits.join("; "))
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// The place and what is wrong there, bounded. What the value was is left out: whoever sent it knows.
fn told(root: &str, error: &ValidationError<'_>) -> String {
    let reason = error.masked_with("it").to_string().replace(['"', '\''], "`");
    let (path, reason) = (path(error.instance_path()), shown(&reason));
    match path.as_str() {
        "" if root.is_empty() => reason,
        "" => format!("{root}: {reason}"),
        path => format!("`{}`: {reason}", shown(path)),
    }
}

/// As the decoder tells paths: `a.b[0]`.
fn path(location: &Location) -> String {
    let mut path = String::new();
    for segment in location.segments() {
        match segment {
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
            LocationSegment::Property(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&name);
            }
        }
    }
    path
}

fn refused(why: String) -> Error {
    Error::new(ErrorKind::InvalidParams, why)
}
