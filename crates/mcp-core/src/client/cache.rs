//! Answers that are kept: for as long as the server says, for whom it says, and until it says that they have changed.
//!
//! Specification: *Caching*.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_jsonrpc::{Members, Raw};
use tokio::time::Instant;

use crate::{
    client::hearing::lies_below,
    deadline::deadline,
    hub::Subject,
    lock::lock,
    method::{ListPrompts, ListResourceTemplates, ListResources, ListTools, Method, ReadResource},
    types::CacheScope,
};

/// Answers of one server that may be used again. Several clients of that server may share it, and those that call for the
/// same principal then share what is private, too.
///
/// It holds at most 1024 answers of 16 MiB together, and makes room by forgetting those that would expire first. Only
/// answers of the modern era say how long they are good.
///
/// ```
/// use mcp_core::{Client, client::ResponseCache, implementation};
///
/// let cache = ResponseCache::new();
/// let builder = Client::builder(implementation!()).cache(&cache, "ada@example.com");
/// ```
///
/// Specification: *Caching*.
#[derive(Debug, Clone, Default)]
pub struct ResponseCache(Arc<Mutex<Kept>>);

/// How many answers are kept, and how many bytes of them.
const MOST: usize = 1024;
const MOST_BYTES: usize = 16 << 20;

impl ResponseCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut kept = lock(&self.0);
        *kept = Kept { changes: kept.changes + 1, ..Kept::default() };
    }
}

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<Key, Answer>,
    bytes: usize,
    /// How often something was said to have changed.
    changes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// Whom it is for; nobody in particular if it is public.
    principal: Option<Arc<str>>,
    method: &'static str,
    /// The parameters, as they are sent.
    params: Raw,
}

#[derive(Debug)]
struct Answer {
    result: Raw,
    until: Instant,
}

/// A cache as one client uses it.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    cache: ResponseCache,
    principal: Arc<str>,
}

/// A question whose answer may be kept, if nothing has changed since it was asked.
pub(crate) struct Asked {
    key: Key,
    changes: u64,
}

impl Cache {
    pub(crate) fn new(cache: &ResponseCache, principal: String) -> Self {
        Self { cache: cache.clone(), principal: principal.into() }
    }

    /// What is kept of an answer, or else how to keep it. `None` for a method whose answers are not kept.
    pub(crate) fn find(&self, method: &'static str, params: &Raw) -> Option<Result<Raw, Asked>> {
        let lists = [ListTools::NAME, ListPrompts::NAME, ListResources::NAME, ListResourceTemplates::NAME];
        if method != ReadResource::NAME && !lists.contains(&method) {
            return None;
        }
        let kept = lock(&self.cache.0);
        let mut key = Key { principal: None, method, params: params.clone() };
        let public = kept.fresh(&key);
        key.principal = Some(self.principal.clone());
        let found = public.or_else(|| kept.fresh(&key));
        Some(found.ok_or(Asked { key, changes: kept.changes }))
    }

    /// Keeps an answer, if the server lets it.
    pub(crate) fn keep(&self, asked: Asked, result: &Raw) {
        let Asked { mut key, changes } = asked;
        let Some((ttl, scope)) = hint(result) else { return };
        if scope == CacheScope::Public {
            key.principal = None;
        }
        let mut kept = lock(&self.cache.0);
        if kept.changes == changes {
            kept.put(key, Answer { result: result.clone(), until: deadline(Instant::now(), ttl) });
        }
    }

    /// Something has changed, and what is kept of it is stale.
    pub(crate) fn changed(&self, subject: &Subject) {
        lock(&self.cache.0).forget(|key| match subject {
            Subject::Tools => key.method == ListTools::NAME,
            Subject::Prompts => key.method == ListPrompts::NAME,
            Subject::Task(_) => false,
            Subject::Resources => [ListResources::NAME, ListResourceTemplates::NAME].contains(&key.method),
            Subject::Resource(uri) => {
                let kept = key.params.member("uri").and_then(|kept| kept.to_string_value().ok());
                let is_it = kept.is_none_or(|kept| *kept == **uri || lies_below(uri, &kept));
                key.method == ReadResource::NAME && is_it
            }
        });
    }
}

impl Kept {
    fn fresh(&self, key: &Key) -> Option<Raw> {
        let answer = self.answers.get(key)?;
        (Instant::now() < answer.until).then(|| answer.result.clone())
    }

    fn put(&mut self, key: Key, answer: Answer) {
        let size = |key: &Key, answer: &Answer| key.params.as_bytes().len() + answer.result.as_bytes().len();
        let added = size(&key, &answer);
        if added > MOST_BYTES {
            return;
        }
        self.forget_one(&key);
        while self.answers.len() >= MOST || self.bytes + added > MOST_BYTES {
            let first = self.answers.iter().min_by_key(|(_, answer)| answer.until).map(|(key, _)| key.clone());
            let Some(first) = first else { break };
            self.forget_one(&first);
        }
        self.bytes += added;
        self.answers.insert(key, answer);
    }

