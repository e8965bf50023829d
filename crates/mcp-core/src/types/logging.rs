use std::fmt;

use mcp_jsonrpc::Raw;
use serde::{Deserialize, Deserializer, Serialize};

/// How grave a log message is, as syslog has it (RFC 5424); graver ones are greater.
///
/// Specification: *Logging, Log Levels*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogLevel {
    /// For who looks for a fault.
    Debug,
    /// For who wants to know.
    Info,
    /// Usual, but worth a look.
    Notice,
    /// It may become an error.
    Warning,
    /// Something failed.
    Error,
    /// A part of the system failed.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works any more.
    Emergency,
}

impl LogLevel {
    /// All of them, the least grave first.
    pub const ALL: &'static [Self] = &[
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.as_str() == name)
    }
}

/// The parameters of `notifications/message`.
///
/// Specification: *Logging, Log Message Notifications*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogMessage {
    /// How grave it is; `info` where it is of no level that this version knows.
    #[serde(default = "info", deserialize_with = "level_or_info")]
    pub level: LogLevel,
    /// Who says it: a part of the server.
    #[serde(default, deserialize_with = "super::lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What it says: a text, or any other value; `null` where it says nothing.
    #[serde(default = "nothing")]
    pub data: Raw,
}

fn nothing() -> Raw {
    Raw::assume_valid("null".into())
}

fn info() -> LogLevel {
    LogLevel::Info
}

/// A message is not lost for how it is filed.
fn level_or_info<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LogLevel, D::Error> {
    let raw = Raw::deserialize(deserializer)?;
    Ok(raw.decode().unwrap_or(LogLevel::Info))
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The parameters of `logging/setLevel`.
///
/// Specification: *2025-11-25, Logging, Setting Log Level*.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelParams {
    /// From which level on messages are wanted.
    pub level: LogLevel,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_order_is_gravity() {
        assert!(LogLevel::ALL.is_sorted());
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::parse(level.as_str()), Some(*level));
            assert_eq!(serde_json::to_string(level).unwrap(), format!("\"{level}\""));
        }
        assert_eq!(LogLevel::parse("Error"), None);
    }
}
