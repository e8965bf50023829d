//! Where logins are kept.

use std::{
    collections::HashMap,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fs4::fs_std::FileExt as _;
use mcp_core::{BoxFuture, Error};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use super::{dpop::ProofKey, error::AuthError};

/// What a login is for: tokens of one authorization server are nothing to another, nor are those for one resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Key {
    /// The issuer that the authorization server is known by.
    pub issuer: String,
    /// The resource, as it was published.
    pub resource: String,
}

impl Key {
    /// That resource at that issuer.
    pub fn new(issuer: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), resource: resource.into() }
    }
}

/// What a login brought.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// What requests carry.
    pub access_token: String,
    /// What brings the next access token.
    pub refresh_token: Option<String>,
    /// When the access token ends, in seconds since 1970, where that is known.
    pub expires_at: Option<u64>,
    /// The scopes that it has.
    pub scopes: Vec<String>,
    /// Who logged in.
    pub client: ClientCredentials,
    /// What the tokens are bound to, where to anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof_key: Option<ProofKey>,
}

impl Grant {
    /// The scheme of `Authorization` that the access token is shown by.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.proof_key.is_some() { "DPoP" } else { "Bearer" }
    }
}

/// What an authorization server knows a client by.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientCredentials {
    /// The client's name there.
    pub id: String,
    /// The client's secret, where it has one.
    pub secret: Option<String>,
    /// How the secret is sent, in the words of the registration.
    pub method: Option<String>,
    /// Where the user is sent back to, where the client was registered for that.
    pub redirect_uri: Option<String>,
}

impl ClientCredentials {
    /// A client without a secret.
    pub fn public(id: impl Into<String>) -> Self {
        Self { id: id.into(), secret: None, method: None, redirect_uri: None }
    }

    /// A client with a secret.
    pub fn secret(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { secret: Some(secret.into()), ..Self::public(id) }
    }
}

/// Tokens are secrets.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access_token: _, refresh_token, expires_at, scopes, client, proof_key: _ } = self;
        f.debug_struct("Grant")
            .field("scheme", &self.scheme())
            .field("can_refresh", &refresh_token.is_some())
            .field("expires_at", expires_at)
            .field("scopes", scopes)
            .field("client", client)
            .finish_non_exhaustive()
    }
}

/// What the client is known by may be one too.
impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCredentials").field("has_secret", &self.secret.is_some()).finish_non_exhaustive()
    }
}

/// A lock that is held until this is dropped.
pub type StoreLock = Box<dyn Send>;

/// Where logins are kept, for one process or several.
pub trait TokenStore: Send + Sync + 'static {
    /// What is kept under that key.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Grant>, Error>>;

    /// Puts `new` in place of `expected`, and only of that: false, and nothing done, where something else is kept.
    ///
    /// # Errors
    /// When it cannot be read or written.
    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>>;

    /// Waits until nobody else that uses the store refreshes what is kept under that key.
    ///
    /// # Errors
    /// When it cannot be locked.
    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<StoreLock, Error>>;
}

impl<T: TokenStore + ?Sized> TokenStore for Arc<T> {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Grant>, Error>> {
        (**self).load(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        (**self).swap(key, expected, new)
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<StoreLock, Error>> {
        (**self).lock(key)
    }
}

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
        let grant = self.grants.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        Box::pin(std::future::ready(Ok(grant)))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
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

fn put(grants: &mut HashMap<Key, Grant>, key: &Key, new: Option<Grant>) {
    match new {
        Some(grant) => drop(grants.insert(key.clone(), grant)),
        None => drop(grants.remove(key)),
    }
}

/// Keeps logins in a file that only its owner can read, for all processes that use it.
///
/// Beside the file are others: `FILE.lock`, held while tokens are refreshed or a user logs in, `FILE.write`, held while the file
/// is written, and for a moment `FILE.new`.
/// On Windows, who can read it is what the folder says.
#[derive(Debug, Clone)]
pub struct FileStore {
    path: Arc<Path>,
}

impl FileStore {
    /// The file at `path`, which need not exist yet; its folder has to.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into().into() }
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.path.as_os_str().to_owned();
        path.push(suffix);
        path.into()
    }

    fn read(&self) -> io::Result<HashMap<Key, Grant>> {
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
            text => text?,
        };
        let kept: Vec<(Key, Grant)> = serde_json::from_slice(&text)?;
        Ok(kept.into_iter().collect())
    }

