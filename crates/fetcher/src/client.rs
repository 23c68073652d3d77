//! The HTTP clients: one for ordinary connections, one pair for each target of a connect-to rule.

use std::sync::Arc;

use reqwest::{Certificate, Client, ClientBuilder, Proxy, redirect::Policy};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use crate::{FetchConfig, FetcherError, names::NameCache, probe::ProbeLayer, resolver::Resolver};

/// Header fields of one response head. Sites with more than the client's usual 100 exist.
const HEAD_FIELDS_MAX: usize = 256;

/// What a server may send of one HTTP/2 response before it is read, in bytes: a body that waits for memory takes no more.
/// The client's own 2 MiB would be most of the memory of a crawl with many connections.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;

/// Streams of one HTTP/2 connection that may all wait without holding up one another.
const WAITING_STREAMS_MAX: usize = 64;

/// The clients that carry requests the same way to the same place.
#[derive(Clone, Debug)]
pub(crate) struct Carrier {
    /// Speaks HTTP/1.1 or HTTP/2, as TLS negotiates.
    pub(crate) client: Client,
    /// Speaks HTTP/1.1 alone, for requests whose `Host` field differs from their URL: HTTP/2 has no room for both.
    pub(crate) rewriting_client: Option<Client>,
    /// Resolves names as the clients' connectors do.
    pub(crate) resolver: Resolver,
}

impl Carrier {
    /// Makes the ordinary carrier: through the proxy if there is one.
    pub(crate) fn ordinary(
        config: &FetchConfig,
        names: &Arc<NameCache>,
    ) -> Result<Self, FetcherError> {
        let proxy = config.proxy.as_deref().map(read_proxy).transpose()?;
        let resolver = Resolver {
            names: Arc::clone(names),
            to_host: None,
            to_port: 0,
            // With a proxy the connector resolves nothing but the proxy's name, which the user gave.
            is_guarded: proxy.is_none() && !config.allow_private_addresses,
        };
        let client = build(config, &resolver, |builder| match &proxy {
            Some(proxy) => builder.proxy(proxy.clone()),
            None => builder,
        })?;
        Ok(Self {
            client,
            rewriting_client: None,
            resolver,
        })
    }

    /// Makes the carrier to the target of a connect-to rule.
    pub(crate) fn to_target(
        config: &FetchConfig,
        names: &Arc<NameCache>,
        to_host: Option<&str>,
        to_port: Option<u16>,
    ) -> Result<Self, FetcherError> {
        let resolver = Resolver {
            names: Arc::clone(names),
            to_host: to_host.map(Arc::from),
            to_port: to_port.unwrap_or(0),
            // An address that the user named needs no guard; a rule that moves the port alone names none.
            is_guarded: to_host.is_none() && !config.allow_private_addresses,
        };
        let client = build(config, &resolver, |builder| builder)?;
        let rewriting_client = Some(build(config, &resolver, ClientBuilder::http1_only)?);
        Ok(Self {
            client,
            rewriting_client,
            resolver,
        })
    }
}

/// Reads the proxy's URL; the scheme and the form are checked here because the client reports them only when connecting.
fn read_proxy(text: &str) -> Result<Proxy, FetcherError> {
    let refuse = |reason: String| FetcherError::Proxy {
        text: without_password(text),
        reason,
    };
    let url = url::Url::parse(text).map_err(|error| refuse(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse(format!(
            "scheme {:?} is not supported",
            url.scheme()
        )));
    }
    Proxy::all(url).map_err(|error| refuse(error.to_string()))
}

/// Blanks what may be a password, also in a text that is no URL.
fn without_password(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, after)) => format!("...@{after}"),
        None => text.to_owned(),
    }
}

/// Builds a client with every setting in force.
fn build(
    config: &FetchConfig,
    resolver: &Resolver,
    extend: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<Client, FetcherError> {
    let fail = |error: reqwest::Error| FetcherError::Client {
        reason: chain_text(&error),
    };
    let extra = extra_certificates(config)?;
    let builder = || extend(settings(config, resolver));
    if !extra.is_empty() {
        return builder().tls_certs_merge(extra).build().map_err(fail);
    }
    // A machine without a certificate store can still crawl http, so its lack is no error before an https URL comes.
    builder()
        .build()
        .or_else(|_| builder().tls_certs_only([]).build())
        .map_err(fail)
}

/// Returns a builder with the settings that all clients share.
fn settings(config: &FetchConfig, resolver: &Resolver) -> ClientBuilder {
    let head_list_bytes_max = u32::try_from(config.head_bytes_max)
        .unwrap_or(u32::MAX)
        .saturating_mul(2);
    let streams = config.idle_per_host_max.clamp(1, WAITING_STREAMS_MAX);
    let streams = u32::try_from(streams).unwrap_or(1);
    Client::builder()
        .user_agent(config.user_agent.as_str())
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .dns_resolver(resolver.clone())
        .connector_layer(ProbeLayer)
        .connect_timeout(config.connect_timeout)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(config.idle_per_host_max)
        .pool_idle_timeout(config.idle_timeout)
        .http1_title_case_headers()
        .http1_max_headers(HEAD_FIELDS_MAX)
        // Browsers read past these faults, and so must a crawler that is to see the same pages.
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        // Above the cap that is checked on arrival, so that a head between the two is named for what it is.
        .http2_max_header_list_size(head_list_bytes_max)
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(STREAM_WINDOW_BYTES * streams)
        // A pooled HTTP/2 connection that died unnoticed would fail every request of its host.
        .http2_keep_alive_interval(config.read_timeout)
        .http2_keep_alive_timeout(config.read_timeout)
}

fn extra_certificates(config: &FetchConfig) -> Result<Vec<Certificate>, FetcherError> {
    let Some(pem) = &config.ca_pem else {
        return Ok(Vec::new());
    };
    let found = Certificate::from_pem_bundle(pem).map_err(|error| FetcherError::Ca {
        reason: chain_text(&error),
    })?;
    if found.is_empty() {
        return Err(FetcherError::Ca {
            reason: "no certificate found".to_owned(),
        });
    }
    let mut roots = rustls::RootCertStore::empty();
    for der in CertificateDer::pem_slice_iter(pem) {
        let der = der.map_err(|error| FetcherError::Ca {
            reason: error.to_string(),
        })?;
        roots.add(der).map_err(|error| FetcherError::Ca {
            reason: error.to_string(),
        })?;
    }
    Ok(found)
}

/// Joins the texts of an error and its causes.
fn chain_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
