//! The files of a flow as one value with one hash.

use crate::manifest::MANIFESTS;
use domain::Sha256;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Component, Path},
};

/// The hash of a bundle, which identifies a version of a flow.
///
/// It is the SHA-256 over, for each file in the order of the bytes of their paths: the length of the path in bytes as 8 bytes,
/// big end first, the path, the length of the text likewise, and the text. Lengths go first, so that no two different bundles
/// make the same bytes. Files that are no manifest, no schema and no tool do not count.
pub fn hash(files: &BTreeMap<String, String>) -> Sha256 {
    let mut bytes = Vec::with_capacity(files.iter().map(|(path, text)| path.len() + text.len() + 16).sum());
    let parts = files.iter().filter(|(path, _)| is_part(path));
    for part in parts.flat_map(|(path, text)| [path, text]) {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    Sha256::of(&bytes)
}

/// The kind of a file in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A manifest, by the name of its schema.
    Manifest(&'static str),
    /// A schema, by its name.
    Schema(&'a str),
    /// The declaration of an HTTP tool.
    Tool,
    /// It stands where a manifest would, under a name that none has.
    Unknown,
    /// Nothing of the flow's: a text, a golden output.
    Other,
}

/// The kind of the file at this path.
pub(crate) fn part(path: &str) -> Part<'_> {
    let split = path.strip_suffix(".json").or_else(|| path.strip_suffix(".yaml")).or_else(|| path.strip_suffix(".yml"));
    let Some(stem) = split else { return Part::Other };
    match stem.split_once('/') {
        Some(("schemas", name)) => Part::Schema(name),
        Some(("tools", name)) if !name.contains('/') => Part::Tool,
        Some(_) => Part::Other,
        None => MANIFESTS
            .iter()
            .find(|(_, stems, _)| stems.contains(&stem))
            .map_or(Part::Unknown, |(name, ..)| Part::Manifest(name)),
    }
}

/// Whether the file at this path is part of a flow: a manifest, a schema, a tool, or something that stands where only these may.
pub fn is_part(path: &str) -> bool {
    part(path) != Part::Other
}

/// The files of a folder that make up a flow, by their paths in it.
///
/// Files that the flow does not read are left out; those that it should not have, such as a manifest with a mistyped name,
/// are not. Links are not followed. Bytes that are no UTF-8 are replaced, and refused with their place when the flow is loaded.
///
/// # Errors
/// The folder or a file in it cannot be read.
pub fn read_folder(folder: impl AsRef<Path>) -> io::Result<BTreeMap<String, String>> {
    let folder = folder.as_ref();
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(current) = open.pop() {
        for entry in fs::read_dir(&current)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let Some(name) = relative(folder, &path) else { continue };
            if kind.is_dir() && (name == "schemas" || name.starts_with("schemas/") || name == "tools") {
                open.push(path);
            } else if kind.is_file() && is_part(&name) {
                let bytes = fs::read(&path)
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
                // The loader says where bytes are that are no text, beside everything else.
                files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    Ok(files)
}

fn relative(folder: &Path, path: &Path) -> Option<String> {
    let parts = path.strip_prefix(folder).ok()?.components().map(|part| match part {
        Component::Normal(part) => part.to_str(),
        _ => None,
    });
    Some(parts.collect::<Option<Vec<_>>>()?.join("/"))
}
