//! Where pages live: the canonical URL of each page, and back.

/// The navigation of a host has this many pages.
const HOT_COUNT: u64 = 25;

/// Pages are spread over hosts in turn: page `i` is on host `i mod host_count`.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) page_count: u64,
    pub(super) host_count: u64,
    scheme: String,
    authority: String,
}

impl Layout {
    pub(super) fn new(page_count: u64, host_count: u32, scheme: &str, authority: &str) -> Self {
        let page_count = page_count.max(1);
        Self {
            page_count,
            host_count: u64::from(host_count).clamp(1, page_count),
            scheme: scheme.to_owned(),
            authority: authority.to_owned(),
        }
    }

    pub(super) fn scheme(&self) -> &str {
        &self.scheme
    }

    pub(super) const fn host_of(&self, index: u64) -> u64 {
        index % self.host_count
    }

    /// Returns the authority of a page.
    pub(super) fn authority(&self, index: u64) -> String {
        if self.host_count == 1 {
            self.authority.clone()
        } else {
            format!("h{}.{}", self.host_of(index), self.authority)
        }
    }

    pub(super) fn url(&self, index: u64) -> String {
        format!(
            "{}://{}{}",
            self.scheme,
            self.authority(index),
            self.path(index)
        )
    }

    /// Returns the canonical path and query of a page. The last number in it is the page's.
    #[expect(
        clippy::unused_self,
        reason = "paths are part of the layout, as hosts are"
    )]
    pub(super) fn path(&self, index: u64) -> String {
        let section = index / 50;
        // The start of each host has the root; hosts other than the first have theirs by number, as any page.
        if index == 0 {
            return "/".to_owned();
        }
        match index % 17 {
            0 | 1 => format!("/s{section}/list?page={index}&view=full"),
            2 => format!("/search?q=word+two&p={index}"),
            3 => format!("/s{section}/caf%C3%A9/{index}"),
            4 => format!("/%D9%85%D9%82%D8%A7%D9%84/{index}"),
            5 => format!("/~u{section}/p{index}/"),
            6 => format!("/s{section}/a%20b/p{index}.html"),
            _ => format!("/s{section}/p{index}.html"),
        }
    }

    /// Returns the page whose canonical URL this is.
    pub(super) fn index_of_url(&self, url: &str) -> Option<u64> {
        let path = self.split(url)?;
        let digits_end = path
            .rfind(|char: char| char.is_ascii_digit())
            .map_or(0, |at| at + 1);
        let digits_begin = path[..digits_end]
            .rfind(|char: char| !char.is_ascii_digit())
            .map_or(0, |at| at + 1);
        let index = if path == "/" {
            0
        } else {
            path[digits_begin..digits_end].parse().ok()?
        };
        (index < self.page_count && self.url(index) == url).then_some(index)
    }

    /// Returns whether a URL lies on one of the site's hosts.
    pub(super) fn is_host_of(&self, url: &str) -> bool {
        let Some(path) = self.split(url) else {
            return false;
        };
        let host = &url[..url.len() - path.len()];
        let after_scheme = &host[self.scheme.len() + 3..];
        if self.host_count == 1 {
            return after_scheme == self.authority;
        }
        let label = after_scheme
            .strip_suffix(&self.authority)
            .and_then(|label| label.strip_suffix('.'));
        let number = label
            .and_then(|label| label.strip_prefix('h'))
            .and_then(|number| number.parse::<u64>().ok());
        number.is_some_and(|number| {
            number < self.host_count && self.authority(number) == after_scheme
        })
    }

    /// Returns path and query of a URL of the site's scheme.
    fn split<'a>(&self, url: &'a str) -> Option<&'a str> {
        let after_scheme = url
            .strip_prefix(self.scheme.as_str())?
            .strip_prefix("://")?;
        after_scheme.find('/').map(|at| &after_scheme[at..])
    }

    /// Returns how many pages a host has.
    pub(super) const fn host_page_count(&self, host: u64) -> u64 {
        (self.page_count - host).div_ceil(self.host_count)
    }

    /// Returns page number `position` of a host.
    pub(super) const fn host_page(&self, host: u64, position: u64) -> u64 {
        host + position * self.host_count
    }

    /// Returns how many pages the navigation of a host has.
    pub(super) fn hot_count(&self, host: u64) -> u64 {
        self.host_page_count(host).min(HOT_COUNT)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn every_url_leads_back_to_its_page() {
        for host_count in [1, 7] {
            let layout = Layout::new(2_000, host_count, "https", "site.example:8443");
            for index in 0..2_000 {
                assert_eq!(layout.index_of_url(&layout.url(index)), Some(index));
                assert!(layout.is_host_of(&layout.url(index)));
            }
            assert_eq!(layout.index_of_url(&layout.url(2_000)), None);
            let pages = (0..layout.host_count)
                .map(|host| layout.host_page_count(host))
                .sum::<u64>();
            assert_eq!(pages, 2_000);
        }
    }

    #[test]
    fn other_spellings_are_no_pages() {
        let layout = Layout::new(100, 2, "http", "site.example");
        let page = layout.url(9);
        assert_eq!(page, "http://h1.site.example/s0/p9.html");
        let others = [
            "http://h0.site.example/s0/p9.html",
            "https://h1.site.example/s0/p9.html",
            "http://h1.site.example/s0/p09.html",
            "http://h1.site.example/s0/x/../p9.html",
            "http://h1.site.example/s0/p9.html#a",
            "http://h1.site.example",
            "http://h1.site.example/robots.txt",
            "http://h0.site.example:80/",
            "",
        ];
        for url in others {
            assert_eq!(layout.index_of_url(url), None, "{url}");
        }
        assert!(layout.is_host_of("http://h1.site.example/robots.txt"));
        for url in [
            "http://h2.site.example/",
            "http://h01.site.example/",
            "http://site.example/",
            "http://evilsite.example/",
        ] {
            assert!(!layout.is_host_of(url), "{url}");
        }
    }
}
