//! RFC 9309: the bytes of a robots.txt file in, rules out; total.

mod lines;

use std::{borrow::Cow, sync::Arc, time::Duration};

use robotxt::{Agent, Robots, Rule};

/// The most bytes of a file that are read (RFC 9309, section 2.5, asks for at least 500 KiB). A line that crosses the
/// limit is dropped whole, since a rule cut short could ban more than its author meant.
pub const ROBOTS_BYTES_MAX: usize = 500 * 1024;

/// What one host's robots.txt asks of one crawler. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Rules(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// At least one; the rules of a large file are spread over several.
    matchers: Vec<Robots>,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
    size_bytes: usize,
}

impl Rules {
    /// Reads a file for the crawler whose product token is `product_token` (RFC 9309, section 2.2.1).
    ///
    /// Total: any bytes have a meaning, and what is no directive spoils only its own line. The groups of the token are
    /// merged; without one, the groups of `*` hold. The time is linear in the size, of which at most
    /// [`ROBOTS_BYTES_MAX`] bytes count.
    #[must_use]
    pub fn parse(bytes: &[u8], product_token: &str) -> Self {
        let file = lines::normalize(bytes, product_token);
        let matchers: Vec<Robots> = file
            .rule_files
            .iter()
            .map(|rules| Robots::parse(rules, Agent::Exact("*")))
            .collect();
        let rule_bytes: usize = matchers
            .iter()
            .flat_map(Robots::rules)
            .map(|rule| size_of::<Rule>() + rule.pattern().len())
            .sum();
        let sitemap_bytes: usize = file
            .sitemaps
            .iter()
            .map(|text| size_of::<String>() + text.len())
            .sum();
        Self(Arc::new(Inner {
            matchers,
            crawl_delay: file.crawl_delay,
            sitemaps: file.sitemaps,
            size_bytes: size_of::<Inner>() + rule_bytes + sitemap_bytes,
        }))
    }

    /// Returns the rules of a host without a robots.txt (RFC 9309, section 2.3.1.3).
    #[must_use]
    pub fn allow_all() -> Self {
        Self::without_file(Robots::allow_all())
    }

    /// Returns the rules of a host whose robots.txt cannot be reached (RFC 9309, section 2.3.1.4).
    #[must_use]
    pub fn disallow_all() -> Self {
        Self::without_file(Robots::disallow_all())
    }

    fn without_file(matcher: Robots) -> Self {
        let size_bytes = size_of::<Inner>();
        Self(Arc::new(Inner {
            matchers: vec![matcher],
            crawl_delay: None,
            sitemaps: Vec::new(),
            size_bytes,
        }))
    }

    /// Says whether the crawler may fetch a URL of the host, given as path and query.
    ///
    /// The longest matching rule decides, Allow before Disallow where two are equally long (RFC 9309, section 2.2.2).
    /// `/robots.txt` itself is always allowed.
    #[must_use]
    pub fn allows(&self, path_and_query: &str) -> bool {
        let path = literal_wildcards(path_and_query);
        if let [matcher] = self.0.matchers.as_slice() {
            return matcher.is_allowed(&path);
        }
        // Each matcher names its own deciding rule; the same order decides between them.
        self.0
            .matchers
            .iter()
            .filter_map(|matcher| matcher.matching_rule(&path))
            .max_by_key(|rule| (rule.pattern().len(), rule.is_allow()))
            .is_none_or(|rule| rule.is_allow() || path == "/robots.txt")
    }

    /// Returns the pause that the file asks for between requests: finite, at least zero, and not capped.
    /// Where the crawler's groups name several, the longest.
    #[must_use]
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.0.crawl_delay
    }

    /// Returns the values of the Sitemap lines in order, each once, as they are written: not resolved, not checked.
    #[must_use]
    pub fn sitemaps(&self) -> &[String] {
        &self.0.sitemaps
    }

    /// Returns the memory that the rules take, in bytes, without what the allocator adds.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.0.size_bytes
    }
}

