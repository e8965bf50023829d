//! What a peer is, and a session with it: one wire, one era, all its calls.

use crate::error::{Error, Result};
use crate::interop::bench::{Bench, Installed};
use crate::interop::call::Call;

/// How the peer is told to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
    /// The client finds out.
    Either,
}

impl Era {
    pub(crate) const ALL: &[Self] = &[Self::Modern, Self::Legacy, Self::Either];
    pub(crate) const SPOKEN: &[Self] = &[Self::Modern, Self::Legacy];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
            Self::Either => "either",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Stdio,
    Http,
    WebSocket,
    /// A WebSocket at the HTTP server's endpoint.
    Upgrade,
    /// HTTP through a proxy that cuts connections.
    Cut,
}

impl Wire {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::WebSocket => "ws",
            Self::Upgrade => "ws at http",
            Self::Cut => "http, cut",
        }
    }
}

/// Which side the peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

impl Role {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// One outcome a call of the session; the outer error stands for all of them.
pub(crate) type Outcomes = Result<Vec<Result>>;

/// How a session is held.
#[derive(Clone, Copy)]
pub(crate) enum Speak {
    /// With what the machine has.
    Here(fn(&Bench, &Session) -> Outcomes),
    /// With what the registries bring.
    Installed(fn(&Bench, &Installed, &Session) -> Outcomes),
}

/// Somebody else's client or server.
pub(crate) struct Peer {
    /// Where it comes from: `npm`, `PyPI`, `crates.io`, or nothing for a program of the machine's.
    pub(crate) from: &'static str,
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) role: Role,
    pub(crate) wires: &'static [Wire],
    pub(crate) eras: &'static [Era],
    /// Eras that are missing, with the reason.
    pub(crate) lacks: &'static [(Era, &'static str)],
    pub(crate) calls: &'static [Call],
    /// What a client calls in the legacy era while its connections are cut; nothing if that is not tried.
    pub(crate) resumes: &'static [Call],
    /// Calls whose progress it may lose.
    pub(crate) flaws: &'static [Flaw],
    /// Calls that it cannot make or answer, and that are not tried.
    pub(crate) gaps: &'static [Flaw],
    pub(crate) speak: Speak,
}

/// A defect of the peer's own, or something that it does not have.
pub(crate) struct Flaw {
    /// The call that it is about.
    pub(crate) call: &'static str,
    /// On these wires, as far as the peer has them.
    pub(crate) wires: &'static [Wire],
    /// In these eras, as they are spoken: never `Either`.
    pub(crate) eras: &'static [Era],
    pub(crate) words: &'static str,
}

impl Flaw {
    fn is_in(&self, session: &Session) -> bool {
        let spoken = if session.revision() == MODERN { Era::Modern } else { Era::Legacy };
        self.wires.contains(&session.wire) && self.eras.contains(&spoken)
    }
}

impl Peer {
    /// What most peers have in common: nothing out of the ordinary.
    pub(crate) const PLAIN: Self = Self {
        from: "",
        name: "",
        version: "",
        role: Role::Client,
        wires: &[Wire::Stdio, Wire::Http],
        eras: Era::ALL,
        lacks: &[],
        calls: &[],
        resumes: &[],
        flaws: &[],
        gaps: &[],
        speak: Speak::Here(|_, _| Err(Error::new("nobody is there"))),
    };

    /// Its name and where it comes from, for a terminal.
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.from, self.name).trim_start().to_owned()
    }

    /// A session a wire and era, and one that is cut.
    pub(crate) fn sessions(&'static self) -> impl Iterator<Item = Session> {
        let eras = move |wire: Wire| self.eras.iter().map(move |&era| Session { peer: self, wire, era });
        let cut = Session { peer: self, wire: Wire::Cut, era: Era::Legacy };
        let cut = Some(cut).filter(|_| !self.resumes.is_empty());
        self.wires.iter().flat_map(move |&wire| eras(wire)).chain(cut)
    }
}

/// One connection, or what stands for one where the peer makes a connection a call.
pub(crate) struct Session {
    pub(crate) peer: &'static Peer,
    pub(crate) wire: Wire,
    pub(crate) era: Era,
}

/// What was tried, and what came of it in words.
pub(crate) struct Row {
    pub(crate) peer: &'static Peer,
    pub(crate) wire: Wire,
    pub(crate) era: Era,
    pub(crate) call: &'static Call,
    pub(crate) outcome: std::result::Result<String, String>,
}

