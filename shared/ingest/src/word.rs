//! Word: paragraphs, headings, lists, links and tables (ECMA-376, WordprocessingML).

use crate::{
    budget::Limits,
    converted,
    markdown::{cell, line, table},
    xml::Element,
    zipped::Zipped,
};
use ports::{Converted, NotConverted};
use serde_json::json;
use std::collections::HashMap;

const DOCUMENT: &str = "word/document.xml";

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let mut archive = Zipped::open(content, limits)?;
    let document = archive.needed(DOCUMENT)?;
    let links = archive.relationships(DOCUMENT)?;
    let headings = archive.xml("word/styles.xml")?.map(|styles| headings(&styles)).unwrap_or_default();
    let title = archive.title();
    let mut writing = Writing { links, headings, text: String::new(), in_list: false };
    if let Some(body) = document.child("body") {
        writing.blocks(body);
    }
    limits.fits(writing.text.len())?;
    Ok(converted(writing.text, [("title", json!(title))]))
}

/// The levels of styles that are headings, by their ids, which are in the language of the author.
fn headings(styles: &Element) -> HashMap<String, usize> {
    let level = |style: &Element| {
        let id = style.attribute("w:styleId")?.to_owned();
        let name = style.child("name")?.attribute("w:val")?.to_ascii_lowercase();
        let level = match name.as_str() {
            "title" => 1,
            name => name.strip_prefix("heading ")?.parse().ok()?,
        };
        Some((id, level))
    };
    styles.elements().filter_map(level).collect()
}

struct Writing {
    links: HashMap<String, String>,
    headings: HashMap<String, usize>,
    text: String,
    in_list: bool,
}

impl Writing {
    fn blocks(&mut self, inside: &Element) {
        for element in inside.elements() {
            match element.name.as_str() {
                "p" => self.paragraph(element),
                "tbl" => {
                    let rows: Vec<Vec<String>> =
                        element.elements().filter(|row| row.name == "tr").map(|row| self.row(row)).collect();
                    self.text.push_str(if self.in_list { "\n" } else { "" });
                    self.in_list = false;
                    self.text.push_str(&table(&rows, None));
                    self.text.push('\n');
                }
                // Contents in a frame of their own, such as those of a table of contents.
                "sdt" => {
                    if let Some(content) = element.child("sdtContent") {
                        self.blocks(content);
                    }
                }
                _ => {}
            }
        }
    }

    fn row(&self, row: &Element) -> Vec<String> {
        let cells = row.elements().filter(|cell| cell.name == "tc");
        let texts = |cell: &Element| cell.all("p").map(|paragraph| self.runs(paragraph)).collect::<Vec<_>>().join(" ");
        cells.map(|each| cell(&texts(each))).collect()
    }

    fn paragraph(&mut self, paragraph: &Element) {
        let text = self.runs(paragraph);
        if text.trim().is_empty() {
            return;
        }
        let properties = paragraph.child("pPr");
        let value = |of: Option<&Element>| of.and_then(|element| element.attribute("w:val")).map(str::to_owned);
        let style = value(properties.and_then(|properties| properties.child("pStyle"))).unwrap_or_default();
        let heading = self
            .headings
            .get(&style)
            .copied()
            .or_else(|| style.strip_prefix("Heading").and_then(|level| level.parse().ok()));
        let list = properties.and_then(|properties| properties.child("numPr"));
        let is_item = list.is_some() && heading.is_none();
        if self.in_list && !is_item {
            self.text.push('\n');
        }
        self.in_list = is_item;
        match (heading, list) {
            (Some(level), _) => {
                self.text.push_str(&format!("{} {}\n\n", "#".repeat(level.clamp(1, 6)), line(&text)));
            }
            (None, Some(list)) => {
                let level = value(list.child("ilvl")).and_then(|level| level.parse().ok()).unwrap_or(0_usize);
                self.text.push_str(&format!("{}- {}\n", "  ".repeat(level.min(8)), line(&text)));
            }
            (None, None) => {
                self.text.push_str(text.trim());
                self.text.push_str("\n\n");
            }
        }
    }

    /// The text of a paragraph, with its links.
    fn runs(&self, inside: &Element) -> String {
        let mut text = String::new();
        for element in inside.elements() {
            match element.name.as_str() {
                "r" => text.push_str(&run(element)),
                "hyperlink" => {
                    let shown = self.runs(element);
                    match element.attribute("r:id").and_then(|id| self.links.get(id)) {
                        Some(target) if !shown.trim().is_empty() => {
                            text.push_str(&format!("[{}]({target})", line(&shown)));
                        }
                        _ => text.push_str(&shown),
                    }
                }
                // Removed text is no text; moved and inserted text is.
                "ins" | "moveTo" | "smartTag" | "fldSimple" => text.push_str(&self.runs(element)),
                "sdt" => {
                    text.push_str(&element.child("sdtContent").map(|content| self.runs(content)).unwrap_or_default())
                }
                _ => {}
            }
        }
        text
    }
}

fn run(run: &Element) -> String {
    let mut text = String::new();
    for element in run.elements() {
        match element.name.as_str() {
            "t" => text.push_str(&element.text()),
            "tab" => text.push('\t'),
            "br" | "cr" => text.push('\n'),
            "noBreakHyphen" => text.push('-'),
            _ => {}
        }
    }
    let is = |name: &str| {
        let property = run.child("rPr").and_then(|properties| properties.child(name));
        property.is_some_and(|property| !matches!(property.attribute("w:val"), Some("0" | "false" | "none")))
    };
    let mark = match (is("b"), is("i")) {
        (true, true) => "***",
        (true, false) => "**",
        (false, true) => "*",
        (false, false) => return text,
    };
    let words = text.trim();
    if words.is_empty() || words.contains('\n') {
        return text;
    }
    let (before, after) = text.split_once(words).unwrap_or_default();
    format!("{before}{mark}{words}{mark}{after}")
}
