use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{SessionId, ready};
use crate::{BoxFuture, Error, lock::lock, types::LogLevel};

/// What is kept of a legacy session. `Debug` shows neither whom it belongs to nor what it is subscribed to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The revision that was agreed on.
    pub revision: String,
    /// Who the client says it is.
    pub client_info: Raw,
    /// What the client can do.
    pub capabilities: Raw,
    /// Whom it belongs to: the SHA-256 of the principal's id; `None` is anybody who is nobody.
    pub principal: Option<[u8; 32]>,
    /// Whether the client has said that it is initialized.
    pub is_ready: bool,
    /// From which level on the client wants log messages.
    pub log_level: LogLevel,
    /// The lists that the client was told of, so that it may be told of changes: tools, prompts, resources.
    pub lists: [bool; 3],
    /// The resources that it is subscribed to.
    pub subscriptions: Vec<String>,
}

impl fmt::Debug for SessionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRecord")
            .field("revision", &self.revision)
            .field("is_ready", &self.is_ready)
            .field("log_level", &self.log_level)
            .field("lists", &self.lists)
            .field("has_principal", &self.principal.is_some())
            .field("subscriptions", &self.subscriptions.len())
            .finish_non_exhaustive()
    }
}

/// Where sessions are kept. Each lives until its time is over, which every touch begins anew.
pub trait SessionStore: fmt::Debug + Send + Sync + 'static {
    /// Keeps a new session for `ttl`; false if there is no room for it.
    fn create(&self, id: SessionId, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<bool, Error>>;

    /// The session, if it lives and belongs to that principal; it lives for `ttl` from now on.
    fn load_and_touch(
        &self,
        id: SessionId,
        principal: Option<[u8; 32]>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Option<SessionRecord>, Error>>;

    /// The same of one that is known to belong to whoever asks, without the record: whether it lives.
    fn touch(&self, id: SessionId, ttl: Duration) -> BoxFuture<'_, Result<bool, Error>>;

    /// Puts another record in the place of the old one, if it lives.
    fn save(&self, id: SessionId, record: SessionRecord) -> BoxFuture<'_, Result<bool, Error>>;

    /// Ends a session; false if it did not live.
    fn remove(&self, id: SessionId) -> BoxFuture<'_, Result<bool, Error>>;

    /// The sessions that live, in any order.
    fn ids(&self) -> BoxFuture<'_, Result<Vec<SessionId>, Error>>;
}

/// Sessions in the memory of this process.
pub struct MemorySessions {
    most: usize,
    now: Arc<dyn Fn() -> Instant + Send + Sync>,
    sessions: Mutex<HashMap<SessionId, Kept>>,
}

struct Kept {
    record: SessionRecord,
    until: Instant,
}

impl MemorySessions {
    /// Room for so many.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, now: Arc::new(Instant::now), sessions: Mutex::default() }
    }

    /// The same with a clock of its own, for tests.
    #[must_use]
    pub fn with_clock(mut self, now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    fn until(&self, ttl: Duration) -> Instant {
        crate::deadline::deadline((self.now)(), ttl)
    }

    /// What `with` makes of a session, if it lives.
    fn with<R>(&self, id: SessionId, with: impl FnOnce(&mut Kept) -> R) -> Option<R> {
        let (now, mut sessions) = ((self.now)(), lock(&self.sessions));
        sessions.get_mut(&id).filter(|kept| kept.until > now).map(with)
    }

    fn drop_the_dead(&self, sessions: &mut HashMap<SessionId, Kept>) {
        let now = (self.now)();
        sessions.retain(|_, kept| kept.until > now);
    }
}

impl SessionStore for MemorySessions {
    fn create(&self, id: SessionId, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<bool, Error>> {
        let (until, mut sessions) = (self.until(ttl), lock(&self.sessions));
        if sessions.len() >= self.most {
            self.drop_the_dead(&mut sessions);
        }
        let has_room = sessions.len() < self.most;
        if has_room {
            sessions.insert(id, Kept { record, until });
        }
        ready(has_room)
    }

    fn load_and_touch(
        &self,
        id: SessionId,
        principal: Option<[u8; 32]>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Option<SessionRecord>, Error>> {
        let until = self.until(ttl);
        let record = self.with(id, |kept| {
            (kept.record.principal == principal).then(|| {
                kept.until = until;
                kept.record.clone()
            })
        });
        ready(record.flatten())
    }

    fn touch(&self, id: SessionId, ttl: Duration) -> BoxFuture<'_, Result<bool, Error>> {
        let until = self.until(ttl);
        ready(self.with(id, |kept| kept.until = until).is_some())
    }

    fn save(&self, id: SessionId, record: SessionRecord) -> BoxFuture<'_, Result<bool, Error>> {
        ready(self.with(id, |kept| kept.record = record).is_some())
    }

    fn remove(&self, id: SessionId) -> BoxFuture<'_, Result<bool, Error>> {
        let (now, removed) = ((self.now)(), lock(&self.sessions).remove(&id));
        ready(removed.is_some_and(|kept| kept.until > now))
    }

    fn ids(&self) -> BoxFuture<'_, Result<Vec<SessionId>, Error>> {
        let mut sessions = lock(&self.sessions);
        self.drop_the_dead(&mut sessions);
        ready(sessions.keys().copied().collect())
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> SessionRecord {
        SessionRecord {
            revision: "2025-11-25".into(),
            client_info: Raw::empty_object(),
            capabilities: Raw::empty_object(),
            principal: None,
            is_ready: false,
            log_level: LogLevel::Info,
            lists: [false; 3],
            subscriptions: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_session_lives_as_long_as_it_is_touched_and_no_longer() {
        let start = Instant::now();
        let clock = Arc::new(Mutex::new(start));
        let now = clock.clone();
        let store = MemorySessions::new(2).with_clock(move || *lock(&now));
        let at = |seconds| *lock(&clock) = start + Duration::from_secs(seconds);
        let (id, ttl) = (SessionId::random(), Duration::from_secs(10));
        assert!(store.create(id, record(), ttl).await.unwrap());
        at(9);
        assert!(store.touch(id, ttl).await.unwrap());
        at(18);
        let mut saved = record();
        saved.is_ready = true;
        assert!(store.save(id, saved.clone()).await.unwrap());
        assert_eq!(store.load_and_touch(id, None, ttl).await.unwrap(), Some(saved));
        at(27);
        assert_eq!(store.load_and_touch(id, Some([0; 32]), ttl).await.unwrap(), None, "another's is not renewed");
        at(28);
        assert!(!store.touch(id, ttl).await.unwrap() && store.load_and_touch(id, None, ttl).await.unwrap().is_none());
        assert!(!store.save(id, record()).await.unwrap() && !store.remove(id).await.unwrap());
        assert_eq!(store.ids().await.unwrap(), []);
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_and_the_dead_take_none() {
        let store = MemorySessions::new(2);
        let ids: Vec<_> = std::iter::repeat_with(SessionId::random).take(4).collect();
        let hour = Duration::from_secs(3600);
        assert!(store.create(ids[0], record(), Duration::ZERO).await.unwrap());
        assert!(store.create(ids[1], record(), hour).await.unwrap());
        assert!(store.create(ids[2], record(), hour).await.unwrap());
        assert!(!store.create(ids[3], record(), hour).await.unwrap());
        assert!(store.remove(ids[1]).await.unwrap() && !store.remove(ids[1]).await.unwrap());
        assert!(store.create(ids[3], record(), hour).await.unwrap());
        let mut living = store.ids().await.unwrap();
        living.sort_unstable();
        let mut expected = [ids[2], ids[3]];
        expected.sort_unstable();
        assert_eq!(living, expected);
    }

    #[test]
    fn a_record_reads_back() {
        let mut record = record();
        (record.principal, record.subscriptions) = (Some([7; 32]), vec!["x:a".into()]);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<SessionRecord>(&text).unwrap(), record);
    }

    /// Sessions live until their time is over and are their owner's, in any order of all that can be done with them.
    #[test]
    fn it_is_a_table_of_who_lives_until_when() {
        use futures_util::FutureExt as _;
        const MOST: usize = 3;
        crate::model::rows(|random| {
            let start = Instant::now();
            let clock = Arc::new(Mutex::new(start));
            let now = clock.clone();
            let store = MemorySessions::new(MOST).with_clock(move || *lock(&now));
            let ids: Vec<_> = std::iter::repeat_with(SessionId::random).take(5).collect();
            let owners = [None, Some([1; 32]), Some([2; 32])];
            let mut model = HashMap::<SessionId, (SessionRecord, Instant)>::new();
            for step in 0..60 {
                let (id, owner) = (random.one_of(&ids), random.one_of(&owners));
                let (time, ttl) = (*lock(&clock), Duration::from_secs(random.below(20) as u64));
                model.retain(|_, (_, until)| *until > time);
                match random.below(8) {
                    0 | 1 if !model.contains_key(&id) => {
                        random.does(("create", id, owner.map(|owner| owner[0]), ttl));
                        let record = SessionRecord { principal: owner, ..record() };
                        let created = store.create(id, record.clone(), ttl).now_or_never().unwrap().unwrap();
                        assert_eq!(created, model.len() < MOST);
                        if created {
                            model.insert(id, (record, time + ttl));
                        }
                    }
                    2 | 3 => {
                        random.does(("load_and_touch", id, owner.map(|owner| owner[0]), ttl));
                        let loaded = store.load_and_touch(id, owner, ttl).now_or_never().unwrap().unwrap();
                        let own = model.get_mut(&id).filter(|(record, _)| record.principal == owner);
                        assert_eq!(
                            loaded,
                            own.map(|(record, until)| {
                                *until = time + ttl;
                                record.clone()
                            })
                        );
                    }
                    4 => {
                        random.does(("touch", id, ttl));
                        let touched = store.touch(id, ttl).now_or_never().unwrap().unwrap();
                        let living = model.get_mut(&id).map(|(_, until)| *until = time + ttl);
                        assert_eq!(touched, living.is_some());
                    }
                    5 => {
                        random.does(("save", id, owner.map(|owner| owner[0])));
                        let record =
                            SessionRecord { principal: owner, subscriptions: vec![step.to_string()], ..record() };
                        let saved = store.save(id, record.clone()).now_or_never().unwrap().unwrap();
                        assert_eq!(saved, model.get_mut(&id).map(|(kept, _)| *kept = record).is_some());
                    }
                    6 => {
                        random.does(("remove", id));
                        let removed = store.remove(id).now_or_never().unwrap().unwrap();
                        assert_eq!(removed, model.remove(&id).is_some());
                    }
                    _ => {
                        // Sometimes by far: a machine that slept.
                        let far = [0, 1, 5, 3600][random.below(4)];
                        random.does(("pass", far));
                        *lock(&clock) += Duration::from_secs(far);
                    }
                }
                let mut living = store.ids().now_or_never().unwrap().unwrap();
                living.sort_unstable();
                let time = *lock(&clock);
                let mut expected: Vec<_> =
                    model.iter().filter(|(_, (_, until))| *until > time).map(|(id, _)| *id).collect();
                expected.sort_unstable();
                assert_eq!(living, expected);
            }
        });
    }
}
