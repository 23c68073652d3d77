//! The memory of bodies under way: a small allowance for each, and one store of steps that all larger ones share.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a body grows by, in bytes: one permit of the pool.
const STEP_BYTES: usize = 64 << 10;

/// The bound on all bodies that were begun and not yet dropped.
///
/// Each may hold `free` bytes without asking. Whoever needs more takes steps from the pool, and keeps them until the body
/// is gone. Where the pool is empty, all holders could wait for each other; so beside it there is the reserve, which is
/// large enough to bring any body to its end, and goes to one body at a time: that one ends whatever the others do, and
/// gives back what it held. Both are handed out in the order of asking.
#[derive(Clone, Debug)]
pub(crate) struct BodyBudget(Arc<Shares>);

#[derive(Debug)]
struct Shares {
    free_bytes: usize,
    wire_bytes_max: usize,
    pool: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    held_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    /// Each body that waits has a clone of it.
    waiting: Arc<()>,
}

impl BodyBudget {
    /// Makes a budget: `free_bytes` for each body, `pool_bytes` for all larger ones (in steps of 64 KiB, rounded down), and
    /// the reserve of one body of `wire_bytes_max`.
    pub(crate) fn new(free_bytes: usize, pool_bytes: usize, wire_bytes_max: usize) -> Self {
        let steps = (pool_bytes / STEP_BYTES).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Shares {
            free_bytes: free_bytes.min(wire_bytes_max),
            wire_bytes_max,
            pool: Arc::new(Semaphore::new(steps)),
            reserve: Arc::new(Semaphore::new(1)),
            held_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
            waiting: Arc::new(()),
        }))
    }

    /// Begins a body.
    pub(crate) fn begin(&self) -> BodyHold {
        BodyHold {
            budget: self.clone(),
            steps: None,
            reserve: None,
            counted_bytes: 0,
        }
    }

    /// Returns the most bytes beyond the free ones that bodies held at one time.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.0.peak_bytes.load(Relaxed)
    }

    /// Returns how many bodies wait for memory now.
    pub(crate) fn waiting_count(&self) -> usize {
        Arc::strong_count(&self.0.waiting) - 1
    }
}

/// The memory that one body holds; to be kept as long as the body is, and given back when it is dropped.
#[derive(Debug)]
pub struct BodyHold {
    budget: BodyBudget,
    steps: Option<OwnedSemaphorePermit>,
    reserve: Option<OwnedSemaphorePermit>,
    /// What of it stands in the budget's count.
    counted_bytes: usize,
}

impl BodyHold {
    /// Returns the bytes that the body may have now.
    pub(crate) fn bytes(&self) -> usize {
        let shares = &self.budget.0;
        if self.reserve.is_some() {
            return shares.wire_bytes_max;
        }
        (shares.free_bytes + self.pool_bytes()).min(shares.wire_bytes_max)
    }

    /// Returns once the body may have `needed_bytes` (at most the cap on a body), or more.
    pub(crate) async fn grow(&mut self, needed_bytes: usize) {
        let has_bytes = self.bytes();
        if needed_bytes <= has_bytes {
            return;
        }
        // By halves of what it has, so that a long body is not moved at each step.
        let ample = steps_of((needed_bytes - has_bytes).max(has_bytes / 2));
        let shares = Arc::clone(&self.budget.0);
        if let Ok(steps) = Arc::clone(&shares.pool).try_acquire_many_owned(ample) {
            self.take_steps(steps);
            return;
        }
        let needed = steps_of(needed_bytes - has_bytes);
        let _waiting = Arc::clone(&shares.waiting);
        tokio::select! {
            biased;
            Ok(steps) = Arc::clone(&shares.pool).acquire_many_owned(needed) => self.take_steps(steps),
            Ok(reserve) = Arc::clone(&shares.reserve).acquire_owned() => {
                self.reserve = Some(reserve);
                self.count();
            }
            // The semaphores are never closed.
            else => {}
        }
    }

    /// Gives back what a body that ended with `body_bytes` does not need.
    pub(crate) fn trim(&mut self, body_bytes: usize) {
        let needed = steps_of(body_bytes.saturating_sub(self.budget.0.free_bytes)) as usize;
        let held = self
            .steps
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let mut reserve = None;
        if needed <= held {
            reserve = self.reserve.take();
        } else if self.reserve.is_some()
            && let Ok(missing) = u32::try_from(needed - held)
            && let Ok(steps) = Arc::clone(&self.budget.0.pool).try_acquire_many_owned(missing)
        {
            // The reserve is worth more to the next in line than steps are.
            self.take_steps(steps);
            reserve = self.reserve.take();
        }
        let mut spare = None;
        if let Some(steps) = &mut self.steps
            && self.reserve.is_none()
        {
            spare = steps.split(held.saturating_sub(needed));
        }
        // Others may have both only when they are counted no more.
        self.count();
        drop((reserve, spare));
    }

    fn take_steps(&mut self, steps: OwnedSemaphorePermit) {
        match &mut self.steps {
            Some(held) => held.merge(steps),
            held => *held = Some(steps),
        }
        self.count();
    }

    fn pool_bytes(&self) -> usize {
        let steps = self
            .steps
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        steps.saturating_mul(STEP_BYTES)
    }

    /// Brings the budget's count in line with what is held.
    fn count(&mut self) {
        let shares = &self.budget.0;
        let bytes = self.bytes().saturating_sub(shares.free_bytes);
        let before = std::mem::replace(&mut self.counted_bytes, bytes);
        shares.held_bytes.fetch_sub(before, Relaxed);
        let held_bytes = shares.held_bytes.fetch_add(bytes, Relaxed) + bytes;
        shares.peak_bytes.fetch_max(held_bytes, Relaxed);
    }
}

impl Drop for BodyHold {
    fn drop(&mut self) {
        self.budget
            .0
            .held_bytes
            .fetch_sub(self.counted_bytes, Relaxed);
    }
}

/// Returns the steps that hold so many bytes.
fn steps_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(STEP_BYTES)).unwrap_or(u32::MAX)
}
