use std::{collections::HashSet, fmt};

use serde::{Deserialize, Serialize};

use crate::{hub::Subject, shown::Elided};

/// What a client of the modern era wants to be told of, or what a server will tell it of.
///
/// Specification: *Subscriptions, Notification Filter*.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationFilter {
    /// When the list of tools changes.
    #[serde(default, deserialize_with = "super::lenient::null_is_default", skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    /// When the list of prompts changes.
    #[serde(default, deserialize_with = "super::lenient::null_is_default", skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    /// When the list of resources, or of templates, changes.
    #[serde(default, deserialize_with = "super::lenient::null_is_default", skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    /// When one of these resources changes.
    #[serde(default, deserialize_with = "super::lenient::null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// When one of these tasks changes.
    ///
    /// Specification: *Tasks extension, Task Status Notifications*.
    #[serde(default, deserialize_with = "super::lenient::null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
}

impl fmt::Debug for NotificationFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotificationFilter")
            .field("tools_list_changed", &self.tools_list_changed)
            .field("prompts_list_changed", &self.prompts_list_changed)
            .field("resources_list_changed", &self.resources_list_changed)
            .field("resource_subscriptions", &self.resource_subscriptions)
            .field("task_ids", &self.task_ids.iter().map(Elided).collect::<Vec<_>>())
            .finish()
    }
}

impl NotificationFilter {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When the list of tools changes.
    #[must_use]
    pub fn tools(mut self) -> Self {
        self.tools_list_changed = true;
        self
    }

    /// When the list of prompts changes.
    #[must_use]
    pub fn prompts(mut self) -> Self {
        self.prompts_list_changed = true;
        self
    }

    /// When the list of resources, or of templates, changes.
    #[must_use]
    pub fn resources(mut self) -> Self {
        self.resources_list_changed = true;
        self
    }

    /// When what that resource holds changes.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.resource_subscriptions.push(uri.into());
        self
    }

    /// When that task changes.
    #[must_use]
    pub fn task(mut self, id: impl Into<String>) -> Self {
        self.task_ids.push(id.into());
        self
    }

    /// What of it the other side agreed to, whatever else it says.
    pub(crate) fn within(self, agreed: Self) -> Self {
        let both = |mut ours: Vec<String>, theirs: Vec<String>| {
            let theirs: HashSet<_> = theirs.into_iter().collect();
            ours.retain(|one| theirs.contains(one));
            ours
        };
        Self {
            tools_list_changed: self.tools_list_changed && agreed.tools_list_changed,
            prompts_list_changed: self.prompts_list_changed && agreed.prompts_list_changed,
            resources_list_changed: self.resources_list_changed && agreed.resources_list_changed,
            resource_subscriptions: both(self.resource_subscriptions, agreed.resource_subscriptions),
            task_ids: both(self.task_ids, agreed.task_ids),
        }
    }

    /// What there is to be listened to.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject> {
        let lists = [
            (self.tools_list_changed, Subject::Tools),
            (self.prompts_list_changed, Subject::Prompts),
            (self.resources_list_changed, Subject::Resources),
        ];
        let lists = lists.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, subject)| subject);
        let resources = self.resource_subscriptions.iter().map(|uri| Subject::Resource(uri.as_str().into()));
        lists.chain(resources).chain(self.task_ids.iter().map(|id| Subject::Task(id.as_str().into())))
    }
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
