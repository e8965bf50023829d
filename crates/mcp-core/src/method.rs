//! The methods of the protocol: each is a type, and the table is one screen.

use mcp_jsonrpc::Request;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Era,
    types::{
        CallToolParams, CallToolResult, CompleteParams, CompleteResult, DiscoverResult, GetPromptParams,
        GetPromptResult, InitializeParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, ListenParams, PaginatedParams, ReadResourceResult, ResourceParams,
        SetLevelParams, Task, TaskParams, UpdateTaskParams,
    },
};

/// A method: its name, its shapes, and the eras that have it.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// The eras that have it.
    const ERAS: &'static [Era];
    /// What a client sends.
    type Params: Serialize + DeserializeOwned;
    /// What a client gets.
    type Result: DeserializeOwned;
    /// Whether a modern server may ask for more before it answers.
    const MAY_ASK: bool = false;
    /// Whether a server may send notifications before it answers, with [`Context::notify`](crate::Context::notify). Progress
    /// and log messages need no word.
    const NOTIFIES: bool = false;

    /// Whether a request calls it.
    #[must_use]
    fn is(request: &Request) -> bool {
        request.method == Self::NAME
    }
}

/// Parameters or a result without members of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Empty {}

const LEGACY: &[Era] = &[Era::Legacy];
const MODERN: &[Era] = &[Era::Modern];
const BOTH: &[Era] = &[Era::Legacy, Era::Modern];

macro_rules! methods {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $eras:ident, $params:ty => $result:ty $(, $asks:ident)?;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            #[non_exhaustive]
            pub struct $kind;

            impl Method for $kind {
                const NAME: &'static str = $name;
                const ERAS: &'static [Era] = $eras;
                type Params = $params;
                type Result = $result;
                $(const MAY_ASK: bool = stringify!($asks).len() > 0;)?
            }
        )*

        /// A method of the core protocol that servers answer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum CoreMethod { $($kind),* }

        impl CoreMethod {
            /// The method of that name, if that era has it.
            pub(crate) fn find(name: &str, era: Era) -> Option<Self> {
                match name {
                    $(<$kind as Method>::NAME if <$kind as Method>::ERAS.contains(&era) => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

methods! {
    /// Opens a legacy connection.
    Initialize = "initialize", LEGACY, InitializeParams => InitializeResult;
    /// Asks whether the other side is alive.
    Ping = "ping", LEGACY, Empty => Empty;
    /// Asks a modern server what it is.
    Discover = "server/discover", MODERN, Empty => DiscoverResult;
    /// Lists the tools.
    ListTools = "tools/list", BOTH, PaginatedParams => ListToolsResult;
    /// Calls a tool.
    CallTool = "tools/call", BOTH, CallToolParams => CallToolResult, may_ask;
    /// Lists the prompts.
    ListPrompts = "prompts/list", BOTH, PaginatedParams => ListPromptsResult;
    /// Gets a prompt's messages.
    GetPrompt = "prompts/get", BOTH, GetPromptParams => GetPromptResult, may_ask;
    /// Lists the resources.
    ListResources = "resources/list", BOTH, PaginatedParams => ListResourcesResult;
    /// Lists the resource templates.
    ListResourceTemplates = "resources/templates/list", BOTH, PaginatedParams => ListResourceTemplatesResult;
    /// Reads a resource.
    ReadResource = "resources/read", BOTH, ResourceParams => ReadResourceResult, may_ask;
    /// Asks to be told when a resource changes.
    Subscribe = "resources/subscribe", LEGACY, ResourceParams => Empty;
    /// Asks to be told no more.
    Unsubscribe = "resources/unsubscribe", LEGACY, ResourceParams => Empty;
    /// Listens to changes.
    Listen = "subscriptions/listen", MODERN, ListenParams => Empty;
    /// Sets from which level on log messages are wanted.
    SetLevel = "logging/setLevel", LEGACY, SetLevelParams => Empty;
    /// Completes an argument.
    Complete = "completion/complete", BOTH, CompleteParams => CompleteResult;
    /// Asks how far a task is.
    GetTask = "tasks/get", MODERN, TaskParams => Task;
    /// Tells a task what it wants to know.
    UpdateTask = "tasks/update", MODERN, UpdateTaskParams => Empty;
    /// Calls a task off.
    CancelTask = "tasks/cancel", MODERN, TaskParams => Empty;
}

/// The names of what a server asks its client.
pub mod question {
    /// Asks the user.
    pub const ELICIT: &str = "elicitation/create";
    /// Has the model say something.
    pub const CREATE_MESSAGE: &str = "sampling/createMessage";
    /// Asks for the directories that are worked in.
    pub const LIST_ROOTS: &str = "roots/list";
}

/// The notifications' names.
pub mod notification {
    /// A legacy client works in other directories now.
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    /// What a user was sent to a web page for is done.
    pub const ELICITED: &str = "notifications/elicitation/complete";
    /// A legacy client is done with the handshake.
    pub const INITIALIZED: &str = "notifications/initialized";
    /// A request is given up.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// A request goes on.
    pub const PROGRESS: &str = "notifications/progress";
    /// A subscription has begun.
    pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// A handler has something to say.
    pub const MESSAGE: &str = "notifications/message";
    /// The list of tools has changed.
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    /// The list of prompts has changed.
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
    /// The list of resources, or of templates, has changed.
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    /// What a resource holds has changed.
    pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
    /// A task has changed.
    pub const TASK: &str = "notifications/tasks";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_of_one_method() {
        let request = Request::new(1u64.into(), "initialize", None);
        assert!(Initialize::is(&request) && !Ping::is(&request));
    }

    #[test]
    fn an_era_has_only_its_own_methods() {
        assert_eq!(CoreMethod::find("ping", Era::Legacy), Some(CoreMethod::Ping));
        assert_eq!(CoreMethod::find("ping", Era::Modern), None);
        assert_eq!(CoreMethod::find("initialize", Era::Modern), None);
        assert_eq!(CoreMethod::find("server/discover", Era::Legacy), None);
        assert_eq!(CoreMethod::find("tools/call", Era::Modern), Some(CoreMethod::CallTool));
        assert_eq!(CoreMethod::find("Tools/Call", Era::Modern), None);
    }
}
