//! The kind of a document, by its content, and by its name where the content has no mark.

use crate::text::{self, find};
use imagesize::{ImageType, image_type};
use std::io::{Cursor, Read};
use zip::ZipArchive;

/// How far marks are looked for, in bytes.
const LOOK_AT: usize = 1024;
/// The longest declaration of a kind, in bytes.
const MIMETYPE: u64 = 128;
/// The ends of the names of pictures whose mark is two letters, which texts begin with, too.
const OF_LETTERS: [&str; 2] = ["bmp", "dib"];
/// The beginning of old Office files, and of encrypted new ones.
const OLE: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// PDF.
    Pdf,
    /// Word.
    Docx,
    /// PowerPoint.
    Pptx,
    /// Excel in all its formats, and OpenDocument sheets.
    Spreadsheet,
    /// An e-book.
    Epub,
    /// A page.
    Html,
    /// A message with its headers.
    Email,
    /// A Jupyter notebook.
    Notebook,
    /// Values with separators.
    Csv,
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
    /// Text.
    Text,
    /// An Office file with a password.
    Encrypted,
    /// Anything else.
    Unknown,
}

impl DocumentKind {
    /// Its name in front matter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Pptx => "pptx",
            Self::Spreadsheet => "spreadsheet",
            Self::Epub => "epub",
            Self::Html => "html",
            Self::Email => "email",
            Self::Notebook => "notebook",
            Self::Csv => "csv",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Text => "text",
            Self::Encrypted => "encrypted",
            Self::Unknown => "unknown",
        }
    }

    /// Of this content under this name.
    pub fn of(name: &str, content: &[u8]) -> Self {
        // A writer of such a file has no converter asked, so its beginning says nothing else here either.
        if ports::is_plain_text(name, content) {
            return Self::Text;
        }
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
        let start = content.get(..content.len().min(LOOK_AT)).unwrap_or_default();
        // Other programs may put something in front, and texts tell of the mark.
        if find(start, b"%PDF-").is_some_and(|at| at == 0 || find(content, b"%%EOF").is_some()) {
            return Self::Pdf;
        }
        if content.starts_with(b"PK\x03\x04") {
            return of_archive(content);
        }
        if content.starts_with(OLE) {
            return old_office(content);
        }
        let is_binary = text::is_binary(content);
        // Their marks are letters, and `BMI` or `THE NEW WAVE` begins a text.
        if let Some(kind) = sound(start).filter(|_| is_binary) {
            return kind;
        }
        let is_certain = |kind| kind != ImageType::Bmp;
        let may_be_image = |kind| is_certain(kind) || is_binary || OF_LETTERS.contains(&ending.as_str());
        if image_type(start).is_ok_and(may_be_image) {
            return Self::Image;
        }
        if is_binary { Self::Unknown } else { by_text(&ending, content) }
    }
}

/// The kind of document that an archive is.
fn of_archive(content: &[u8]) -> DocumentKind {
    let Ok(mut archive) = ZipArchive::new(Cursor::new(content)) else {
        // Its entries begin with their names, so a damaged one still says what it was to be.
        return of_names(content);
    };
    let mut declared = String::new();
    if let Ok(file) = archive.by_name("mimetype") {
        let _ = file.take(MIMETYPE).read_to_string(&mut declared);
    }
    match declared.trim() {
        "application/epub+zip" => return DocumentKind::Epub,
        "application/vnd.oasis.opendocument.spreadsheet" => return DocumentKind::Spreadsheet,
        _ => {}
    }
    let has = |name: &str| archive.index_for_name(name).is_some();
    if has("word/document.xml") {
        DocumentKind::Docx
    } else if has("ppt/presentation.xml") {
        DocumentKind::Pptx
    } else if has("xl/workbook.xml") || has("xl/workbook.bin") {
        DocumentKind::Spreadsheet
    } else {
        DocumentKind::Unknown
    }
}

/// The kind of a damaged archive, by the names that are in it.
fn of_names(content: &[u8]) -> DocumentKind {
    let has = |mark: &[u8]| find(content, mark).is_some();
    if has(b"application/epub+zip") {
        DocumentKind::Epub
    } else if has(b"word/document.xml") {
        DocumentKind::Docx
    } else if has(b"ppt/presentation.xml") {
        DocumentKind::Pptx
    } else if has(b"xl/workbook.") || has(b"opendocument.spreadsheet") {
        DocumentKind::Spreadsheet
    } else {
        DocumentKind::Unknown
    }
}

fn old_office(content: &[u8]) -> DocumentKind {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    if find(content, &utf16("EncryptedPackage")).is_some() {
        DocumentKind::Encrypted
    } else if find(content, &utf16("Workbook")).is_some() {
        DocumentKind::Spreadsheet
    } else {
        DocumentKind::Unknown
    }
}

/// Sound and moving pictures.
fn sound(start: &[u8]) -> Option<DocumentKind> {
    let at = |from: usize, mark: &[u8]| start.get(from..).is_some_and(|rest| rest.starts_with(mark));
    let is_image = at(8, b"avif") || at(8, b"avis") || at(8, b"heic") || at(8, b"heix") || at(8, b"mif1");
    if at(4, b"ftyp") && !is_image {
        return Some(if at(8, b"M4A") || at(8, b"M4B") { DocumentKind::Audio } else { DocumentKind::Video });
    }
    if at(0, &[0x1a, 0x45, 0xdf, 0xa3]) || at(8, b"AVI ") {
        return Some(DocumentKind::Video);
    }
    let frame = matches!(start, [0xff, second, ..] if second & 0xe6 == 0xe2);
    let is_audio = at(0, b"ID3") || at(0, b"fLaC") || at(0, b"OggS") || at(8, b"WAVE") || at(8, b"AIFF") || frame;
    is_audio.then_some(DocumentKind::Audio)
}

/// Kinds that are text.
fn by_text(ending: &str, content: &[u8]) -> DocumentKind {
    let start = content.get(..content.len().min(LOOK_AT)).unwrap_or_default();
    let text = String::from_utf8_lossy(start).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    if text.starts_with("<!doctype html") || text.starts_with("<html") || matches!(ending, "html" | "htm" | "xhtml") {
        return DocumentKind::Html;
    }
    if text.starts_with('{') && (ending == "ipynb" || find(content, b"\"nbformat\"").is_some()) {
        return DocumentKind::Notebook;
    }
    let headers = ["received:", "return-path:", "delivered-to:", "mime-version:", "message-id:"];
    // A note may begin with one such word; the next line of a message is another field.
    let is_field = |line: &&str| {
        let name = line.split_once(':').map_or("", |(name, _)| name);
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let unfolded = text.lines().filter(|line| !line.starts_with([' ', '\t']));
    let has_fields = unfolded.take(2).filter(is_field).count() == 2;
    if ending == "eml" || has_fields && headers.iter().any(|header| text.starts_with(header)) {
        return DocumentKind::Email;
    }
    match ending {
        "csv" | "tsv" => DocumentKind::Csv,
        _ => DocumentKind::Text,
    }
}
