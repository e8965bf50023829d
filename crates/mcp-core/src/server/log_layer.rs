//! What handlers log with `tracing`, sent to the clients whose requests they work on.

use std::{
    cell::Cell,
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Map, Value};
use tracing::{
    Event, Level, Span, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{Layer, layer, registry::LookupSpan};

use crate::{Context, Exchange, types::LogLevel};

/// A layer of `tracing-subscriber` that sends what happens within a handler to the client whose request it works on, as
/// log messages; what other requests cause is sent to their own clients, and all else to nobody.
///
/// The server must be built with [`logging`](crate::ServerBuilder::logging), and the client must ask for messages. The
/// logger is the event's target; `TRACE` is told as `debug`. A task that a handler spawns belongs to the request if it
/// is instrumented with the current span. This family's own events are left out.
///
/// Everything that is logged there goes to the client, that of libraries too: say with a filter what may. The filter must
/// let the spans of the target `mcp_core` pass.
///
/// ```
/// use mcp_core::server::LogLayer;
/// use tracing::Level;
/// use tracing_subscriber::{Layer as _, filter::Targets, layer::SubscriberExt as _};
///
/// let mine = Targets::new().with_target("my_server", Level::INFO).with_target("mcp_core", Level::ERROR);
/// let subscriber = tracing_subscriber::registry().with(LogLayer::new().with_filter(mine));
/// # let _ = subscriber;
/// ```
///
/// Specification: *Logging*.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LogLayer;

/// Whether there is a layer at all: without one nothing is done for it.
static EXISTS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What the span that is being made belongs to. It is taken by the layer within the same call.
    static MAKING: Cell<Option<Context>> = const { Cell::new(None) };
    /// Whether an event is being sent: what is logged on the way, by an observer for example, is not sent in turn.
    static SENDING: Cell<bool> = const { Cell::new(false) };
}

impl LogLayer {
    /// The layer.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "that there is one is noted, which a default should not do")]
    pub fn new() -> Self {
        EXISTS.store(true, Ordering::Relaxed);
        Self
    }
}

/// The span in which an exchange is answered; none where nobody would be told.
pub(super) fn span(exchange: &Exchange) -> Span {
    if exchange.log_level.is_none() || !EXISTS.load(Ordering::Relaxed) {
        return Span::none();
    }
    MAKING.set(Some(Context::to_log(exchange.clone())));
    // A level that no filter by level leaves out.
    let span = tracing::error_span!("call");
    MAKING.set(None);
    span
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: layer::Context<'_, S>) {
        if attributes.metadata().target() != module_path!() {
            return;
        }
        if let (Some(call), Some(span)) = (MAKING.take(), context.span(id)) {
            span.extensions_mut().insert(call);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: layer::Context<'_, S>) {
        let level = level(*event.metadata().level());
        if is_ours(event.metadata().target()) || SENDING.get() {
            return;
        }
        let call = context.event_scope(event).and_then(|mut scope| {
            // The innermost one, without the lock on its extensions.
            scope.find_map(|span| span.extensions().get::<Context>().cloned())
        });
        if let Some(call) = call.filter(|call| call.logs(level)) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            let target = fields.target.take();
            let target = target.as_deref().unwrap_or(event.metadata().target());
            if is_ours(target) {
                return;
            }
            SENDING.set(true);
            // An observer's panic is contained on the way, so this is set back.
            drop(call.log(level, target, fields.into_data()));
            SENDING.set(false);
        }
    }
}