    /// Whoever reads meanwhile sees what was there before, and never half of it.
    fn write(&self, grants: HashMap<Key, Grant>) -> io::Result<()> {
        let kept: Vec<(Key, Grant)> = grants.into_iter().collect();
        let (new, text) = (self.beside(".new"), serde_json::to_vec(&kept)?);
        // One that another process left behind may be open to others.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = owners(OpenOptions::new().write(true).create_new(true)).open(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&new, &self.path)
    }

    /// A lock that other processes see, and other handles in this one.
    fn locked(&self, suffix: &str) -> io::Result<File> {
        let file = self.open(suffix)?;
        file.lock_exclusive()?;
        Ok(file)
    }

    fn open(&self, suffix: &str) -> io::Result<File> {
        owners(OpenOptions::new().write(true).create(true).truncate(false)).open(self.beside(suffix))
    }

    fn swap_now(&self, key: &Key, expected: Option<&Grant>, new: Option<Grant>) -> io::Result<bool> {
        let _writing = self.locked(".write")?;
        let mut grants = self.read()?;
        let is_expected = grants.get(key) == expected;
        if is_expected {
            put(&mut grants, key, new);
            self.write(grants)?;
        }
        Ok(is_expected)
    }
}

fn owners(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

impl TokenStore for FileStore {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Grant>, Error>> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || Ok(store.read()?.remove(&key)))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let (store, key, expected) = (self.clone(), key.clone(), expected.cloned());
        blocking(move || store.swap_now(&key, expected.as_ref(), new))
    }

    fn lock<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<StoreLock, Error>> {
        const PACE: Duration = Duration::from_millis(50);
        Box::pin(async {
            // Asked for again and again: a thread that waits for a login elsewhere would keep this process from ending.
            loop {
                let store = self.clone();
                let file = blocking(move || {
                    let file = store.open(".lock")?;
                    Ok(file.try_lock_exclusive()?.then_some(file))
                });
                match file.await? {
                    Some(file) => return Ok(Box::new(file) as StoreLock),
                    None => tokio::time::sleep(PACE).await,
                }
            }
        })
    }
}

fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> BoxFuture<'static, Result<T, Error>> {
    Box::pin(async {
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.map_err(|error| AuthError::Store(error.to_string()))?;
        Ok(done.map_err(|error| AuthError::Store(error.to_string()))?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(token: &str) -> Grant {
        Grant {
            access_token: token.to_owned(),
            refresh_token: Some(format!("{token}-refresh")),
            expires_at: None,
            scopes: Vec::new(),
            client: ClientCredentials::secret("id", "SECRET"),
            proof_key: None,
        }
    }

    async fn swaps_what_is_expected(store: impl TokenStore) {
        let (key, other) = (Key::new("a", "b"), Key::new("a", "c"));
        assert!(store.swap(&key, None, Some(grant("1"))).await.unwrap());
        assert!(!store.swap(&key, None, Some(grant("2"))).await.unwrap());
        assert!(!store.swap(&key, Some(&grant("2")), None).await.unwrap());
        assert!(store.swap(&key, Some(&grant("1")), Some(grant("2"))).await.unwrap());
        assert_eq!(store.load(&key).await.unwrap(), Some(grant("2")));
        assert_eq!(store.load(&other).await.unwrap(), None);
        assert!(store.swap(&key, Some(&grant("2")), None).await.unwrap());
        assert_eq!(store.load(&key).await.unwrap(), None);
    }

    #[tokio::test]
    async fn c181_a_store_takes_nothing_in_place_of_what_it_is_not_in_place_of() {
        swaps_what_is_expected(MemoryStore::default()).await;
        let folder = tempfile::tempdir().unwrap();
        swaps_what_is_expected(FileStore::new(folder.path().join("logins"))).await;
    }

    #[tokio::test]
    async fn c181_a_file_is_locked_for_everybody_else() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [0, 1].map(|_| FileStore::new(folder.path().join("logins")));
        let key = Key::new("a", "b");
        let held = one.lock(&key).await.unwrap();
        let other = File::options().write(true).open(two.beside(".lock")).unwrap();
        assert!(!other.try_lock_exclusive().unwrap());
        drop(held);
        drop(two.lock(&key).await.unwrap());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::new(folder.path().join("logins"));
        store.swap(&Key::new("a", "b"), None, Some(grant("1"))).await.unwrap();
        assert_eq!(std::fs::metadata(&store.path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn nothing_shows_a_secret() {
        let shown = format!("{:?} {:?}", grant("SECRET"), MemoryStore::default());
        assert!(!shown.contains("SECRET"), "{shown}");
    }
}
