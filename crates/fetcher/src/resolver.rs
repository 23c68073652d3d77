//! What the HTTP client's connector is told of a name: guarded addresses, or the target of a connect-to rule.

use std::{
    error::Error,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{
    address::{RefusedAddress, is_public_address},
    names::NameCache,
};

/// Resolves names for one client. The guard judges the very addresses that are handed to the connector, so a name
/// cannot be checked at one address and connected to at another.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    /// Addresses of names.
    pub(crate) names: Arc<NameCache>,
    /// Resolved in place of every name asked for.
    pub(crate) to_host: Option<Arc<str>>,
    /// The port connected to; 0 keeps the URL's. The connector heeds it for URLs without an explicit port.
    pub(crate) to_port: u16,
    /// Whether only public addresses are let through.
    pub(crate) is_guarded: bool,
}

impl Resolver {
    /// Returns the addresses to connect to for `name`, in the order to try them, at least one.
    pub(crate) async fn addresses(
        &self,
        name: &str,
    ) -> Result<Vec<IpAddr>, Box<dyn Error + Send + Sync>> {
        let name = self.to_host.as_deref().unwrap_or(name);
        if let Ok(literal) = name.parse() {
            return self.guard(name, &[literal]).map_err(Into::into);
        }
        let found = self.names.addresses(name).await?;
        self.guard(name, &found).map_err(Into::into)
    }

    /// Drops addresses outside the public internet.
    pub(crate) fn guard(
        &self,
        host: &str,
        found: &[IpAddr],
    ) -> Result<Vec<IpAddr>, RefusedAddress> {
        let public: Vec<IpAddr> = found
            .iter()
            .copied()
            .filter(|address| !self.is_guarded || is_public_address(*address))
            .collect();
        match found.first() {
            Some(first) if public.is_empty() => Err(RefusedAddress {
                host: host.to_owned(),
                address: *first,
            }),
            _ => Ok(public),
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let addresses = resolver.addresses(name.as_str()).await?;
            let port = resolver.to_port;
            let addresses: Addrs = Box::new(
                addresses
                    .into_iter()
                    .map(move |ip| SocketAddr::new(ip, port)),
            );
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use std::{
        str::FromStr,
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    use super::*;

    /// A resolver over two names, one of which turns private after its first lookup, as in DNS rebinding.
    fn resolver(is_guarded: bool, to_port: u16) -> Resolver {
        let was_asked = AtomicBool::new(false);
        let names = NameCache::with_lookup(
            Duration::ZERO,
            10,
            Box::new(move |name| {
                let texts: &[&str] = match name.as_str() {
                    "mixed.example" => &["10.0.0.1", "8.8.8.8", "::ffff:10.0.0.2", "2606:4700::1"],
                    _ if !was_asked.swap(true, Ordering::SeqCst) => &["8.8.4.4"],
                    _ => &["169.254.169.254", "fd00::1"],
                };
                let found = texts.iter().map(|text| text.parse().unwrap()).collect();
                Box::pin(async move { Ok(found) })
            }),
        );
        Resolver {
            names: Arc::new(names),
            to_host: None,
            to_port,
            is_guarded,
        }
    }

    async fn connect_targets(
        resolver: &Resolver,
        name: &str,
    ) -> Result<Vec<String>, Box<dyn Error + Send + Sync>> {
        let found = resolver.resolve(Name::from_str(name).unwrap()).await?;
        Ok(found.map(|address| address.to_string()).collect())
    }

    #[tokio::test]
    async fn the_connector_gets_public_addresses_alone_in_the_reported_order() {
        let guarded = resolver(true, 0);
        assert_eq!(
            connect_targets(&guarded, "mixed.example").await.unwrap(),
            ["8.8.8.8:0", "[2606:4700::1]:0"]
        );
        assert_eq!(
            guarded.addresses("mixed.example").await.unwrap()[0].to_string(),
            "8.8.8.8"
        );
        let open = resolver(false, 81);
        assert_eq!(
            connect_targets(&open, "mixed.example").await.unwrap().len(),
            4
        );
        assert_eq!(
            connect_targets(&open, "mixed.example").await.unwrap()[0],
            "10.0.0.1:81"
        );
    }

    #[tokio::test]
    async fn a_name_that_was_public_once_is_judged_again() {
        let guarded = resolver(true, 0);
        assert_eq!(
            connect_targets(&guarded, "rebinding.example")
                .await
                .unwrap(),
            ["8.8.4.4:0"]
        );
        let error = connect_targets(&guarded, "rebinding.example")
            .await
            .unwrap_err();
        let refused = error.downcast::<RefusedAddress>().unwrap();
        assert_eq!(refused.address.to_string(), "169.254.169.254");
    }
}
