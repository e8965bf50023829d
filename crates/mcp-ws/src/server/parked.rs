//! Connections that can be resumed: found by their tokens, kept for a while when their sockets are lost.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

use crate::socket::{Link, Renewal, Renewed, ledger::Hello};

/// The connections of one layer. `S` is what their sockets run on.
#[derive(Debug)]
pub(super) struct Parked<S> {
    table: Mutex<Table<S>>,
    grace: Duration,
    most: usize,
}

#[derive(Debug)]
struct Table<S> {
    entries: HashMap<Token, Entry<S>>,
    /// Those without a socket, by when they lost it.
    parked: BTreeMap<u64, Token>,
    next: u64,
}

/// 256 random bits, a secret.
type Token = [u8; 32];

#[derive(Debug)]
struct Entry<S> {
    slot: Arc<Slot<S>>,
    /// Whose it is, as a digest.
    owner: Option<[u8; 32]>,
}

/// Where a connection finds its next socket.
#[derive(Debug)]
struct Slot<S>(Mutex<Slotted<S>>);

#[derive(Debug)]
struct Slotted<S> {
    arrived: Option<Renewed<S>>,
    /// Others needed the place.
    is_evicted: bool,
    waker: Option<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S> Parked<S> {
    pub(super) fn new(grace: Duration, most: usize) -> Self {
        let table = Table { entries: HashMap::new(), parked: BTreeMap::new(), next: 0 };
        Self { table: Mutex::new(table), grace, most }
    }

    /// A new connection of `owner`: its token, and how it comes by its next socket.
    pub(super) fn begin(self: &Arc<Self>, owner: Option<[u8; 32]>) -> io::Result<(String, Place<S>)> {
        let mut token = Token::default();
        getrandom::fill(&mut token).map_err(|error| io::Error::other(error.to_string()))?;
        let slot = Arc::new(Slot(Mutex::new(Slotted { arrived: None, is_evicted: false, waker: None })));
        lock(&self.table).entries.insert(token, Entry { slot: slot.clone(), owner });
        Ok((hex(&token), Place { all: self.clone(), token, slot, parked: None }))
    }

    /// Gives a socket to the connection that its client speaks of, or back where there is none of this owner's.
    pub(super) fn hand_over(&self, link: Link<S>, hello: Hello, owner: Option<[u8; 32]>) -> Option<Link<S>> {
        let Some(token) = hello.token.as_deref().and_then(unhex) else { return Some(link) };
        let slot = match lock(&self.table).entries.get(&token) {
            Some(entry) if entry.owner == owner => entry.slot.clone(),
            _ => return Some(link),
        };
        let mut slotted = lock(&slot.0);
        // One that came before and was not taken yet is dropped: its client has come again.
        slotted.arrived = Some((link, hello));
        slotted.wake();
        None
    }
}

impl<S> Slotted<S> {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The place of one connection among them, until it is dropped.
#[derive(Debug)]
pub(super) struct Place<S> {
    all: Arc<Parked<S>>,
    token: Token,
    slot: Arc<Slot<S>>,
    /// While it has no socket: its number, and how long it may be without.
    parked: Option<(u64, Pin<Box<Sleep>>)>,
}

impl<S> Place<S> {
    fn unpark(&mut self) {
        if let Some((number, _)) = self.parked.take() {
            lock(&self.all.table).parked.remove(&number);
        }
    }
}

impl<S> Drop for Place<S> {
    fn drop(&mut self) {
        self.unpark();
        lock(&self.all.table).entries.remove(&self.token);
    }
}

impl<S: Send> Renewal<S> for Place<S> {
    fn lost(&mut self, _: Hello) {
        self.unpark();
        let mut table = lock(&self.all.table);
        let number = table.next;
        table.next += 1;
        table.parked.insert(number, self.token);
        self.parked = Some((number, Box::pin(sleep(self.all.grace))));
        if table.parked.len() > self.all.most
            && let Some((_, oldest)) = table.parked.pop_first()
            && let Some(entry) = table.entries.get(&oldest)
        {
            let mut slotted = lock(&entry.slot.0);
            slotted.is_evicted = true;
            slotted.wake();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Renewed<S>>> {
        let mut slotted = lock(&self.slot.0);
        if let Some(arrived) = slotted.arrived.take() {
            drop(slotted);
            self.unpark();
            return Poll::Ready(Ok(arrived));
        }
        if slotted.is_evicted && self.parked.is_some() {
            return Poll::Ready(Err(lost("too many others waited for theirs")));
        }
        slotted.is_evicted = false;
        if !slotted.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            slotted.waker = Some(cx.waker().clone());
        }
        drop(slotted);
        match &mut self.parked {
            Some((_, grace)) => grace.as_mut().poll(cx).map(|()| Err(lost("nobody came back in time"))),
            None => Poll::Pending,
        }
    }

    fn answer(&self, hello: Hello) -> Option<Hello> {
        Some(hello)
    }
}

fn lost(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, format!("the socket was lost, and {why}"))
}

fn hex(token: &Token) -> String {
    token.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Token> {
    let mut token = Token::default();
    if text.len() != 2 * token.len() || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    for (byte, digits) in token.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(token)
}
