use serde::{Deserialize, Serialize};

/// What a client of the modern era wants to be told of, or what a server will tell it of.
///
/// Specification: *Subscriptions, Notification Filter*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationFilter {
    /// When the list of tools changes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    /// When the list of prompts changes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    /// When the list of resources, or of templates, changes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    /// When one of these resources changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
}

/// The parameters of `subscriptions/listen`.
///
/// Specification: *Subscriptions, Opening a Stream*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListenParams {
    /// What is wanted.
    pub notifications: NotificationFilter,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}
