//! Archives of ZIP, which Office files and e-books are: with bounds on their entries and on what they unpack to.

use crate::{budget::Limits, damaged, failed, text, xml};
use ports::NotConverted;
use std::{
    collections::HashMap,
    io::{Cursor, Read},
};
use zip::ZipArchive;

/// An archive that is read within the limits.
pub(crate) struct BoundedZip<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    limits: &'a Limits,
}

impl<'a> BoundedZip<'a> {
    /// # Errors
    /// `damaged` for one that cannot be read, `too_large` for one with more entries, or more bytes in them, than the budget allows.
    pub fn open(content: &'a [u8], limits: &'a Limits) -> Result<Self, NotConverted> {
        let archive =
            ZipArchive::new(Cursor::new(content)).map_err(|_| damaged("the archive that it is cannot be read"))?;
        if archive.len() > limits.entries() {
            let message = format!("it has {} parts; the limit is {}", archive.len(), limits.entries());
            return Err(failed("too_large", message));
        }
        // An entry may say less than it has, so reading counts again.
        if archive.decompressed_size().is_some_and(|size| size > u128::from(limits.inflatable())) {
            return Err(limits.bomb());
        }
        Ok(Self { archive, limits })
    }

    /// Whether there is such an entry.
    pub fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }

    /// The bytes of an entry; none when there is no such entry.
    ///
    /// # Errors
    /// `too_large` when it unpacks to more than is left of the budget, `encrypted`, `damaged`.
    pub fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, NotConverted> {
        let Some(index) = self.archive.index_for_name(name) else { return Ok(None) };
        let file = self.archive.by_index(index).map_err(|error| match error {
            zip::result::ZipError::UnsupportedArchive(_) => {
                failed("encrypted", "it is protected by a password, or packed in a way that is not known")
            }
            _ => damaged("a part of its archive cannot be read"),
        })?;
        let (most, mut bytes) = (self.limits.inflatable(), Vec::new());
        file.take(most + 1).read_to_end(&mut bytes).map_err(|_| damaged("a part of its archive cannot be unpacked"))?;
        self.limits.inflate(bytes.len() as u64)?;
        Ok(Some(bytes))
    }

    /// An entry as a tree; none when there is no such entry.
    ///
    /// # Errors
    /// Those of [`BoundedZip::bytes`] and [`xml::parse`].
    pub fn xml(&mut self, name: &str) -> Result<Option<xml::Element>, NotConverted> {
        let Some(bytes) = self.bytes(name)? else { return Ok(None) };
        xml::parse(&text::decode(&bytes).0, self.limits).map(Some)
    }

    /// An entry that has to be there.
    ///
    /// # Errors
    /// Those of [`BoundedZip::xml`]; `damaged` when there is none.
    pub fn needed(&mut self, name: &str) -> Result<xml::Element, NotConverted> {
        self.xml(name)?.ok_or_else(|| damaged(&format!("its part {name} is missing")))
    }

    /// The relationships of a part of an Office file: targets by their ids, as paths of the archive, or addresses outside.
    ///
    /// # Errors
    /// Those of [`BoundedZip::xml`].
    pub fn relationships(&mut self, of: &str) -> Result<HashMap<String, String>, NotConverted> {
        let (folder, name) = of.rsplit_once('/').unwrap_or(("", of));
        let Some(root) = self.xml(&format!("{folder}/_rels/{name}.rels"))? else { return Ok(HashMap::new()) };
        let target = |element: &xml::Element| {
            let (id, target) = (element.attribute("Id")?, element.attribute("Target")?);
            let is_outside = element.attribute("TargetMode") == Some("External");
            Some((id.to_owned(), if is_outside { target.to_owned() } else { joined(folder, target) }))
        };
        Ok(root.elements().filter_map(target).collect())
    }

    /// The title in the properties of an Office file.
    pub fn title(&mut self) -> String {
        let properties = self.xml("docProps/core.xml").ok().flatten();
        properties.and_then(|root| root.child("title").map(xml::Element::text)).unwrap_or_default().trim().to_owned()
    }
}

/// The path of `target` as it is seen from `folder`.
pub(crate) fn joined(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            _ => names.push(name),
        }
    }
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_paths_of_the_archive() {
        assert_eq!(joined("ppt/slides", "../media/a.png"), "ppt/media/a.png");
        assert_eq!(joined("ppt", "/word/a.xml"), "word/a.xml");
        assert_eq!(joined("", "../../../etc/passwd"), "etc/passwd");
    }
}
