//! A set in Redis, for reference: a server of its own on a loopback port, spoken to in its protocol by hand.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use tempfile::TempDir;
use types::CanonicalUrl;

use super::{
    article::{Outside, Went},
    meter::ServerProcess,
};

/// How long the server may take to answer.
const START_WAIT: Duration = Duration::from_secs(20);

/// A running server; it is killed when this is dropped.
pub struct RedisServer {
    child: Child,
    port: u16,
    _folder: TempDir,
}

/// Returns the server's program, if it is on the PATH.
#[must_use]
pub fn find_program() -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join("redis-server"))
        .find(|path| path.is_file())
}

impl RedisServer {
    /// Starts a server that keeps everything in memory.
    ///
    /// # Errors
    ///
    /// Fails when it does not start or does not answer in time.
    pub fn start() -> Result<Self> {
        let program = find_program().context("redis-server is not on the PATH")?;
        let folder = TempDir::new().context("no temporary folder for redis-server")?;
        // Whoever takes the port in between makes the start fail, and nothing else.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args([
                "--save",
                "",
                "--appendonly",
                "no",
                "--daemonize",
                "no",
                "--dir",
            ])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("redis-server cannot be run")?;
        let server = Self {
            child,
            port,
            _folder: folder,
        };
        let deadline = Instant::now() + START_WAIT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(Instant::now() < deadline, "redis-server does not answer");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Returns the server's process.
    #[must_use]
    pub fn process(&self) -> ServerProcess {
        ServerProcess::new(self.child.id())
    }

    /// Adds link after link to a set, on `connection_count` connections with a thread each. With `is_pipelined` the
    /// links of a page are sent together, else each is awaited.
    ///
    /// # Errors
    ///
    /// Fails when the server breaks off or answers anything but numbers.
    pub fn add(
        &self,
        outside: &Outside<'_>,
        connection_count: usize,
        is_pipelined: bool,
    ) -> Result<Went> {
        let round_trips = AtomicU64::new(0);
        let start = Instant::now();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..connection_count)
                .map(|_| {
                    scope.spawn(|| {
                        let mut connection = Connection::new(self.port)?;
                        while let Some(links) = outside.next_page() {
                            let group = if is_pipelined { links.len() } else { 1 };
                            for links in links.chunks(group.max(1)) {
                                round_trips.fetch_add(1, Relaxed);
                                connection.add(links, outside)?;
                            }
                        }
                        anyhow::Ok(())
                    })
                })
                .collect();
            for thread in threads {
                thread
                    .join()
                    .map_err(|_| anyhow!("a connection's thread panicked"))??;
            }
            Ok(Went {
                link_count: outside.taken(),
                round_trips: round_trips.load(Relaxed),
                wall_seconds: start.elapsed().as_secs_f64(),
            })
        })
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    answer: String,
}

impl Connection {
    fn new(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            request: Vec::new(),
            answer: String::new(),
        })
    }

    /// Sends links in one piece and reads the answer to each: 1 if it was new.
    fn add(&mut self, links: &[(CanonicalUrl, u64)], outside: &Outside<'_>) -> Result<()> {
        self.request.clear();
        for (url, _) in links {
            command(&mut self.request, url.as_str());
        }
        self.stream.get_mut().write_all(&self.request)?;
        for (_, slot) in links {
            self.answer.clear();
            self.stream.read_line(&mut self.answer)?;
            match self.answer.as_str() {
                ":1\r\n" => outside.truth.admit(Some(*slot)),
                ":0\r\n" => {}
                other => return Err(anyhow!("redis-server answered {other:?}")),
            }
        }
        Ok(())
    }
}

/// Appends `SADD seen MEMBER` as the protocol wants it: an array of strings with their lengths.
fn command(request: &mut Vec<u8>, member: &str) {
    let head = format!("*3\r\n$4\r\nSADD\r\n$4\r\nseen\r\n${}\r\n", member.len());
    request.extend_from_slice(head.as_bytes());
    request.extend_from_slice(member.as_bytes());
    request.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn a_command_is_an_array_of_counted_strings() {
        let mut request = Vec::new();
        command(&mut request, "http://a/");
        assert_eq!(
            request,
            b"*3\r\n$4\r\nSADD\r\n$4\r\nseen\r\n$9\r\nhttp://a/\r\n"
        );
    }
}
