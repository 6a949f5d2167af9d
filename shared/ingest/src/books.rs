//! E-books (EPUB 3): the chapters of the spine in order.

use crate::{
    bounded_zip::{BoundedZip, joined},
    budget::Limits,
    converted, damaged, html, text,
    xml::Element,
};
use ports::{Converted, NotConverted};
use serde_json::json;
use std::collections::HashMap;

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let mut archive = BoundedZip::open(content, limits)?;
    if archive.has("META-INF/rights.xml") {
        return Err(crate::failed("encrypted", "it is protected against copies"));
    }
    let container = archive.needed("META-INF/container.xml")?;
    let package = container.all("rootfile").find_map(|file| file.attribute("full-path")).map(str::to_owned);
    let package = package.ok_or_else(|| damaged("it names no package"))?;
    let root = archive.needed(&package)?;
    let folder = package.rsplit_once('/').map_or("", |(folder, _)| folder);
    let of = |name: &str| {
        root.child("metadata").and_then(|metadata| metadata.child(name)).map(Element::text).unwrap_or_default()
    };
    let (title, author) = (of("title").trim().to_owned(), of("creator").trim().to_owned());
    let item = |item: &Element| Some((item.attribute("id")?.to_owned(), joined(folder, item.attribute("href")?)));
    let items: HashMap<String, String> =
        root.child("manifest").into_iter().flat_map(Element::elements).filter_map(item).collect();
    let spine = root.child("spine").into_iter().flat_map(Element::elements);
    let chapters: Vec<&String> = spine.filter_map(|entry| items.get(entry.attribute("idref")?)).collect();
    let mut written = String::new();
    for (number, path) in chapters.iter().enumerate() {
        if limits.is_late() {
            written.push_str(&format!("[the time was up: chapters from {} on are left out]\n", number + 1));
            break;
        }
        let Some(bytes) = archive.bytes(path)? else { continue };
        let (chapter, _) = html::page(&text::decode(&bytes).0, limits, false)?;
        if !chapter.trim().is_empty() {
            written.push_str(chapter.trim());
            written.push_str("\n\n");
        }
        limits.fits(written.len())?;
    }
    Ok(converted(written, [("title", json!(title)), ("author", json!(author)), ("chapters", json!(chapters.len()))]))
}
