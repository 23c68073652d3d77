//! The optional rules: which parameters are tracking or session ids, and how queries are sorted.

use super::CanonicalOptions;

/// Beginnings of the names of tracking parameters, lower case: Google Analytics and Matomo.
const TRACKING_PREFIXES: [&str; 4] = ["utm_", "mtm_", "matomo_", "piwik_"];

/// Names of tracking parameters, lower case: click ids of advertisers, ids of mailings, campaign names.
const TRACKING_NAMES: &[&str] = &[
    "__hsfp",
    "__hssc",
    "__hstc",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "_openstat",
    "dclid",
    "epik",
    "fbclid",
    "gad_campaignid",
    "gad_source",
    "gbraid",
    "gclid",
    "gclsrc",
    "hsctatracking",
    "igsh",
    "igshid",
    "irclickid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "pk_campaign",
    "pk_cid",
    "pk_content",
    "pk_keyword",
    "pk_kwd",
    "pk_medium",
    "pk_source",
    "rb_clickid",
    "srsltid",
    "ttclid",
    "twclid",
    "wbraid",
    "yclid",
    "ysclid",
];

/// Names that mean a session id whatever the value, lower case.
const SESSION_NAMES: [&str; 4] = ["cfid", "cftoken", "jsessionid", "phpsessid"];

/// The name of classic ASP's session id, which goes on with eight letters; lower case.
const ASP_SESSION_PREFIX: &str = "aspsessionid";

/// The length of an ASP.NET session id, in bytes.
const ASPNET_SESSION_BYTES: usize = 24;

/// Names that mean a session id only with the value of one: `sid` is also a story, `session_id` also a talk.
const SESSION_NAMES_BY_VALUE: [&str; 5] = ["session", "session_id", "sessionid", "sessid", "sid"];

/// The shortest value of an ambiguous name that is taken for a session id, in bytes.
const SESSION_VALUE_BYTES_MIN: usize = 16;

/// Returns `query` as the options want it, perhaps empty; `None` where they change nothing.
pub(super) fn query(query: &str, options: &CanonicalOptions) -> Option<String> {
    if !(options.drop_tracking || options.drop_session_ids || options.sort_query) {
        return None;
    }
    let is_kept = |parameter: &&str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !(options.drop_tracking && is_tracking(name)
            || options.drop_session_ids && is_session(name, value)
            || options.sort_query && parameter.is_empty())
    };
    let mut parameters: Vec<&str> = query.split('&').filter(is_kept).collect();
    if options.sort_query {
        parameters.sort_by_key(|parameter| parameter.split('=').next());
    }
    let stripped = parameters.join("&");
    (stripped != query).then_some(stripped)
}

/// Returns `path` without `;jsessionid=` parameters and the segments in which ASP.NET keeps a session
/// (`/(S(lit3py55t21z5v55vlm25s55))/`); `None` where it has none.
///
/// A parameter runs to the next `;` or `/` (RFC 3986, section 3.3). A segment that would be left as `.` or
/// `..` keeps its session id, since dropping it would turn a name into a step through the tree.
pub(super) fn session_path(path: &str) -> Option<String> {
    if !path.contains([';', '(']) {
        return None;
    }
    let mut stripped = String::with_capacity(path.len());
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        if !is_last && is_aspnet_session(segment) {
            continue;
        }
        stripped.push_str(&session_segment(segment));
        if !is_last {
            stripped.push('/');
        }
    }
    (stripped != path).then_some(stripped)
}

/// Returns whether a path segment is `(`, then groups such as `S(lit3py55t21z5v55vlm25s55)`, then `)`.
fn is_aspnet_session(segment: &str) -> bool {
    let Some(groups) = segment
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix("))"))
    else {
        return false;
    };
    groups.split(')').all(|group| {
        group.split_once('(').is_some_and(|(kind, id)| {
            matches!(kind, "A" | "F" | "S" | "a" | "f" | "s")
                && id.len() == ASPNET_SESSION_BYTES
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    })
}

/// Returns a path segment without its session id.
fn session_segment(segment: &str) -> String {
    let is_kept = |parameter: &&str| {
        !parameter
            .split_once('=')
            .is_some_and(|(name, _)| name.eq_ignore_ascii_case("jsessionid"))
    };
    let mut pieces = segment.split(';');
    let mut stripped = pieces.next().unwrap_or_default().to_owned();
    for parameter in pieces.filter(is_kept) {
        stripped.push(';');
        stripped.push_str(parameter);
    }
    if matches!(stripped.as_str(), "." | "..") {
        return segment.to_owned();
    }
    stripped
}

/// Returns whether a parameter's name is one that tracks where a visitor came from.
fn is_tracking(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TRACKING_NAMES.contains(&name.as_str())
        || TRACKING_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Returns whether a parameter holds a session id.
fn is_session(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_asp = name
        .strip_prefix(ASP_SESSION_PREFIX)
        .is_some_and(|rest| rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_lowercase()));
    is_asp
        || SESSION_NAMES.contains(&name.as_str())
        || SESSION_NAMES_BY_VALUE.contains(&name.as_str()) && is_session_value(value)
}

/// Returns whether a value looks like a session id: long, of the characters that PHP and others draw from,
/// and with a digit, unlike a slug.
fn is_session_value(value: &str) -> bool {
    value.len() >= SESSION_VALUE_BYTES_MIN
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b','))
}

