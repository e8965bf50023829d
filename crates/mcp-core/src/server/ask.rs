use std::ops::Deref;

/// A user's answer to a form, as a parameter of a handler that was written with a macro: it is asked for before the body
/// runs, and a model does not see it. It derefs to the answer, and `Ask(answer)` makes one in a test.
///
/// A parameter `#[ask("Deploy this?")] approval: Ask<Approval>` is, written with the builders,
///
/// ```
/// # use mcp_core::{Context, Tool, ToolError, server::form};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Approval { go: bool }
/// async fn deploy(context: Context) -> Result<bool, ToolError> {
///     let approval = context.elicit("approval", form::<Approval>("Deploy this?")).await?;
///     Ok(approval.go)
/// }
///
/// let tool = Tool::new("deploy", deploy).asks::<Approval>();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper to construct and take apart, as `Json`")]
pub struct Ask<T>(pub T);

impl<T> Deref for Ask<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
