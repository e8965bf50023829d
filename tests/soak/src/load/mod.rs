//! What the server is loaded with: visitors that behave, and hostile ones, all at once.

mod child;
mod hostile;
mod lines;
mod post;
mod proxy;
mod socket;
mod visitor;
mod wire;
mod work;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mcp_suite::Era;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use self::wire::Wire;
use crate::{
    Result,
    tally::{Outcome, Tally},
};

/// How long anything may take. Only what will never come takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What all visitors know.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) address: SocketAddr,
    pub(crate) socket: PathBuf,
    /// The way to the address on which connections are cut.
    proxy: SocketAddr,
    pub(crate) tally: Tally,
    until: Instant,
    visits: AtomicU64,
}

impl Field {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    /// A number that nobody else has.
    fn number(&self) -> u64 {
        self.visits.fetch_add(1, Ordering::Relaxed)
    }

    /// Tries something once, and counts what comes of it.
    async fn attempt(&self, kind: &'static str, at: &str, attempt: impl Future<Output = Outcome>) {
        self.tally.begin(kind);
        let outcome = timeout(PATIENCE, attempt).await;
        let outcome = outcome.unwrap_or_else(|_| Outcome::Unanswered(format!("nothing in {PATIENCE:?}")));
        self.tally.end(kind, at, outcome);
    }
}

/// Visitors of one kind come one after the other.
const VISITORS: usize = 2;

/// Loads the server for so long, and until all who are there then are done.
pub(crate) async fn load(address: SocketAddr, socket: PathBuf, time: Duration) -> Result<Loading> {
    let proxy = proxy::Proxy::start(address).await?;
    let field = Arc::new(Field {
        address,
        socket,
        proxy: proxy.address,
        tally: Tally::default(),
        until: Instant::now() + time,
        visits: AtomicU64::new(0),
    });
    let mut visitors = JoinSet::new();
    for era in [Era::Modern, Era::Legacy] {
        for wire in Wire::ALL.into_iter().filter(|wire| !wire.revisions(era).is_empty()) {
            for _ in 0..VISITORS {
                visitors.spawn(visitor::visits(field.clone(), wire, era));
            }
        }
        visitors.spawn(child::visits(field.clone(), era));
    }
    visitors.spawn(hostile::over_http(field.clone()));
    visitors.spawn(hostile::over_http(field.clone()));
    visitors.spawn(hostile::over_lines(field.clone()));
    visitors.spawn(hostile::over_websocket(field.clone()));
    Ok(Loading { field, visitors, proxy })
}

/// The load while it is there.
pub(crate) struct Loading {
    pub(crate) field: Arc<Field>,
    visitors: JoinSet<()>,
    #[expect(dead_code, reason = "held for as long as somebody goes through it")]
    proxy: proxy::Proxy,
}

impl Loading {
    /// Whether somebody is still there.
    pub(crate) fn goes_on(&mut self) -> bool {
        while self.visitors.try_join_next().is_some() {}
        !self.visitors.is_empty()
    }
}

/// A visitor thinks for a moment, so that the load is a steady one.
async fn think() {
    sleep(Duration::from_millis(fastrand::u64(0..40))).await;
}
