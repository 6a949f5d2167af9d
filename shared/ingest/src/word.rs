//! Word: paragraphs, headings, lists, links and tables (ECMA-376, WordprocessingML).

use crate::{
    bounded_zip::BoundedZip,
    budget::Limits,
    converted,
    markdown::{line, table, whole_cell},
    xml::Element,
};
use ports::{Converted, NotConverted};
use serde_json::json;
use std::collections::{HashMap, HashSet};

const DOCUMENT: &str = "word/document.xml";
/// The most columns of a table of Word.
const MOST_COLUMNS: usize = 63;
/// The beginnings of the marks of endnotes and comments; footnotes have their numbers alone.
const ENDNOTE: &str = "end";
const COMMENT: &str = "comment";

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let mut archive = BoundedZip::open(content, limits)?;
    let document = archive.needed(DOCUMENT)?;
    let links = archive.relationships(DOCUMENT)?;
    let styles = archive.xml("word/styles.xml")?;
    let headings = styles.as_ref().map(headings).unwrap_or_default();
    let lists = Lists::of(styles.as_ref(), archive.xml("word/numbering.xml")?.as_ref());
    let notes = [("footnotes", ""), ("endnotes", ENDNOTE), ("comments", COMMENT)];
    let mut parts = Vec::new();
    for (name, prefix) in notes {
        parts.extend(archive.xml(&format!("word/{name}.xml"))?.map(|part| (part, prefix)));
    }
    let title = archive.title();
    let mut writing = Writing { links, headings, lists, text: String::new(), in_list: false };
    if let Some(body) = document.child("body") {
        writing.blocks(body);
    }
    for (part, prefix) in &parts {
        writing.notes(part, prefix);
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

/// How items of lists are marked.
#[derive(Default)]
struct Lists {
    /// Of a list and a level in it, whether its items have numbers.
    numbered: HashSet<(String, usize)>,
    /// The lists of styles, by their ids.
    styles: HashMap<String, Item>,
}

/// An item of a list.
#[derive(Clone)]
struct Item {
    level: usize,
    is_numbered: bool,
}

impl Lists {
    fn of(styles: Option<&Element>, numbering: Option<&Element>) -> Self {
        let mut lists = Self::default();
        let all = || numbering.into_iter().flat_map(Element::elements);
        let value = |of: &Element, name: &str| Some(of.child(name)?.attribute("w:val")?.to_owned());
        let mut kinds: HashMap<&str, Vec<usize>> = HashMap::new();
        for kind in all().filter(|element| element.name == "abstractNum") {
            let levels = kind.elements().filter(|level| level.name == "lvl");
            let numbered = levels.filter(|level| value(level, "numFmt").is_some_and(|format| format != "bullet"));
            let numbers = numbered.filter_map(|level| level.attribute("w:ilvl")?.parse().ok());
            kinds.insert(kind.attribute("w:abstractNumId").unwrap_or_default(), numbers.collect());
        }
        for list in all().filter(|element| element.name == "num") {
            let id = list.attribute("w:numId").unwrap_or_default();
            let kind = value(list, "abstractNumId").unwrap_or_default();
            let levels = kinds.get(kind.as_str()).into_iter().flatten();
            lists.numbered.extend(levels.map(|level| (id.to_owned(), *level)));
        }
        for style in styles.into_iter().flat_map(Element::elements) {
            let Some(id) = style.attribute("w:styleId") else { continue };
            let name = value(style, "name").unwrap_or_default().to_ascii_lowercase();
            let of_style = style.child("pPr").and_then(|properties| properties.child("numPr"));
            let item = match of_style.and_then(|of| lists.item(of)) {
                // The names of Word's own styles, which count their levels from 2 on.
                _ if name.starts_with("list bullet") || name.starts_with("list number") => Item {
                    level: name
                        .rsplit(' ')
                        .next()
                        .and_then(|level| level.parse().ok())
                        .map_or(0, |level: usize| level.saturating_sub(1)),
                    is_numbered: name.starts_with("list number"),
                },
                Some(item) => item,
                None => continue,
            };
            lists.styles.insert(id.to_owned(), item);
        }
        lists
    }

    /// The item that a paragraph's properties say; none for the list 0, which takes a paragraph out of the list of its style.
    fn item(&self, properties: &Element) -> Option<Item> {
        let value = |name: &str| properties.child(name).and_then(|element| element.attribute("w:val"));
        let list = value("numId").filter(|list| *list != "0")?;
        let level = value("ilvl").and_then(|level| level.parse().ok()).unwrap_or(0);
        Some(Item { level, is_numbered: self.numbered.contains(&(list.to_owned(), level)) })
    }
}

struct Writing {
    links: HashMap<String, String>,
    headings: HashMap<String, usize>,
    lists: Lists,
    text: String,
    in_list: bool,
}

impl Writing {
    fn blocks(&mut self, inside: &Element) {
        for element in inside.elements() {
            match element.name.as_str() {
                "p" => self.paragraph(element),
                "tbl" => {
                    let rows: Vec<Vec<String>> = framed(element, "tr").into_iter().map(|row| self.row(row)).collect();
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
                "customXml" | "ins" | "moveTo" | "smartTag" => self.blocks(element),
                _ => {}
            }
        }
    }

    /// The cells of a row. One that spans several columns is followed by empty ones, so that each other cell stands under its head.
    fn row(&self, row: &Element) -> Vec<String> {
        // A text box within a paragraph is a part of it.
        let texts = |cell: &Element| {
            outermost(cell, "p").into_iter().map(|paragraph| self.runs(paragraph)).collect::<Vec<_>>().join(" ")
        };
        let mut cells = vec![String::new(); columns(row.child("trPr"), "gridBefore").unwrap_or(0)];
        for each in framed(row, "tc") {
            cells.push(whole_cell(&texts(each)));
            let more = columns(each.child("tcPr"), "gridSpan").unwrap_or(1).saturating_sub(1);
            let room = MOST_COLUMNS.saturating_sub(cells.len());
            cells.extend(std::iter::repeat_n(String::new(), more.min(room)));
        }
        cells
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
        let list = match properties.and_then(|properties| properties.child("numPr")) {
            Some(own) => self.lists.item(own),
            None => self.lists.styles.get(&style).cloned(),
        };
        let is_item = list.is_some() && heading.is_none();
        if self.in_list && !is_item {
            self.text.push('\n');
        }
        self.in_list = is_item;
        match (heading, list) {
            (Some(level), _) => {
                self.text.push_str(&format!("{} {}\n\n", "#".repeat(level.clamp(1, 6)), line(&text)));
            }
            (None, Some(Item { level, is_numbered })) => {
                // Markdown counts by itself.
                let mark = if is_numbered { "1." } else { "-" };
                self.text.push_str(&format!("{}{mark} {}\n", "   ".repeat(level.min(8)), line(&text)));
            }
            (None, None) => {
                self.text.push_str(text.trim());
                self.text.push_str("\n\n");
            }
        }
    }

    /// Footnotes, endnotes or comments, at the end.
    fn notes(&mut self, notes: &Element, prefix: &str) {
        if std::mem::take(&mut self.in_list) {
            self.text.push('\n');
        }
        for note in notes.elements() {
            // Lines between texts and notes have a type.
            let Some(id) = note.attribute("w:id").filter(|_| note.attribute("w:type").is_none()) else { continue };
            let paragraphs = outermost(note, "p").into_iter().map(|paragraph| self.runs(paragraph));
            let text = line(&paragraphs.collect::<Vec<_>>().join(" "));
            let author = note.attribute("w:author").map(|author| format!("{}: ", line(author))).unwrap_or_default();
            self.text.push_str(&format!("[^{prefix}{id}]: {author}{text}\n\n"));
        }
    }

    /// The text of a paragraph, with its links. Word cuts a text into runs wherever it was edited, also within words, so neighbours of one look are one text.
    fn runs(&self, inside: &Element) -> String {
        let mut pieces: Vec<(&str, String)> = Vec::new();
        let mut put = |mark: &'static str, text: String| match pieces.last_mut() {
            _ if text.is_empty() => {}
            Some((last, all)) if *last == mark => all.push_str(&text),
            _ => pieces.push((mark, text)),
        };
        for element in inside.elements() {
            match element.name.as_str() {
                "r" => {
                    put(mark(element), run(element));
                    // A text box hangs on the place where its author put it. Programs of before have a second form of it.
                    let boxes = element.child("AlternateContent").and_then(|either| either.child("Choice"));
                    for inside in outermost(boxes.unwrap_or(element), "txbxContent") {
                        let paragraphs = outermost(inside, "p").into_iter();
                        let lines = paragraphs.map(|inside| inside.all("t").map(Element::text).collect::<String>());
                        put("", format!("\n\n{}\n\n", lines.collect::<Vec<_>>().join("\n\n")));
                    }
                }
                "hyperlink" => {
                    let shown = self.runs(element);
                    match element.attribute("r:id").and_then(|id| self.links.get(id)) {
                        Some(target) if !shown.trim().is_empty() => put("", format!("[{}]({target})", line(&shown))),
                        _ => put("", shown),
                    }
                }
                // Removed text is no text; moved and inserted text is.
                "ins" | "moveTo" | "smartTag" | "fldSimple" | "customXml" | "dir" | "bdo" => {
                    put("", self.runs(element));
                }
                // A formula.
                "oMath" | "oMathPara" => put("", element.all("t").map(Element::text).collect()),
                "sdt" => {
                    put("", element.child("sdtContent").map(|content| self.runs(content)).unwrap_or_default());
                }
                _ => {}
            }
        }
        pieces.iter().map(|(mark, text)| marked(mark, text)).collect()
    }
}

/// The elements of this name in another one, also those in frames of their own, such as the rows of a form.
fn framed<'a>(inside: &'a Element, name: &str) -> Vec<&'a Element> {
    let mut found = Vec::new();
    for element in inside.elements() {
        match element.name.as_str() {
            own if own == name => found.push(element),
            "sdt" => found.extend(element.child("sdtContent").into_iter().flat_map(|content| framed(content, name))),
            "customXml" | "ins" | "moveTo" => found.extend(framed(element, name)),
            _ => {}
        }
    }
    found
}

