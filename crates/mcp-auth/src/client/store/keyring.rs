//! For all processes of a user, in what the system keeps secrets in.

use std::{fmt, io, path::PathBuf, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use keyring_core::{CredentialStore, Entry, Error as KeyringError};
use mcp_core::{BoxFuture, Error};
use sha2::{Digest as _, Sha256};

use super::{
    Grant, Key, StoreLock, TokenStore,
    lock::{LockFile, blocking, kept},
};

/// Keeps logins in the credential store of the system: the Keychain, the Credential Manager, the Secret Service.
///
/// Which one that is, is the application's to say, by one of the crates for `keyring-core`; each login is an entry there.
/// As such stores have no locks, a file stands for each: `FILE.lock`, held while tokens are refreshed or a user logs in, and
/// `FILE.write`, held while an entry is changed. No secret is in them. Some systems keep no more than 2.5 kB an entry, which
/// long tokens are too long for.
#[derive(Clone)]
pub struct KeyringStore {
    store: Arc<CredentialStore>,
    service: Arc<str>,
    locks: Arc<PathBuf>,
}

impl KeyringStore {
    /// Entries of that service in `store`. The folder of `locks` has to exist.
    pub fn new(store: Arc<CredentialStore>, service: impl Into<String>, locks: impl Into<PathBuf>) -> Self {
        Self { store, service: service.into().into(), locks: Arc::new(locks.into()) }
    }

    /// The names of both servers are too long for some stores, and nobody else's business.
    fn entry(&self, key: &Key) -> io::Result<Entry> {
        let name = URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{}\n{}", key.issuer, key.resource)));
        Entry::new_in_store(&self.store, &self.service, &name).map_err(failed)
    }

    fn read(&self, key: &Key) -> io::Result<Option<Grant>> {
        match self.entry(key)?.get_secret() {
            Ok(text) => kept(&text).map(Some),
            Err(KeyringError::NoEntry) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    fn swap_now(&self, key: &Key, expected: Option<&Grant>, new: Option<&Grant>) -> io::Result<bool> {
        let _writing = LockFile::beside(&self.locks, ".write").wait()?;
        if self.read(key)?.as_ref() != expected {
            return Ok(false);
        }
        let entry = self.entry(key)?;
        match (expected, new) {
            (_, Some(new)) => entry.set_secret(&serde_json::to_vec(new)?).map_err(failed)?,
            (Some(_), None) => entry.delete_credential().map_err(failed)?,
            (None, None) => {}
        }
        Ok(true)
    }
}

/// What went wrong, without what was read: some errors hold that.
fn failed(error: KeyringError) -> io::Error {
    io::Error::other(match error {
        KeyringError::TooLong(_, limit) => format!("the system's store keeps no more than {limit} bytes of it"),
        KeyringError::NoStorageAccess(_) => "the system's store is locked: unlock it, and try again".to_owned(),
        KeyringError::BadEncoding(_) | KeyringError::BadDataFormat(..) => {
            "what is kept there is none of ours".to_owned()
        }
        KeyringError::Ambiguous(_) => "the system's store has several of it".to_owned(),
        _ => "the system's store failed".to_owned(),
    })
}

impl fmt::Debug for KeyringStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyringStore").field("service", &self.service).finish_non_exhaustive()
    }
}

impl TokenStore for KeyringStore {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Grant>, Error>> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || store.read(&key))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let (store, key, expected) = (self.clone(), key.clone(), expected.cloned());
        blocking(move || store.swap_now(&key, expected.as_ref(), new.as_ref()))
    }

    fn lock<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<StoreLock, Error>> {
        Box::pin(LockFile::beside(&self.locks, ".lock").hold())
    }
}

#[cfg(test)]
mod tests {
    use keyring_core::mock;

    use super::{super::tests::swaps_what_is_expected, *};
    use crate::client::store::tests::grant;

    fn store(folder: &tempfile::TempDir) -> KeyringStore {
        KeyringStore::new(mock::Store::new().unwrap(), "test", folder.path().join("logins"))
    }

    #[tokio::test]
    async fn c181_a_keyring_takes_nothing_in_place_of_what_it_is_not_in_place_of() {
        let folder = tempfile::tempdir().unwrap();
        swaps_what_is_expected(store(&folder)).await;
    }

    #[tokio::test]
    async fn what_a_keyring_refuses_is_told_without_what_it_keeps() {
        let folder = tempfile::tempdir().unwrap();
        let (store, key) = (store(&folder), Key::new("a", "b"));
        store.swap(&key, None, Some(grant("1"))).await.unwrap();
        let fails = |error| {
            let entry = store.entry(&key).unwrap();
            entry.as_any().downcast_ref::<mock::Cred>().unwrap().set_error(error);
        };
        fails(KeyringError::BadEncoding(b"SECRET".to_vec()));
        let error = store.load(&key).await.unwrap_err();
        assert!(error.to_string().contains("none of ours") && !format!("{error:?}").contains("SECRET"), "{error:?}");
        fails(KeyringError::TooLong("secret".to_owned(), 2560));
        let error = store.load(&key).await.unwrap_err();
        assert!(error.to_string().contains("2560 bytes"), "{error:?}");
        store.entry(&key).unwrap().set_secret(b"SECRET").unwrap();
        let error = store.load(&key).await.unwrap_err();
        assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
        assert!(!format!("{store:?}").contains("SECRET"));
    }
}
