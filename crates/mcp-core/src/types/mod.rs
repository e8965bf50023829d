//! The protocol's data, as the specification's schema names it.

mod annotations;
mod cache;
mod capabilities;
mod completion;
mod content;
mod elicitation;
mod icon;
mod implementation;
mod lenient;
mod lifecycle;
mod logging;
mod progress;
mod prompt;
mod resource;
mod roots;
mod sampling;
mod subscription;
mod task;
mod timestamp;
mod tool;
mod trace;

pub use annotations::Annotations;
pub use cache::{CacheHint, CacheHints, CacheScope};
pub(crate) use capabilities::check_extensions;
pub use capabilities::{ClientCapabilities, ClientCapability, ServerCapabilities};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext, CompletionReference,
};
pub(crate) use content::Written;
pub use content::{Content, EmbeddedResource, MediaContent, ResourceLink, TextContent, ToolOutcome, ToolUse};
pub use elicitation::{ElicitAction, ElicitMode, ElicitParams, ElicitResult};
pub use icon::{Icon, IconTheme};
pub use implementation::Implementation;
pub use lifecycle::{DiscoverResult, InitializeParams, InitializeResult};
pub use logging::{LogLevel, LogMessage, SetLevelParams};
pub use progress::Progress;
pub(crate) use prompt::WrittenMessage;
pub use prompt::{
    GetPromptParams, GetPromptResult, ListPromptsResult, PromptArgument, PromptDefinition, PromptMessage, Role,
};
pub use resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, ResourceBody, ResourceContents,
    ResourceDefinition, ResourceParams, ResourceTemplateDefinition,
};
pub use roots::{ListRootsResult, Root};
pub(crate) use sampling::WrittenSampling;
pub use sampling::{CreateMessageParams, CreateMessageResult, SamplingMessage};
pub use subscription::{ListenParams, NotificationFilter};
pub use task::{TASKS, Task, TaskParams, UpdateTaskParams};
pub use tool::{CallToolParams, CallToolResult, ListToolsResult, PaginatedParams, ToolAnnotations, ToolDefinition};
pub use trace::TraceContext;
