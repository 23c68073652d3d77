//! A throw-away `PostgreSQL` cluster for tests: one a test binary, a fresh database a test, nothing left behind.
//!
//! The server listens on a socket in its own temporary folder, and on no network. A shell holds the server and the end
//! of a pipe that the test process never writes to: when the process ends, however it ends, the pipe closes, and the
//! shell stops the server and removes the folder.

use std::{
    env, fs, io,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio_postgres::NoTls;

const START_WAIT: Duration = Duration::from_mins(1);
const SUPERUSER: &str = "bloomcrawl";

/// A running cluster.
pub struct Cluster {
    folder: PathBuf,
    database_count: AtomicU32,
    /// Holds the pipe; stopping the server is the shell's part.
    _guard: Child,
}

/// Why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The server's programs were not found.
    #[error(
        "PostgreSQL is not installed: initdb and postgres are neither on the PATH nor in /usr/lib/postgresql/*/bin; \
         install Debian's package `postgresql` (apt-get install postgresql)"
    )]
    NotInstalled,
    /// Something about its folder or its processes.
    #[error("cannot {0}: {1}")]
    Io(&'static str, #[source] io::Error),
    /// The server was not made, or did not answer in time.
    #[error("PostgreSQL did not start; its last words:\n{0}")]
    Start(String),
}

impl Cluster {
    /// Returns the cluster of this process, started on the first call.
    ///
    /// # Panics
    ///
    /// Panics when it cannot be started, with the reason; [`ClusterError::NotInstalled`] names the package to install.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start().unwrap_or_else(|error| panic!("{error}")))
    }

    /// Starts a cluster of its own with the least memory; it ends with the process, or when the value is dropped.
    ///
    /// # Errors
    ///
    /// Returns why it did not start.
    pub fn start() -> Result<Self, ClusterError> {
        Self::start_with(&[])
    }

    /// Starts a cluster as [`Cluster::start`] does, with settings of the server (`name=value`) that go before its own.
    ///
    /// # Errors
    ///
    /// Returns why it did not start.
    pub fn start_with(settings: &[&str]) -> Result<Self, ClusterError> {
        let programs = find_programs().ok_or(ClusterError::NotInstalled)?;
        let folder = socket_folder();
        fs::create_dir(&folder)
            .map_err(|error| ClusterError::Io("create a temporary folder", error))?;
        let user = unprivileged_user(&folder);
        let guarded = prepare_folder(&folder, user)
            .and_then(|()| spawn_guarded(&programs, &folder, user, settings));
        let guard = guarded.inspect_err(|_| {
            let _ = fs::remove_dir_all(&folder);
        })?;
        let cluster = Self {
            folder,
            database_count: AtomicU32::new(0),
            _guard: guard,
        };
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    /// Creates an empty database and returns its connection string.
    ///
    /// # Panics
    ///
    /// Panics when the server refuses.
    #[must_use]
    pub fn create_database(&self) -> String {
        let name = format!(
            "test_{}",
            self.database_count.fetch_add(1, Ordering::Relaxed)
        );
        // The template is copied by file operations, which is quicker than the log where nothing is flushed.
        Self::execute(
            &self.uri("postgres"),
            &format!(
                "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' STRATEGY file_copy"
            ),
        );
        self.uri(&name)
    }

    /// Runs SQL text, which may hold several statements, on a connection of its own; for what a test has to set up or
    /// to spoil behind the store's back.
    ///
    /// # Panics
    ///
    /// Panics when the server refuses.
    pub fn execute(uri: &str, sql: &str) {
        on_a_thread_of_its_own(uri, async |client| client.batch_execute(sql).await);
    }

    /// Returns the first column of the first row that `sql` answers with, as a `bigint`.
    ///
    /// # Panics
    ///
    /// Panics when the server refuses, or answers with anything else.
    #[must_use]
    pub fn query_i64(uri: &str, sql: &str) -> i64 {
        on_a_thread_of_its_own(uri, async |client| {
            client.query_one(sql, &[]).await?.try_get(0)
        })
    }

    /// Returns the connection string of a database.
    fn uri(&self, database: &str) -> String {
        let mut socket_folder = String::new();
        for byte in self.folder.to_string_lossy().bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
                socket_folder.push(char::from(byte));
            } else {
                socket_folder.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            }
        }
        format!("postgres://{SUPERUSER}@/{database}?host={socket_folder}")
    }

    fn wait_until_ready(&self) -> Result<(), ClusterError> {
        let deadline = Instant::now() + START_WAIT;
        let uri = self.uri("postgres");
        loop {
            let answer = try_on_a_thread_of_its_own(&uri, async |client| {
                client.batch_execute("SELECT 1").await
            });
            if answer.is_ok() {
                return Ok(());
            }
            if self.folder.join("failed").exists() || Instant::now() >= deadline {
                return Err(ClusterError::Start(last_words(&self.folder)));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn on_a_thread_of_its_own<T: Send>(
    uri: &str,
    call: impl AsyncFnOnce(&tokio_postgres::Client) -> Result<T, tokio_postgres::Error> + Send,
) -> T {
    try_on_a_thread_of_its_own(uri, call).unwrap_or_else(|error| {
        panic!(
            "{uri}: {error} {}",
            error.as_db_error().map_or("", |answer| answer.message())
        )
    })
}

/// Connects and calls `call` from a new thread, so that tests within a runtime can use it as well.
fn try_on_a_thread_of_its_own<T: Send>(
    uri: &str,
    call: impl AsyncFnOnce(&tokio_postgres::Client) -> Result<T, tokio_postgres::Error> + Send,
) -> Result<T, tokio_postgres::Error> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap_or_else(|error| panic!("no runtime for a test's connection: {error}"));
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(uri, NoTls).await?;
                tokio::spawn(connection);
                call(&client).await
            })
        });
        worker
            .join()
            .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    })
}

