//! What has changed, and who is to be told: a mark a subject and a listener, and never a queue of messages. Bursts
//! coalesce, and whoever reads slowly holds up nobody.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use mcp_jsonrpc::{Bytes, Raw, encode};
use tokio::sync::watch;

use crate::{
    method::notification,
    shown::Elided,
    sync::{AtomicWaker, Mutex, MutexGuard, lock},
    types::ResourceParams,
};

/// What can change.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and of templates.
    Resources,
    /// What the resource of that URI holds.
    Resource(Arc<str>),
    /// The task of that id.
    Task(Arc<str>),
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(uri) => write!(f, "{} {uri:?}", self.method()),
            Self::Task(id) => write!(f, "{} {:?}", self.method(), Elided(id)),
            Self::Tools | Self::Prompts | Self::Resources => f.write_str(self.method()),
        }
    }
}

impl Subject {
    /// The method of the notification that tells of it.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Tools => notification::TOOLS_CHANGED,
            Self::Prompts => notification::PROMPTS_CHANGED,
            Self::Resources => notification::RESOURCES_CHANGED,
            Self::Resource(_) => notification::RESOURCE_UPDATED,
            Self::Task(_) => notification::TASK,
        }
    }

    /// The notification that tells of it, as a legacy session gets it.
    pub(crate) fn notification(&self) -> Bytes {
        let params = match self {
            Self::Resource(uri) => Raw::encode(&ResourceParams { uri: uri.as_ref().to_owned() }).ok(),
            _ => None,
        };
        encode::notification(self.method(), params.as_ref())
    }
}

/// Who listens to what.
#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<Listeners>);

#[derive(Debug, Default)]
struct Listeners {
    by_subject: HashMap<Subject, HashMap<u64, Arc<Marks>>>,
    /// What the next listener is numbered.
    next: u64,
    /// How often a resource was listened to for the first time, or for the last.
    interest: watch::Sender<u64>,
}

/// What a listener has not been told yet.
#[derive(Debug, Default)]
struct Marks {
    state: Mutex<State>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    /// Nothing is listened to any more.
    is_closed: bool,
    /// What is listened to, and whether it is marked.
    subjects: HashMap<Subject, bool>,
    /// How many of them are resources.
    resources: usize,
    /// What is marked, in the order in which it changed.
    marked: VecDeque<Subject>,
}

impl Hub {
    /// Something has changed; whether anybody listens.
    pub(crate) fn changed(&self, subject: &Subject) -> bool {
        let listeners = lock(&self.0);
        let Some(interested) = listeners.by_subject.get(subject) else { return false };
        interested.values().for_each(|marks| marks.mark(subject));
        true
    }

    /// Whether anybody listens to anything.
    pub(crate) fn is_heard(&self) -> bool {
        !lock(&self.0).by_subject.is_empty()
    }

    /// The resources that anybody listens to.
    pub(crate) fn uris(&self) -> Vec<String> {
        let listeners = lock(&self.0);
        let uris = listeners.by_subject.keys().filter_map(|subject| match subject {
            Subject::Resource(uri) => Some(uri.to_string()),
            _ => None,
        });
        uris.collect()
    }

    /// Sees when [`uris`](Self::uris) changes.
    pub(crate) fn interest(&self) -> watch::Receiver<u64> {
        lock(&self.0).interest.subscribe()
    }

    /// Somebody who listens to nothing yet.
    pub(crate) fn listener(self: &Arc<Self>) -> Listener {
        let mut listeners = lock(&self.0);
        listeners.next += 1;
        Listener { hub: self.clone(), number: listeners.next, marks: Arc::default() }
    }
}

impl Marks {
    fn mark(&self, subject: &Subject) {
        let mut state = lock(&self.state);
        if let Some(is_marked) = state.subjects.get_mut(subject).filter(|is_marked| !**is_marked) {
            *is_marked = true;
            state.marked.push_back(subject.clone());
            drop(state);
            self.waker.wake();
        }
    }
}

/// Who is told of changes, one after the other. It is forgotten when it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    hub: Arc<Hub>,
    number: u64,
    marks: Arc<Marks>,
}

impl Listener {
    /// Listens to a subject, from now on.
    pub(crate) fn listen(&self, subject: Subject) {
        self.listen_within(subject, usize::MAX);
    }

    /// The same for a resource, if no more than `most` of them are listened to then; else false.
    pub(crate) fn listen_within(&self, subject: Subject, most: usize) -> bool {
        // Both locks, so that what is listened to is the same on both sides.
        let (mut listeners, mut state) = (lock(&self.hub.0), self.state());
        let is_new = !state.subjects.contains_key(&subject);
        let is_resource = matches!(subject, Subject::Resource(_));
        if is_new && is_resource && state.resources >= most {
            return false;
        }
        if is_new && !state.is_closed {
            let interested = listeners.by_subject.entry(subject.clone()).or_default();
            interested.insert(self.number, self.marks.clone());
            if interested.len() == 1 {
                listeners.note(&subject);
            }
            state.resources += usize::from(is_resource);
            state.subjects.insert(subject, false);
        }
        true
    }

    /// Listens to it no more. What was marked is not told either.
    pub(crate) fn ignore(&self, subject: &Subject) {
        let (mut listeners, mut state) = (lock(&self.hub.0), self.state());
        listeners.forget(subject, self.number);
        let Some(is_marked) = state.subjects.remove(subject) else { return };
        state.resources -= usize::from(matches!(subject, Subject::Resource(_)));
        if is_marked {
            state.marked.retain(|marked| marked != subject);
        }
    }

    /// Listens to nothing any more, whatever it is still told to listen to.
    pub(crate) fn close(&self) {
        let (mut listeners, mut state) = (lock(&self.hub.0), self.state());
        let State { subjects, .. } = std::mem::replace(&mut *state, State { is_closed: true, ..State::default() });
        subjects.keys().for_each(|subject| listeners.forget(subject, self.number));
    }

    /// Marks a subject for this listener alone, as if it had changed.
    pub(crate) fn mark(&self, subject: &Subject) {
        self.marks.mark(subject);
    }

    /// The resources that are listened to.
    pub(crate) fn uris(&self) -> Vec<String> {
        let state = self.state();
        let uris = state.subjects.keys().filter_map(|subject| match subject {
            Subject::Resource(uri) => Some(uri.to_string()),
            _ => None,
        });
        uris.collect()
    }

    pub(crate) fn listens(&self, subject: &Subject) -> bool {
        self.state().subjects.contains_key(subject)
    }

    /// Whether anything has changed; [`next`](Self::next) says what.
    pub(crate) fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        // From here on nothing is missed, so looking comes after.
        self.marks.waker.register(cx.waker());
        if self.state().marked.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Wakes whoever waits, to look again.
    pub(crate) fn wake(&self) {
        self.marks.waker.wake();
    }

    /// What has changed and is now told.
    pub(crate) fn next(&self) -> Option<Subject> {
        let mut state = self.state();
        let subject = state.marked.pop_front()?;
        state.subjects.insert(subject.clone(), false);
        Some(subject)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.marks.state)
    }
}

impl Listeners {
    fn note(&self, subject: &Subject) {
        if matches!(subject, Subject::Resource(_)) {
            self.interest.send_modify(|count| *count += 1);
        }
    }

    fn forget(&mut self, subject: &Subject, number: u64) {
        if let Some(interested) = self.by_subject.get_mut(subject) {
            interested.remove(&number);
            if interested.is_empty() {
                self.by_subject.remove(subject);
                self.note(subject);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod model;
#[cfg(all(test, mcp_loom))]
mod orders;
#[cfg(test)]
mod tests;
