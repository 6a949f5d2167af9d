//! XML of WebDAV as a tree, by local names: bounded in depth, and without entities of its own.

use quick_xml::{Reader, events::Event};

/// The deepest nesting.
const DEPTH: usize = 32;

/// The most elements. Each takes about a hundred bytes of memory, and four bytes of the text.
const ELEMENTS: usize = 250_000;

/// An element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Element {
    /// Its local name.
    pub name: String,
    /// The elements in it.
    pub children: Vec<Element>,
    text: String,
}

impl Element {
    /// The text in it.
    pub fn text(&self) -> String {
        self.text.trim().to_owned()
    }

    /// The elements of this name in it.
    pub fn elements<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The first element of this name in it.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// The root of a text; none for a text that is no XML, is nested too deep, has too many elements, or defines entities.
pub fn parse(text: &str) -> Option<Element> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}').trim_start());
    let mut open = vec![Element::default()];
    let named = |name: &str| Element { name: name.to_owned(), ..Element::default() };
    let mut elements = 0;
    loop {
        let event = reader.read_event().ok()?;
        elements += usize::from(matches!(event, Event::Start(_) | Event::Empty(_)));
        if elements > ELEMENTS {
            return None;
        }
        match event {
            Event::Start(start) => {
                if open.len() > DEPTH {
                    return None;
                }
                open.push(named(start.local_name().as_ref()));
            }
            Event::Empty(start) => open.last_mut()?.children.push(named(start.local_name().as_ref())),
            Event::End(_) => {
                let element = open.pop()?;
                open.last_mut()?.children.push(element);
            }
            Event::Text(text) => open.last_mut()?.text.push_str(&text),
            Event::CData(text) => open.last_mut()?.text.push_str(&text),
            Event::GeneralRef(entity) => match entity.resolve_char_ref().ok()? {
                Some(character) => open.last_mut()?.text.push(character),
                None => open.last_mut()?.text.push_str(quick_xml::escape::resolve_predefined_entity(&entity)?),
            },
            Event::DocType(_) => return None,
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    let root = open.pop()?;
    if open.is_empty() { root.children.into_iter().next() } else { None }
}

/// A text as XML has it.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn elements_are_found_by_their_local_names() {
        let root = parse(
            "<?xml version='1.0'?><D:multistatus xmlns:D='DAV:'><D:response><D:href>/a%20b/</D:href><x:data xmlns:x='y'>1 &lt; 2 &#38; \
             <![CDATA[<3>]]></x:data></D:response><D:empty/></D:multistatus>",
        )
        .unwrap();
        let response = root.child("response").unwrap();
        assert_eq!(response.child("href").unwrap().text(), "/a%20b/");
        assert_eq!(response.child("data").unwrap().text(), "1 < 2 & <3>");
        assert!(root.child("empty").is_some());
    }

    #[test]
    fn a_text_that_is_too_much_is_none() {
        let deep = "<a>".repeat(100) + &"</a>".repeat(100);
        for text in ["", "text", "<a>", "<a></b>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", &deep] {
            assert_eq!(parse(text), None, "{text}");
        }
        let wide = |elements: usize| format!("<a>{}</a>", "<b/>".repeat(elements - 1));
        assert!(parse(&wide(ELEMENTS)).is_some() && parse(&wide(ELEMENTS + 1)).is_none());
    }
}
