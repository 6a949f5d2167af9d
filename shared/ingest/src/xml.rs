//! XML as a tree: of bounded depth, and without entities of its own.

use crate::{budget::Limits, damaged, failed};
use ports::NotConverted;
use quick_xml::{Reader, XmlVersion, events::BytesStart, events::Event};

/// An element, by its local name.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub name: String,
    attributes: Vec<(String, String)>,
    pub children: Vec<Node>,
}

/// A part of an element.
#[derive(Debug)]
pub(crate) enum Node {
    Element(Element),
    Text(String),
}

/// The root of a document.
///
/// # Errors
/// `damaged` when it is no XML, `forbidden_entities` when it defines entities, `too_deep` over the depth of the budget.
pub(crate) fn parse(text: &str, limits: &Limits) -> Result<Element, NotConverted> {
    let wrong = || damaged("a part is no well-formed XML");
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut open: Vec<Element> = vec![Element::default()];
    loop {
        match reader.read_event().map_err(|_| wrong())? {
            Event::Start(start) => {
                if open.len() > limits.depth() {
                    return Err(limits.too_deep(limits.depth()));
                }
                open.push(element(&start));
            }
            Event::Empty(start) => {
                let element = element(&start);
                open.last_mut().ok_or_else(wrong)?.children.push(Node::Element(element));
            }
            Event::End(_) => {
                let element = open.pop().ok_or_else(wrong)?;
                open.last_mut().ok_or_else(wrong)?.children.push(Node::Element(element));
            }
            Event::Text(text) => add(&mut open, &text),
            Event::CData(text) => add(&mut open, &text),
            Event::GeneralRef(entity) => match entity.resolve_char_ref() {
                Ok(Some(character)) => add(&mut open, character.encode_utf8(&mut [0; 4])),
                Ok(None) => add(&mut open, quick_xml::escape::resolve_predefined_entity(&entity).unwrap_or("")),
                Err(_) => return Err(wrong()),
            },
            Event::DocType(definition) if definition.contains("<!ENTITY") => {
                return Err(failed("forbidden_entities", "it defines entities of XML, which are not followed"));
            }
            Event::Eof => break,
            Event::DocType(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    let mut root = open.pop().ok_or_else(wrong)?;
    let is_element = |node: &Node| matches!(node, Node::Element(_));
    // Elements that are still open: the text ends too early.
    if !open.is_empty() || !root.children.iter().any(is_element) {
        return Err(wrong());
    }
    root.children.retain(is_element);
    match root.children.into_iter().next() {
        Some(Node::Element(element)) => Ok(element),
        Some(Node::Text(_)) | None => Err(wrong()),
    }
}

fn element(start: &BytesStart<'_>) -> Element {
    let attributes = start.attributes().flatten().filter_map(|attribute| {
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
        Some((attribute.key.as_ref().to_owned(), value.into_owned()))
    });
    Element { name: start.local_name().as_ref().to_owned(), attributes: attributes.collect(), children: Vec::new() }
}

fn add(open: &mut [Element], text: &str) {
    let Some(element) = open.last_mut() else { return };
    match element.children.last_mut() {
        Some(Node::Text(before)) => before.push_str(text),
        _ => element.children.push(Node::Text(text.to_owned())),
    }
}

impl Element {
    /// The value of an attribute, by its name with its prefix.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The elements in it.
    pub fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// The first element of this name in it.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.elements().find(|element| element.name == name)
    }

    /// All elements of this name at any depth below it, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        let mut left: Vec<&Element> = vec![self];
        std::iter::from_fn(move || {
            loop {
                let element = left.pop()?;
                let inside: Vec<&Element> = element.elements().collect();
                left.extend(inside.into_iter().rev());
                if element.name == name && !std::ptr::eq(element, self) {
                    return Some(element);
                }
            }
        })
    }

    /// All text below it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.children {
            match node {
                Node::Element(element) => text.push_str(&element.text()),
                Node::Text(part) => text.push_str(part),
            }
        }
        text
    }
}
