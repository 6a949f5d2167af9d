//! Pages: the part that people read, with its links.

use crate::{budget::Limits, converted, markdown::line, text};
use htmd::{
    HtmlToMarkdown, Node,
    options::{BulletListMarker, Options},
};
use html5ever::{
    ParseOpts, parse_document,
    tendril::{StrTendril, TendrilSink},
    tree_builder::TreeBuilderOpts,
};
use markup5ever_rcdom::{NodeData, RcDom};
use ports::{Converted, NotConverted};
use serde_json::json;
use std::{
    collections::{BTreeSet, HashSet},
    rc::Rc,
};

/// Elements that are no text of a page.
const NO_TEXT: [&str; 11] =
    ["script", "style", "noscript", "template", "svg", "iframe", "object", "button", "input", "select", "canvas"];
/// Elements around the text of a page.
const AROUND: [&str; 4] = ["nav", "header", "footer", "aside"];
/// Words in the class or the id of a part beside the text of a page.
const BESIDE: [&str; 15] = [
    "ad",
    "ads",
    "breadcrumb",
    "breadcrumbs",
    "consent",
    "cookie",
    "cookies",
    "footer",
    "menu",
    "nav",
    "navbar",
    "navigation",
    "newsletter",
    "popup",
    "sidebar",
];
/// How much of a page is parsed before its depth is looked at, in bytes.
const AT_ONCE: usize = 4 * 1024;
/// The least of a paragraph that counts, in bytes.
const PARAGRAPH: usize = 25;
/// A part of a page counts as its text when it has at least one of so many of the page's characters.
const SHARE: usize = 3;

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let (markdown, title) = page(&text::decode_page(content), limits, true)?;
    Ok(converted(markdown, [("title", json!(title))]))
}

/// A page as Markdown, and its title. With `main` only the part that people read.
pub(crate) fn page(html: &str, limits: &Limits, main: bool) -> Result<(String, String), NotConverted> {
    let (marker, spacing) = (BulletListMarker::Dash, 1);
    let options = Options {
        bullet_list_marker: marker,
        ul_bullet_spacing: spacing,
        ol_number_spacing: spacing,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder().options(options).build();
    let tree = parse(html, limits)?;
    let title = first(&tree, "title").map(|node| line(&words(&node))).unwrap_or_default();
    prune(&tree, if main { &AROUND } else { &[] });
    Measured::of(&tree).clear_forms();
    let root = if main { readable(&tree) } else { None };
    let markdown = converter.tree_to_markdown(root.as_ref().unwrap_or(&tree));
    limits.fits(markdown.len())?;
    Ok((markdown, title))
}

/// The tree of a page.
///
/// For most tags the parser looks at all elements that are open, so it would take hours for a page that opens them without end. Such a page is refused
/// at the first piece that is too deep: the open elements are the last ones of each other. What the parser moves in front of a table is not; its depth
/// is looked at in the end.
fn parse(html: &str, limits: &Limits) -> Result<Rc<Node>, NotConverted> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(RcDom::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
    let (mut left, most) = (html, limits.page_depth());
    while !left.is_empty() {
        let (piece, rest) = left.split_at(left.floor_char_boundary(AT_ONCE));
        parser.process(StrTendril::from(piece));
        if depth_of_last(&parser.tokenizer.sink.sink.document) > most {
            return Err(limits.too_deep(most));
        }
        left = rest;
    }
    let tree = parser.finish().document;
    if depth(&tree) > most { Err(limits.too_deep(most)) } else { Ok(tree) }
}

/// How many nodes are on the way to the last one.
fn depth_of_last(root: &Rc<Node>) -> usize {
    let last = |node: &Rc<Node>| node.children.borrow().last().cloned();
    std::iter::successors(last(root), last).count()
}

/// How many nodes are on the way to the deepest one.
fn depth(root: &Rc<Node>) -> usize {
    let (mut deepest, mut left) = (0, vec![(root.clone(), 0)]);
    while let Some((node, depth)) = left.pop() {
        deepest = deepest.max(depth);
        left.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1)));
    }
    deepest
}

fn name(node: &Node) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

/// All nodes, each before those in it; without recursion, because pages can be nested without end.
fn nodes(root: &Rc<Node>) -> impl Iterator<Item = Rc<Node>> {
    let mut left = vec![root.clone()];
    std::iter::from_fn(move || {
        let node = left.pop()?;
        left.extend(node.children.borrow().iter().rev().cloned());
        Some(node)
    })
}

fn first(root: &Rc<Node>, wanted: &str) -> Option<Rc<Node>> {
    nodes(root).find(|node| name(node) == wanted)
}

fn words(root: &Rc<Node>) -> String {
    let mut text = String::new();
    for node in nodes(root) {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        }
    }
    text
}

/// Takes out what is no text of the page.
fn prune(root: &Rc<Node>, around: &[&str]) {
    for node in nodes(root) {
        // The heading of an article is its text.
        let in_article = matches!(name(&node), "article" | "main");
        node.children.borrow_mut().retain(|child| {
            let name = name(child);
            let is_head = name == "title";
            !is_head && !NO_TEXT.contains(&name) && (in_article && name == "header" || !around.contains(&name))
        });
    }
}

