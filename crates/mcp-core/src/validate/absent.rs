//! What stands for schemas without the feature `validate`: there is none that could be checked against.

use mcp_jsonrpc::Raw;

use crate::Error;

#[derive(Debug)]
pub(super) enum Schema {}

impl Schema {
    #[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
    pub(super) fn compile(_: &Raw) -> Result<Option<Self>, Error> {
        Ok(None)
    }

    pub(super) fn misfits(&self, _: &str) -> Option<String> {
        match *self {}
    }

    pub(super) fn explain(&self, _: &str) -> Option<String> {
        match *self {}
    }
}

/// Then nothing is kept for later either.
pub(super) fn asserts_more(_: &Raw) -> bool {
    true
}

/// No schema is looked at.
pub(super) fn asserts_nothing(_: &Raw) -> bool {
    true
}
