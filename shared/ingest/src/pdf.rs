//! PDF: the text of each page, behind a mark with the number of the page.

use crate::{budget::Limits, converted, damaged, failed};
use pdf_extract::{Document, Object, PlainTextOutput, output_doc_page};
use ports::{Converted, NotConverted};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    let (mut text, mut unread, mut has_words, mut is_cut) = (String::new(), 0, false, false);
    for (number, page) in pages.iter().enumerate() {
        if limits.is_late() {
            is_cut = true;
            let left = pages.len() - number;
            text.push_str(&format!("[the time was up: the last {left} pages are left out]\n"));
            break;
        }
        let mut words = String::new();
        let read =
            catch_unwind(AssertUnwindSafe(|| output_doc_page(&document, &mut PlainTextOutput::new(&mut words), *page)));
        text.push_str(&format!("<!-- page {page} -->\n\n"));
        if !matches!(read, Ok(Ok(()))) {
            unread += 1;
            text.push_str("[a part of this page cannot be read]\n\n");
        }
        let words = paragraphs(&words);
        has_words |= !words.is_empty();
        text.push_str(&words);
        limits.fits(text.len())?;
    }
    if unread == pages.len() && !has_words {
        return Err(damaged("none of its pages can be read"));
    }
    let title = title(&document);
    if !has_words && !is_cut {
        text = format!("[{} pages without text: they may be pictures]\n", pages.len());
    }
    Ok(converted(text, [("title", json!(title)), ("pages", json!(pages.len()))]))
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
    let info = document.trailer.get(b"Info").and_then(Object::as_reference).and_then(|id| document.get_dictionary(id));
    let Ok(Object::String(bytes, _)) = info.and_then(|info| info.get(b"Title")) else { return String::new() };
    let text = match bytes.as_slice() {
        [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0xef, 0xbb, 0xbf, ..] => crate::text::decode(bytes).0.into_owned(),
        bytes => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    crate::markdown::line(&text)
}
