//! Links that a server makes without end: relative ones that it resolves to itself, so that their parts come again and
//! again.
//!
//! A site that answers everything, and links to `infra/www/` from each of its pages, has pages at `infra/www/infra/www/` and
//! so on; one that adds an empty parameter to its query has as many. Such pages are told by their addresses alone.

use types::CanonicalUrl;

/// Says whether a part of a URL comes in it more than `max` times: a segment of its path that has a letter, two segments of
/// it that are neighbours, or a parameter of its query together with its value.
///
/// Segments without a letter are values as a rule (`/price/-1/size/-1`), and come again in honest paths.
pub(super) fn repeats_more_than(url: &CanonicalUrl, max: usize) -> bool {
    let text = url.path_and_query();
    // Most URLs have fewer parts than may be alike.
    let parts = text.bytes().filter(|byte| matches!(byte, b'/' | b'&'));
    if parts.count() <= max {
        return false;
    }
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let segments: Vec<&str> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    let pairs = segments.windows(2).map(|pair| (pair[0], pair[1]));
    let words = segments
        .iter()
        .filter(|segment| segment.bytes().any(|byte| byte.is_ascii_alphabetic()));
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    has_run(words.collect(), max)
        || has_run(pairs.collect(), max)
        || has_run(parameters.collect(), max)
}

/// Whether more than `max` items are equal.
fn has_run<T: Ord>(mut items: Vec<T>, max: usize) -> bool {
    items.sort_unstable();
    items
        .windows(max.saturating_add(1))
        .any(|run| run.first() == run.last())
}

#[cfg(test)]
mod tests {
    use types::Canonicalizer;

    use super::repeats_more_than;

    fn repeats(path: &str, max: usize) -> bool {
        let url = Canonicalizer::default()
            .canonicalize(&format!("http://example.org{path}"))
            .expect("a valid URL");
        repeats_more_than(&url, max)
    }

    #[test]
    fn parts_that_come_too_often() {
        for path in [
            "/infra/www/infra/www/infra/www/",
            "/a/x/a/y/a/z",
            "/1/2/1/2/1/2/",
            "/?q=&q=&q=",
            "/x?q=1&r=2&q=1&q=1",
            "/any/any/any/",
        ] {
            assert!(repeats(path, 2), "{path}");
            assert!(!repeats(path, 3), "{path}");
        }
    }

    #[test]
    fn honest_addresses() {
        for path in [
            "/",
            "/a/b/c/d/e/f/g/h",
            "/country/-1/state/-1/city/-1/location/-1/company/-1",
            "/2011/11/11/11",
            "/?id=1&id=2&id=3&id=4",
            "/?a=1&b=1&c=1&d=1",
            "//////x",
        ] {
            assert!(!repeats(path, 2), "{path}");
        }
    }
}