/// The elements of this name at any depth below another one, without those in each other.
fn outermost<'a>(inside: &'a Element, name: &str) -> Vec<&'a Element> {
    let mut found = Vec::new();
    for element in inside.elements() {
        match element.name == name {
            true => found.push(element),
            false => found.extend(outermost(element, name)),
        }
    }
    found
}

/// A number of columns among these properties.
fn columns(properties: Option<&Element>, name: &str) -> Option<usize> {
    let number: usize = properties?.child(name)?.attribute("w:val")?.parse().ok()?;
    Some(number.min(MOST_COLUMNS))
}

fn run(run: &Element) -> String {
    let mut text = String::new();
    for element in run.elements() {
        match element.name.as_str() {
            "t" => text.push_str(&element.text()),
            "tab" | "ptab" => text.push('\t'),
            // Characters whose reading stands above them.
            "ruby" => {
                let base = element.child("rubyBase").into_iter().flat_map(|base| base.all("t"));
                text.extend(base.map(Element::text));
            }
            "br" | "cr" => text.push('\n'),
            "noBreakHyphen" => text.push('-'),
            name @ ("footnoteReference" | "endnoteReference" | "commentReference") => {
                let prefix = match name {
                    "endnoteReference" => ENDNOTE,
                    "commentReference" => COMMENT,
                    _ => "",
                };
                text.push_str(&format!("[^{prefix}{}]", element.attribute("w:id").unwrap_or_default()));
            }
            _ => {}
        }
    }
    text
}

/// The mark of Markdown for the look of a run.
fn mark(run: &Element) -> &'static str {
    let is = |name: &str| {
        let property = run.child("rPr").and_then(|properties| properties.child(name));
        property.is_some_and(|property| !matches!(property.attribute("w:val"), Some("0" | "false" | "none")))
    };
    match (is("b"), is("i")) {
        (true, true) => "***",
        (true, false) => "**",
        (false, true) => "*",
        (false, false) => "",
    }
}

/// A text with each of its lines between marks, which stand at the words.
fn marked(mark: &str, text: &str) -> String {
    let one = |line: &str| {
        let words = line.trim();
        if words.is_empty() {
            return line.to_owned();
        }
        let (before, after) = line.split_once(words).unwrap_or_default();
        format!("{before}{mark}{words}{mark}{after}")
    };
    text.split('\n').map(one).collect::<Vec<_>>().join("\n")
}
