//! Skills that lie in a directory.

use std::{fs, os::unix::fs::symlink, path::Path};

use mcp_core::{Client, ErrorKind, client::Changed, types::NotificationFilter};
use mcp_skills::{MAX_BYTES, MAX_RESOURCES, Skills, SkillsClient};
use tempfile::TempDir;

use super::{digest, serving, skill_md};

fn directory(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        write(directory.path(), path, bytes);
    }
    directory
}

fn write(directory: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn of(directory: &TempDir) -> Result<Skills, mcp_core::Error> {
    Skills::builder().directory(directory.path()).build()
}

fn uris(skills: &Skills) -> Vec<String> {
    let files = skills.entries().into_iter().flat_map(|entry| entry.files().to_vec());
    files.map(|file| file.uri.trim_start_matches("skill://").to_owned()).collect()
}

#[test]
fn every_directory_with_a_skill_md_is_a_skill() {
    let (a, b, inner) = (skill_md("a", ""), skill_md("b", ""), skill_md("inner", ""));
    let directory = directory(&[
        ("README.md", b"of no skill"),
        ("a/SKILL.md", a.as_bytes()),
        ("a/x y.bin", b"\xff"),
        ("a/.hidden", b"secret"),
        ("a/.git/config", b"secret"),
        (".private/SKILL.md", b"no skill at all"),
        ("team/b/SKILL.md", b.as_bytes()),
        ("team/b/inner/SKILL.md", inner.as_bytes()),
        ("team/notes.txt", b"of no skill"),
    ]);
    let expected = ["a/SKILL.md", "a/x%20y.bin", "team/b/SKILL.md", "team/b/inner/SKILL.md", "team/b/inner/SKILL.md"];
    assert_eq!(uris(&of(&directory).unwrap()), expected);
    // One that is itself a skill is called by its name, wherever it lies.
    let one = Skills::builder().directory(directory.path().join("team/b")).build().unwrap();
    assert_eq!(uris(&one), ["b/SKILL.md", "b/inner/SKILL.md", "b/inner/SKILL.md"]);
}

#[tokio::test]
async fn an_empty_directory_is_listed_and_empty() {
    let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes())]);
    fs::create_dir(directory.path().join("a/empty")).unwrap();
    fs::create_dir(directory.path().join("outside")).unwrap();
    let client = Client::connect(serving(of(&directory).unwrap())).await.unwrap();
    let skills = SkillsClient::of(&client).unwrap();
    let children = skills.directory("skill://a").await.unwrap();
    assert_eq!(children.iter().map(|child| child.name.as_str()).collect::<Vec<_>>(), ["a", "empty"]);
    assert!(skills.directory("skill://a/empty").await.unwrap().is_empty());
    assert!(skills.directory("skill://outside").await.is_err());
}

#[test]
fn links_are_followed_within_the_directory_and_nowhere_else() {
    let outside = directory(&[("file", b"TOP SECRET")]);
    let with = |link: &str, target: &Path| {
        let directory = directory(&[
            ("a/SKILL.md", skill_md("a", "").as_bytes()),
            ("shared.md", b"shared"),
            (".env", b"TOP SECRET"),
            (".hidden/x", b"TOP SECRET"),
        ]);
        symlink(target, directory.path().join(link)).unwrap();
        of(&directory).map(|skills| uris(&skills))
    };
    assert_eq!(with("a/shared.md", Path::new("../shared.md")).unwrap(), ["a/SKILL.md", "a/shared.md"]);
    let absolute = outside.path().join("file");
    for target in ["../../file", "/etc/passwd", "none", ".", "../.env", "../.hidden/x", absolute.to_str().unwrap()] {
        let error = with("a/link", Path::new(target)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidParams, "{target:?}");
        assert!(error.to_string().contains("a/link") && !format!("{error:?}").contains("TOP"), "{error:?}");
    }
    // A skill that somebody thinks is installed is not left out without a word.
    assert!(with("b", Path::new("a")).unwrap_err().to_string().contains("a link to a directory"));
}

#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    for place in ["a/fifo", "SKILL.md"] {
        let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes())]);
        let made = std::process::Command::new("mkfifo").arg(directory.path().join(place)).status().unwrap();
        assert!(made.success());
        assert!(of(&directory).unwrap_err().to_string().contains(place));
    }
}

#[test]
fn what_is_no_skill_does_not_stand_in_the_way() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes()), ("notes/x", b"")]);
    let odd = OsStr::from_bytes(b".\xff");
    fs::write(directory.path().join("a").join(odd), "").unwrap();
    assert_eq!(uris(&of(&directory).unwrap()), ["a/SKILL.md"]);
    fs::write(directory.path().join("a").join(OsStr::from_bytes(b"\xff")), "").unwrap();
    assert!(of(&directory).unwrap_err().to_string().contains("UTF-8"));
}

