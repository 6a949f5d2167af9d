//! Pages: the part that people read, with its links.

use crate::{budget::Limits, converted, damaged, markdown::line, text};
use htmd::{
    HtmlToMarkdown, Node,
    options::{BulletListMarker, Options},
};
use markup5ever_rcdom::NodeData;
use ports::{Converted, NotConverted};
use serde_json::json;
use std::rc::Rc;

/// Elements that are no text of a page.
const NO_TEXT: [&str; 12] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "form", "button", "input", "select", "canvas",
];
/// Elements around the text of a page.
const AROUND: [&str; 4] = ["nav", "header", "footer", "aside"];
/// A part of a page counts as its text when it has at least one of so many of the page's characters.
const SHARE: usize = 3;

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let (text, _) = text::decode(content);
    let (markdown, title) = page(&text, limits, true)?;
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
    let converter = HtmlToMarkdown::builder().options(options).scripting_enabled(false).build();
    let tree = converter.html_to_tree(html).map_err(|_| damaged("the page cannot be read"))?;
    let title = first(&tree, "title").map(|node| line(&words(&node))).unwrap_or_default();
    prune(&tree, if main { &AROUND } else { &[] });
    let root = if main { readable(&tree) } else { None };
    let markdown = converter.tree_to_markdown(root.as_ref().unwrap_or(&tree));
    limits.fits(markdown.len())?;
    Ok((markdown, title))
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

/// The element that has the page's text: `main`, or the longest article, when it has enough of it.
fn readable(root: &Rc<Node>) -> Option<Rc<Node>> {
    let length = |node: &Rc<Node>| words(node).split_whitespace().map(str::len).sum::<usize>();
    let all = length(root);
    let candidate = first(root, "main").or_else(|| {
        let articles = nodes(root).filter(|node| name(node) == "article");
        articles.max_by_key(length)
    });
    candidate.filter(|node| length(node) * SHARE >= all)
}
