use mcp_core::{BoxFuture, Context, ToolError};

/// A skill that is made when it is read, so that nothing can be said of its bytes before. Hosts may decline it.
///
/// An `async fn` of the [`Context`] that returns the instructions is one without further files:
///
/// ```
/// use mcp_core::{Context, ToolError};
/// use mcp_skills::{Frontmatter, Skills};
///
/// async fn report(_: Context) -> Result<String, ToolError> { Ok("Nothing is out of order today.".into()) }
///
/// let daily = Frontmatter::new("daily", "Assemble today's report");
/// let skills = Skills::builder().dynamic("reports", daily, report).build()?;
/// # Ok::<(), mcp_core::Error>(())
/// ```
///
/// Specification: *Skills extension, Resources* (`dynamic`).
pub trait DynamicSkill: Send + Sync + 'static {
    /// What stands behind the frontmatter in its `SKILL.md`.
    fn instructions(&self, context: Context) -> BoxFuture<'_, Result<String, ToolError>>;

    /// The paths of its further files, below its directory. Default: there are none.
    fn files(&self, _: Context) -> BoxFuture<'_, Result<Vec<String>, ToolError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Reads one of them, or says [`ToolError::not_found`]. `path` is below its directory, and holds no `..`.
    fn read<'a>(&'a self, _: Context, _path: &'a str) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::not_found())))
    }
}

impl<F, Fut> DynamicSkill for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    fn instructions(&self, context: Context) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(self(context))
    }
}
