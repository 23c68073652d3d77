//! The HTML of a generated page.

use std::fmt::Write;

use super::{layout::Layout, random::Random, spelling::href};

/// The text that all pages take their paragraphs from.
const TEXT_BYTES: usize = 64 * 1_024;

const PARAGRAPH_BYTES: usize = 600;

const WORDS: [&str; 32] = [
    "about",
    "after",
    "again",
    "almost",
    "before",
    "between",
    "called",
    "city",
    "different",
    "early",
    "every",
    "found",
    "garden",
    "great",
    "history",
    "house",
    "large",
    "light",
    "little",
    "many",
    "never",
    "other",
    "people",
    "place",
    "river",
    "small",
    "still",
    "through",
    "under",
    "water",
    "where",
    "world",
];

/// Returns plain words, free of markup, a bit more than [`TEXT_BYTES`] long.
pub(super) fn text(seed: u64) -> String {
    let mut random = Random::new(seed, u64::MAX);
    let mut text = String::with_capacity(TEXT_BYTES + 16);
    while text.len() < TEXT_BYTES + PARAGRAPH_BYTES {
        let word = usize::try_from(random.below(WORDS.len() as u64)).unwrap_or_default();
        text.push_str(WORDS[word]);
        text.push(' ');
    }
    text
}

/// Returns a page that has exactly these links and, unless they need more, exactly `page_bytes` bytes.
pub(super) fn html(
    layout: &Layout,
    seed: u64,
    index: u64,
    targets: &[u64],
    text: &str,
    page_bytes: usize,
) -> String {
    const END: &str = "</p>\n</body>\n</html>\n";
    // Another sequence than the one that chose the targets.
    let mut random = Random::new(seed.rotate_left(32) ^ 1, index);
    let mut page = String::with_capacity(page_bytes.max(4_096));
    push(
        &mut page,
        format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <title>Page {index} &amp; more</title>\n</head>\n<body>\n<h1>Page {index}</h1>\n<ul>\n"
        ),
    );
    for target in targets {
        let href = href(layout, &mut random, index, *target);
        push_link(&mut page, &mut random, &href, *target);
    }
    page.push_str("</ul>\n<p>");
    let mut left = page_bytes.saturating_sub(page.len() + END.len());
    while left > 0 {
        let begin = usize::try_from(random.below(TEXT_BYTES as u64)).unwrap_or_default();
        let paragraph = &text[begin..begin + left.min(PARAGRAPH_BYTES)];
        page.push_str(paragraph);
        left -= paragraph.len();
        if left > 8 {
            page.push_str("</p>\n<p>");
            left -= 8;
        }
    }
    page.push_str(END);
    page
}

/// Appends a list item with one link, quoted in one of the ways that HTML knows.
fn push_link(page: &mut String, random: &mut Random, href: &str, target: u64) {
    // Most pages escape ampersands; the others are read the same (WHATWG HTML, ambiguous ampersands apart).
    let href = if random.below(4) == 0 {
        href.to_owned()
    } else {
        href.replace('&', "&amp;")
    };
    let needs_quotes = href.contains([' ', '=']);
    match random.below(5) {
        0 if !needs_quotes => push(
            page,
            format_args!("<li><a href={href}>Page {target}</a></li>\n"),
        ),
        1 => push(
            page,
            format_args!("<li><A HREF='{href}' class=x>Page {target}</A></li>\n"),
        ),
        2 => push(
            page,
            format_args!("<li><a title=\"1 > 0\" href=\" {href}\n\">Page {target}</a></li>\n"),
        ),
        _ => push(
            page,
            format_args!("<li><a href=\"{href}\">Page {target}</a></li>\n"),
        ),
    }
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = page.write_fmt(text);
}
