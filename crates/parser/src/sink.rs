//! The tree as a crawler needs it: scraper's sink, given elements and titles only.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, Ref},
};

use html5ever::{
    Attribute, QualName, expanded_name,
    interface::{ElementFlags, NodeOrText, QuirksMode, Tracer, TreeSink},
    local_name, ns,
    tendril::StrTendril,
};
use scraper::{Html, HtmlTreeSink};

/// A node of scraper's tree.
type NodeId = <HtmlTreeSink as TreeSink>::Handle;

/// Builds scraper's tree without comments, processing instructions, and text outside of titles.
pub(crate) struct LinkTreeSink {
    inner: HtmlTreeSink,
    element_count: Cell<usize>,
    /// The one node that stands for every comment and never is in the tree.
    placeholder: OnceCell<NodeId>,
}

impl LinkTreeSink {
    pub(crate) fn new() -> Self {
        Self {
            inner: HtmlTreeSink::new(Html::new_document()),
            element_count: Cell::new(0),
            placeholder: OnceCell::new(),
        }
    }

    /// Elements made so far, copies included that the tree builder makes of misnested ones.
    pub(crate) const fn element_count(&self) -> usize {
        self.element_count.get()
    }

    fn placeholder(&self) -> NodeId {
        *self
            .placeholder
            .get_or_init(|| self.inner.create_comment(StrTendril::new()))
    }

    fn is_placeholder(&self, node: &NodeOrText<NodeId>) -> bool {
        matches!(node, NodeOrText::AppendNode(id) if self.placeholder.get() == Some(id))
    }

    fn is_title(&self, node: NodeId) -> bool {
        let html = self.inner.0.borrow();
        html.tree
            .get(node)
            .and_then(|node| node.value().as_element())
            .is_some_and(|element| element.name.expanded() == expanded_name!(html "title"))
    }
}

impl TreeSink for LinkTreeSink {
    type Output = Html;
    type Handle = NodeId;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Html {
        self.inner.finish()
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        self.inner.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Ref<'a, QualName> {
        self.inner.elem_name(target)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        self.element_count.set(self.element_count.get() + 1);
        self.inner.create_element(name, attrs, flags)
    }

    fn create_comment(&self, _text: StrTendril) -> NodeId {
        self.placeholder()
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> NodeId {
        self.placeholder()
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        let is_kept = match child {
            NodeOrText::AppendText(_) => self.is_title(*parent),
            NodeOrText::AppendNode(_) => !self.is_placeholder(&child),
        };
        if is_kept {
            self.inner.append(parent, child);
        }
    }

    fn append_based_on_parent_node(
        &self,
        element: &NodeId,
        previous: &NodeId,
        child: NodeOrText<NodeId>,
    ) {
        // Text beside a table is never in a title.
        if matches!(child, NodeOrText::AppendNode(_)) && !self.is_placeholder(&child) {
            self.inner
                .append_based_on_parent_node(element, previous, child);
        }
    }

    fn append_doctype_to_document(
        &self,
        _name: StrTendril,
        _public_id: StrTendril,
        _system_id: StrTendril,
    ) {
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        self.inner.get_template_contents(target)
    }

    fn same_node(&self, one: &NodeId, other: &NodeId) -> bool {
        one == other
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &NodeId, new_node: NodeOrText<NodeId>) {
        if matches!(new_node, NodeOrText::AppendNode(_)) && !self.is_placeholder(&new_node) {
            self.inner.append_before_sibling(sibling, new_node);
        }
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attrs: Vec<Attribute>) {
        self.inner.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.inner.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        self.inner.reparent_children(node, new_parent);
    }
}

/// Counts what a tree builder holds on to: its open elements and its active formatting elements.
#[derive(Default)]
pub(crate) struct HeldCount(pub(crate) Cell<usize>);

impl Tracer for HeldCount {
    type Handle = NodeId;

    fn trace_handle(&self, _node: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}