/// The elements and texts of a page with the lengths of their texts, which are counted once: pages can be nested without end.
struct Measured {
    /// Each before those in it.
    nodes: Vec<Rc<Node>>,
    /// The position of the one around it; of the page itself its own.
    around: Vec<usize>,
    /// The bytes of text in it, and those of them in links, without space.
    words: Vec<usize>,
    linked: Vec<usize>,
}

impl Measured {
    fn of(root: &Rc<Node>) -> Self {
        let (mut nodes, mut around, mut left) = (Vec::new(), Vec::new(), vec![(root.clone(), 0)]);
        while let Some((node, above)) = left.pop() {
            let at = nodes.len();
            left.extend(node.children.borrow().iter().rev().map(|child| (child.clone(), at)));
            nodes.push(node);
            around.push(above);
        }
        let own = |node: &Rc<Node>| match &node.data {
            NodeData::Text { contents } => contents.borrow().split_whitespace().map(str::len).sum(),
            _ => 0,
        };
        let mut words: Vec<usize> = nodes.iter().map(own).collect();
        let mut linked = vec![0; nodes.len()];
        for at in (1..nodes.len()).rev() {
            if name(&nodes[at]) == "a" {
                linked[at] = words[at];
            }
            let (text, links) = (words[at], linked[at]);
            words[around[at]] += text;
            linked[around[at]] += links;
        }
        Self { nodes, around, words, linked }
    }

    /// Whether it has enough of the page's text.
    fn is_most(&self, at: usize) -> bool {
        self.words[at] * SHARE >= self.words[0]
    }

    fn longest(&self, wanted: &str) -> Option<usize> {
        let all = (0..self.nodes.len()).filter(|at| name(&self.nodes[*at]) == wanted);
        all.max_by_key(|at| self.words[*at])
    }

    /// Takes out forms, such as those of a search or a login. A form with enough of the page's text stays: some servers put the whole page into one.
    fn clear_forms(&self) {
        let forms = (1..self.nodes.len()).filter(|at| name(&self.nodes[*at]) == "form" && !self.is_most(*at));
        let gone: HashSet<*const Node> = forms.map(|at| Rc::as_ptr(&self.nodes[at])).collect();
        if gone.is_empty() {
            return;
        }
        for node in &self.nodes {
            node.children.borrow_mut().retain(|child| !gone.contains(&Rc::as_ptr(child)));
        }
    }

    /// Takes out the parts whose class or id says that they are beside the text; nothing when they are most of the page.
    fn clear(&self) {
        let called = |node: &Rc<Node>| {
            let names = format!("{} {}", attribute(node, "class"), attribute(node, "id")).to_ascii_lowercase();
            names.split(|c: char| !c.is_alphanumeric()).any(|word| BESIDE.contains(&word))
        };
        let mut goes = vec![false; self.nodes.len()];
        let (mut length, mut outermost) = (0, Vec::new());
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            let is_inside = goes[self.around[at]];
            goes[at] = is_inside || called(node);
            if goes[at] && !is_inside {
                length += self.words[at];
                outermost.push(at);
            }
        }
        if length * 2 > self.words[0] {
            return;
        }
        let gone: HashSet<*const Node> = outermost.iter().map(|at| Rc::as_ptr(&self.nodes[*at])).collect();
        let parents: BTreeSet<usize> = outermost.iter().map(|at| self.around[*at]).collect();
        for parent in parents {
            self.nodes[parent].children.borrow_mut().retain(|child| !gone.contains(&Rc::as_ptr(child)));
        }
    }

    /// The element around most paragraphs; links in them do not count. A paragraph counts for the element around it, and half for the one around that:
    /// a page has its text in several parts at times.
    fn densest(&self) -> Option<usize> {
        let mut scores = vec![0; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if matches!(name(node), "p" | "pre" | "blockquote") && self.words[at] >= PARAGRAPH {
                let score = self.words[at] - self.linked[at].min(self.words[at]);
                scores[self.around[at]] += score;
                scores[self.around[self.around[at]]] += score / 2;
            }
        }
        (0..scores.len()).filter(|at| scores[*at] > 0).max_by_key(|at| scores[*at])
    }
}

/// The element that has the page's text: `main`, the longest article, or the one with most paragraphs of a page that names none; when it has enough of
/// the text.
fn readable(root: &Rc<Node>) -> Option<Rc<Node>> {
    let page = Measured::of(root);
    let named = page.longest("main").or_else(|| page.longest("article"));
    if let Some(at) = named.filter(|at| page.is_most(*at)) {
        return page.nodes.get(at).cloned();
    }
    page.clear();
    let page = Measured::of(root);
    page.densest().filter(|at| page.is_most(*at)).and_then(|at| page.nodes.get(at).cloned())
}

fn attribute(node: &Node, wanted: &str) -> String {
    let NodeData::Element { attrs, .. } = &node.data else { return String::new() };
    let attrs = attrs.borrow();
    let found = attrs.iter().find(|attribute| &*attribute.name.local == wanted);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}
