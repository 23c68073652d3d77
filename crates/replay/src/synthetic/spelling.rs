//! The many ways in which pages spell a link, all of which canonicalize to the target's one URL.

use super::{layout::Layout, random::Random};

/// Returns a spelling of the link from one page to another, not yet escaped for HTML.
pub(super) fn href(layout: &Layout, random: &mut Random, from: u64, to: u64) -> String {
    let path = layout.path(to);
    let is_local = layout.host_of(from) == layout.host_of(to);
    let style = random.below(if is_local { 12 } else { 6 });
    let authority = layout.authority(to);
    match style {
        0 => layout.url(to),
        1 => format!("//{authority}{path}"),
        2 => format!(
            "{}://{}{path}",
            layout.scheme().to_ascii_uppercase(),
            authority.to_ascii_uppercase()
        ),
        3 => with_default_port(layout.scheme(), &authority, &path),
        4 => format!("{}#part-{}", layout.url(to), random.below(9)),
        5 => format!("{}://{authority}{}", layout.scheme(), other_escapes(&path)),
        6 | 7 => path,
        8 => relative(&layout.path(from), &path),
        9 => format!("./{}#top", relative(&layout.path(from), &path)),
        10 => format!("x/../{}", relative(&layout.path(from), &path)),
        _ => raw(&path),
    }
}

fn with_default_port(scheme: &str, authority: &str, path: &str) -> String {
    if authority.contains(':') {
        // The port is the site's own; nothing can be added to it.
        return format!("{scheme}://{authority}{path}");
    }
    let port = if scheme == "https" { 443 } else { 80 };
    format!("{scheme}://{authority}:{port}{path}")
}

/// Escapes what needs no escape, and writes the digits of the needed ones in lower case.
fn other_escapes(path: &str) -> String {
    let mut spelled = String::with_capacity(path.len() + 2);
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        spelled.push_str(&rest[..at]);
        let escape_end = (at + 3).min(rest.len());
        spelled.push_str(&rest[at..escape_end].to_ascii_lowercase());
        rest = &rest[escape_end..];
    }
    spelled.push_str(rest);
    for (plain, escaped) in [("/~u", "/%7Eu"), ("/s", "/%73"), (".html", "%2ehtml")] {
        spelled = spelled.replacen(plain, escaped, 1);
    }
    spelled
}

/// Writes letters beyond ASCII as they are.
fn raw(path: &str) -> String {
    path.replace("%C3%A9", "\u{e9}")
        .replace("%D9%85%D9%82%D8%A7%D9%84", "\u{645}\u{642}\u{627}\u{644}")
        .replace("%20", " ")
}

/// Returns the way from one path to another on the same host, never empty (RFC 3986 section 4.2).
fn relative(from: &str, to: &str) -> String {
    let from = from.split('?').next().unwrap_or_default();
    let folder = &from[..from.rfind('/').map_or(0, |at| at + 1)];
    let to_path_end = to.find('?').unwrap_or(to.len());
    // The common part ends after a slash of both.
    let same = folder
        .bytes()
        .zip(to[..to_path_end].bytes())
        .take_while(|(one, other)| one == other)
        .count();
    let common = folder[..same].rfind('/').map_or(0, |at| at + 1);
    let up = "../".repeat(folder[common..].matches('/').count());
    let way = format!("{up}{}", &to[common..]);
    if way.is_empty() || way.starts_with('?') {
        format!("./{way}")
    } else {
        way
    }
}

#[cfg(test)]
mod tests {
    use super::{other_escapes, raw, relative};

    #[test]
    fn ways_between_paths() {
        let cases = [
            ("/", "/", "./"),
            ("/", "/s0/p9.html", "s0/p9.html"),
            ("/s0/p9.html", "/s0/p10.html", "p10.html"),
            (
                "/s0/p9.html",
                "/s1/list?page=51&view=full",
                "../s1/list?page=51&view=full",
            ),
            ("/s1/list?page=51&view=a/b", "/search?q=x", "../search?q=x"),
            ("/~u3/p150/", "/~u3/p150/", "./"),
            ("/~u3/p150/", "/~u3/p151/", "../p151/"),
            ("/s0/caf%C3%A9/3", "/", "../../"),
        ];
        for (from, to, way) in cases {
            assert_eq!(relative(from, to), way, "{from} to {to}");
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(other_escapes("/s1/caf%C3%A9/3"), "/%731/caf%c3%a9/3");
        assert_eq!(other_escapes("/~u1/p5/"), "/%7Eu1/p5/");
        assert_eq!(raw("/s1/a%20b/caf%C3%A9"), "/s1/a b/café");
    }
}
