//! PowerPoint: one part for each slide, in the order of the presentation (ECMA-376, PresentationML).

use crate::{
    bounded_zip::BoundedZip,
    budget::Limits,
    converted,
    markdown::{line, table, whole_cell},
    xml::Element,
};
use ports::{Converted, NotConverted};
use serde_json::json;

const PRESENTATION: &str = "ppt/presentation.xml";

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let mut archive = BoundedZip::open(content, limits)?;
    let presentation = archive.needed(PRESENTATION)?;
    let parts = archive.relationships(PRESENTATION)?;
    let title = archive.title();
    let ids = presentation.child("sldIdLst").into_iter().flat_map(Element::elements);
    let slides: Vec<&String> = ids.filter_map(|id| parts.get(id.attribute("r:id")?)).collect();
    let mut text = String::new();
    for (number, path) in slides.iter().enumerate() {
        if limits.is_late() {
            text.push_str(&format!("[the time was up: slides from {} on are left out]\n", number + 1));
            break;
        }
        let Some(slide) = archive.xml(path)? else { continue };
        let notes = archive.relationships(path)?.into_values().find(|target| target.contains("notesSlides/"));
        let notes = match notes {
            Some(path) => archive.xml(&path)?,
            None => None,
        };
        show(number + 1, &slide, notes.as_ref(), &mut text);
        limits.fits(text.len())?;
    }
    Ok(converted(text, [("title", json!(title)), ("slides", json!(slides.len()))]))
}

fn show(number: usize, slide: &Element, notes: Option<&Element>, text: &mut String) {
    let shapes: Vec<&Element> = slide.all("sp").collect();
    let is_title = |shape: &&&Element| matches!(placeholder(shape), Some("title" | "ctrTitle"));
    let title = shapes.iter().find(is_title).map(|shape| line(&paragraphs(shape).join(" "))).unwrap_or_default();
    let colon = if title.is_empty() { "" } else { ": " };
    text.push_str(&format!("## Slide {number}{colon}{title}\n\n"));
    for shape in shapes.iter().filter(|shape| !is_title(shape)) {
        if matches!(placeholder(shape), Some("sldNum" | "dt" | "ftr")) {
            continue;
        }
        let lines = paragraphs(shape);
        match lines.as_slice() {
            [] => {}
            [one] => text.push_str(&format!("{one}\n\n")),
            several => {
                several.iter().for_each(|one| text.push_str(&format!("- {one}\n")));
                text.push('\n');
            }
        }
    }
    for each in slide.all("tbl") {
        let cells = |row: &Element| {
            row.elements()
                .filter(|each| each.name == "tc")
                .map(|each| whole_cell(&paragraphs(each).join(" ")))
                .collect()
        };
        let rows: Vec<Vec<String>> = each.elements().filter(|row| row.name == "tr").map(cells).collect();
        text.push_str(&table(&rows, None));
        text.push('\n');
    }
    let bodies = notes.into_iter().flat_map(|notes| notes.all("sp")).filter(|shape| placeholder(shape) == Some("body"));
    let spoken: Vec<String> = bodies.flat_map(paragraphs).collect();
    if !spoken.is_empty() {
        text.push_str(&format!("> Notes: {}\n\n", spoken.join(" ")));
    }
}

fn placeholder(shape: &Element) -> Option<&str> {
    shape.child("nvSpPr")?.child("nvPr")?.child("ph").map(|placeholder| placeholder.attribute("type").unwrap_or("body"))
}

/// The paragraphs of text, without empty ones.
fn paragraphs(shape: &Element) -> Vec<String> {
    let part = |part: &Element| match part.name.as_str() {
        "br" => " ".to_owned(),
        _ => part.all("t").map(Element::text).collect(),
    };
    let text = |paragraph: &Element| line(&paragraph.elements().map(part).collect::<String>());
    shape.all("p").map(text).filter(|text| !text.is_empty()).collect()
}
