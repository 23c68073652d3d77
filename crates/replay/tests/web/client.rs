//! Bare HTTP clients for the tests: HTTP/1.1 over a plain or TLS stream, HTTP/2 by hyper.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use replay::{Server, ServerConfig, Site};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use warc::HttpResponse;

pub(crate) fn start(site: impl Site) -> Server {
    Server::start(ServerConfig::default(), Arc::new(site)).unwrap()
}

pub(crate) fn start_http(site: impl Site) -> Server {
    Server::start(
        ServerConfig {
            https: None,
            ..ServerConfig::default()
        },
        Arc::new(site),
    )
    .unwrap()
}

/// Sends one request on a connection of its own and returns all bytes until the server closes it.
pub(crate) fn get_raw(address: SocketAddr, host: &str, path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    exchange(&mut stream, host, path, &mut bytes).ok();
    bytes
}

pub(crate) fn exchange(
    stream: &mut (impl Read + Write),
    host: &str,
    path: &str,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    stream.read_to_end(bytes)?;
    Ok(())
}

pub(crate) fn parse(bytes: &[u8]) -> HttpResponse<'_> {
    warc::parse_http_response(bytes).unwrap()
}

/// Returns status and body of an answer over http.
pub(crate) fn get(server: &Server, host: &str, path: &str) -> (u16, Vec<u8>) {
    let bytes = get_raw(server.http_address(), host, path);
    let response = parse(&bytes);
    (response.status, response.body.into_owned())
}

pub(crate) fn tls_config(server: &Server, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap())
        .unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Arc::new(config)
}

/// Returns all bytes of an answer over https, after the certificate was verified for `name`.
pub(crate) fn get_tls(server: &Server, name: &str, path: &str) -> io::Result<Vec<u8>> {
    let server_name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(tls_config(server, &["http/1.1"]), server_name).unwrap();
    let stream = TcpStream::connect(server.https_address().unwrap())?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut bytes = Vec::new();
    exchange(
        &mut StreamOwned::new(connection, stream),
        name,
        path,
        &mut bytes,
    )?;
    Ok(bytes)
}
