//! For one process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use mcp_core::{BoxFuture, Error};
use tokio::sync::OwnedMutexGuard;

use super::{Grant, Key, StoreLock, TokenStore, put};
use crate::lock::lock;

/// Keeps logins for as long as the process lives.
#[derive(Default)]
pub struct MemoryStore {
    grants: Mutex<HashMap<Key, Grant>>,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl TokenStore for MemoryStore {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Grant>, Error>> {
        let grant = lock(&self.grants).get(key).cloned();
        Box::pin(std::future::ready(Ok(grant)))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let mut grants = lock(&self.grants);
        let is_expected = grants.get(key) == expected;
        if is_expected {
            put(&mut grants, key, new);
        }
        Box::pin(std::future::ready(Ok(is_expected)))
    }

    fn lock<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<StoreLock, Error>> {
        Box::pin(async {
            let lock: OwnedMutexGuard<()> = Arc::clone(&self.lock).lock_owned().await;
            Ok(Box::new(lock) as StoreLock)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::swaps_what_is_expected, *};

    #[tokio::test]
    async fn c181_memory_takes_nothing_in_place_of_what_it_is_not_in_place_of() {
        swaps_what_is_expected(MemoryStore::default()).await;
    }
}