#[cfg(test)]
mod tests {
    use super::{query, session_path};
    use crate::CanonicalOptions;

    #[test]
    fn tracking_parameters_go_and_others_stay() {
        let options = CanonicalOptions {
            drop_tracking: true,
            ..CanonicalOptions::default()
        };
        for (text, expected) in [
            ("utm_source=x&a=1&UTM_Medium=y&gclid=z&b", "a=1&b"),
            ("fbclid=1", ""),
            ("a=1&&utm_id=2&", "a=1&&"),
            (
                "utm=1&source=utm_source&pk_id=7&pk=1",
                "utm=1&source=utm_source&pk_id=7&pk=1",
            ),
            ("b=2&a=1", "b=2&a=1"),
        ] {
            assert_eq!(
                query(text, &options).as_deref().unwrap_or(text),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn session_parameters_go_where_they_are_sure() {
        let options = CanonicalOptions {
            drop_session_ids: true,
            ..CanonicalOptions::default()
        };
        for (text, expected) in [
            ("PHPSESSID=ab12&x=2", "x=2"),
            ("x=2&jsessionid=1&CFID=3&CFTOKEN=4", "x=2"),
            ("ASPSESSIONIDQQABCDEF=LKJ&x", "x"),
            (
                "aspsessionid=1&aspsessionidlist=2",
                "aspsessionid=1&aspsessionidlist=2",
            ),
            ("sid=0123456789abcdef0123456789abcdef", ""),
            (
                "sid=4711&session_id=12&sid=a-long-slug-without-number",
                "sid=4711&session_id=12&sid=a-long-slug-without-number",
            ),
            (
                "sid=05/01/01/12345678&residue=1",
                "sid=05/01/01/12345678&residue=1",
            ),
            ("utm_source=x", "utm_source=x"),
        ] {
            assert_eq!(
                query(text, &options).as_deref().unwrap_or(text),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn sorting_is_by_name_and_stable() {
        let options = CanonicalOptions {
            sort_query: true,
            ..CanonicalOptions::default()
        };
        for (text, expected) in [
            ("b=1&a=2&a=1", "a=2&a=1&b=1"),
            ("b&a=1&&=3&", "=3&a=1&b"),
            ("a=1&a-b=2&a", "a=1&a&a-b=2"),
            ("&", ""),
        ] {
            assert_eq!(
                query(text, &options).as_deref().unwrap_or(text),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn nothing_happens_without_an_option() {
        assert_eq!(
            query("utm_source=b&PHPSESSID=1&a", &CanonicalOptions::default()),
            None
        );
    }

    #[test]
    fn session_path_parameters_run_to_their_end() {
        for (path, expected) in [
            ("/p;jsessionid=E4.tp_2", "/p"),
            ("/p;JSESSIONID=E4!1!2;v=1/q;jsessionid=", "/p;v=1/q"),
            ("/;jsessionid=1/", "//"),
            ("/a;v=1/b;w", "/a;v=1/b;w"),
            (
                "/a;jsessionid/b;xjsessionid=1",
                "/a;jsessionid/b;xjsessionid=1",
            ),
            ("/a/..;jsessionid=1/b", "/a/..;jsessionid=1/b"),
            ("/.;jsessionid=1", "/.;jsessionid=1"),
            ("/..a;jsessionid=1", "/..a"),
            ("/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "/a.aspx"),
            (
                "/x/(a(4hqa0555fwsecu455xqckv45)S(4hqa0555fwsecu455xqckv45))/",
                "/x/",
            ),
            (
                "/(S(lit3py55t21z5v55vlm25s55))",
                "/(S(lit3py55t21z5v55vlm25s55))",
            ),
            (
                "/(S(short))/(a)/()/(x(lit3py55t21z5v55vlm25s55))/",
                "/(S(short))/(a)/()/(x(lit3py55t21z5v55vlm25s55))/",
            ),
        ] {
            assert_eq!(
                session_path(path).as_deref().unwrap_or(path),
                expected,
                "{path}"
            );
        }
    }
}
