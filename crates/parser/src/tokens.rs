//! The engine without a tree: tags in the order in which they stand, in bounded memory.

use std::cell::{Cell, RefCell};

use html5ever::{
    LocalName, Namespace, local_name, ns,
    tokenizer::{
        StartTag, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::{Rawtext, Rcdata, ScriptData},
    },
};

use crate::{
    feed::feed,
    gate::Gate,
    source::{Attr, Collector, LinkSource, OverBounds, RawPage, SourceText, Wanted},
};

/// Text of a title that is kept before white space is collapsed, in bytes.
const TITLE_BYTES_MAX: usize = 16_384;

/// Reads links off the tags.
///
/// It sees what the tree shows, but for misnested foreign content and elements that the tree builder would drop or
/// copy; no link of ordinary markup is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenSource;

impl LinkSource for TokenSource {
    fn read(&self, page: &SourceText<'_>, wanted: &Wanted<'_>) -> Result<RawPage, OverBounds> {
        let reader = TagReader::new(Collector::new(*wanted));
        let tokenizer = Tokenizer::new(Gate::new(reader, page.is_xhtml), TokenizerOpts::default());
        feed(&tokenizer, page.text, |_| true)?;
        Ok(tokenizer.sink.into_engine().collector.into_inner().finish())
    }
}

/// Reads tokens as they come.
struct TagReader<'a> {
    collector: RefCell<Collector<'a>>,
    template_depth: Cell<usize>,
    svg_depth: Cell<usize>,
    math_depth: Cell<usize>,
    /// The text of the title that is open.
    title: RefCell<Option<String>>,
}

impl<'a> TagReader<'a> {
    const fn new(collector: Collector<'a>) -> Self {
        Self {
            collector: RefCell::new(collector),
            template_depth: Cell::new(0),
            svg_depth: Cell::new(0),
            math_depth: Cell::new(0),
            title: RefCell::new(None),
        }
    }

    fn namespace(&self) -> Namespace {
        if self.svg_depth.get() > 0 {
            ns!(svg)
        } else if self.math_depth.get() > 0 {
            ns!(mathml)
        } else {
            ns!(html)
        }
    }

    fn start(&self, tag: &Tag) -> TokenSinkResult<()> {
        if breaks_out(&tag.name) {
            self.svg_depth.set(0);
            self.math_depth.set(0);
        }
        let namespace = self.namespace();
        if self.template_depth.get() == 0 {
            let attr = |attr| attr_of(tag, attr);
            // SVG within HTML within SVG is not tracked, but an old SVG link is plain to see.
            let is_svg_link = attr(Attr::Href).is_none() && attr(Attr::XlinkHref).is_some();
            let namespace = if is_svg_link { &ns!(svg) } else { &namespace };
            self.collector
                .borrow_mut()
                .element(namespace, &tag.name, &attr);
        }
        if !tag.self_closing {
            self.open_foreign(&tag.name);
        }
        if namespace != ns!(html) {
            return TokenSinkResult::Continue;
        }
        match tag.name {
            local_name!("template") => self.template_depth.set(self.template_depth.get() + 1),
            local_name!("title")
                if self.template_depth.get() == 0 && !self.collector.borrow().has_title() =>
            {
                *self.title.borrow_mut() = Some(String::new());
            }
            _ => {}
        }
        text_state(&tag.name)
    }

    fn open_foreign(&self, name: &LocalName) {
        let depth = match *name {
            local_name!("svg") => &self.svg_depth,
            local_name!("math") => &self.math_depth,
            _ => return,
        };
        depth.set(depth.get() + 1);
    }

    fn end_tag(&self, tag: &Tag) {
        let depth = match tag.name {
            local_name!("svg") => &self.svg_depth,
            local_name!("math") => &self.math_depth,
            local_name!("template") => &self.template_depth,
            local_name!("title") => return self.close_title(),
            _ => return,
        };
        depth.set(depth.get().saturating_sub(1));
    }

    fn close_title(&self) {
        if let Some(text) = self.title.borrow_mut().take() {
            self.collector.borrow_mut().title(&text);
        }
    }

    fn text(&self, text: &str) {
        if let Some(title) = &mut *self.title.borrow_mut()
            && title.len() < TITLE_BYTES_MAX
        {
            title.push_str(text);
        }
    }
}

impl TokenSink for TagReader<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) if tag.kind == StartTag => return self.start(&tag),
            Token::TagToken(tag) => self.end_tag(&tag),
            Token::CharacterTokens(text) => self.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn end(&self) {
        self.close_title();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.namespace() != ns!(html)
    }
}

/// How the text of an HTML element is read (HTML, section 13.2.6.4, scripting disabled).
fn text_state(name: &LocalName) -> TokenSinkResult<()> {
    match *name {
        local_name!("script") => TokenSinkResult::RawData(ScriptData),
        local_name!("style")
        | local_name!("xmp")
        | local_name!("iframe")
        | local_name!("noembed")
        | local_name!("noframes") => TokenSinkResult::RawData(Rawtext),
        local_name!("title") | local_name!("textarea") => TokenSinkResult::RawData(Rcdata),
        local_name!("plaintext") => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

/// Whether a start tag ends foreign content (HTML, section 13.2.6.5).
fn breaks_out(name: &LocalName) -> bool {
    const NAMES: [&str; 44] = [
        "b",
        "big",
        "blockquote",
        "body",
        "br",
        "center",
        "code",
        "dd",
        "div",
        "dl",
        "dt",
        "em",
        "embed",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "hr",
        "i",
        "img",
        "li",
        "listing",
        "menu",
        "meta",
        "nobr",
        "ol",
        "p",
        "pre",
        "ruby",
        "s",
        "small",
        "span",
        "strong",
        "strike",
        "sub",
        "sup",
        "table",
        "tt",
        "u",
        "ul",
        "var",
    ];
    NAMES.contains(&&**name)
}

fn attr_of(tag: &Tag, attr: Attr) -> Option<&str> {
    let local = match attr {
        Attr::Content => local_name!("content"),
        Attr::Href => local_name!("href"),
        Attr::HttpEquiv => local_name!("http-equiv"),
        Attr::Name => local_name!("name"),
        Attr::Rel => local_name!("rel"),
        Attr::Src => local_name!("src"),
        Attr::Type => local_name!("type"),
        Attr::XlinkHref => local_name!("xlink:href"),
    };
    tag.attrs
        .iter()
        .find(|attribute| attribute.name.local == local)
        .map(|attribute| &*attribute.value)
}
