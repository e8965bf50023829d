//! What hears all that is told, and finds secrets in it.

use std::sync::{Mutex, MutexGuard};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use tracing::{Event, Metadata, Subscriber, span};

use super::peer_log::Line;

/// What every secret has in it, and nothing else has.
pub(super) const SECRET: &str = "s3cr3tZq";

/// A secret that says where it was planted.
pub(super) fn secret(place: &str) -> String {
    format!("{SECRET}{place}")
}

/// All that was told to anybody since the last look.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(super) fn told() -> MutexGuard<'static, Vec<String>> {
    TOLD.lock().unwrap()
}

pub(super) fn tell(text: impl Into<String>) {
    told().push(text.into());
}

/// Hears all levels of `tracing`, spans included, and of `log`.
pub(super) struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{}:", event.metadata().target()));
        event.record(&mut line);
        tell(line.0);
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut line = Line(format!("{}:", span.metadata().name()));
        span.record(&mut line);
        tell(line.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        tell(line.0);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl log::Log for Listener {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        // It tells all that is on the wire, and how it is closed, as docs/websocket.md says.
        if record.target().starts_with("tungstenite") && record.level() >= log::Level::Debug {
            return;
        }
        tell(format!("{}: {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

/// The forms in which a text may stand in another.
fn forms(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    // Base64 of something that has it in it, wherever in it: the first and the last characters depend on what is around.
    let shifted = |shift| [&vec![0; shift], bytes].concat();
    let base64 = (0..3).flat_map(|shift| {
        [STANDARD.encode(shifted(shift)), URL_SAFE.encode(shifted(shift))]
            .map(|encoded| encoded.trim_end_matches('=')[if shift == 0 { 0 } else { shift + 1 }..].to_owned())
    });
    let base64 = base64.map(|mut encoded| {
        encoded.truncate(encoded.len() - 2);
        encoded
    });
    let numbers = bytes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [text.to_owned(), numbers, hex].into_iter().chain(base64).collect()
}

pub(super) fn has_secret(text: &str) -> bool {
    forms(SECRET).iter().any(|form| text.contains(form)) || planted().iter().any(|secret| text.contains(secret))
}

/// Secrets that others make up, as an id that is random.
static PLANTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn planted() -> MutexGuard<'static, Vec<String>> {
    PLANTED.lock().unwrap()
}

/// From here on, this is one, too.
pub(super) fn plant(secret: &str) {
    planted().push(secret.to_owned());
}
