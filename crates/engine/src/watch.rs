//! The watch over the stages: runs each on a thread, and ends the crawl when one fails.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use crossbeam_channel::Sender;

use crate::{EngineError, live::Live, message::OwnerEvent};

/// Starts stages and keeps their faults.
pub(crate) struct Watch {
    owner: Sender<OwnerEvent>,
    live: Arc<Live>,
    faults: Arc<Mutex<Vec<EngineError>>>,
}

impl Watch {
    /// Tells `owner` to stop at once when a stage fails.
    pub(crate) fn new(owner: Sender<OwnerEvent>, live: &Arc<Live>) -> Self {
        Self {
            owner,
            live: Arc::clone(live),
            faults: Arc::default(),
        }
    }

    /// Runs `work` on a thread of its own. When it fails or panics, its fault is kept and the crawl ends.
    pub(crate) fn stage(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), EngineError> + Send + 'static,
    ) -> Result<JoinHandle<()>, EngineError> {
        let (owner, live, faults) = (
            self.owner.clone(),
            Arc::clone(&self.live),
            Arc::clone(&self.faults),
        );
        spawn(name, move || {
            let result = catch_unwind(AssertUnwindSafe(work))
                .unwrap_or_else(|panic| Err(panicked(name, panic.as_ref())));
            if let Err(fault) = result {
                faults
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(fault);
                live.halt();
                drop(owner.send(OwnerEvent::StopNow));
            }
        })
    }

    /// Returns the fault that came first: later ones mostly follow from it.
    pub(crate) fn first_fault(&self) -> Option<EngineError> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        (!faults.is_empty()).then(|| faults.remove(0))
    }
}

/// Starts a named thread.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, EngineError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| EngineError::Internal(format!("the {name} thread did not start: {error}")))
}

/// Names a panic as our own fault.
pub(crate) fn panicked(name: &str, panic: &(dyn Any + Send)) -> EngineError {
    let words = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    EngineError::Internal(format!("the {name} stage panicked: {words}"))
}
