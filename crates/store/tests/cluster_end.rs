//! The test cluster leaves nothing behind when its process is killed.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use store::testing::Cluster;

/// Set for the child, which starts a cluster and waits to be killed.
const CHILD_VARIABLE: &str = "STORE_TEST_KILLED_CLUSTER";

#[test]
fn wait_to_be_killed() {
    if env::var_os(CHILD_VARIABLE).is_none() {
        return;
    }
    let uri = Cluster::shared().create_database();
    writeln!(std::io::stdout(), "cluster {uri}").unwrap();
    std::io::stdout().flush().unwrap();
    thread::sleep(Duration::from_mins(10));
}

#[test]
fn a_killed_test_run_leaves_no_server_and_no_folder() {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "wait_to_be_killed", "--nocapture"])
        .env(CHILD_VARIABLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let uri = lines
        .find_map(|line| line.split_once("cluster ").map(|(_, uri)| uri.to_owned()))
        .unwrap();
    let (_, folder) = uri.split_once("host=").unwrap();
    let folder = PathBuf::from(folder.replace("%2F", "/"));
    let server: String = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let process = PathBuf::from("/proc").join(server.lines().next().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while folder.exists() || process.exists() {
        assert!(
            Instant::now() < deadline,
            "{} or its server is still there",
            folder.display()
        );
        thread::sleep(Duration::from_millis(50));
    }
}
