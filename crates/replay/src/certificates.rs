//! Certificates made on the spot, by the name that the client asks for.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::{
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::{ClientHello, ResolvesServerCert},
    sign::{CertifiedKey, SigningKey},
};

use crate::ReplayError;

/// Certificates kept; beyond it all are dropped and made again as asked for.
const CERTIFICATE_COUNT_MAX: usize = 20_000;

/// A throw-away certificate authority, and the certificates that it made.
pub(crate) struct Certificates {
    authority: CertifiedIssuer<'static, KeyPair>,
    key: KeyPair,
    signing_key: Arc<dyn SigningKey>,
    nameless: Arc<CertifiedKey>,
    made: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl Certificates {
    /// Makes an authority; clients that send no name get a certificate for `address` and the loopback addresses.
    pub(crate) fn new(address: IpAddr) -> Result<Self, ReplayError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(
            DnType::CommonName,
            "bloomcrawl replay: throw-away authority",
        );
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().map_err(error)?)
            .map_err(error)?;
        // One key serves all names: making keys would cost more than all the rest.
        let key = KeyPair::generate().map_err(error)?;
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signing_key = provider()
            .key_provider
            .load_private_key(der)
            .map_err(error)?;
        let loopback = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ];
        let mut names = vec!["localhost".to_owned(), address.to_string()];
        names.extend(
            loopback
                .iter()
                .filter(|other| **other != address)
                .map(IpAddr::to_string),
        );
        let nameless = make(&authority, &key, &signing_key, names).map_err(error)?;
        Ok(Self {
            authority,
            key,
            signing_key,
            nameless,
            made: Mutex::default(),
        })
    }

    /// Returns the authority's certificate.
    pub(crate) fn ca_pem(&self) -> String {
        self.authority.pem()
    }

    fn for_name(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(certificate) = made.get(name) {
            return Some(Arc::clone(certificate));
        }
        let certificate = make(
            &self.authority,
            &self.key,
            &self.signing_key,
            vec![name.to_owned()],
        )
        .ok()?;
        if made.len() >= CERTIFICATE_COUNT_MAX {
            made.clear();
        }
        made.insert(name.to_owned(), Arc::clone(&certificate));
        Some(certificate)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match hello.server_name() {
            Some(name) => self.for_name(&name.to_ascii_lowercase()),
            None => Some(Arc::clone(&self.nameless)),
        }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Certificates")
            .finish_non_exhaustive()
    }
}

/// Returns the cryptography that server and certificates use.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn make(
    authority: &CertifiedIssuer<'static, KeyPair>,
    key: &KeyPair,
    signing_key: &Arc<dyn SigningKey>,
    names: Vec<String>,
) -> Result<Arc<CertifiedKey>, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "bloomcrawl replay");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.signed_by(key, authority)?;
    Ok(Arc::new(CertifiedKey::new(
        vec![certificate.der().clone()],
        Arc::clone(signing_key),
    )))
}

fn error(error: impl fmt::Display) -> ReplayError {
    ReplayError::Certificates(error.to_string())
}
