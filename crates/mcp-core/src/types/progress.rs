use serde::{Deserialize, Serialize};

use super::lenient;

/// How far a request has come.
///
/// Specification: *Progress*.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// How far; greater each time.
    pub progress: f64,
    /// How far it goes, if that is known.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is being done, for a person.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