impl Session {
    /// What is called in it.
    pub(crate) fn calls(&self) -> Vec<&'static Call> {
        let calls = if self.wire == Wire::Cut { self.peer.resumes } else { self.peer.calls };
        calls.iter().filter(|call| !self.gaps().any(|gap| gap.call == call.name())).collect()
    }

    /// What is left out of it.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = &'static Flaw> {
        self.peer.gaps.iter().filter(|gap| gap.is_in(self))
    }

    /// Makes all calls; a row each.
    pub(crate) fn hold(&self, bench: &Bench) -> Vec<Row> {
        let Self { peer, wire, era } = *self;
        eprintln!("{} {} {}: {}, {}", peer.shown(), peer.version, peer.role.word(), wire.word(), era.word());
        let row = |call: &'static Call, outcome: Result| {
            let outcome = outcome.map(|()| self.praise(call)).map_err(|error| beginning(&error.to_string()));
            Row { peer, wire, era, call, outcome }
        };
        match bench.speak(self) {
            Ok(outcomes) => self.calls().into_iter().zip(outcomes).map(|(call, outcome)| row(call, outcome)).collect(),
            Err(error) => {
                // The rows have its beginning only.
                eprintln!("FAILED: {error}");
                self.calls().into_iter().map(|call| row(call, Err(Error::new(error.to_string())))).collect()
            }
        }
    }

    /// The revision that the two must end up with.
    pub(crate) fn revision(&self) -> &'static str {
        let modern = self.peer.eras.contains(&Era::Modern);
        match self.era {
            Era::Legacy => LEGACY,
            Era::Either if !modern => LEGACY,
            Era::Modern | Era::Either => MODERN,
        }
    }

    /// The peer's own defect in this call, if it is known to have one.
    pub(crate) fn flaw(&self, call: &Call) -> Option<&'static Flaw> {
        self.peer.flaws.iter().find(|flaw| flaw.call == call.name() && flaw.is_in(self))
    }

    fn praise(&self, call: &Call) -> String {
        self.flaw(call).map_or_else(|| "ok".to_owned(), |flaw| format!("ok, but {}", flaw.words))
    }
}

/// The revisions that the two eras are tried with.
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// What fits into a table of a text that may have many lines.
fn beginning(text: &str) -> String {
    const MOST: usize = 200;
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" / ");
    if line.chars().count() <= MOST { line } else { line.chars().take(MOST).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::PEERS;

    fn session(name: &str, role: Role, era: Era) -> Session {
        let peer = PEERS.iter().find(|peer| peer.name.contains(name) && peer.role == role).unwrap();
        Session { peer, wire: Wire::Http, era }
    }

    #[test]
    fn a_client_that_finds_out_must_end_with_the_newest_revision_that_both_speak() {
        assert_eq!(session("mcp", Role::Server, Era::Either).revision(), MODERN);
        assert_eq!(session("server-everything", Role::Server, Era::Either).revision(), LEGACY);
        assert_eq!(session("mcp", Role::Server, Era::Legacy).revision(), LEGACY);
    }

    #[test]
    fn a_row_has_one_line_and_the_beginning_of_a_long_error() {
        assert_eq!(beginning("refused\n\n  at once\n"), "refused / at once");
        assert_eq!(beginning(&"é".repeat(300)).chars().count(), 201);
    }

    #[test]
    fn each_era_of_each_peer_is_tried_or_explained() {
        for peer in PEERS {
            for era in [Era::Modern, Era::Legacy] {
                let explained = peer.lacks.iter().any(|(lacking, _)| *lacking == era);
                assert!(peer.eras.contains(&era) != explained, "{} {era:?}", peer.name);
            }
        }
    }

    #[test]
    fn a_gap_leaves_a_call_out() {
        for (peer, gap) in PEERS.iter().flat_map(|peer| peer.gaps.iter().map(move |gap| (peer, gap))) {
            let mut sessions = peer.sessions().filter(|session| gap.is_in(session)).peekable();
            assert!(sessions.peek().is_some(), "{} {}", peer.name, gap.call);
            assert!(
                sessions.all(|session| session.calls().iter().all(|call| call.name() != gap.call)),
                "{}",
                peer.name
            );
        }
    }

    #[test]
    fn a_flaw_is_about_a_call_that_is_made() {
        for peer in PEERS {
            for flaw in peer.flaws.iter().chain(peer.gaps) {
                assert!(peer.sessions().any(|session| flaw.is_in(&session)), "{}", peer.name);
                assert!(peer.calls.iter().any(|call| call.name() == flaw.call), "{}", peer.name);
            }
        }
    }
}
