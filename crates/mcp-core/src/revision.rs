//! The protocol's revisions. Their dates stand here and nowhere else.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{Blame, Error, ErrorKind};

/// A revision of the protocol, older ones being smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, the first: no annotations, no structured content, no batches.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, tool annotations, batches.
    V2025_03_26,
    /// 2025-06-18: structured content, elicitation, titles, no batches any more.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, sampling with tools. The last with a handshake.
    V2025_11_25,
    /// 2026-07-28: no handshake, no sessions; every request says what it speaks.
    V2026_07_28,
}

/// How a peer speaks: with a handshake, or with metadata in each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// Up to 2025-11-25: `initialize` first, then state that both sides keep.
    Legacy,
    /// From 2026-07-28 on: every request carries its version and capabilities in `_meta`.
    Modern,
}

/// As its date.
impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let date = String::deserialize(deserializer)?;
        Self::parse(&date).ok_or_else(|| D::Error::custom(format!("no revision '{}'", crate::shown(&date))))
    }
}

impl Revision {
    /// All of them, newest first.
    pub const ALL: &'static [Self] =
        &[Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];
    /// The newest revision of the modern era.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision of the legacy era: what a server offers to a client whose version it does not know.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// What an HTTP request without a version header speaks, since that header came only later.
    pub const WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// The date, as the wire has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that date.
    #[must_use]
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|revision| revision.as_str() == date)
    }

    /// The era.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
        }
    }

    /// Whether its HTTP streams begin with an event without a message, from which on they can be resumed.
    ///
    /// Specification: *2025-11-25, Transports, Sending Messages to the Server*.
    #[must_use]
    pub fn primes_streams(self) -> bool {
        self.era() == Era::Legacy && self >= Self::V2025_11_25
    }

    /// Whether an array of messages is a batch, and not simply malformed.
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The revisions that one side accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revisions([bool; Revision::ALL.len()]);

impl Default for Revisions {
    fn default() -> Self {
        Self([true; Revision::ALL.len()])
    }
}

impl Revisions {
    /// These revisions.
    pub fn of(revisions: impl IntoIterator<Item = Revision>) -> Self {
        let mut set = [false; Revision::ALL.len()];
        for revision in revisions {
            set[revision as usize] = true;
        }
        Self(set)
    }

    /// Without one, nothing could be said.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self.0.contains(&true) {
            true => Ok(()),
            false => {
                Err(Error::new(ErrorKind::ProtocolVersionMismatch, "no revision is accepted").blaming(Blame::Caller))
            }
        }
    }

    /// Whether `revision` is among them.
    #[must_use]
    pub fn contains(self, revision: Revision) -> bool {
        self.0[revision as usize]
    }

    /// All of them, newest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.iter().copied().filter(move |revision| self.contains(*revision))
    }

    /// The newest of an era.
    #[must_use]
    pub fn newest(self, era: Era) -> Option<Revision> {
        self.iter().find(|revision| revision.era() == era)
    }

    /// The accepted revision of that date.
    #[must_use]
    pub fn find(self, date: &str) -> Option<Revision> {
        Revision::parse(date).filter(|revision| self.contains(*revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_back_and_order_is_age() {
        for &revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert!(Revision::ALL.is_sorted_by(|newer, older| newer > older));
        assert_eq!(Revision::parse("1999-01-01"), None);
    }

    #[test]
    fn a_set_lists_newest_first_and_of_none_it_is_refused() {
        assert!(Revisions::of([]).check().is_err() && Revisions::default().check().is_ok());
        let two = Revisions::of([Revision::V2024_11_05, Revision::V2025_06_18]);
        assert_eq!(two.iter().collect::<Vec<_>>(), [Revision::V2025_06_18, Revision::V2024_11_05]);
        assert_eq!(two.newest(Era::Modern), None);
        assert_eq!(two.newest(Era::Legacy), Some(Revision::V2025_06_18));
        assert_eq!(two.find("2025-11-25"), None);
    }
}
