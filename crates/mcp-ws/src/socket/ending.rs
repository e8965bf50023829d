//! How sockets end: codes, and the words for them.

use std::io;

use mcp_core::{Farewell, Secrets, shown};
use tokio_tungstenite::tungstenite::{
    Utf8Bytes,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// The end of a socket.
#[derive(Debug)]
pub(crate) enum End {
    /// It was lost: nobody has said that it ends.
    Lost(io::Error),
    /// One side ended it.
    Over(io::Error),
}

impl End {
    /// What the core is told. Only what a side has ended itself may say that it ended in good order.
    pub(crate) fn into_error(self) -> io::Error {
        match self {
            Self::Lost(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                io::Error::new(io::ErrorKind::ConnectionReset, error)
            }
            Self::Lost(error) | Self::Over(error) => error,
        }
    }
}

/// What this side closes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(super) code: CloseCode,
    pub(super) reason: &'static str,
}

impl Verdict {
    pub(crate) const NORMAL: Self = Self { code: CloseCode::Normal, reason: "" };
    pub(super) const BINARY: Self = Self { code: CloseCode::Unsupported, reason: "a message is a text frame" };
    pub(super) const NO_TEXT: Self = Self { code: CloseCode::Invalid, reason: "a text frame is UTF-8" };
    pub(super) const TOO_LARGE: Self = Self { code: CloseCode::Size, reason: "the message is too large" };
    pub(super) const BROKEN: Self = Self { code: CloseCode::Protocol, reason: "" };
    /// The peer may not.
    pub(super) const OVERRUN: Self = Self { code: CloseCode::Policy, reason: "more came than there is room for" };
    pub(super) const REPLACED: Self = Self { code: CloseCode::Policy, reason: "resumed on another socket" };
    #[cfg(feature = "server")]
    pub(crate) const NO_HELLO: Self =
        Self { code: CloseCode::Policy, reason: "the first text has to be about resuming" };
    #[cfg(feature = "server")]
    pub(crate) const FULL: Self = Self { code: CloseCode::Again, reason: "no more connections are taken" };
    pub(crate) const STOPPING: Self = Self { code: CloseCode::Away, reason: "the server is stopping" };
    pub(crate) const OUR_FAULT: Self = Self { code: CloseCode::Error, reason: "an internal error" };

    pub(super) fn frame(self) -> CloseFrame {
        CloseFrame { code: self.code, reason: Utf8Bytes::from_static(self.reason) }
    }
}

impl From<Farewell> for Verdict {
    fn from(why: Farewell) -> Self {
        match why {
            Farewell::Idle => Self { reason: "idle for too long", ..Self::NORMAL },
            Farewell::GoingAway => Self::STOPPING,
            _ => Self::NORMAL,
        }
    }
}

/// What the peer's close frame says, as an error, but for what it repeats of our secrets.
pub(super) fn closed_by_peer(frame: Option<&CloseFrame>, secrets: &Secrets) -> io::Error {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset};
    let Some(CloseFrame { code, reason }) = frame else {
        return io::Error::new(ConnectionAborted, "the peer closed the connection");
    };
    let kind = match code {
        CloseCode::Normal | CloseCode::Away => ConnectionAborted,
        _ => ConnectionReset,
    };
    let told = match (words(*code), &**reason) {
        (words, "") => words.to_owned(),
        (words, reason) => format!("{words}: {}", shown(&secrets.mask(reason))),
    };
    io::Error::new(kind, format!("the peer closed the connection with {}{told}", u16::from(*code)))
}

/// What a code means, for whoever does not know it by heart.
fn words(code: CloseCode) -> &'static str {
    match code {
        CloseCode::Away => " (it is going away)",
        CloseCode::Protocol => " (what came broke the protocol)",
        CloseCode::Unsupported => " (a message was no text)",
        CloseCode::Invalid => " (a message was not UTF-8)",
        CloseCode::Policy => " (its policy)",
        CloseCode::Size => " (a message was too large for it)",
        CloseCode::Error => " (an error of its own)",
        CloseCode::Again => " (it has no room)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system says of its stream must not pass for a good end.
    #[test]
    fn a_stream_that_was_aborted_is_no_end_in_good_order() {
        let aborted = || io::Error::from(io::ErrorKind::ConnectionAborted);
        assert_eq!(End::Lost(aborted()).into_error().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(End::Over(aborted()).into_error().kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(End::Lost(io::ErrorKind::TimedOut.into()).into_error().kind(), io::ErrorKind::TimedOut);
    }
}
