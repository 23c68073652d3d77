//! The fetcher: one URL in, one outcome out.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use http::{HeaderValue, Version};
use tokio::time::{Instant, sleep_until, timeout};
use types::{
    CanonicalUrl, FailureKind, FetchFailure, FetchOutcome, Headers, Host, HttpVersion, Redirect,
    Resolution, Response, Timings, Truncation,
};

use crate::{
    FetchConfig, FetcherError,
    address::RefusedAddress,
    body::{BodyLimits, ReadBody, read_body},
    budget::{BodyBudget, BodyHold},
    failure::{failure, request_failure},
    names::NameCache,
    probe::{ConnectProbe, Phase},
    request,
    route::{Route, Routes, Way},
};

/// Bytes of a `Location` that is followed; a longer one could not become a canonical URL.
const LOCATION_BYTES_MAX: usize = 16 << 10;

/// A server that waited for us so long may have closed for that: below any server's time limit for a write.
const KEPT_WAITING_MIN: Duration = Duration::from_secs(1);

/// Fetches URLs. Cheap to clone; clones share connections and cached names.
///
/// Must be used within a tokio runtime with time and I/O enabled.
#[derive(Clone, Debug)]
pub struct Fetcher {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: FetchConfig,
    user_agent: HeaderValue,
    routes: Routes,
    bodies: BodyBudget,
}

/// What came of a request, and the memory that it takes.
#[derive(Debug)]
pub struct Fetched {
    /// What came of it.
    pub outcome: FetchOutcome,
    /// The body's part of the memory of all bodies; to be dropped with the body. `None` where there is no body.
    pub hold: Option<BodyHold>,
}

/// A response head and when it came.
struct Arrived {
    response: reqwest::Response,
    started: Instant,
    deadline: Instant,
}

impl Fetcher {
    /// Makes a fetcher.
    ///
    /// # Errors
    ///
    /// Returns which setting cannot be used, and why.
    pub fn new(config: FetchConfig) -> Result<Self, FetcherError> {
        let is_sendable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        let agent = config.user_agent.as_str();
        let user_agent = HeaderValue::from_str(agent)
            .ok()
            .filter(|_| !agent.trim().is_empty() && agent.bytes().all(is_sendable))
            .ok_or_else(|| FetcherError::UserAgent {
                text: agent.to_owned(),
            })?;
        let names = Arc::new(NameCache::new(config.dns_ttl, config.dns_entries_max));
        let routes = Routes::new(&config, &names)?;
        let bodies = BodyBudget::new(
            config.body_free_bytes,
            config.bodies_bytes_max,
            config.wire_bytes_max,
        );
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                user_agent,
                routes,
                bodies,
            }),
        })
    }

    /// Sends one GET request and reads the response within the limits. Redirects are returned, not followed.
    ///
    /// A request whose kept-alive connection died before the response head is sent once more. A body that is longer than
    /// [`FetchConfig::body_free_bytes`] is read on when there is memory for it; until then no time-out of it runs.
    pub async fn fetch(&self, url: &CanonicalUrl) -> Fetched {
        let mut hold = self.inner.bodies.begin();
        let received = match self.inner.send(url).await {
            Ok(arrived) => self.inner.receive(url, arrived, &mut hold).await,
            Err(failure) => Err(failure),
        };
        match received {
            Ok(outcome) => Fetched {
                outcome,
                hold: Some(hold),
            },
            Err(failure) => Fetched {
                outcome: FetchOutcome::Failed(failure),
                hold: None,
            },
        }
    }

    /// Returns the most bytes that bodies took of [`FetchConfig::bodies_bytes_max`] and the reserve at one time.
    #[must_use]
    pub fn bodies_bytes_peak(&self) -> usize {
        self.inner.bodies.peak_bytes()
    }

    /// Returns how many bodies wait for memory now.
    #[must_use]
    pub fn bodies_waiting_count(&self) -> usize {
        self.inner.bodies.waiting_count()
    }

    /// Says which address connections to a host will go to.
    pub async fn resolve(&self, host: &Host) -> Resolution {
        self.inner
            .resolve(host)
            .await
            .unwrap_or_else(Resolution::Failed)
    }
}