#[tokio::test]
async fn what_is_served_is_what_was_said_until_it_is_refreshed() {
    let directory = directory(&[("a/SKILL.md", skill_md("a", "old").as_bytes()), ("a/x", b"old"), ("a/y", b"old")]);
    let skills = of(&directory).unwrap();
    let server = serving(skills.clone());
    let client = Client::connect(server.clone()).await.unwrap();
    let found = SkillsClient::of(&client).unwrap();
    let entry = found.list().await.unwrap().remove(0);
    let loaded = found.load(entry.clone()).await.unwrap();
    write(directory.path(), "a/x", "new");
    fs::remove_file(directory.path().join("a/y")).unwrap();
    write(directory.path(), "a/z", "new");
    assert_eq!(&*found.load(entry.clone()).await.unwrap().read("x").await.unwrap(), b"old");

    // The host that holds the old entry reads nothing that it does not describe.
    skills.refresh(&server).await.unwrap();
    for gone in ["x", "y", "z"] {
        assert!(loaded.read(gone).await.is_err(), "{gone}");
    }
    let fresh = found.get(&entry.uri).await.unwrap();
    assert_ne!(fresh.fingerprint(), entry.fingerprint());
    let loaded = found.load(fresh).await.unwrap();
    assert_eq!(&*loaded.read("x").await.unwrap(), b"new");
    assert_eq!(loaded.paths().collect::<Vec<_>>(), ["SKILL.md", "x", "z"]);
}

/// What was served before is gone from each of them, and what is new is there.
#[tokio::test]
async fn each_server_is_refreshed_by_itself() {
    let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes())]);
    let skills = of(&directory).unwrap();
    let servers = [serving(skills.clone()), serving(skills.clone())];
    fs::remove_dir_all(directory.path().join("a")).unwrap();
    write(directory.path(), "b/SKILL.md", skill_md("b", ""));
    for server in &servers {
        skills.refresh(server).await.unwrap();
    }
    for server in servers {
        let client = Client::connect(server).await.unwrap();
        let listed: Vec<_> = client.resources().await.unwrap().into_iter().map(|resource| resource.uri).collect();
        assert_eq!(listed, ["skill://b/SKILL.md"]);
        let found = SkillsClient::of(&client).unwrap().list().await.unwrap();
        assert_eq!(found.iter().map(|skill| skill.name()).collect::<Vec<_>>(), ["b"]);
    }
}

#[tokio::test]
async fn refreshing_tells_whoever_listens() {
    let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes()), ("a/x", b"old")]);
    let skills = of(&directory).unwrap();
    let server = serving(skills.clone());
    let client = Client::connect(server.clone()).await.unwrap();
    let filter = NotificationFilter::new().resources().resource("skill://a/x");
    let mut listening = client.listen(filter).await.unwrap();
    skills.refresh(&server).await.unwrap();
    write(directory.path(), "b/SKILL.md", skill_md("b", ""));
    write(directory.path(), "a/x", "new");
    skills.refresh(&server).await.unwrap();
    let mut heard = vec![listening.next().await.unwrap(), listening.next().await.unwrap()];
    heard.sort_by_key(|change| format!("{change:?}"));
    assert_eq!(heard, [Changed::Resource("skill://a/x".into()), Changed::Resources]);
    fs::remove_dir_all(directory.path().join("a")).unwrap();
    skills.refresh(&server).await.unwrap();
    let listed: Vec<_> = client.resources().await.unwrap().into_iter().map(|resource| resource.uri).collect();
    assert_eq!(listed, ["skill://b/SKILL.md"]);

    // What is no skill any more changes nothing.
    write(directory.path(), "b/SKILL.md", "# No frontmatter");
    assert_eq!(skills.refresh(&server).await.unwrap_err().kind(), ErrorKind::InvalidParams);
    assert_eq!(skills.entries().len(), 1);
}

#[test]
fn a_directory_that_breaks_a_rule_is_refused_with_its_place() {
    let good = skill_md("a", "");
    let large = vec![0; MAX_BYTES as usize + 1];
    let many: Vec<(String, &[u8])> = (0..MAX_RESOURCES).map(|n| (format!("a/{n}"), &b""[..])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(path, bytes)| (path.as_str(), *bytes)).collect();
    let deep = format!("{}SKILL.md", "a/".repeat(40));
    for (files, place) in [
        (vec![("wrong/SKILL.md", good.as_bytes())], "skill://wrong/SKILL.md"),
        (vec![("a/SKILL.md", b"# none")], "a/SKILL.md"),
        (vec![("a/SKILL.md", b"\xff")], "a/SKILL.md"),
        (vec![("a/SKILL.md", good.as_bytes()), ("a/large", &large)], "a/large"),
        (many.into_iter().chain([("a/SKILL.md", good.as_bytes())]).collect(), "more than"),
        (vec![("a/skill.md", good.as_bytes())], "a/skill.md"),
        (vec![(deep.as_str(), good.as_bytes())], "deep"),
    ] {
        let error = of(&directory(&files)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidParams);
        assert!(error.to_string().contains(place), "{error}");
    }
    let error = Skills::builder().directory("/none/at/all").build().unwrap_err();
    assert!(error.to_string().contains("/none/at/all"), "{error}");
}

#[test]
fn digests_are_those_of_the_bytes() {
    let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes()), ("a/x", b"\xef\xbb\xbfwith a mark\r\n")]);
    let entries = of(&directory).unwrap().entries();
    let file = &entries[0].files()[1];
    assert_eq!((file.digest.to_string(), file.size), (digest(b"\xef\xbb\xbfwith a mark\r\n"), 16));
}
