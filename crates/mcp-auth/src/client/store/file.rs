//! For all processes of a user.

use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use mcp_core::{BoxFuture, Error};

use super::{
    Grant, Key, StoreLock, TokenStore,
    lock::{LockFile, beside, blocking, kept, owners},
    put,
};

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

    fn read(&self) -> io::Result<HashMap<Key, Grant>> {
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
            text => text?,
        };
        let kept: Vec<(Key, Grant)> = kept(&text)?;
        Ok(kept.into_iter().collect())
    }

    /// Whoever reads meanwhile sees what was there before, and never half of it.
    fn write(&self, grants: HashMap<Key, Grant>) -> io::Result<()> {
        let kept: Vec<(Key, Grant)> = grants.into_iter().collect();
        let (new, text) = (beside(&self.path, ".new"), serde_json::to_vec(&kept)?);
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

    fn swap_now(&self, key: &Key, expected: Option<&Grant>, new: Option<Grant>) -> io::Result<bool> {
        let _writing = LockFile::beside(&self.path, ".write").wait()?;
        let mut grants = self.read()?;
        let is_expected = grants.get(key) == expected;
        if is_expected {
            put(&mut grants, key, new);
            self.write(grants)?;
        }
        Ok(is_expected)
    }
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
        Box::pin(LockFile::beside(&self.path, ".lock").hold())
    }
}

#[cfg(test)]
mod tests {
    use fs4::fs_std::FileExt as _;

    use super::{super::tests::swaps_what_is_expected, *};
    use crate::client::store::tests::grant;

    #[tokio::test]
    async fn c181_a_file_takes_nothing_in_place_of_what_it_is_not_in_place_of() {
        let folder = tempfile::tempdir().unwrap();
        swaps_what_is_expected(FileStore::new(folder.path().join("logins"))).await;
    }

    #[tokio::test]
    async fn c181_a_file_is_locked_for_everybody_else() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [0, 1].map(|_| FileStore::new(folder.path().join("logins")));
        let key = Key::new("a", "b");
        let held = one.lock(&key).await.unwrap();
        let other = std::fs::File::options().write(true).open(beside(&two.path, ".lock")).unwrap();
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

    #[tokio::test]
    async fn a_file_that_is_none_of_ours_is_an_error_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logins");
        let (store, key) = (FileStore::new(&path), Key::new("a", "b"));
        let told = r#"[[{"issuer":"a","resource":"b"},{"access_token":"t","expires_at":"SECRET"}]]"#;
        for text in ["", "{}", "[[1, 2]]", "SECRET", told] {
            std::fs::write(&path, text).unwrap();
            let error = store.load(&key).await.unwrap_err();
            assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
            store.swap(&key, None, Some(grant("1"))).await.unwrap_err();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
