//! One request over HTTP: understood, answered by the site, logged.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use crate::{Fault, Site, SiteAnswer, SiteRequest, body::AnswerBody, log::Log};

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) site: Arc<dyn Site>,
    pub(crate) log: Arc<Log>,
    pub(crate) latency: Duration,
}

/// Answers one request; an error closes the connection without an answer.
pub(crate) async fn respond(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    scheme: &'static str,
    peer: SocketAddr,
) -> Result<Response<AnswerBody>, io::Error> {
    // A request to a proxy, and any over HTTP/2, names scheme and authority in its target.
    let scheme = match request.uri().scheme_str() {
        Some("https") => "https",
        Some("http") => "http",
        _ => scheme,
    };
    let authority = authority(&request, scheme);
    let site_request = SiteRequest {
        scheme,
        authority: authority.as_deref().unwrap_or_default(),
        path_and_query: request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str()),
        method: request.method(),
        headers: request.headers(),
    };
    let mut entry = shared.log.begin(site_request.url(), peer);
    let answer = match authority {
        Some(_) => shared.site.answer(&site_request),
        None => SiteAnswer::new(
            400,
            "text/plain; charset=utf-8",
            "a request names its host\n",
        ),
    };
    let wait = shared.latency + answer.delay;
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    if answer.fault == Some(Fault::CloseBeforeHead) {
        return Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "closed on purpose before the head",
        ));
    }
    let (parts, has_length) = head(&answer);
    entry.set_status(parts.status.as_u16());
    let body = AnswerBody::new(answer.body, has_length, answer.fault, entry);
    Ok(Response::from_parts(parts, body))
}

/// Returns the authority in lower case, without the port that the scheme implies.
fn authority(request: &Request<Incoming>, scheme: &str) -> Option<String> {
    let text = match request.uri().authority() {
        Some(authority) => authority.as_str(),
        None => request.headers().get(header::HOST)?.to_str().ok()?,
    };
    let default_port = if scheme == "https" { ":443" } else { ":80" };
    let text = text.rsplit('@').next().unwrap_or(text).to_ascii_lowercase();
    let text = text.strip_suffix(default_port).unwrap_or(&text).to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the head, and whether the body's length is announced in it.
fn head(answer: &SiteAnswer) -> (http::response::Parts, bool) {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(answer.status)
        .ok()
        .filter(|status| !status.is_informational())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut has_length = true;
    for (name, value) in &answer.headers {
        let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_bytes(value),
        ) else {
            continue;
        };
        if name == header::TRANSFER_ENCODING {
            has_length = false;
        } else if name != header::CONTENT_LENGTH {
            parts.headers.append(name, value);
        }
    }
    (parts, has_length)
}
