//! SIGKILL at any moment: the same command finishes the same crawl, whatever moment it died at.

use std::{thread, time::Duration};

use store::testing::Cluster;

use crate::{
    crawl::{Crawl, LEASES_MAX},
    number, random,
    records::{check_complete, check_killed},
    site::Site,
    support::folder,
};

/// One of so many kills comes soon after the start, perhaps while the crawl is opened.
const EARLY_SHARE: u64 = 4;

/// A crawl that is killed, and how often pages were fetched again so far.
struct Victim {
    site: Site,
    crawl: Crawl,
    refetched: u64,
    /// Kills soon after a start, since the last that came later.
    early_row: u64,
}

impl Victim {
    /// Lets the crawl run, kills it early or at `target` pages, and checks what it left.
    fn kill(&mut self, kill: u64, target: u64, early: Option<Duration>) {
        let mut run = self.crawl.start();
        match early {
            Some(after) => thread::sleep(after),
            None => run.wait_for_requests(&self.site, target + self.refetched),
        }
        run.kill();
        check_killed(&self.crawl.data())
            .unwrap_or_else(|fault| panic!("after kill {kill}: {fault}"));
        self.check_refetches(&format!("before kill {kill}"));
        self.early_row = if early.is_some() {
            self.early_row + 1
        } else {
            0
        };
    }

    /// Makes sure that the last run fetched no more again than the leases of the run before, and of those before that
    /// which may have died before their first commit.
    fn check_refetches(&mut self, when: &str) {
        let (_, refetched) = self.site.fetched();
        let count = refetched - self.refetched;
        assert!(
            count <= LEASES_MAX * (1 + self.early_row),
            "{count} refetches {when}"
        );
        self.refetched = refetched;
    }

    /// Lets the crawl run to its end, and checks all that it made.
    fn finish(&mut self) {
        let run = self.crawl.finish(Duration::from_mins(5));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(
            run.stderr.contains("the filter was read from its snapshot"),
            "{}",
            run.stderr
        );
        let pages = self.site.urls();
        let report: serde_json::Value =
            serde_json::from_str(&run.stdout).expect("--json prints the report");
        assert_eq!(report["outcome"], "finished");
        assert_eq!(report["identity_holds"], true);
        assert_eq!(report["counts"]["succeeded"], pages.len());
        assert_eq!(report["leases_max"], LEASES_MAX);
        assert_eq!(
            report["resumed_leases_max"], LEASES_MAX,
            "the run before was killed"
        );
        assert_eq!(self.site.fetched().0, pages, "every page was fetched");
        self.check_refetches("at the end");
        check_complete(&self.crawl.data(), &pages).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

fn survives_kills(store: &str, site_seed: u64) {
    let page_count = number("BLOOMCRAWL_KILL_PAGES", 5_000);
    let kill_count = number("BLOOMCRAWL_KILLS", 10);
    let mut random = random("kill");
    let folder = folder();
    let site = Site::start(page_count, site_seed, Duration::from_millis(20));
    let mut victim = Victim {
        crawl: Crawl::new(folder.path(), &site, store),
        site,
        refetched: 0,
        early_row: 0,
    };
    let early_count = kill_count / EARLY_SHARE;
    let step = page_count / (kill_count - early_count + 1);
    let mut late = 0;
    for kill in 1..=kill_count {
        let is_early = kill % EARLY_SHARE == 1 && kill / EARLY_SHARE < early_count;
        let early = is_early.then(|| Duration::from_millis(random.u64(5..300)));
        late += u64::from(!is_early);
        let target = step * late - random.u64(..step) * u64::from(!is_early);
        victim.kill(kill, target, early);
    }
    victim.finish();
    eprintln!(
        "{store}: {page_count} pages, {kill_count} kills, {} refetches in all, at most {LEASES_MAX} a kill",
        victim.refetched
    );
}

#[test]
fn the_embedded_store_survives_kills() {
    survives_kills("embedded:", 1);
}

#[test]
fn postgres_survives_kills() {
    survives_kills(&Cluster::shared().create_database(), 2);
}
