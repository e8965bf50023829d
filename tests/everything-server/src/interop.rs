//! What the interop table calls beside the other tools. Its foreign servers have tools of the same names.

use mcp_suite::{Context, Tool, ToolError};
use tokio::sync::watch;

use crate::conformance;

pub(crate) fn tools() -> Vec<Tool> {
    let hanging = watch::Sender::new(0);
    let for_hang = hanging.clone();
    vec![
        Tool::new("question", conformance::ask_name).describe("Ask for a name, and greet by it"),
        Tool::new("hang", move |context| hang(for_hang.clone(), context)).describe("Tell of progress, and never end"),
        Tool::new("stopped", move || stopped(hanging.clone())).describe("Answer as soon as nothing hangs"),
    ]
}

/// A call that hangs, until it is dropped.
struct Hangs(watch::Sender<u64>);

impl Drop for Hangs {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

async fn hang(hanging: watch::Sender<u64>, context: Context) -> Result<(), ToolError> {
    hanging.send_modify(|calls| *calls += 1);
    let _hangs = Hangs(hanging);
    context.progress(1.0, None, "it hangs").await;
    std::future::pending().await
}

async fn stopped(hanging: watch::Sender<u64>) -> Result<&'static str, ToolError> {
    // The sender that is held here keeps it from failing.
    let _ = hanging.subscribe().wait_for(|calls| *calls == 0).await;
    Ok("stopped")
}