    fn forget_one(&mut self, key: &Key) {
        if let Some(answer) = self.answers.remove(key) {
            self.bytes -= key.params.as_bytes().len() + answer.result.as_bytes().len();
        }
    }

    fn forget(&mut self, is_stale: impl Fn(&Key) -> bool) {
        self.changes += 1;
        let stale: Vec<_> = self.answers.keys().filter(|key| is_stale(key)).cloned().collect();
        stale.iter().for_each(|key| self.forget_one(key));
    }
}

/// How long the server says that a result is good, and for whom; none if it is stale at once. A scope that is not known is
/// private.
fn hint(result: &Raw) -> Option<(Duration, CacheScope)> {
    let members = Members::scan(result.as_str(), &["ttlMs", "cacheScope"]).ok()?;
    let member = |index| members.get_some(index).map(|value| result.slice(value));
    let ttl = member(0)?.decode::<u64>().ok().filter(|ttl| *ttl > 0)?;
    let scope = member(1).and_then(|scope| scope.decode().ok()).unwrap_or_default();
    Some((Duration::from_millis(ttl), scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    fn result(ttl: &str, scope: &str) -> Raw {
        raw(&format!(r#"{{"ttlMs":{ttl},"cacheScope":"{scope}","tools":[]}}"#))
    }

    fn keep(cache: &Cache, method: &'static str, params: &str, result: &Raw) {
        if let Some(Err(asked)) = cache.find(method, &raw(params)) {
            cache.keep(asked, result);
        }
    }

    fn is_kept(cache: &Cache, method: &'static str, params: &str) -> bool {
        matches!(cache.find(method, &raw(params)), Some(Ok(_)))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_good_for_as_long_as_the_server_says() {
        let cache = Cache::new(&ResponseCache::new(), "ada".into());
        for stale in ["0", "-5", "1.5", "\"9\"", "null"] {
            keep(&cache, ListTools::NAME, "{}", &result(stale, "public"));
            assert!(!is_kept(&cache, ListTools::NAME, "{}"), "{stale}");
        }
        keep(&cache, ListTools::NAME, "{}", &result("1000", "private"));
        tokio::time::advance(Duration::from_millis(999)).await;
        assert!(is_kept(&cache, ListTools::NAME, "{}"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!is_kept(&cache, ListTools::NAME, "{}"));
    }

    #[tokio::test]
    async fn what_is_private_is_one_principals() {
        let shared = ResponseCache::new();
        let [ada, bob] = ["ada", "bob"].map(|name| Cache::new(&shared, name.into()));
        keep(&ada, ListTools::NAME, "{}", &result("1000", "private"));
        keep(&ada, ListPrompts::NAME, "{}", &result("1000", "public"));
        keep(&ada, ListResources::NAME, "{}", &result("1000", "odd"));
        assert!(is_kept(&ada, ListTools::NAME, "{}") && !is_kept(&bob, ListTools::NAME, "{}"));
        assert!(is_kept(&bob, ListPrompts::NAME, "{}") && !is_kept(&bob, ListResources::NAME, "{}"));
        assert!(!is_kept(&ada, ListTools::NAME, r#"{"cursor":"2"}"#));
        assert!(ada.find("tools/call", &raw("{}")).is_none());
    }

    #[tokio::test]
    async fn a_change_makes_stale_what_it_is_about_and_what_was_asked_before_it() {
        let cache = Cache::new(&ResponseCache::new(), "ada".into());
        let [a, b] = ["x:a", "x:b"].map(|uri| format!(r#"{{"uri":"{uri}"}}"#));
        for (method, params) in [(ListTools::NAME, "{}"), (ReadResource::NAME, &a), (ReadResource::NAME, &b)] {
            keep(&cache, method, params, &result("1000", "private"));
        }
        cache.changed(&Subject::Resource("x:a".into()));
        assert!(!is_kept(&cache, ReadResource::NAME, &a) && is_kept(&cache, ReadResource::NAME, &b));
        cache.changed(&Subject::Tools);
        let Some(Err(asked)) = cache.find(ListTools::NAME, &raw("{}")) else { panic!() };
        cache.changed(&Subject::Tools);
        cache.keep(asked, &result("1000", "private"));
        assert!(!is_kept(&cache, ListTools::NAME, "{}"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_would_expire_first_makes_room() {
        let cache = Cache::new(&ResponseCache::new(), "ada".into());
        let params = |number: usize| format!(r#"{{"cursor":"{number}"}}"#);
        for number in 0..=MOST {
            keep(&cache, ListTools::NAME, &params(number), &result(&(9000 + number).to_string(), "private"));
        }
        assert!(!is_kept(&cache, ListTools::NAME, &params(0)) && is_kept(&cache, ListTools::NAME, &params(1)));
        let big = raw(&format!(r#"{{"ttlMs":1,"x":"{}"}}"#, "x".repeat(MOST_BYTES)));
        keep(&cache, ListTools::NAME, "{}", &big);
        assert!(!is_kept(&cache, ListTools::NAME, "{}") && is_kept(&cache, ListTools::NAME, &params(1)));
        cache.cache.clear();
        assert!(!is_kept(&cache, ListTools::NAME, &params(1)));
    }
}
