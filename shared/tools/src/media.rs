//! Files that models see or hear: images, PDFs and sounds. The text that a model reads has a reference to one, and never its bytes. A model that takes
//! such files gets the bytes of that very version when it is asked, and any other model the words beside the reference.

use crate::caps;
use domain::{FileId, FilePath};
use std::fmt::Write as _;
use workspace::known_media_type;

/// A reference to a version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaRef {
    /// Its path then.
    pub path: String,
    /// Its media type, such as `image/png`.
    pub media_type: &'static str,
    /// The file.
    pub file: FileId,
    /// The version.
    pub v: u64,
    /// Its size, in bytes.
    pub size: u64,
}

const BEGIN: &str = "<file media=\"";

impl MediaRef {
    /// The reference as it stands in a text, on a line of its own.
    pub fn tag(&self) -> String {
        let Self { path, media_type, file, v, size } = self;
        let path = path.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
        let mut text = String::new();
        let _ = write!(text, "{BEGIN}{media_type}\" id=\"{file}\" v=\"{v}\" size=\"{size}\" path=\"{path}\"/>");
        text
    }

    /// The references in a text, in their order. Any text can have one: who reads the file does so with rights of their own.
    pub fn all(text: &str) -> Vec<Self> {
        text.lines().filter(|line| line.len() <= caps::MAX_LINE).filter_map(Self::of).collect()
    }

    fn of(line: &str) -> Option<Self> {
        let rest = line.trim().strip_prefix(BEGIN)?.strip_suffix("\"/>")?;
        let (kind, rest) = rest.split_once("\" id=\"")?;
        let (file, rest) = rest.split_once("\" v=\"")?;
        let (v, rest) = rest.split_once("\" size=\"")?;
        let (size, path) = rest.split_once("\" path=\"")?;
        let path = path.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        Some(Self {
            media_type: known_media_type(kind)?,
            file: file.parse().ok()?,
            v: v.parse().ok()?,
            size: size.parse().ok()?,
            path: FilePath::parse(&path).ok()?.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_as_it_was_written_and_no_other_text_is_one() {
        let file = FileId(uuid::Uuid::from_u128(7));
        let path = "/data/a \"b\" <c> & d.png".to_owned();
        let one = MediaRef { path, media_type: "image/png", file, v: 3, size: 9 };
        assert_eq!(MediaRef::all(&format!("before\n{}\nafter", one.tag())), std::slice::from_ref(&one));
        let strange = one.tag().replace("image/png", "text/html");
        assert!(MediaRef::all(&format!("see {}\n{strange}\n<file media=\"image/png\"/>", one.tag())).is_empty());
    }
}
