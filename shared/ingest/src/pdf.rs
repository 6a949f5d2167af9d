//! PDF: the text of each page, behind a mark with the number of the page.

use crate::{budget::Limits, converted, damaged, failed};
use pdf_extract::{
    ConvertToFmt, Document, MediaBox, Object, OutputDev, OutputError, PlainTextOutput, Transform, output_doc,
    output_doc_page,
};
use ports::{Converted, NotConverted, counted};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    // The library panics on what it does not expect.
    let loaded = catch_unwind(|| Document::load_mem(content));
    let document = loaded.map_err(|_| damaged("its parts cannot be found"))?.map_err(|error| reason(&error))?;
    // The library has tried the empty password, and takes this mark away where it fits.
    if document.trailer.has(b"Encrypt") {
        return Err(failed("encrypted", "it is protected by a password"));
    }
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    if pages.is_empty() {
        return Err(damaged("it has no pages"));
    }
    let mut reading = Reading::new(limits);
    // All at once is the fast way, and ends at a page that cannot be read: those after it are read one by one.
    let mut is_whole = reads(|| output_doc(&document, &mut reading));
    while reading.goes_on() && reading.pages < pages.len() {
        if !is_whole {
            reading.end(false);
        }
        let Some(page) = pages.get(reading.pages) else { break };
        is_whole = reads(|| output_doc_page(&document, &mut reading, *page));
    }
    if let Some(refusal) = reading.refusal {
        return Err(refusal);
    }
    let Reading { mut text, unread, has_words, is_late: is_cut, pages: read, .. } = reading;
    let left = pages.len() - read;
    if is_cut {
        text.push_str(&format!("[the time was up; left out at the end: {}]\n", counted(left, "page")));
    }
    if unread == pages.len() && !has_words {
        return Err(damaged("none of its pages can be read"));
    }
    let title = title(&document);
    if !has_words && !is_cut {
        text = format!("[{} without text: maybe pictures]\n", counted(pages.len(), "page"));
    }
    let left_out = if is_cut { json!(left) } else { Value::Null };
    Ok(converted(text, [("title", json!(title)), ("pages", json!(pages.len())), ("pages_left_out", left_out)]))
}

/// Whether the library came to the end. It panics on what it does not expect.
fn reads(work: impl FnOnce() -> Result<(), OutputError>) -> bool {
    matches!(catch_unwind(AssertUnwindSafe(work)), Ok(Ok(())))
}

/// The text of the pages so far.
struct Reading<'a> {
    limits: &'a Limits,
    text: String,
    /// How many pages are done, and of how many of them a part cannot be read.
    pages: usize,
    unread: usize,
    has_words: bool,
    is_late: bool,
    refusal: Option<NotConverted>,
    /// The words of the page that is being read, and their way there.
    page: Words,
    output: PlainTextOutput<Words>,
}

impl<'a> Reading<'a> {
    fn new(limits: &'a Limits) -> Self {
        let page = Words::default();
        let output = PlainTextOutput::new(page.clone());
        let (text, refusal) = (String::new(), None);
        Self { limits, text, pages: 0, unread: 0, has_words: false, is_late: false, refusal, page, output }
    }

    fn goes_on(&self) -> bool {
        !self.is_late && self.refusal.is_none()
    }

    /// A page has come to its end, or nothing more of it can be read.
    fn end(&mut self, is_whole: bool) {
        self.pages += 1;
        self.text.push_str(&format!("<!-- page {} -->\n\n", self.pages));
        if !is_whole {
            self.unread += 1;
            self.text.push_str("[a part of this page cannot be read]\n\n");
        }
        let words = paragraphs(&self.page.0.take());
        self.has_words |= !words.is_empty();
        self.text.push_str(&words);
        self.refusal = self.limits.fits(self.text.len()).err();
    }
}

impl OutputDev for Reading<'_> {
    fn begin_page(
        &mut self,
        number: u32,
        media: &MediaBox,
        art: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.is_late = self.limits.is_late();
        if self.is_late {
            return Err(std::fmt::Error.into());
        }
        self.page.0.take();
        self.output = PlainTextOutput::new(self.page.clone());
        self.output.begin_page(number, media, art)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.end(true);
        if self.goes_on() { Ok(()) } else { Err(std::fmt::Error.into()) }
    }

    fn output_character(
        &mut self,
        at: &Transform,
        width: f64,
        spacing: f64,
        font_size: f64,
        text: &str,
    ) -> Result<(), OutputError> {
        self.output.output_character(at, width, spacing, font_size, text)
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.output.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.output.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.output.end_line()
    }
}

/// A text that its reader and its writer share.
#[derive(Clone, Default)]
struct Words(Rc<RefCell<String>>);

impl std::fmt::Write for Words {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.borrow_mut().push_str(text);
        Ok(())
    }
}

impl ConvertToFmt for Words {
    type Writer = Self;

    fn convert(self) -> Self {
        self
    }
}

fn reason(error: &pdf_extract::Error) -> NotConverted {
    match error {
        pdf_extract::Error::Decryption(_) | pdf_extract::Error::InvalidPassword => {
            failed("encrypted", "it is protected by a password")
        }
        _ => damaged("its parts cannot be found"),
    }
}

/// Lines without the space around them, and at most one empty line between them.
fn paragraphs(words: &str) -> String {
    let mut text = String::new();
    let mut is_gap = true;
    for line in words.lines() {
        let line = line.trim();
        if line.is_empty() {
            if !is_gap {
                text.push('\n');
            }
            is_gap = true;
        } else {
            text.push_str(line);
            text.push('\n');
            is_gap = false;
        }
    }
    if !is_gap {
        text.push('\n');
    }
    text
}

fn title(document: &Document) -> String {
    let followed = |object| document.dereference(object).map(|(_, object)| object);
    let info = document.trailer.get(b"Info").and_then(followed).and_then(Object::as_dict);
    match info.and_then(|info| info.get(b"Title")).and_then(followed) {
        Ok(Object::String(bytes, _)) => crate::markdown::line(&text_string(bytes)),
        _ => String::new(),
    }
}

/// A text string (ISO 32000-2 §7.9.2.2): in the encoding of its mark, else in PDFDocEncoding.
fn text_string(bytes: &[u8]) -> String {
    let text = match (bytes, std::str::from_utf8(bytes)) {
        ([0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0xef, 0xbb, 0xbf, ..], _) => {
            crate::text::decode(bytes).0.trim_start_matches('\u{feff}').to_owned()
        }
        // Programs leave the mark out, and no title in PDFDocEncoding is UTF-8 beyond ASCII by chance.
        (_, Ok(text)) if !text.is_ascii() => text.to_owned(),
        _ => bytes.iter().map(|byte| of_pdf_doc(*byte)).collect(),
    };
    // The name of a language stands between two escapes.
    if text.matches('\u{1b}').count() % 2 == 0 { text.split('\u{1b}').step_by(2).collect() } else { text }
}

/// A character of PDFDocEncoding (ISO 32000-2 Annex D.2), which is Latin-1 but for these.
fn of_pdf_doc(byte: u8) -> char {
    let in_row = |row: &str, first: u8| row.chars().nth(usize::from(byte.saturating_sub(first)));
    let character = match byte {
        0x18..=0x1f => in_row("˘ˇˆ˙˝˛˚˜", 0x18),
        0x80..=0x9e => in_row("•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž", 0x80),
        0xa0 => Some('€'),
        byte => Some(char::from(byte)),
    };
    character.unwrap_or(char::REPLACEMENT_CHARACTER)
}
