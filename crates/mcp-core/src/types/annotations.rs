use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};

use super::{Role, lenient};

/// Hints on how contents or a resource are to be used.
///
/// ```
/// use mcp_core::types::{Annotations, Content, Role};
///
/// let block = Content::text("a note").annotate(Annotations::default().audience(Role::User).priority(0.2));
/// ```
///
/// Specification: *schema, `Annotations`*.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// Whom it is for; nobody stands for anybody.
    #[serde(default, deserialize_with = "lenient::items_or_none", skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// How important it is, from 0 (optional) to 1 (required).
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it was changed last, as ISO 8601 has it. From 2025-06-18 on.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// Adds somebody whom it is for.
    #[must_use]
    pub fn audience(mut self, role: Role) -> Self {
        self.audience.push(role);
        self
    }

    /// Says how important it is, from 0 to 1; what lies outside becomes the nearer of them, and no number is none.
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority.clamp(0.0, 1.0)).filter(|priority| !priority.is_nan());
        self
    }

    /// Says when it was changed last, as `2026-07-28T12:00:00Z`.
    #[must_use]
    pub fn last_modified(mut self, time: impl Into<String>) -> Self {
        self.last_modified = Some(time.into());
        self
    }
}

/// As they stand on the wire.
impl From<Annotations> for Raw {
    fn from(annotations: Annotations) -> Self {
        Self::encode(&annotations).unwrap_or(Self::empty_object())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_is_written_and_priority_has_bounds() {
        let written = |annotations: Annotations| Raw::from(annotations).as_str().to_owned();
        assert_eq!(written(Annotations::default()), "{}");
        let all = Annotations::default().audience(Role::User).priority(7.0).last_modified("2026-07-28T12:00:00Z");
        let json = r#"{"audience":["user"],"priority":1.0,"lastModified":"2026-07-28T12:00:00Z"}"#;
        assert_eq!(written(all), json);
        assert_eq!(written(Annotations::default().priority(f64::NAN)), "{}");
    }
}