/// Stands for the proxy where its address counts: all hosts behind it share the limit of one address.
const PROXY_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl Inner {
    async fn resolve(&self, host: &Host) -> Result<Resolution, FetchFailure> {
        let exempts = self.config.exempts_own_addresses;
        let address = match self.routes.way(host)? {
            Way::Proxied | Way::Pinned(_) if exempts => return Ok(Resolution::Exempt),
            Way::Proxied => PROXY_ADDRESS,
            Way::Literal(address) => address,
            Way::Pinned(carrier) | Way::Named(carrier) => {
                let looking = timeout(
                    self.config.connect_timeout,
                    carrier.resolver.addresses(host.name()),
                );
                let found = looking.await.map_err(|_| {
                    failure(FailureKind::Dns, "no answer within the connect timeout")
                })?;
                let found = found.map_err(|error| {
                    let is_refused = error.is::<RefusedAddress>();
                    failure(
                        if is_refused {
                            FailureKind::AddressRefused
                        } else {
                            FailureKind::Dns
                        },
                        &error.to_string(),
                    )
                })?;
                first(&found)?
            }
        };
        // The same machine, whichever way the address is written, has one limit.
        let address = address.to_canonical();
        Ok(if exempts && address.is_loopback() {
            Resolution::Exempt
        } else {
            Resolution::Address(address)
        })
    }

    /// Sends the request, a second time if only a kept-alive connection had died.
    async fn send(&self, url: &CanonicalUrl) -> Result<Arrived, FetchFailure> {
        let route = self.routes.route(url)?;
        let started = Instant::now();
        let deadline = started + self.config.total_timeout;
        let mut is_retry = false;
        loop {
            let probe = Arc::<ConnectProbe>::default();
            match self.send_once(&route, deadline, &probe).await {
                Ok(response) => {
                    return Ok(Arrived {
                        response,
                        started,
                        deadline,
                    });
                }
                Err(failure) => {
                    let has_died =
                        failure.kind == FailureKind::Disconnected && probe.phase() == Phase::Reused;
                    if is_retry || !has_died {
                        return Err(failure);
                    }
                    is_retry = true;
                }
            }
        }
    }

    /// Sends the request and waits for the response head: so long as connecting takes, which has its own limit, and
    /// then at most the read timeout.
    async fn send_once(
        &self,
        route: &Route<'_>,
        deadline: Instant,
        probe: &Arc<ConnectProbe>,
    ) -> Result<reqwest::Response, FetchFailure> {
        let fields = request::fields(&self.user_agent, route.host_field.as_ref());
        let request = route.client.get(route.url.clone()).headers(fields);
        let sending = Arc::clone(probe).watch(request.send());
        tokio::pin!(sending);
        let sent = Instant::now();
        loop {
            let until = match probe.phase() {
                Phase::Connecting => deadline,
                Phase::Reused => deadline.min(sent + self.config.read_timeout),
                Phase::Connected(since) => deadline.min(since + self.config.read_timeout),
            };
            tokio::select! {
                biased;
                answer = &mut sending => return answer.map_err(|error| request_failure(&error)),
                () = probe.changed() => {}
                () = sleep_until(until) => {
                    let (kind, detail) = if until == deadline {
                        (FailureKind::TotalTimeout, "no response head within the total timeout")
                    } else {
                        (FailureKind::ReadTimeout, "no byte of a response within the read timeout")
                    };
                    return Err(failure(kind, detail));
                }
            }
        }
    }

    /// Reads the rest of a response and sorts it.
    async fn receive(
        &self,
        url: &CanonicalUrl,
        arrived: Arrived,
        hold: &mut BodyHold,
    ) -> Result<FetchOutcome, FetchFailure> {
        let Arrived {
            mut response,
            started,
            deadline,
        } = arrived;
        let first_byte = started.elapsed();
        let headers = headers_of(&response);
        let head_bytes = head_bytes(&headers);
        if head_bytes > self.config.head_bytes_max {
            let detail = format!(
                "{head_bytes} bytes of header, the limit is {}",
                self.config.head_bytes_max
            );
            return Err(failure(FailureKind::HeadersTooLarge, &detail));
        }
        let limits = BodyLimits {
            wire_bytes_max: self.config.wire_bytes_max,
            read_timeout: self.config.read_timeout,
            deadline,
        };
        let ReadBody {
            bytes: wire_body,
            truncation,
            waited,
        } = read_body(&mut response, limits, hold).await?;
        // A server that was kept waiting may close. The page is not cut for that.
        let is_our_fault = waited >= KEPT_WAITING_MIN.min(self.config.read_timeout);
        if truncation == Some(Truncation::Disconnect) && is_our_fault {
            return Err(failure(
                FailureKind::KeptWaiting,
                "the connection ended while the body waited for memory",
            ));
        }
        let response = Response {
            status: response.status().as_u16(),
            version: version_of(response.version()),
            headers,
            wire_body,
            truncation,
            request_head: request::head(url, &self.config.user_agent),
            address: response.remote_addr(),
            timings: Timings {
                first_byte,
                total: started.elapsed(),
            },
        };
        Ok(match location_of(&response) {
            Some(location) => FetchOutcome::Redirect(Redirect { response, location }),
            None => FetchOutcome::Response(response),
        })
    }
}

fn first(found: &[IpAddr]) -> Result<IpAddr, FetchFailure> {
    found
        .first()
        .copied()
        .ok_or_else(|| failure(FailureKind::Dns, "the name has no address"))
}

fn headers_of(response: &reqwest::Response) -> Headers {
    let fields = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
    Headers::new(fields.collect())
}

/// Returns the size of a head's fields as HTTP/1.1 would write them.
fn head_bytes(headers: &Headers) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum()
}

fn version_of(version: Version) -> HttpVersion {
    match version {
        Version::HTTP_2 | Version::HTTP_3 => HttpVersion::Http2,
        Version::HTTP_11 => HttpVersion::Http11,
        _ => HttpVersion::Http10,
    }
}

/// Returns where a redirect points. `None` for all else, and for a target too long to be one.
fn location_of(response: &Response) -> Option<String> {
    if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let bytes = response
        .headers
        .get("location")
        .filter(|bytes| bytes.len() <= LOCATION_BYTES_MAX)?;
    Some(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    })
}
