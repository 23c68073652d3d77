//! Power cuts and unlucky hands: from files that are cut, rolled back, removed or flipped, the same command makes the right
//! crawl, or it says which file it cannot go on with. It never loses a page without a word.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use store::testing::Cluster;

use crate::{
    crawl::Crawl,
    mutation::{Mutation, copy, read_at_start},
    number, random,
    records::check_complete,
    site::Site,
    support::{Run, folder},
};

const PAGE_COUNT: u64 = 1_500;
/// The pages at which the crawl is killed and its folder copied; it still finds new ones then.
const KILLED_AT: [u64; 3] = [300, 500, 700];
/// What no resume takes, unless it hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// A crawl that was killed three times, with a copy of its folder from each time.
struct Killed {
    site: Site,
    copies: Vec<PathBuf>,
}

impl Killed {
    fn new(folder: &Path, store: &str) -> Self {
        let site = Site::start(PAGE_COUNT, 3, Duration::from_millis(20));
        let crawl = Crawl::new(folder, &site, store);
        let copy_now = |(index, target): (usize, &u64)| {
            let mut run = crawl.start();
            run.wait_for_requests(&site, target + site.fetched().1);
            run.kill();
            let to = folder.join(format!("copy-{index}"));
            copy(&crawl.data(), &to);
            to
        };
        let copies = KILLED_AT.iter().enumerate().map(copy_now).collect();
        Self { site, copies }
    }

    /// Returns the copy from the last kill.
    fn latest(&self) -> &Path {
        &self.copies[KILLED_AT.len() - 1]
    }

    /// Resumes the crawl, from the last copy with what `change` does to it, against a server that counts anew.
    fn resume(
        &self,
        folder: &Path,
        store: &str,
        change: impl Fn(&Path),
    ) -> (Site, PathBuf, Option<Run>) {
        let _ = fs::remove_dir_all(folder);
        let site = self.site.restarted(Duration::ZERO);
        fs::create_dir_all(folder).expect("a folder");
        let crawl = Crawl::new(folder, &site, store);
        copy(self.latest(), &crawl.data());
        change(&crawl.data());
        let run = crawl.start().try_finish(PATIENCE);
        (site, crawl.data(), run)
    }
}

/// Returns what a resume came to, "right" or "refused", or what is wrong with it.
fn judge(
    mutation: &Mutation,
    site: &Site,
    data: &Path,
    run: Option<Run>,
) -> Result<&'static str, String> {
    let run = run.ok_or_else(|| format!("no end within {PATIENCE:?}"))?;
    let fail = |problem: &str| Err(format!("{problem}: exit {:?}, {}", run.code, run.stderr));
    if run.stderr.contains("panicked") {
        return fail("a panic");
    }
    match run.code {
        Some(0) => {
            if let Err(problem) = check_complete(data, &site.urls()) {
                return fail(&problem);
            }
            if site.fetched().1 > 0 {
                return fail("a page was fetched twice in one run");
            }
            if mutation.is_flip() && !run.stderr.contains("warning: filter.snapshot") {
                return fail("the flipped bit was not noticed");
            }
            Ok("right")
        }
        Some(1 | 3 | 4) => {
            let names_it = mutation.is_named_in(&run.stderr);
            let remedy = ["hint: ", "restore", "begin a new crawl"];
            if !run.stderr.contains("error: ") || !(names_it || run.stderr.contains("store")) {
                return fail("the refusal names neither file nor store");
            }
            if !remedy.iter().any(|words| run.stderr.contains(words)) {
                return fail("the refusal does not say what to do");
            }
            Ok("refused")
        }
        _ => fail("another exit than those of success and refusal"),
    }
}

/// Returns the two numbers of "N URLs, M of them logged since".
fn snapshot_numbers(stderr: &str) -> (u64, u64) {
    let told = stderr
        .split_once("the filter was read from its snapshot: ")
        .unwrap_or_else(|| panic!("the unchanged copy is not read from its snapshot: {stderr}"))
        .1;
    let line = told
        .lines()
        .next()
        .unwrap_or_default()
        .replace([',', '_'], "");
    let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
    let mut next = || {
        numbers
            .next()
            .unwrap_or_else(|| panic!("two numbers in {line}"))
    };
    (next(), next())
}

/// Resumes from the last copy as it is, and returns what a start reads of snapshot and log.
fn resume_unchanged(killed: &Killed, case: &Path, store: &str) -> Vec<(PathBuf, Range<u64>)> {
    let (site, data, run) = killed.resume(case, store, |_| ());
    let run = run.expect("the unchanged copy is resumed");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    check_complete(&data, &site.urls()).unwrap_or_else(|fault| panic!("unchanged: {fault}"));
    let (key_count, logged_count) = snapshot_numbers(&run.stderr);
    assert!(logged_count > 0, "the log is not read");
    read_at_start(killed.latest(), key_count - logged_count, key_count)
}

/// Changes copies at random, `count` times. `store_of` returns the store for a case, as it was at the last kill.
fn survives_mutations(
    name: &str,
    store: &str,
    count: u64,
    mut store_of: impl FnMut(u64) -> String,
) {
    let mut random = random("power-cut");
    let place = folder();
    let killed = Killed::new(place.path(), store);
    let case = place.path().join("case");
    let flippable = resume_unchanged(&killed, &case, &store_of(0));
    let mut verdicts = BTreeMap::new();
    let mut faults = Vec::new();
    for index in 1..=count {
        let mutation = Mutation::draw(&mut random, &killed.copies, &flippable);
        let (site, data, run) = killed.resume(&case, &store_of(index), |data| {
            mutation.apply(data, &killed.copies);
        });
        match judge(&mutation, &site, &data, run) {
            Ok(verdict) => *verdicts.entry(verdict).or_insert(0_u64) += 1,
            Err(problem) => faults.push(format!("{index}: {mutation}\n  {problem}")),
        }
    }
    let fault_count = faults.len();
    eprintln!("{name}: {count} changes: {verdicts:?}, {fault_count} faults");
    if fault_count > 0 {
        let kept = place.keep();
        panic!(
            "the copies are kept in {}; each fault is of the last one, changed:\n{}",
            kept.display(),
            faults.join("\n")
        );
    }
}

#[test]
fn an_embedded_crawl_survives_power_cuts() {
    let count = number("BLOOMCRAWL_MUTATIONS", 20);
    survives_mutations("embedded", "embedded:", count, |_| "embedded:".to_owned());
}

#[test]
fn the_folder_of_a_crawl_in_postgres_survives_power_cuts() {
    let count = number("BLOOMCRAWL_MUTATIONS", 20) / 4;
    let store = Cluster::shared().create_database();
    let name = store
        .split_once("@/")
        .and_then(|(_, rest)| rest.split_once('?'))
        .expect("the connection string names the database")
        .0
        .to_owned();
    let other =
        |database: &str| store.replacen(&format!("@/{name}?"), &format!("@/{database}?"), 1);
    survives_mutations("PostgreSQL", &store, count, |index| {
        // Each case has a copy of the database as it was at the last kill.
        let admin = other("postgres");
        let sessions = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
        while Cluster::query_i64(&admin, &sessions) > 0 {
            thread::sleep(Duration::from_millis(10));
        }
        let case = format!("{name}_case_{index}");
        Cluster::execute(
            &admin,
            &format!("CREATE DATABASE {case} TEMPLATE {name} STRATEGY file_copy"),
        );
        other(&case)
    });
}
