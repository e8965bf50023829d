//! Skills that lie in a directory.

use std::{fs, os::unix::fs::symlink, path::Path};

use mcp_core::{Client, ErrorKind, client::Changed, types::NotificationFilter};
use mcp_skills::{SKILL_BYTES, SKILL_FILES, Skills, SkillsClient};
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
    let outside = directory(&[("secret", b"secret")]);
    let with = |link: &str, target: &Path| {
        let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes()), ("shared.md", b"shared")]);
        symlink(target, directory.path().join(link)).unwrap();
        of(&directory).map(|skills| uris(&skills))
    };
    assert_eq!(with("a/shared.md", Path::new("../shared.md")).unwrap(), ["a/SKILL.md", "a/shared.md"]);
    for target in
        [outside.path().join("secret"), "../../secret".into(), "/etc/passwd".into(), "none".into(), ".".into()]
    {
        let error = with("a/link", &target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidParams, "{target:?}");
        assert!(!format!("{error:?}").contains("secret\n"), "{error:?}");
    }
}

/// A link that is put there after the directory was looked through.
#[tokio::test]
async fn a_file_that_becomes_a_link_to_the_outside_is_not_read() {
    let outside = directory(&[("secret", b"secret")]);
    let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes()), ("a/x", b"secret")]);
    let client = Client::connect(serving(of(&directory).unwrap())).await.unwrap();
    assert!(client.read_resource("skill://a/x").await.is_ok());
    fs::remove_file(directory.path().join("a/x")).unwrap();
    symlink(outside.path().join("secret"), directory.path().join("a/x")).unwrap();
    let error = client.read_resource("skill://a/x").await.unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[tokio::test]
async fn what_has_changed_is_noticed_when_it_is_read() {
    let directory = directory(&[("a/SKILL.md", skill_md("a", "old").as_bytes()), ("a/x", b"old"), ("a/y", b"old")]);
    let client = Client::connect(serving(of(&directory).unwrap())).await.unwrap();
    let skills = SkillsClient::of(&client).unwrap();
    let entry = skills.list().await.unwrap().remove(0);
    let loaded = skills.load(entry.clone()).await.unwrap();
    write(directory.path(), "a/x", "new");
    fs::remove_file(directory.path().join("a/y")).unwrap();
    write(directory.path(), "a/z", "new");

    // The host that holds the old entry reads nothing that it does not describe.
    assert!(loaded.read("x").await.is_err());
    assert!(loaded.read("y").await.is_err());
    assert!(loaded.read("z").await.is_err());
    let fresh = skills.get(&entry.uri).await.unwrap();
    assert_ne!(fresh.fingerprint(), entry.fingerprint());
    let loaded = skills.load(fresh).await.unwrap();
    assert_eq!(&*loaded.read("x").await.unwrap(), b"new");
    assert_eq!(&*loaded.read("z").await.unwrap(), b"new");
    assert_eq!(loaded.paths().collect::<Vec<_>>(), ["SKILL.md", "x", "z"]);
}

#[tokio::test]
async fn refreshing_tells_whoever_listens() {
    let directory = directory(&[("a/SKILL.md", skill_md("a", "").as_bytes()), ("a/x", b"old")]);
    let skills = of(&directory).unwrap();
    let server = serving(skills.clone());
    let client = Client::connect(server.clone()).await.unwrap();
    let filter = NotificationFilter::new().resources().resource("skill://a/x");
    let mut listening = client.listen(filter).await.unwrap();
    skills.refresh(&server).unwrap();
    write(directory.path(), "b/SKILL.md", skill_md("b", ""));
    write(directory.path(), "a/x", "new");
    skills.refresh(&server).unwrap();
    let mut heard = vec![listening.next().await.unwrap(), listening.next().await.unwrap()];
    heard.sort_by_key(|change| format!("{change:?}"));
    assert_eq!(heard, [Changed::Resource("skill://a/x".into()), Changed::Resources]);
    fs::remove_dir_all(directory.path().join("a")).unwrap();
    skills.refresh(&server).unwrap();
    let listed: Vec<_> = client.resources().await.unwrap().into_iter().map(|resource| resource.uri).collect();
    assert_eq!(listed, ["skill://b/SKILL.md"]);

    // What is no skill any more changes nothing.
    write(directory.path(), "b/SKILL.md", "# No frontmatter");
    assert_eq!(skills.refresh(&server).unwrap_err().kind(), ErrorKind::InvalidParams);
    assert_eq!(skills.entries().len(), 1);
}

#[test]
fn a_directory_that_breaks_a_rule_is_refused_with_its_place() {
    let good = skill_md("a", "");
    let large = vec![0; SKILL_BYTES as usize + 1];
    let many: Vec<(String, &[u8])> = (0..SKILL_FILES).map(|n| (format!("a/{n}"), &b""[..])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(path, bytes)| (path.as_str(), *bytes)).collect();
    let deep = format!("{}SKILL.md", "a/".repeat(40));
    for (files, place) in [
        (vec![("wrong/SKILL.md", good.as_bytes())], "skill://wrong/SKILL.md"),
        (vec![("a/SKILL.md", b"# none")], "a/SKILL.md"),
        (vec![("a/SKILL.md", b"\xff")], "a/SKILL.md"),
        (vec![("a/SKILL.md", good.as_bytes()), ("a/large", &large)], "a/large"),
        (many.into_iter().chain([("a/SKILL.md", good.as_bytes())]).collect(), "skill://a/SKILL.md"),
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