/// The two programs of one installation.
struct Programs {
    initdb: PathBuf,
    postgres: PathBuf,
}

fn find_programs() -> Option<Programs> {
    let on_path = env::var_os("PATH")
        .into_iter()
        .flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let mut installed: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    installed.sort();
    let newest_first = installed.into_iter().rev().map(|(_, folder)| folder);
    on_path
        .chain(newest_first)
        .map(|folder| Programs {
            initdb: folder.join("initdb"),
            postgres: folder.join("postgres"),
        })
        .find(|programs| programs.initdb.is_file() && programs.postgres.is_file())
}

/// Returns a new folder's path, short enough for the path of a socket in it (107 bytes).
fn socket_folder() -> PathBuf {
    let name = format!("bloomcrawl-pg-{:016x}", fastrand::u64(..));
    let folder = env::temp_dir().join(&name);
    if folder.as_os_str().len() < 80 {
        folder
    } else {
        Path::new("/tmp").join(name)
    }
}

/// Returns the digit of a number below 16.
fn hex_digit(number: u8) -> char {
    char::from_digit(u32::from(number), 16)
        .unwrap_or('0')
        .to_ascii_uppercase()
}

/// A user and its group, by number.
type User = (u32, u32);

/// Returns whom the server is to run as, when this process runs as root, which the server refuses.
fn unprivileged_user(folder: &Path) -> Option<User> {
    let is_root = fs::metadata(folder).is_ok_and(|metadata| metadata.uid() == 0);
    if !is_root {
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
    // Where neither is listed, the traditional numbers of nobody serve.
    Some(
        find("postgres")
            .or_else(|| find("nobody"))
            .unwrap_or((65_534, 65_534)),
    )
}

fn prepare_folder(folder: &Path, user: Option<User>) -> Result<(), ClusterError> {
    use std::os::unix::fs::{PermissionsExt, chown};
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        .map_err(|error| ClusterError::Io("close the temporary folder to others", error))?;
    if let Some((uid, gid)) = user {
        chown(folder, Some(uid), Some(gid)).map_err(|error| {
            ClusterError::Io("give the temporary folder to an unprivileged user", error)
        })?;
    }
    Ok(())
}

/// Makes a command that runs within the folder, as the unprivileged user if there is one, away from the terminal's
/// process group.
fn command(program: impl AsRef<std::ffi::OsStr>, folder: &Path, user: Option<User>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .process_group(0)
        .env("LC_ALL", "C")
        .env_remove("PGDATA");
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// The shell that outlives the test process: it makes and starts the server, waits for the pipe to close, and cleans
/// up. A signal that comes too early for the server is lost, so it is repeated until the server is gone.
const GUARD: &str = r#"
trap : HUP INT TERM
server=
if "$INITDB" --pgdata=data --auth=trust --encoding=UTF8 --locale=C --no-sync --no-instructions \
    --username="$SUPERUSER" </dev/null >log 2>&1
then
    "$@" </dev/null >>log 2>&1 &
    server=$!
else
    : >failed
fi
cat >/dev/null
while [ -n "$server" ] && kill -QUIT "$server" 2>/dev/null; do sleep 0.1; done
cd / && rm -rf "$FOLDER"
"#;

fn spawn_guarded(
    programs: &Programs,
    folder: &Path,
    user: Option<User>,
    settings: &[&str],
) -> Result<Child, ClusterError> {
    let mut shell = command("sh", folder, user);
    shell
        .env("FOLDER", folder)
        .env("INITDB", &programs.initdb)
        .env("SUPERUSER", SUPERUSER);
    shell
        .args(["-c", GUARD, "sh"])
        .arg(&programs.postgres)
        .args(["-D", "data"]);
    let mut socket_setting = std::ffi::OsString::from("unix_socket_directories=");
    socket_setting.push(folder);
    shell.arg("-c").arg(socket_setting);
    let own = [
        "listen_addresses=",
        "fsync=off",
        "full_page_writes=off",
        "shared_buffers=16MB",
        "max_connections=200",
        "max_wal_size=256MB",
        "jit=off",
        "log_min_messages=error",
    ];
    // Of two values of one setting the server takes the last.
    for setting in own.iter().chain(settings) {
        shell.args(["-c", setting]);
    }
    shell
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| ClusterError::Io("run sh", error))
}

fn last_words(folder: &Path) -> String {
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
