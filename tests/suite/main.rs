//! What spans crates, on every wire: one binary.
