//! Files that models see or hear: images, PDFs and sounds. The text that a model reads has a reference to one, and never its bytes. A model that takes
//! such files gets the bytes of that very version when it is asked, and any other model the words beside the reference.

use crate::caps;
use domain::{FileId, FilePath};
use std::fmt::Write as _;

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

/// The beginnings of the contents that models take, and their types.
const KINDS: [(&[u8], &str); 8] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
];
/// The types of contents in a RIFF container, by their form.
const FORMS: [(&[u8], &str); 2] = [(b"WEBP", "image/webp"), (b"WAVE", "audio/wav")];

/// The media type of a content that models may take, by its beginning; the name of a file says nothing about it.
pub fn media_type(content: &[u8]) -> Option<&'static str> {
    if content.starts_with(b"RIFF") {
        let form = content.get(8..12)?;
        return FORMS.iter().find(|(known, _)| *known == form).map(|(_, kind)| *kind);
    }
    KINDS.iter().find(|(start, _)| content.starts_with(start)).map(|(_, kind)| *kind)
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
        let kinds = KINDS.iter().chain(&FORMS).map(|(_, known)| *known);
        let path = path.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        Some(Self {
            media_type: kinds.into_iter().find(|known| *known == kind)?,
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
    fn the_beginning_of_a_content_tells_its_type() {
        for (content, kind) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], Some("image/png")),
            (b"RIFF1234WEBPVP8 ", Some("image/webp")),
            (b"RIFF1234WAVEfmt ", Some("audio/wav")),
            (b"RIFF1234AVI LIST", None),
            (b"RIFF", None),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"plain", None),
        ] {
            assert_eq!(media_type(content), kind, "{content:?}");
        }
    }

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
