//! Whether a request opened a connection, and when that stood: what tells a dead kept-alive connection from a refusing
//! server, and connect time from read time.

use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{sync::Notify, time::Instant};
use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static PROBE: Arc<ConnectProbe>;
}

/// What one request saw of connecting.
#[derive(Debug, Default)]
pub(crate) struct ConnectProbe {
    has_started: AtomicBool,
    ended: OnceLock<Instant>,
    moved: Notify,
}

/// How far a request has come with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It opened none: it goes over a kept-alive one.
    Reused,
    /// It is opening one.
    Connecting,
    /// The attempt ended at this moment.
    Connected(Instant),
}

impl ConnectProbe {
    /// Runs a request whose connection attempts are to be seen by this probe.
    pub(crate) async fn watch<F: Future>(self: Arc<Self>, request: F) -> F::Output {
        PROBE.scope(self, request).await
    }

    /// Returns how far the request has come.
    pub(crate) fn phase(&self) -> Phase {
        match self.ended.get() {
            Some(ended) => Phase::Connected(*ended),
            None if self.has_started.load(Ordering::Acquire) => Phase::Connecting,
            None => Phase::Reused,
        }
    }

    /// Waits until the phase has changed since the last call.
    pub(crate) async fn changed(&self) {
        self.moved.notified().await;
    }

    fn start(&self) {
        self.has_started.store(true, Ordering::Release);
        self.moved.notify_one();
    }

    fn end(&self) {
        // Only the first end counts: a second attempt of the client moves no deadline.
        let _ = self.ended.set(Instant::now());
        self.moved.notify_one();
    }
}

/// Puts the probe around a client's connector, which runs within the request's task.
#[derive(Clone, Debug)]
pub(crate) struct ProbeLayer;

impl<S> Layer<S> for ProbeLayer {
    type Service = ProbeService<S>;

    fn layer(&self, connector: S) -> ProbeService<S> {
        ProbeService(connector)
    }
}

/// A connector with the probe around it.
#[derive(Clone, Debug)]
pub(crate) struct ProbeService<S>(S);

impl<S, R> Service<R> for ProbeService<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let probe = PROBE.try_with(Arc::clone).ok();
        if let Some(probe) = &probe {
            probe.start();
        }
        let connecting = self.0.call(target);
        Box::pin(async move {
            let connected = connecting.await;
            if let Some(probe) = &probe {
                probe.end();
            }
            connected
        })
    }
}
