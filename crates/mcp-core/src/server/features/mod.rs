//! What servers offer, a file a feature.

pub(super) mod tools;
