//! Which file a name means on Windows, where `npx` is `npx.cmd`: the system itself only tries `.exe`.

use std::ffi::{OsStr, OsString};

use which::{WhichConfig, sys::Sys};

/// The program in the folders of `path`, or of the system's where there is none, with the extensions that the system
/// runs. What is not found is left as it is, for the system to say so.
pub(super) fn resolve<S: Sys>(system: S, program: &OsStr, path: Option<&OsStr>) -> OsString {
    let search = WhichConfig::new_with_sys(system).binary_name(program.to_owned());
    let search = match path {
        Some(path) => search.custom_path_list(path.to_owned()),
        None => search.system_path_list(),
    };
    search.first_result().map_or_else(|_| program.to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Error, ErrorKind, Result},
        path::{Path, PathBuf},
    };

    use super::*;

    /// A Windows that finds its files in a folder of this system's.
    #[derive(Clone)]
    struct Windows {
        path: OsString,
        extensions: &'static str,
    }

    impl Sys for Windows {
        type ReadDirEntry = fs::DirEntry;
        type Metadata = fs::Metadata;

        fn is_windows(&self) -> bool {
            true
        }

        fn current_dir(&self) -> Result<PathBuf> {
            Err(ErrorKind::Unsupported.into())
        }

        fn home_dir(&self) -> Option<PathBuf> {
            None
        }

        fn env_split_paths(&self, paths: &OsStr) -> Vec<PathBuf> {
            paths.to_str().unwrap().split(';').map(PathBuf::from).collect()
        }

        fn env_path(&self) -> Option<OsString> {
            Some(self.path.clone())
        }

        fn env_path_ext(&self) -> Option<OsString> {
            Some(self.extensions.into())
        }

        fn metadata(&self, path: &Path) -> Result<fs::Metadata> {
            fs::metadata(path)
        }

        fn symlink_metadata(&self, path: &Path) -> Result<fs::Metadata> {
            fs::symlink_metadata(path)
        }

        fn read_dir(&self, _: &Path) -> Result<Box<dyn Iterator<Item = Result<fs::DirEntry>>>> {
            Err(Error::from(ErrorKind::Unsupported))
        }

        /// Asked about what has no extension, which is no program there.
        fn is_valid_executable(&self, _: &Path) -> Result<bool> {
            Ok(false)
        }
    }

    #[test]
    fn a_name_is_found_with_the_extensions_of_the_system() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [first, second] = folders.each_ref().map(|folder| folder.path());
        let file = |folder: &Path, name: &str| {
            let path = folder.join(name);
            fs::write(&path, "").unwrap();
            path.into_os_string()
        };
        // Names have no letter case there, and here they have.
        let (npx, hidden) = (file(first, "npx.CMD"), file(second, "npx.EXE"));
        let tool = file(second, "tool.EXE");
        // npm puts a script for shells of another kind beside it.
        file(first, "npx");
        let path = OsString::from(format!("{};{}", first.display(), second.display()));
        let windows = Windows { path, extensions: ".COM;.EXE;.BAT;.CMD" };
        let found = |name: &str, path: Option<&OsStr>| resolve(windows.clone(), OsStr::new(name), path);

        assert_eq!(found("npx", None), npx);
        assert_eq!(found("npx", Some(second.as_os_str())), hidden, "the child's own PATH");
        assert_eq!(found("tool", None), tool);
        assert_eq!(found("tool.EXE", None), tool);
        assert_eq!(found("no-such-program", None), "no-such-program");
    }
}
