//! What stands between the tokenizer and an engine: it keeps only attributes that matter, and closes XHTML's empty
//! elements.

use std::cell::Cell;

use html5ever::{
    Attribute, LocalName, local_name,
    tokenizer::{EndTag, StartTag, Tag, TagToken, Token, TokenSink, TokenSinkResult},
};

/// Hands tokens on to an engine.
///
/// Attributes that no engine asks for are dropped. That saves most of a page's memory. It also bounds the work of the
/// tree: the list of active formatting elements holds at most three alike elements (HTML, section 13.2.4.3), and
/// without `class`, `style` and `id` nearly all of one name are alike.
pub(crate) struct Gate<S> {
    engine: S,
    is_xhtml: bool,
    is_in_noscript: Cell<bool>,
    has_progressed: Cell<bool>,
}

impl<S: TokenSink> Gate<S> {
    pub(crate) const fn new(engine: S, is_xhtml: bool) -> Self {
        Self {
            engine,
            is_xhtml,
            is_in_noscript: Cell::new(false),
            has_progressed: Cell::new(false),
        }
    }

    pub(crate) const fn engine(&self) -> &S {
        &self.engine
    }

    pub(crate) fn into_engine(self) -> S {
        self.engine
    }

    /// Whether a token was completed since the last call.
    pub(crate) fn take_progress(&self) -> bool {
        self.has_progressed.take()
    }

    /// Drops attributes. A `base` within `noscript` counts for nobody who runs scripts, so the site does not rely on it
    /// for its links: it loses its `href`.
    fn keep_what_matters(&self, tag: &mut Tag) {
        if tag.name == local_name!("noscript") {
            let is_empty = self.is_xhtml && tag.self_closing;
            self.is_in_noscript.set(tag.kind == StartTag && !is_empty);
        }
        if tag.name == local_name!("base") && self.is_in_noscript.get() {
            tag.attrs.clear();
        }
        let name = &tag.name;
        tag.attrs.retain(|attribute| matters(name, attribute));
    }

    /// Hands on `<script/>` as `<script></script>`, so that what follows is not its text.
    fn empty_element(&self, mut tag: Tag, line: u64) -> TokenSinkResult<S::Handle> {
        tag.self_closing = false;
        let end = Tag {
            kind: EndTag,
            attrs: Vec::new(),
            ..tag.clone()
        };
        // Which state the start tag asks of the tokenizer does not matter: the element is over.
        let _ = self.engine.process_token(TagToken(tag), line);
        let _ = self.engine.process_token(TagToken(end), line);
        TokenSinkResult::Continue
    }
}

impl<S: TokenSink> TokenSink for Gate<S> {
    type Handle = S::Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<S::Handle> {
        let result = match token {
            // Errors come from within a token that is still open; nobody reads them.
            Token::ParseError(_) => return TokenSinkResult::Continue,
            TagToken(mut tag) => {
                self.keep_what_matters(&mut tag);
                let is_html = !self
                    .engine
                    .adjusted_current_node_present_but_not_in_html_namespace();
                if self.is_xhtml
                    && tag.kind == StartTag
                    && tag.self_closing
                    && is_html
                    && !is_void(&tag.name)
                {
                    self.empty_element(tag, line)
                } else {
                    self.engine.process_token(TagToken(tag), line)
                }
            }
            other => self.engine.process_token(other, line),
        };
        self.has_progressed.set(true);
        match result {
            // No script runs, and the encoding is settled.
            TokenSinkResult::Script(_) | TokenSinkResult::EncodingIndicator(_) => {
                TokenSinkResult::Continue
            }
            other => other,
        }
    }

    fn end(&self) {
        self.engine.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.engine
            .adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Whether an attribute says something to a crawler, or changes where the tree builder puts elements (`type` of a
/// hidden input in a table, the three of `font` and `encoding` around foreign content).
fn matters(element: &LocalName, attribute: &Attribute) -> bool {
    let name = &attribute.name.local;
    match *element {
        local_name!("a") | local_name!("area") => {
            matches!(
                *name,
                local_name!("href") | local_name!("rel") | local_name!("xlink:href")
            )
        }
        local_name!("base") => matches!(*name, local_name!("href")),
        local_name!("link") => matches!(
            *name,
            local_name!("href") | local_name!("rel") | local_name!("type")
        ),
        local_name!("iframe") | local_name!("frame") => matches!(*name, local_name!("src")),
        local_name!("meta") => {
            matches!(
                *name,
                local_name!("content") | local_name!("http-equiv") | local_name!("name")
            )
        }
        local_name!("input") => matches!(*name, local_name!("type")),
        local_name!("font") => matches!(
            *name,
            local_name!("color") | local_name!("face") | local_name!("size")
        ),
        local_name!("annotation-xml") => matches!(*name, local_name!("encoding")),
        _ => false,
    }
}

/// Elements that are empty in HTML, too, or that the tree builder closes itself (`svg`, `math`).
fn is_void(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("area")
            | local_name!("base")
            | local_name!("basefont")
            | local_name!("bgsound")
            | local_name!("br")
            | local_name!("col")
            | local_name!("embed")
            | local_name!("frame")
            | local_name!("hr")
            | local_name!("img")
            | local_name!("input")
            | local_name!("link")
            | local_name!("math")
            | local_name!("meta")
            | local_name!("param")
            | local_name!("source")
            | local_name!("svg")
            | local_name!("track")
            | local_name!("wbr")
    )
}
