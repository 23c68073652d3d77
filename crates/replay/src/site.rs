//! What a site is: requests in, answers out.

use std::time::Duration;

use bytes::Bytes;

/// Turns requests into answers. It is asked on the server's threads, from several at once, and should not block long;
/// to be slow on purpose, set [`SiteAnswer::delay`].
pub trait Site: Send + Sync + 'static {
    /// Returns the answer to a request.
    fn answer(&self, request: &SiteRequest<'_>) -> SiteAnswer;
}

impl<F> Site for F
where
    F: Fn(&SiteRequest<'_>) -> SiteAnswer + Send + Sync + 'static,
{
    fn answer(&self, request: &SiteRequest<'_>) -> SiteAnswer {
        self(request)
    }
}

/// A request as the server understood it.
#[derive(Clone, Copy, Debug)]
pub struct SiteRequest<'a> {
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host and, unless it is the scheme's own, the port asked for; lower case. From `Host` or `:authority`.
    pub authority: &'a str,
    /// The path and query as sent.
    pub path_and_query: &'a str,
    /// The method.
    pub method: &'a http::Method,
    /// The header fields.
    pub headers: &'a http::HeaderMap,
}

impl SiteRequest<'_> {
    /// Returns the URL asked for.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "{}://{}{}",
            self.scheme, self.authority, self.path_and_query
        )
    }
}

/// An answer, and how it is to be misdelivered, if at all.
#[derive(Clone, Debug)]
pub struct SiteAnswer {
    /// The status code, 200 to 999; others are answered with 500.
    pub status: u16,
    /// Header fields in order. `content-length` is written by the server; `transfer-encoding: chunked` makes it send
    /// chunks instead (over HTTP/1.1). Fields that HTTP cannot carry are left out.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, content coding included.
    pub body: Bytes,
    /// The wait before the head is sent, besides the server's latency.
    pub delay: Duration,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

/// A fault of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed instead of an answer (HTTP/2: the stream is reset).
    CloseBeforeHead,
    /// The connection is closed after so many bytes of the body, whose full length was announced.
    CutBody(usize),
    /// The head is sent at once, the body only after this wait.
    Stall(Duration),
}

impl SiteAnswer {
    /// Answers with a status, a media type and a body.
    #[must_use]
    pub fn new(status: u16, media_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            delay: Duration::ZERO,
            fault: None,
        }
        .with_header("content-type", media_type)
    }

    /// Answers 200 with an HTML page in UTF-8.
    #[must_use]
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body)
    }

    /// Answers 200 with plain text in UTF-8.
    #[must_use]
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::new(200, "text/plain; charset=utf-8", body)
    }

    /// Answers 404 with a short page.
    #[must_use]
    pub fn not_found() -> Self {
        let page = "<!DOCTYPE html><title>Not found</title><p>There is no such page.</p>";
        Self::new(404, "text/html; charset=utf-8", page)
    }

    /// Answers with a redirect status (301, 302, 303, 307, 308) and a `location`.
    #[must_use]
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", "moved\n").with_header("location", location)
    }

    /// Adds a header field.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers
            .push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Sets the wait before the head.
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Sets what goes wrong.
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..self
        }
    }
}
