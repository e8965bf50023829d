//! What servers offer, a file a feature.

pub(super) mod completion;
pub(super) mod list;
pub(super) mod prompts;
pub(super) mod resources;
pub(super) mod tools;
