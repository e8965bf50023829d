//! Sessions of the legacy era over HTTP.

use std::{net::SocketAddr, thread};

use anyhow::{Context, Result, ensure};

use super::{
    check::lossy,
    post::Poster,
    wire::http::{Response, legacy},
};

/// The first message of the legacy era.
pub(super) const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"bench","version":"1"}}}"#
);

/// What follows its answer.
pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// How many: enough that a server which waits in each request is not waited for long.
const CONNECTIONS: usize = 64;

/// Begins a session, and gives its id.
///
/// # Errors
/// When the server hands out none.
pub fn begin(address: SocketAddr) -> Result<String> {
    begin_on(&mut Poster::connect(address)?)
}

/// Connections on which many sessions are begun, one after another on each.
pub struct Beginners(Vec<Poster>);

impl Beginners {
    /// Opens them.
    ///
    /// # Errors
    /// When one is refused.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Self((0..CONNECTIONS).map(|_| Poster::connect(address)).collect::<Result<_>>()?))
    }

    /// Begins so many sessions.
    ///
    /// # Errors
    /// When the server hands out none.
    pub fn begin(&mut self, count: usize) -> Result<()> {
        thread::scope(|scope| {
            let shares = self.0.iter_mut().enumerate().map(|(index, poster)| {
                let share = count / CONNECTIONS + usize::from(index < count % CONNECTIONS);
                scope.spawn(move || (0..share).try_for_each(|_| begin_on(poster).map(drop)))
            });
            let shares: Vec<_> = shares.collect();
            shares.into_iter().try_for_each(|share| share.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
        })
    }
}

fn begin_on(poster: &mut Poster) -> Result<String> {
    let Response { status, session, body, .. } = poster.post("", INITIALIZE)?;
    ensure!(status == 200, "`initialize` is answered with {status}: {:.2000}", lossy(&body));
    let session = session.context("a server that hands out no session")?.to_owned();
    let mut headers = String::new();
    legacy(&mut headers, Some(&session))?;
    let Response { status, body, .. } = poster.post(&headers, INITIALIZED)?;
    ensure!(status == 202, "`notifications/initialized` is answered with {status}: {:.2000}", lossy(&body));
    Ok(session)
}
