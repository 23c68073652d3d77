//! Meters: CPU time of this process and of others, time spent aside of what is measured, and memory.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time that this process has used.
#[must_use]
pub fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Returns the CPU time that this thread has used.
#[must_use]
pub fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// CPU time of work that is the harness's own: making links and keeping the truth. It is subtracted.
#[derive(Debug, Default)]
pub struct Aside(AtomicU64);

impl Aside {
    /// Does `work` on the harness's account.
    pub fn does<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = thread_cpu();
        let made = work();
        let spent = thread_cpu().saturating_sub(before);
        let nanoseconds = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanoseconds, Relaxed);
        made
    }

    /// Returns what was spent.
    #[must_use]
    pub fn spent(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }
}

/// Another process whose CPU time is read: with its children, those waited for included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerProcess {
    process_id: u32,
}

impl ServerProcess {
    /// Names a process by its id.
    #[must_use]
    pub const fn new(process_id: u32) -> Self {
        Self { process_id }
    }

    /// Names the parent of a process: a `PostgreSQL` server by any of its own.
    ///
    /// # Errors
    ///
    /// Fails when there is no such process on this machine.
    pub fn parent_of(process_id: u32) -> Result<Self> {
        let stat = Stat::read(process_id)
            .with_context(|| format!("process {process_id} is not on this machine"))?;
        Ok(Self::new(stat.parent_id))
    }

    /// Returns the CPU time of the process, its children and those that have ended.
    #[must_use]
    pub fn cpu(self) -> Duration {
        let mut ticks = 0;
        if let Some(stat) = Stat::read(self.process_id) {
            ticks += stat.own_ticks + stat.ended_ticks;
        }
        for child in processes().filter_map(Stat::read) {
            if child.parent_id == self.process_id {
                ticks += child.own_ticks + child.ended_ticks;
            }
        }
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        Duration::from_millis(ticks * 1_000 / ticks_per_second)
    }

    /// Returns the most memory that the process itself has held, in bytes.
    #[must_use]
    pub fn peak_bytes(self) -> u64 {
        status_bytes(&self.process_id.to_string(), "VmHWM:").unwrap_or_default()
    }
}

/// What `/proc/PID/stat` says.
struct Stat {
    parent_id: u32,
    own_ticks: u64,
    /// Of children that were waited for.
    ended_ticks: u64,
}

impl Stat {
    fn read(process_id: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?)
    }

    /// Reads the fields after the name, which is in brackets and may hold anything.
    fn parse(text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            parent_id: fields.get(1)?.parse().ok()?,
            own_ticks: number(11)? + number(12)?,
            ended_ticks: number(13)? + number(14)?,
        })
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Makes the peak memory of this process what it holds now, and returns that in bytes.
///
/// # Errors
///
/// Fails where the system does not let the peak be reset.
pub fn reset_peak() -> Result<u64> {
    fs::write("/proc/self/clear_refs", "5").context("the peak of memory cannot be reset")?;
    status_bytes("self", "VmRSS:").context("/proc/self/status has no VmRSS")
}

/// Returns the memory that this process holds now, in bytes.
#[must_use]
pub fn resident_bytes() -> u64 {
    status_bytes("self", "VmRSS:").unwrap_or_default()
}

/// Returns the most memory that this process has held since [`reset_peak`], in bytes.
#[must_use]
pub fn peak_bytes() -> u64 {
    status_bytes("self", "VmHWM:").unwrap_or_default()
}

fn status_bytes(process: &str, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use std::{hint::black_box, process, time::Duration};

    use super::{Aside, ServerProcess, Stat, peak_bytes, reset_peak, thread_cpu};

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let text = "7 (a) b (c) S 3 7 7 0 -1 4194560 100 0 0 0 11 12 13 14 20 0 1 0 100 0 0";
        let stat = Stat::parse(text).expect("the line is whole");
        assert_eq!(
            (stat.parent_id, stat.own_ticks, stat.ended_ticks),
            (3, 23, 27)
        );
        assert!(Stat::parse("7 (a) S 3").is_none());
    }

    #[test]
    fn work_aside_is_counted_by_its_cpu_time() {
        let aside = Aside::default();
        let before = thread_cpu();
        aside.does(|| {
            while thread_cpu().saturating_sub(before) < Duration::from_millis(20) {
                black_box(0);
            }
        });
        assert!(
            aside.spent() >= Duration::from_millis(10),
            "{:?}",
            aside.spent()
        );
        assert!(aside.spent() <= thread_cpu());
    }

    #[test]
    fn memory_and_cpu_of_this_process_are_there() {
        let before = reset_peak().expect("the peak can be reset");
        let block = black_box(vec![1_u8; 64 << 20]);
        assert!(
            peak_bytes() >= before + (60 << 20),
            "{} {before}",
            peak_bytes()
        );
        drop(block);
        let server = ServerProcess::new(process::id());
        assert!(server.peak_bytes() > 0);
        assert!(server.cpu() > Duration::ZERO || thread_cpu() < Duration::from_millis(20));
    }
}