/// The crates of this family tell nothing about a request that its client should hear.
fn is_ours(target: &str) -> bool {
    let name = target.split("::").next().unwrap_or(target);
    matches!(name, "mcp_core" | "mcp_http" | "mcp_stdio" | "mcp_ws" | "mcp_jsonrpc")
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warning,
        Level::INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

/// What an event says.
#[derive(Default)]
struct Fields {
    values: Map<String, Value>,
    /// Where it comes from, if it came through the `log` crate.
    target: Option<String>,
}

impl Fields {
    /// A message alone is a text, anything more an object.
    fn into_data(mut self) -> Value {
        match self.values.remove("message") {
            Some(message) if self.values.is_empty() => message,
            Some(message) => {
                self.values.insert("message".into(), message);
                self.values.into()
            }
            None => self.values.into(),
        }
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        // What the `log` crate adds says where a source file lies on this machine.
        match (field.name(), value.into()) {
            ("log.target", Value::String(target)) => self.target = Some(target),
            (name, _) if name.starts_with("log.") => {}
            (name, value) => {
                self.values.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use tracing::Instrument;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::{Server, Tool, ToolError, implementation, memory, server::serve};

    async fn work() -> Result<&'static str, ToolError> {
        tracing::info!(target: "work", "begun");
        tracing::trace!(target: "mcp_core::inner", "a secret of the library's own");
        tokio::task::yield_now().await;
        tracing::warn!(target: "disk", free = 3, ok = false, path = ?"/x", "nearly full");
        let spawned =
            tokio::spawn(async { tracing::error!(target: "work", "from a task") }.instrument(Span::current()));
        spawned.await?;
        tracing::debug!(target: "work", "too fine");
        Ok("done")
    }

    fn block() -> Result<(), ToolError> {
        tracing::info!(target: "x", { log.target = "disk", log.file = "/home/me/x.rs", log.line = 7 }, "from a thread");
        Ok(())
    }

    /// What a client hears of a call before its answer.
    async fn heard(tool: &str, level: Option<&str>) -> Vec<Value> {
        let server = Server::builder(implementation!()).logging(true).observer(Chatty);
        let server = server.tool(Tool::new("work", work)).tool(Tool::blocking("block", block)).build();
        let (here, there) = memory();
        let (mut source, mut sink) = crate::Wire::split(here);
        let serving = tokio::spawn(serve(server, there));
        let level = level.map(|level| format!(r#","io.modelcontextprotocol/logLevel":"{level}""#)).unwrap_or_default();
        let meta = format!(
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{level}"#
        );
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{{{meta}}}}}}}"#
        );
        crate::FrameSink::send(&mut sink, &mut vec![call.into()]).await.unwrap();
        let mut heard = Vec::new();
        while let Some(mcp_jsonrpc::Frame::Line(line)) = crate::FrameSource::next(&mut source).await.unwrap() {
            let message: Value = serde_json::from_slice(&line).unwrap();
            if message.get("id").is_some() {
                break;
            }
            heard.push(message["params"].clone());
        }
        drop((source, sink));
        serving.await.unwrap().unwrap();
        heard
    }

    /// It logs what goes out, as an audit would.
    struct Chatty;

    impl crate::observer::Observer for Chatty {
        fn notification(&self, notification: &crate::observer::NotificationEvent<'_>) {
            tracing::info!(target: "audit", method = notification.method, "told");
        }
    }

    #[tokio::test]
    async fn a_handlers_events_go_to_the_client_of_its_request_and_to_no_other() {
        let subscriber = tracing_subscriber::registry().with(LogLayer::new());
        // For all threads, among them those of tools that block.
        tracing::subscriber::set_global_default(subscriber).unwrap();
        let (told, silent) = tokio::join!(heard("work", Some("info")), heard("work", None));
        assert_eq!(silent, Vec::<Value>::new());
        let expected = serde_json::json!([
            { "level": "info", "logger": "work", "data": "begun" },
            { "level": "warning", "logger": "disk",
              "data": { "message": "nearly full", "free": 3, "ok": false, "path": "\"/x\"" } },
            { "level": "error", "logger": "work", "data": "from a task" },
        ]);
        assert_eq!(Value::from(told), expected);
        let told = heard("work", Some("error")).await;
        assert_eq!(told.len(), 1, "{told:?}");
        let told = heard("block", Some("debug")).await;
        let expected = serde_json::json!([{ "level": "info", "logger": "disk", "data": "from a thread" }]);
        assert_eq!(Value::from(told), expected);
    }
}
