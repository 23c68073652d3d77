//! Routes: which client a URL is sent with, under which URL, and whether it may be sent at all.

use std::net::IpAddr;

use http::HeaderValue;
use reqwest::Client;
use types::{CanonicalUrl, FailureKind, FetchFailure, Host};
use url::{Host as UrlHost, Url};

use crate::{
    ConnectTo, FetchConfig, FetcherError,
    address::{RefusedAddress, is_public_address},
    client::Carrier,
    connect_to::bare,
    failure::failure,
    names::NameCache,
};

/// Every way out: the ordinary one, and those of the connect-to rules.
#[derive(Debug)]
pub(crate) struct Routes {
    ordinary: Carrier,
    rules: Vec<(ConnectTo, Carrier)>,
    is_proxied: bool,
    allow_private_addresses: bool,
}

/// How one URL is sent.
#[derive(Debug)]
pub(crate) struct Route<'a> {
    /// The client to send it with.
    pub(crate) client: &'a Client,
    /// The URL that the client is given.
    pub(crate) url: Url,
    /// The `Host` field, where it is not the authority of `url`.
    pub(crate) host_field: Option<HeaderValue>,
}

/// How a host is reached.
#[derive(Debug)]
pub(crate) enum Way<'a> {
    /// By a proxy.
    Proxied,
    /// At an address that the user named; the carrier's resolver returns it.
    Pinned(&'a Carrier),
    /// At this address, as the URL says.
    Literal(IpAddr),
    /// At the addresses that the carrier's resolver returns.
    Named(&'a Carrier),
}

impl Routes {
    /// Builds the clients. Rules with the same target share theirs, connections included.
    pub(crate) fn new(
        config: &FetchConfig,
        names: &std::sync::Arc<NameCache>,
    ) -> Result<Self, FetcherError> {
        let mut rules: Vec<(ConnectTo, Carrier)> = Vec::with_capacity(config.connect_to.len());
        for rule in &config.connect_to {
            let twin = rules
                .iter()
                .find(|(other, _)| other.to_host == rule.to_host && other.to_port == rule.to_port)
                .map(|(_, carrier)| carrier.clone());
            let carrier = match twin {
                Some(carrier) => carrier,
                None => Carrier::to_target(config, names, rule.to_host.as_deref(), rule.to_port)?,
            };
            rules.push((rule.clone(), carrier));
        }
        Ok(Self {
            ordinary: Carrier::ordinary(config, names)?,
            rules,
            is_proxied: config.proxy.is_some(),
            allow_private_addresses: config.allow_private_addresses,
        })
    }

    fn rule_for(&self, host: &Host) -> Option<&(ConnectTo, Carrier)> {
        self.rules.iter().find(|(rule, _)| rule.matches(host))
    }

    /// Says how a host is reached, or that it must not be.
    pub(crate) fn way(&self, host: &Host) -> Result<Way<'_>, FetchFailure> {
        let rule = self.rule_for(host);
        if let Some((_, carrier)) = rule.filter(|(rule, _)| rule.to_host.is_some()) {
            return Ok(Way::Pinned(carrier));
        }
        let name = bare(host.name());
        let literal: Option<IpAddr> = name.parse().ok();
        if let Some(address) = literal {
            self.guard(name, address)?;
        }
        match (rule, literal) {
            (None, _) if self.is_proxied => {
                // The proxy resolves all other names; these are its own machine's by definition (RFC 6761, section 6.3).
                if name == "localhost" || name.ends_with(".localhost") {
                    self.guard(name, IpAddr::from([127, 0, 0, 1]))?;
                }
                Ok(Way::Proxied)
            }
            (_, Some(address)) => Ok(Way::Literal(address)),
            (Some((_, carrier)), None) => Ok(Way::Named(carrier)),
            (None, None) => Ok(Way::Named(&self.ordinary)),
        }
    }

    /// Refuses an address outside the public internet that the connector would not ask the resolver about.
    fn guard(&self, host: &str, address: IpAddr) -> Result<(), FetchFailure> {
        if self.allow_private_addresses || is_public_address(address) {
            return Ok(());
        }
        let refused = RefusedAddress {
            host: host.to_owned(),
            address,
        };
        Err(failure(FailureKind::AddressRefused, &refused.to_string()))
    }

    /// Finds the route of a URL.
    pub(crate) fn route(&self, url: &CanonicalUrl) -> Result<Route<'_>, FetchFailure> {
        let host = url.host();
        self.way(&host)?;
        let parsed = Url::parse(url.as_str()).map_err(|error| {
            failure(
                FailureKind::Protocol,
                &format!("the URL cannot be sent: {error}"),
            )
        })?;
        let Some((rule, carrier)) = self.rule_for(&host) else {
            return Ok(Route {
                client: &self.ordinary.client,
                url: parsed,
                host_field: None,
            });
        };
        let target = rewrite(rule, &parsed);
        match (&carrier.rewriting_client, target) {
            (Some(client), Some(target)) => {
                let host_field = HeaderValue::from_str(host.authority()).map_err(|error| {
                    failure(
                        FailureKind::Protocol,
                        &format!("the host cannot be sent: {error}"),
                    )
                })?;
                Ok(Route {
                    client,
                    url: target,
                    host_field: Some(host_field),
                })
            }
            _ => Ok(Route {
                client: &carrier.client,
                url: parsed,
                host_field: None,
            }),
        }
    }
}

/// Puts a rule's target into the URL where the resolver cannot: the connector asks it neither about IP literals nor
/// about explicit ports. `None` where the URL can stay.
///
/// TLS names the host of the URL, so a literal that is moved is verified under its new name.
fn rewrite(rule: &ConnectTo, url: &Url) -> Option<Url> {
    let mut target = url.clone();
    let is_literal = !matches!(url.host(), Some(UrlHost::Domain(_)));
    if is_literal && let Some(to_host) = &rule.to_host {
        match to_host.parse() {
            Ok(address) => target.set_ip_host(address).ok()?,
            Err(_) => target.set_host(Some(to_host)).ok()?,
        }
    }
    if let Some(to_port) = rule.to_port
        && (is_literal || url.port().is_some())
    {
        target.set_port(Some(to_port)).ok()?;
    }
    (target != *url).then_some(target)
}