/// Encodes `*` and `$` of a path, which in a rule would be special: there their literal forms are `%2A` and `%24`
/// (RFC 9309, section 2.2.3).
fn literal_wildcards(path: &str) -> Cow<'_, str> {
    if path.contains(['*', '$']) {
        Cow::Owned(path.replace('*', "%2A").replace('$', "%24"))
    } else {
        Cow::Borrowed(path)
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write as _, time::Duration};

    use super::{ROBOTS_BYTES_MAX, Rules};

    fn allows(file: &str, path: &str) -> bool {
        Rules::parse(file.as_bytes(), "mybot").allows(path)
    }

    #[test]
    fn rules_cross_threads() {
        fn check<T: Send + Sync + Clone + 'static>() {}
        check::<Rules>();
    }

    #[test]
    fn wildcards_match_as_in_rfc_9309() {
        let file = "User-agent: *\nDisallow: /p/file-%2A.html\nDisallow: /p/foo-%24\nDisallow: /a$b\nDisallow: */x\n";
        for (path, allowed) in [
            ("/p/file-*.html", false),
            ("/p/file-x.html", true),
            ("/p/foo-$", false),
            ("/p/foo-", true),
            ("/a$b/c", false),
            ("/a", true),
            ("/x", false),
            ("/deep/x", false),
            ("/deepx", true),
        ] {
            assert_eq!(allows(file, path), allowed, "{path}");
        }
    }

    #[test]
    fn other_lines_do_not_end_a_group() {
        let file = "User-agent: a\nCrawl-delay: 7\nSitemap: /s.xml\nNoindex: /\n\nUser-agent: MyBot/2.1 (x)\nDisallow: /b\n";
        assert!(!Rules::parse(file.as_bytes(), "a").allows("/b"));
        assert!(!allows(file, "/b"));
        let mine = Rules::parse(file.as_bytes(), "mybot");
        assert_eq!(
            mine.crawl_delay(),
            None,
            "the line stands before the crawler is named"
        );
        assert_eq!(mine.sitemaps(), ["/s.xml"]);
        assert_eq!(
            Rules::parse(file.as_bytes(), "a").crawl_delay(),
            Some(Duration::from_secs(7))
        );
    }

    #[test]
    fn absurd_delays_are_none() {
        for value in ["inf", "nan", "-5", "abc", "1e300", "", "-0.1"] {
            let file = format!("User-agent: *\nCrawl-delay: {value}\nDisallow: /x\n");
            assert_eq!(
                Rules::parse(file.as_bytes(), "mybot").crawl_delay(),
                None,
                "{value}"
            );
        }
        let file = "User-agent: *\nCrawl-delay: 2.5 # seconds\n";
        assert_eq!(
            Rules::parse(file.as_bytes(), "mybot").crawl_delay(),
            Some(Duration::from_millis(2_500))
        );
        let zero = "User-agent: *\nCrawl-delay: 0\n";
        assert_eq!(
            Rules::parse(zero.as_bytes(), "mybot").crawl_delay(),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn a_line_cut_by_the_limit_bans_nothing() {
        let head = "User-agent: *\nDisallow: /a\n";
        let tail = "Disallow: /public-pages-that-are-fine";
        for kept in 0..tail.len() {
            let mut file = String::from(head);
            file.push_str(&"#".repeat(ROBOTS_BYTES_MAX - head.len() - kept - 1));
            file.push('\n');
            file.push_str(tail);
            let rules = Rules::parse(file.as_bytes(), "mybot");
            assert!(!rules.allows("/a"), "kept {kept}");
            assert!(rules.allows("/public"), "kept {kept}");
        }
    }

    #[test]
    fn all_or_nothing() {
        assert!(Rules::allow_all().allows("/x"));
        assert!(!Rules::disallow_all().allows("/x"));
        assert!(Rules::disallow_all().allows("/robots.txt"));
        assert!(!allows("User-agent: *\nDisallow: /", "/"));
        assert!(allows("User-agent: *\nDisallow: /", "/robots.txt"));
    }

    #[test]
    fn no_rule_of_a_file_within_the_limit_is_lost() {
        for (line, blocked) in [("Disallow:/", "/"), ("Disallow:*/$a", "/x/$a")] {
            let mut file = "User-agent: *\n".to_owned();
            let mut count = 0;
            while file.len() < ROBOTS_BYTES_MAX - 100 {
                writeln!(file, "{line}{count}").expect("a string takes all");
                count += 1;
            }
            file.push_str("Allow: /\n");
            let rules = Rules::parse(file.as_bytes(), "bloomcrawl");
            for index in [0, 1, count / 2, count - 2, count - 1] {
                assert!(
                    !rules.allows(&format!("{blocked}{index}")),
                    "{line}{index} of {count}"
                );
            }
            assert!(rules.allows("/free"));
            assert!(rules.allows("/robots.txt"));
        }
    }
}
