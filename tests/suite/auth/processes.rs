//! Many processes with one login.

use std::process::Stdio;

use futures_util::future::join_all;
use tokio::process::Command;

use super::{Setup, Site};
use crate::process::everything_client;

const PROCESSES: usize = 20;

/// Runs the example client, which calls a tool, with what is kept in that file; what it printed.
async fn called(site: &Site, file: &str) -> String {
    let mut command = Command::new(everything_client());
    command.args(["authorized", &site.url(), file, "free"]).stdin(Stdio::null()).kill_on_drop(true);
    let ended = command.output().await.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn c180_20_processes_that_race_to_refresh_share_one_login_and_one_refresh() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logins");
    let (site, file) = (Site::start(Setup::default()).await, file.to_str().unwrap());
    for refreshes in [0, 1, 2] {
        let ended = join_all((0..PROCESSES).map(|_| called(&site, file))).await;
        assert_eq!(ended, ["free\n"; PROCESSES]);
        assert_eq!((site.refreshes(), site.consents().len()), (refreshes, 1));
        site.expire();
    }
}
