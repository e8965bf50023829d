//! What servers offer, a file a feature.

pub(super) mod completion;
pub(super) mod list;
pub(super) mod prompts;
pub(super) mod resources;
pub(super) mod tools;

use mcp_jsonrpc::{ErrorObject, code};

use crate::{Fault, ToolError};

/// A handler's failure where the result has no place for it: an error with the handler's own words.
fn failure(error: ToolError) -> Fault {
    if let Some(fault) = error.fault() {
        return fault.clone();
    }
    Fault::Other(ErrorObject::new(code::INTERNAL_ERROR, error.message().to_owned()))
}
