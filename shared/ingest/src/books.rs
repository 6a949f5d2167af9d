//! E-books (EPUB 3): the chapters of the spine in order.

use crate::{
    bounded_zip::{BoundedZip, joined},
    budget::Limits,
    converted, damaged, html, text,
    xml::Element,
};
use ports::{Converted, NotConverted, percent_decoded};
use serde_json::json;
use std::collections::{HashMap, HashSet};

/// The ways in which the fonts of a book are hidden; its chapters can be read all the same.
const OF_FONTS: [&str; 2] = ["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"];

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
    let locked = locked(&mut archive);
    if chapters.iter().any(|path| locked.contains(&path_of(path))) {
        return Err(crate::failed("encrypted", "it is protected against copies"));
    }
    let mut written = String::new();
    for (number, path) in chapters.iter().enumerate() {
        if limits.is_late() {
            written.push_str(&format!("[the time was up: chapters from {} on are left out]\n", number + 1));
            break;
        }
        // The package has addresses, and the archive names.
        let path = if archive.has(path) { (*path).clone() } else { path_of(path) };
        let Some(bytes) = archive.bytes(&path)? else {
            written.push_str(&format!("[chapter {} is missing in the book]\n\n", number + 1));
            limits.fits(written.len())?;
            continue;
        };
        let (chapter, _) = html::page(&text::decode(&bytes).0, limits, false)?;
        if !chapter.trim().is_empty() {
            written.push_str(chapter.trim());
            written.push_str("\n\n");
        }
        limits.fits(written.len())?;
    }
    Ok(converted(written, [("title", json!(title)), ("author", json!(author)), ("chapters", json!(chapters.len()))]))
}

/// The parts of a book that only a key opens, by their paths.
fn locked(archive: &mut BoundedZip<'_>) -> HashSet<String> {
    let Some(encryption) = archive.xml("META-INF/encryption.xml").ok().flatten() else { return HashSet::new() };
    let path = |data: &Element| {
        let way = data.child("EncryptionMethod").and_then(|method| method.attribute("Algorithm"));
        let place = data.all("CipherReference").next()?.attribute("URI")?;
        (!way.is_some_and(|way| OF_FONTS.contains(&way))).then(|| path_of(place))
    };
    encryption.all("EncryptedData").filter_map(path).collect()
}

/// An address within a book as a path; the address itself where that is no text.
fn path_of(address: &str) -> String {
    String::from_utf8(percent_decoded(address)).unwrap_or_else(|_| address.to_owned())
}
