//! The parent: counts each stream's shape, runs every contender in a process of its own, and prints the tables.

use std::{
    env,
    io::{self, Write as _},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use store::testing::Cluster;

use super::{
    contender::Contender,
    measured::Measured,
    options::{Options, StoreKind},
    quantity::grouped,
    redis,
    stream::Census,
    table,
    workload::Workload,
};

/// Runs everything that the options name.
///
/// # Errors
///
/// Fails when a stream, a server or a contender does, or when a contender that must not lost or doubled a URL.
pub fn run(options: &Options) -> Result<()> {
    say(&table::legend(options))?;
    let mut faults = Vec::new();
    let mut cluster = None;
    for workload in Workload::of(options) {
        let census = Census::take(&*workload.open()?);
        say(&format!(
            "\n## {}\n\n{}",
            workload.title(),
            table::shape(&census)
        ))?;
        say(&table::head())?;
        let mut notes = Vec::new();
        for contender in &options.mode {
            if contender.is_redis() && redis::find_program().is_none() {
                notes.push(format!(
                    "{}: skipped, redis-server is not on the PATH (Debian's package redis-server)",
                    contender.name()
                ));
                continue;
            }
            let caches = if contender.has_cache() {
                &options.cache[..]
            } else {
                &options.cache[..options.cache.len().min(1)]
            };
            for cache_bytes in caches {
                let uri = database(*contender, options, &mut cluster)?;
                let measured =
                    run_child(*contender, *cache_bytes, uri, &workload, &census, options)?;
                let label = label(*contender, *cache_bytes, options);
                say(&table::row(&label, &measured))?;
                faults.extend(fault(*contender, &label, &measured));
                notes.extend(note(*contender, &label, &measured));
            }
        }
        for note in notes {
            say(&format!("\n{note}"))?;
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

fn label(contender: Contender, cache_bytes: u64, options: &Options) -> String {
    if contender.has_cache() && options.cache.len() > 1 {
        format!("{}, cache {} MB", contender.name(), cache_bytes / 1_000_000)
    } else {
        contender.name().to_owned()
    }
}

/// Says what is wrong with the outcome, if anything is.
fn fault(contender: Contender, label: &str, measured: &Measured) -> Option<String> {
    let may_lose = contender == Contender::Bloom;
    let is_right = measured.twice_count == 0 && (may_lose || measured.lost_count == 0);
    (!is_right).then(|| {
        format!(
            "{label}: {} URLs lost, {} admitted twice",
            measured.lost_count, measured.twice_count
        )
    })
}

/// Says what the row has no column for.
fn note(contender: Contender, label: &str, measured: &Measured) -> Option<String> {
    match contender {
        Contender::BloomStore if measured.filter_slice_count == 0 => Some(format!(
            "{label}: so few keys are held exactly, in {} bytes, in place of a filter",
            grouped(measured.filter_bytes)
        )),
        Contender::BloomStore => Some(format!(
            "{label}: filter of {} bytes ({} slices); {} false positives confirmed and admitted",
            grouped(measured.filter_bytes),
            measured.filter_slice_count,
            grouped(measured.false_positives)
        )),
        Contender::Bloom => measured.expected_lost.map(|expected| {
            format!(
                "{label}: {} URLs lost, {expected:.0} expected",
                grouped(measured.lost_count)
            )
        }),
        Contender::Redis | Contender::RedisOne => measured.server_memory_bytes.map(|bytes| {
            format!(
                "{label}: redis-server held {} bytes at its peak",
                grouped(bytes)
            )
        }),
        Contender::Store | Contender::Exact | Contender::StoreOne => None,
    }
}

/// Returns the database for a contender that needs one: of the server that was given, or a new one of a temporary server,
/// which is started when it is first needed.
fn database(
    contender: Contender,
    options: &Options,
    cluster: &mut Option<Cluster>,
) -> Result<Option<String>> {
    let is_needed = contender == Contender::StoreOne
        || (contender.seen_mode().is_some() && options.store == StoreKind::Postgres);
    if !is_needed || options.uri.is_some() {
        return Ok(options.uri.clone());
    }
    if cluster.is_none() {
        *cluster = Some(Cluster::start()?);
    }
    Ok(cluster.as_ref().map(Cluster::create_database))
}

/// Runs a contender in a child process.
fn run_child(
    contender: Contender,
    cache_bytes: u64,
    uri: Option<String>,
    workload: &Workload,
    census: &Census,
    options: &Options,
) -> Result<Measured> {
    let program = env::current_exe().context("the program does not know its own path")?;
    let mut command = Command::new(program);
    let mut argument = |name: &str, value: String| {
        command.arg(name).arg(value);
    };
    let expected = options.expected.unwrap_or(census.distinct_count);
    argument("--child", contender.name().to_owned());
    argument("--stream", workload.name.name().to_owned());
    argument("--store", options.store.name().to_owned());
    argument("--links", workload.model.link_count.to_string());
    argument("--hosts", workload.model.host_count.to_string());
    argument("--active", workload.model.active_count.to_string());
    argument("--seed", workload.model.seed.to_string());
    argument("--cache", cache_bytes.to_string());
    argument("--rate", options.rate.to_string());
    argument("--threads", options.threads.to_string());
    argument("--one-links", options.one_links.to_string());
    argument("--expected", expected.to_string());
    argument("--pages", options.pages.to_string());
    if let Some(uri) = uri {
        argument("--uri", uri);
    }
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("the contender's process cannot be run")?;
    if !output.status.success() {
        bail!("{} failed: {}", contender.name(), output.status);
    }
    serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "{} answered {:?}",
            contender.name(),
            String::from_utf8_lossy(&output.stdout)
        )
    })
}

fn say(text: &str) -> Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{text}")?;
    Ok(output.flush()?)
}
