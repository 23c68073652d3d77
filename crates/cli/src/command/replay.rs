//! `bloomcrawl replay`: serves WARC files on loopback until Ctrl-C.

use std::{
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::Write as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use replay::{Archive, Server, ServerConfig, Site, SiteAnswer, SiteRequest};

use super::drive;
use crate::{
    clean::clean,
    failure::{Exit, Failure, chain},
    flags::ReplayCommand,
    printer::{self, Printer, Verbosity},
};

/// How often Ctrl-C is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The longest URL written to the log, in characters.
const LOGGED_CHARS_MAX: usize = 16_384;

/// Runs the command.
pub(super) fn run(command: &ReplayCommand) -> Result<Exit, Failure> {
    let printer = Printer {
        verbosity: Verbosity::Normal,
    };
    drive::stop_requests()?;
    let archive =
        Archive::load(&command.files).map_err(|error| Failure::new(Exit::Usage, chain(&error)))?;
    for damage in archive.damages() {
        printer.warning(&format!(
            "{}: {}; what came before is served",
            damage.path.display(),
            chain(&damage.error)
        ));
    }
    let url_count = archive.len();
    let site: Arc<dyn Site> = match &command.log {
        Some(path) => Arc::new(LoggedSite::new(archive, path)?),
        None => Arc::new(archive),
    };
    let config = ServerConfig {
        http: command.listen,
        https: Some(command.https_listen),
        ..ServerConfig::default()
    };
    let server = Server::start(config, site).map_err(|error| {
        Failure::new(Exit::Usage, chain(&error))
            .with_hint("--listen and --https-listen take free addresses of this machine")
    })?;
    write_certificate(&command.ca_out, server.ca_pem())?;

    let mut text = format!("http {}\n", server.http_address());
    // Writing to a string does not fail.
    if let Some(address) = server.https_address() {
        let _ = writeln!(text, "https {address}");
    }
    let _ = writeln!(text, "ca {}\nurls {url_count}", command.ca_out.display());
    printer::data(&text)?;
    printer.message("serving until Ctrl-C; crawl it with");
    printer.message(&hint(&server, &command.ca_out));

    while drive::stop_requests()? == 0 {
        thread::sleep(POLL_INTERVAL);
    }
    Ok(Exit::Done)
}

fn write_certificate(path: &Path, pem: &str) -> Result<(), Failure> {
    fs::write(path, pem).map_err(|error| {
        Failure::new(
            Exit::Usage,
            format!(
                "the certificate cannot be written to {}: {error}",
                path.display()
            ),
        )
        .with_hint("--ca-out names another file")
    })
}

/// Returns a command that crawls what is served. A rule without a port would send https to the http server as well.
fn hint(server: &Server, ca_file: &Path) -> String {
    let mut command = "bloomcrawl crawl SEEDS".to_owned();
    let mut add = |port: u16, address: SocketAddr| {
        // Writing to a string does not fail.
        let _ = write!(command, " --connect-to :{port}:{}", reachable(address));
    };
    add(80, server.http_address());
    if let Some(address) = server.https_address() {
        add(443, address);
    }
    let _ = write!(
        command,
        " --ca-file {}",
        quoted(&ca_file.display().to_string())
    );
    command
}

/// An address that listens on all interfaces is reached by loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Quotes an argument for a POSIX shell where needed.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

/// A site whose requests are logged as they are answered.
struct LoggedSite<S> {
    site: S,
    begun: Instant,
    log: Mutex<File>,
}

impl<S> LoggedSite<S> {
    fn new(site: S, path: &Path) -> Result<Self, Failure> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|error| {
                Failure::new(
                    Exit::Usage,
                    format!("the log {} cannot be written: {error}", path.display()),
                )
            })?;
        Ok(Self {
            site,
            begun: Instant::now(),
            log: Mutex::new(log),
        })
    }
}

impl<S: Site> Site for LoggedSite<S> {
    fn answer(&self, request: &SiteRequest<'_>) -> SiteAnswer {
        let answer = self.site.answer(request);
        let entry = serde_json::json!({
            "ms": u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "method": request.method.to_string(),
            "url": clean(&request.url(), LOGGED_CHARS_MAX),
            "status": answer.status,
        });
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // One write a line keeps lines whole; a full disk must not end the service.
        let _ = log.write_all(format!("{entry}\n").as_bytes());
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quoted("a/b-c_d.pem"), "a/b-c_d.pem");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_listener_on_all_interfaces_is_reached_by_loopback() {
        for (listens, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:443", "[::1]:443"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
        ] {
            let address = listens.parse().expect("the test's own address");
            assert_eq!(reachable(address).to_string(), reached);
        }
    }
}
