//! The reference engine: html5ever's tree builder on scraper's tree.

use html5ever::{
    local_name, ns,
    tokenizer::{Tokenizer, TokenizerOpts},
    tree_builder::{TreeBuilder, TreeBuilderOpts, TreeSink},
};
use scraper::{Html, Node, node::Element};

use crate::{
    feed::feed,
    gate::Gate,
    sink::{HeldCount, LinkTreeSink},
    source::{Attr, Collector, LinkSource, OverBounds, RawPage, SourceText, Wanted},
};

/// Text beyond which no tree is made, in bytes.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Elements beyond which the tree is given up: about 60 MB of it. The largest page of documentation on one page has
/// about this many.
const ELEMENTS_MAX: usize = 250_000;

/// Reads links off the tree that browsers without scripting make of the page.
///
/// The tree builder searches the open elements at nearly every tag, which is quadratic in the depth, and can multiply
/// misnested elements; so both are looked at while the page is fed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeSource {
    /// Elements open at once.
    pub(crate) nesting_max: usize,
}

impl LinkSource for TreeSource {
    fn read(&self, page: &SourceText<'_>, wanted: &Wanted<'_>) -> Result<RawPage, OverBounds> {
        if page.text.len() > TEXT_BYTES_MAX {
            return Err(OverBounds);
        }
        // Without scripting the content of noscript is markup, as it is to a crawler.
        let options = TreeBuilderOpts {
            scripting_enabled: false,
            ..TreeBuilderOpts::default()
        };
        let builder = TreeBuilder::new(LinkTreeSink::new(), options);
        let tokenizer = Tokenizer::new(Gate::new(builder, page.is_xhtml), TokenizerOpts::default());
        feed(&tokenizer, page.text, |builder| {
            let held = HeldCount::default();
            builder.trace_handles(&held);
            held.0.get() <= self.nesting_max && builder.sink.element_count() <= ELEMENTS_MAX
        })?;
        let html = tokenizer.sink.into_engine().sink.finish();
        Ok(collect(&html, wanted))
    }
}

/// Walks the tree in document order, passing over the contents of templates, which are inert (HTML, section 4.12.3).
fn collect(html: &Html, wanted: &Wanted<'_>) -> RawPage {
    let mut collector = Collector::new(*wanted);
    let mut node = html.tree.root();
    loop {
        let mut is_inert = false;
        if let Node::Element(element) = node.value() {
            let name = &element.name;
            collector.element(&name.ns, &name.local, &|attr| attr_of(element, attr));
            let is_html = name.ns == ns!(html);
            is_inert = is_html && name.local == local_name!("template");
            if is_html && name.local == local_name!("title") && !collector.has_title() {
                let text: String = node
                    .children()
                    .filter_map(|child| child.value().as_text().map(|text| &**text))
                    .collect();
                collector.title(&text);
            }
        }
        let mut next = if is_inert { None } else { node.first_child() };
        while next.is_none() {
            next = node.next_sibling();
            if next.is_none() {
                let Some(parent) = node.parent() else {
                    return collector.finish();
                };
                node = parent;
            }
        }
        let Some(found) = next else {
            return collector.finish();
        };
        node = found;
    }
}

fn attr_of(element: &Element, attr: Attr) -> Option<&str> {
    let (namespace, local) = match attr {
        Attr::Content => (ns!(), local_name!("content")),
        Attr::Href => (ns!(), local_name!("href")),
        Attr::HttpEquiv => (ns!(), local_name!("http-equiv")),
        Attr::Name => (ns!(), local_name!("name")),
        Attr::Rel => (ns!(), local_name!("rel")),
        Attr::Src => (ns!(), local_name!("src")),
        Attr::Type => (ns!(), local_name!("type")),
        Attr::XlinkHref => (ns!(xlink), local_name!("href")),
    };
    let found = element
        .attrs
        .iter()
        .find(|(name, _)| name.ns == namespace && name.local == local);
    found.map(|(_, value)| &**value)
}
