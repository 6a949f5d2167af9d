//! Files that an agent reads and writes through us: inside the allowed roots alone, and with a bound.

use crate::roots::Roots;
use serde_json::{Value, json};
use std::{fs, io, io::Read as _};

/// The longest file that is read or written through us, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// Answers `fs/read_text_file`.
pub(crate) fn read(roots: &Roots, params: &Value) -> io::Result<Value> {
    let path = roots.file(params["path"].as_str().unwrap_or_default())?;
    let mut text = String::new();
    let read = fs::File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_FILE {
        return Err(too_long());
    }
    let from = params["line"].as_u64().unwrap_or(1).max(1) - 1;
    let most = params["limit"].as_u64().unwrap_or(u64::MAX);
    if from > 0 || most < u64::MAX {
        let (from, most) = (usize::try_from(from).unwrap_or(usize::MAX), usize::try_from(most).unwrap_or(usize::MAX));
        text = text.split_inclusive('\n').skip(from).take(most).collect();
    }
    Ok(json!({ "content": text }))
}

/// Answers `fs/write_text_file`. The file is whole or as it was before: it is written beside its place and renamed.
pub(crate) fn write(roots: &Roots, params: &Value) -> io::Result<Value> {
    let path = roots.target(params["path"].as_str().unwrap_or_default())?;
    let content = params["content"].as_str().unwrap_or_default();
    if content.len() as u64 > MAX_FILE {
        return Err(too_long());
    }
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!(".buildscale-{}", uuid::Uuid::now_v7().simple()));
    let permissions = fs::metadata(&path).map(|old| old.permissions());
    let written = fs::write(&beside, content)
        .and_then(|()| permissions.map_or(Ok(()), |permissions| fs::set_permissions(&beside, permissions)))
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err()
        && let Err(error) = fs::remove_file(&beside)
    {
        tracing::debug!(%error, "a file that was not put in its place stays");
    }
    written.map(|()| json!({}))
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("files of more than {} MiB are not passed on", MAX_FILE >> 20))
}
