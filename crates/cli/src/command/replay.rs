//! `bloomcrawl replay`: serves WARC files on loopback until Ctrl-C.

use std::{
    collections::{BTreeMap, BTreeSet},
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
use types::{CanonicalUrl, Canonicalizer};

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
    let seeds = held_pages(&archive);
    if let Some(path) = &command.seeds_out {
        write_seeds(path, &seeds)?;
    }
    let ports = Ports::of(&seeds);
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
    drive::stop_requests()?;
    printer::data(&text)?;
    let seeds_file = command.seeds_out.as_deref();
    printer.message(if seeds_file.is_some() {
        "serving until Ctrl-C; crawl it with"
    } else {
        "serving until Ctrl-C; crawl it with (--seeds-out FILE writes the URLs that are held)"
    });
    printer.message(&hint(&server, &ports, &command.ca_out, seeds_file));

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

/// Returns the URLs that are held, canonical and each once, in the order of the files. `robots.txt` is no page.
fn held_pages(archive: &Archive) -> Vec<CanonicalUrl> {
    let canonicalizer = Canonicalizer::default();
    let mut seen = BTreeSet::new();
    archive
        .urls()
        .filter_map(|url| canonicalizer.canonicalize(url).ok())
        .filter(|url| {
            let path = url.as_str().strip_prefix(url.host().as_str());
            path != Some("/robots.txt") && seen.insert(url.clone())
        })
        .collect()
}

fn write_seeds(path: &Path, seeds: &[CanonicalUrl]) -> Result<(), Failure> {
    let mut text = String::new();
    for url in seeds {
        text.push_str(url.as_str());
        text.push('\n');
    }
    fs::write(path, text).map_err(|error| {
        Failure::new(
            Exit::Usage,
            format!("the seeds cannot be written to {}: {error}", path.display()),
        )
        .with_hint("--seeds-out names another file")
    })
}

/// The ports that URLs are held of, beside the default ones, each with its hosts and whether they speak https.
struct Ports(BTreeMap<u16, BTreeMap<String, bool>>);

impl Ports {
    fn of(urls: &[CanonicalUrl]) -> Self {
        let mut ports: BTreeMap<u16, BTreeMap<String, bool>> = BTreeMap::new();
        for url in urls {
            let host = url.host();
            ports
                .entry(host.port())
                .or_default()
                .insert(host.name().to_owned(), host.is_https());
        }
        Self(ports)
    }

    /// Returns the rules that send every URL to the server of its scheme; a port that both schemes use needs a rule for each
    /// host. The last is for all that is left, which pages may lead to: whatever its scheme, it must not leave this machine.
    fn rules(&self, http: SocketAddr, https: Option<SocketAddr>) -> Vec<String> {
        let server_of = |is_https: bool| if is_https { https } else { Some(http) };
        let mut rules = Vec::new();
        for (port, hosts) in &self.0 {
            let is_mixed = hosts.values().any(|is_https| *is_https)
                && hosts.values().any(|is_https| !*is_https);
            for (host, is_https) in hosts {
                let Some(address) = server_of(*is_https).map(reachable) else {
                    continue;
                };
                let host = if is_mixed { host.as_str() } else { "" };
                rules.push(format!("{host}:{port}:{address}"));
                if !is_mixed {
                    break;
                }
            }
        }
        for (port, address) in [(80, server_of(false)), (443, server_of(true))] {
            if let Some(address) = address
                && !self.0.contains_key(&port)
            {
                rules.push(format!(":{port}:{}", reachable(address)));
            }
        }
        rules.push(format!("::{}", reachable(http)));
        rules
    }
}

/// Returns a command that crawls what is served.
fn hint(server: &Server, ports: &Ports, ca_file: &Path, seeds_file: Option<&Path>) -> String {
    let shown = |path: &Path| quoted(&path.display().to_string());
    let seeds = seeds_file.map_or_else(|| "SEEDS".to_owned(), shown);
    let mut command = format!("bloomcrawl crawl {seeds} --delay 0");
    for rule in ports.rules(server.http_address(), server.https_address()) {
        // Writing to a string does not fail.
        let _ = write!(command, " --connect-to {}", quoted(&rule));
    }
    let _ = write!(command, " --ca-file {}", shown(ca_file));
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
    fn every_port_that_is_held_has_a_rule_to_the_server_of_its_scheme() {
        let rules = |texts: &[&str]| {
            let urls: Vec<CanonicalUrl> = texts
                .iter()
                .map(|text| {
                    Canonicalizer::default()
                        .canonicalize(text)
                        .expect("the test's own URL")
                })
                .collect();
            Ports::of(&urls).rules(
                "127.0.0.1:1".parse().expect("an address"),
                Some("127.0.0.1:2".parse().expect("an address")),
            )
        };
        assert_eq!(
            rules(&[]),
            [":80:127.0.0.1:1", ":443:127.0.0.1:2", "::127.0.0.1:1"]
        );
        assert_eq!(
            rules(&[
                "http://a.example/",
                "http://b.example/",
                "https://a.example:8443/",
                "http://c.example:8000/"
            ]),
            [
                ":80:127.0.0.1:1",
                ":8000:127.0.0.1:1",
                ":8443:127.0.0.1:2",
                ":443:127.0.0.1:2",
                "::127.0.0.1:1"
            ]
        );
        assert_eq!(
            rules(&["http://a.example:9000/", "https://b.example:9000/"]),
            [
                "a.example:9000:127.0.0.1:1",
                "b.example:9000:127.0.0.1:2",
                ":80:127.0.0.1:1",
                ":443:127.0.0.1:2",
                "::127.0.0.1:1"
            ]
        );
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
