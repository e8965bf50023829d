//! Which scopes a login asks for.
//!
//! Specification: *Authorization, Scope Selection Strategy*; *Step-Up Authorization Flow*.

use std::collections::HashSet;

use super::{discovery::Discovered, error::AuthError};
use crate::challenge::Wanted;

/// How many scopes are kept; a server that names ever new ones would fill the memory and the user's time.
const MOST: usize = 256;

/// The scopes of one resource, which only grow, and those that the user was asked for because a call needed them.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    wanted: Vec<String>,
    asked: HashSet<String>,
}

/// What a login asks for that the protocol does not count among the needs of a resource.
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

impl Scopes {
    /// Remembers scopes that a login was made with.
    pub(super) fn add(&mut self, scopes: &[String]) {
        for scope in scopes {
            if self.wanted.len() < MOST && !self.wanted.contains(scope) {
                self.wanted.push(scope.clone());
            }
        }
    }

    /// Takes up what a server said that a good token lacks.
    ///
    /// # Errors
    /// When the user was asked for all of it before.
    pub(super) fn step_up(&mut self, wanted: &Wanted, held: &[String], found: &Discovered) -> Result<(), AuthError> {
        let needed = wanted.scopes.as_ref().unwrap_or(&found.scopes);
        let missing: Vec<_> = needed.iter().filter(|scope| !held.contains(scope)).cloned().collect();
        let is_new = missing.iter().any(|scope| !self.asked.contains(scope));
        if !is_new || self.asked.len() + missing.len() > MOST {
            let missing = if missing.is_empty() { needed.clone() } else { missing };
            return Err(AuthError::InsufficientScope { missing });
        }
        self.add(held);
        self.add(&missing);
        self.asked.extend(missing);
        Ok(())
    }

    /// What a login because of `wanted` asks for: what the server wants, or else all that it knows, beside what was asked for
    /// before and what the user said. A user stays logged in where the authorization server has a scope for that.
    pub(super) fn of_login(
        &mut self,
        said: &[String],
        wanted: &Wanted,
        found: &Discovered,
        has_user: bool,
    ) -> Vec<String> {
        let first = wanted.scopes.as_ref().unwrap_or(&found.scopes).clone();
        if self.wanted.is_empty() || wanted.scopes.is_some() {
            self.add(&first);
        }
        self.add(said);
        let mut scopes = self.wanted.clone();
        let offers = found.server.scopes_supported.iter().any(|scope| scope == OFFLINE_ACCESS);
        if has_user && offers && !scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
            scopes.push(OFFLINE_ACCESS.to_owned());
        }
        scopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::discovery::ServerMetadata;

    fn found() -> Discovered {
        let server = ServerMetadata::named("https://as.example");
        Discovered {
            resource: "https://h/mcp".to_owned(),
            scopes: Vec::new(),
            takes_dpop: false,
            requires_dpop: false,
            server,
        }
    }

    fn wants(names: &[String]) -> Wanted {
        Wanted { scopes: Some(names.to_vec()), ..Wanted::default() }
    }

    #[test]
    fn a_user_is_asked_for_256_scopes_at_most_and_for_each_once() {
        let (mut scopes, found) = (Scopes::default(), found());
        let names: Vec<String> = (0..=MOST).map(|index| index.to_string()).collect();
        assert!(scopes.step_up(&wants(&names), &[], &found).is_err(), "257 at once");
        for name in &names[..MOST] {
            scopes.step_up(&wants(std::slice::from_ref(name)), &[], &found).unwrap();
        }
        assert!(scopes.step_up(&wants(&names[..1]), &[], &found).is_err(), "it was asked for before");
        assert!(scopes.step_up(&wants(&names[MOST..]), &[], &found).is_err(), "one too many");
        assert_eq!(scopes.of_login(&[], &Wanted::default(), &found, true).len(), MOST);
    }
}
