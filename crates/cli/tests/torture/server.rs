//! A `PostgreSQL` server of the test's own, to be stopped, restarted, narrowed and filled up.
//!
//! A shell holds the end of a pipe that the test never writes to: when the test ends, however it ends, the pipe closes, and
//! the shell stops the server and removes the folder.

use std::{
    env, fs,
    io::Write as _,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// The role that the crawls connect as: the owner of the database, and no superuser.
const ROLE: &str = "crawler";

/// The room of a small disk, in MiB: a new server takes some 40 of them.
const SMALL_DISK_MIB: u32 = 96;

const GUARD: &str = r#"
trap : HUP INT TERM
cat >/dev/null
while [ -e "$FOLDER/disk/data/postmaster.pid" ] &&
    kill -QUIT "$(head -n 1 "$FOLDER/disk/data/postmaster.pid")" 2>/dev/null; do sleep 0.1; done
cd /
[ -z "$MOUNTED" ] || umount "$FOLDER/disk"
rm -rf "$FOLDER"
"#;

/// A server, and a database with a role that owns it.
pub(crate) struct Server {
    folder: PathBuf,
    programs: PathBuf,
    /// Whom the server runs as, where that is not this process's user.
    user: Option<(u32, u32)>,
    guard: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

impl Server {
    /// Makes a server, and starts it.
    pub(crate) fn start() -> Self {
        Self::make(false).unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Makes a server on a small disk, and starts it.
    ///
    /// # Errors
    ///
    /// Says why this system grants no small disk.
    pub(crate) fn start_on_small_disk() -> Result<Self, String> {
        Self::make(true)
    }

    fn make(on_small_disk: bool) -> Result<Self, String> {
        let programs = find_programs();
        let folder = env::temp_dir().join(format!("bloomcrawl-pg-{:016x}", fastrand::u64(..)));
        let disk = folder.join("disk");
        fs::create_dir_all(&disk).expect("a temporary folder");
        if on_small_disk && let Err(reason) = mount(&disk) {
            let _ = fs::remove_dir_all(&folder);
            return Err(reason);
        }
        let user = unprivileged_user(&folder);
        for path in [&folder, &disk] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("our folder");
            if let Some((uid, gid)) = user {
                chown(path, Some(uid), Some(gid)).expect("root may give a folder away");
            }
        }
        let guard = Command::new("sh")
            .args(["-c", GUARD])
            .env("FOLDER", &folder)
            .env("MOUNTED", if on_small_disk { "1" } else { "" })
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("sh runs");
        let server = Self {
            folder,
            programs,
            user,
            guard,
        };
        server.initialize();
        Ok(server)
    }

    fn initialize(&self) {
        let mut initdb = self.command("initdb");
        initdb.args([
            "--pgdata=disk/data",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ]);
        initdb.args([
            "--no-sync",
            "--no-instructions",
            "--wal-segsize=1",
            "--username=postgres",
        ]);
        succeed(&mut initdb, &self.folder);
        let settings = format!(
            "unix_socket_directories = '{}'\nlisten_addresses = ''\nfsync = off\nshared_buffers = 16MB\n\
             min_wal_size = 2MB\nmax_wal_size = 16MB\nsuperuser_reserved_connections = 3\nmax_worker_processes = 2\n",
            self.folder.display()
        );
        let path = self.folder.join("disk/data/postgresql.conf");
        let mut text = fs::read_to_string(&path).expect("the settings can be read");
        text.push_str(&settings);
        fs::write(path, text).expect("the settings can be written");
        self.resume(&[]);
        self.execute(&format!("CREATE ROLE {ROLE} LOGIN"));
        self.execute(&format!(
            "CREATE DATABASE crawl OWNER {ROLE} TEMPLATE template0"
        ));
    }

    /// Returns the connection string of the crawl's database, for the crawl.
    pub(crate) fn uri(&self) -> String {
        format!("postgres://{ROLE}@/crawl?host={}", self.host())
    }

    /// Returns the connection string of the crawl's database for the superuser, who may connect when others may not.
    pub(crate) fn superuser_uri(&self) -> String {
        format!("postgres://postgres@/crawl?host={}", self.host())
    }

    /// Runs an SQL statement as the superuser.
    pub(crate) fn execute(&self, sql: &str) {
        let uri = format!("postgres://postgres@/postgres?host={}", self.host());
        store::testing::Cluster::execute(&uri, sql);
    }

    fn host(&self) -> String {
        self.folder.to_string_lossy().replace('/', "%2F")
    }

    /// Restarts the server as after a crash.
    pub(crate) fn crash_and_restart(&self) {
        self.control(&["restart", "--mode=immediate"], &[]);
    }

    /// Stops the server as by a crash.
    pub(crate) fn crash(&self) {
        self.control(&["stop", "--mode=immediate"], &[]);
    }

    /// Starts the server, with settings besides its own.
    pub(crate) fn resume(&self, settings: &[&str]) {
        self.control(&["start"], settings);
    }

    /// Returns whether the server runs.
    pub(crate) fn is_running(&self) -> bool {
        let status = self
            .command("pg_ctl")
            .args(["status", "--pgdata=disk/data"])
            .status();
        status.expect("pg_ctl runs").success()
    }

    /// Takes the room of the small disk but for `left_bytes`.
    pub(crate) fn fill_disk(&self, left_bytes: u64) {
        let mut filler = fs::File::create(self.filler()).expect("the disk is ours");
        while filler.write_all(&[0; 4_096]).is_ok() {}
        let taken = filler.metadata().expect("the file is ours").len();
        filler
            .set_len(taken.saturating_sub(left_bytes))
            .expect("the file is ours");
    }

    /// Gives the room back.
    pub(crate) fn clear_disk(&self) {
        fs::remove_file(self.filler()).expect("it is there");
    }

    /// Returns whether the server's log has these words.
    pub(crate) fn has_logged(&self, words: &str) -> bool {
        fs::read_to_string(self.folder.join("log")).is_ok_and(|log| log.contains(words))
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("disk/filler")
    }

    fn control(&self, words: &[&str], settings: &[&str]) {
        let mut pg_ctl = self.command("pg_ctl");
        pg_ctl
            .args(words)
            .args(["--pgdata=disk/data", "--wait", "--silent", "--log=log"]);
        for setting in settings {
            pg_ctl.arg(format!("--options=-c {setting}"));
        }
        succeed(&mut pg_ctl, &self.folder);
    }

    /// Makes a command that runs within the folder, as the unprivileged user if there is one.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .env_remove("PGDATA")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

fn succeed(command: &mut Command, folder: &Path) {
    let status = command.status().expect("the program runs");
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert!(
        status.success(),
        "{command:?} failed; the server's log:\n{log}"
    );
}

fn mount(folder: &Path) -> Result<(), String> {
    let mut mount = Command::new("mount");
    mount.args([
        "-t",
        "tmpfs",
        "-o",
        &format!("size={SMALL_DISK_MIB}m"),
        "tmpfs",
    ]);
    let output = mount.arg(folder).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("mount cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// Returns the folder of `PostgreSQL`'s programs: of the PATH, else Debian's newest.
fn find_programs() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<(u32, PathBuf)> = installed
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    folders.extend(versions.into_iter().rev().map(|(_, bin)| bin));
    let has_all = |bin: &PathBuf| bin.join("pg_ctl").is_file() && bin.join("initdb").is_file();
    folders
        .into_iter()
        .find(has_all)
        .expect("PostgreSQL is installed (Debian's package postgresql)")
}

/// Returns whom the server is to run as, when this process runs as root, which the server refuses.
fn unprivileged_user(folder: &Path) -> Option<(u32, u32)> {
    if fs::metadata(folder).is_ok_and(|metadata| metadata.uid() != 0) {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then_some(())?;
            Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
        })
    };
    Some(
        find("postgres")
            .or_else(|| find("nobody"))
            .unwrap_or((65_534, 65_534)),
    )
}
