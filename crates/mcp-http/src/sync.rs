//! What the parts of a session share: the standard library's locks, or loom's, which run a test through every order of things.

#[cfg(mcp_loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(mcp_loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};
