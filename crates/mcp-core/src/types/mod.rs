//! The protocol's data, as the specification's schema names it.

mod capabilities;
mod content;
mod implementation;
mod lenient;
mod lifecycle;
mod progress;
mod tool;

pub use capabilities::{ClientCapabilities, ClientCapability, ServerCapabilities};
pub(crate) use content::Written;
pub use content::{Content, TextContent};
pub use implementation::Implementation;
pub use lifecycle::{DiscoverResult, InitializeParams, InitializeResult};
pub use progress::Progress;
pub use tool::{CallToolParams, CallToolResult, ListToolsResult, PaginatedParams, ToolAnnotations, ToolDefinition};
