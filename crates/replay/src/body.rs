//! The body of an answer, with its faults.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::{Fault, log::OpenEntry};

/// Gives the connection time to send what it has before it is closed.
const FLUSH_WAIT: Duration = Duration::from_millis(20);

/// A body that keeps its log entry open until it is done with.
pub(crate) struct AnswerBody {
    bytes: Bytes,
    announced_bytes: u64,
    has_length: bool,
    is_cut: bool,
    wait: Option<Pin<Box<Sleep>>>,
    _entry: OpenEntry,
}

impl AnswerBody {
    pub(crate) fn new(
        mut bytes: Bytes,
        has_length: bool,
        fault: Option<Fault>,
        entry: OpenEntry,
    ) -> Self {
        let announced_bytes = bytes.len() as u64;
        let (is_cut, wait) = match fault {
            Some(Fault::Stall(stall)) => (false, Some(stall)),
            Some(Fault::CutBody(byte_count)) => {
                bytes.truncate(byte_count);
                (true, bytes.is_empty().then_some(FLUSH_WAIT))
            }
            Some(Fault::CloseBeforeHead) | None => (false, None),
        };
        let wait = wait.map(|wait| Box::pin(sleep(wait)));
        Self {
            bytes,
            announced_bytes,
            has_length,
            is_cut,
            wait,
            _entry: entry,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(context));
            self.wait = None;
        }
        if !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            if self.is_cut {
                self.wait = Some(Box::pin(sleep(FLUSH_WAIT)));
            }
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if self.is_cut {
            return Poll::Ready(Some(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the body is cut on purpose",
            ))));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty() && !self.is_cut
    }

    fn size_hint(&self) -> SizeHint {
        // Asked before the first frame only; afterwards hyper goes by the header.
        if self.has_length {
            SizeHint::with_exact(self.announced_bytes)
        } else {
            SizeHint::default()
        }
    }
}
