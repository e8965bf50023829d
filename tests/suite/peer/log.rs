//! What is told to `tracing` while a test runs, for what nothing else tells of.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};

/// The events of this thread, from warnings upwards unless told otherwise, until it is dropped.
pub(crate) struct Warnings {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Warnings {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        Self::listen_from(Level::WARN)
    }

    /// Listens to all that is as grave as `least`.
    pub(crate) fn listen_from(least: Level) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let guard = tracing::subscriber::set_default(Listener(lines.clone(), least));
        Self { lines, _guard: guard }
    }

    /// What was heard: one line an event, with its fields as ` name=value`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

struct Listener(Arc<Mutex<Vec<String>>>, Level);

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.1
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// What an event says: its fields as ` name=value`.
pub(crate) struct Line(pub(crate) String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
