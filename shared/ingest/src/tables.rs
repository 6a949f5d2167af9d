//! Values with separators.

use crate::{
    budget::Limits,
    converted, damaged,
    markdown::{Rows, cell},
    text,
};
use ports::{Converted, NotConverted, counted};
use serde_json::json;

/// The separators that occur, the most usual one first.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// The lines by which the separator is found.
const SAMPLE: usize = 20;

pub(crate) fn convert(name: &str, content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let (text, encoding) = text::decode(content);
    let text = text.trim_start_matches('\u{feff}');
    let (separator, text) = match named_separator(text) {
        Some(named) => named,
        None if name.to_ascii_lowercase().ends_with(".tsv") => (b'\t', text),
        None => (separator(text), text),
    };
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(separator).from_reader(text.as_bytes());
    let (mut rows, mut columns) = (Rows::default(), 0);
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|_| damaged("a row cannot be read"))? {
        columns = columns.max(record.len());
        rows.push(record.iter().map(cell).collect());
    }
    // The first row has the names of the columns.
    let count = rows.count.saturating_sub(1);
    let markdown = format!("{}, {}\n\n{}", counted(count, "row"), counted(columns, "column"), rows.table());
    limits.fits(markdown.len())?;
    let encoding = json!(encoding);
    Ok(converted(markdown, [("rows", json!(count)), ("columns", json!(columns)), ("encoding", encoding)]))
}

/// The separator that a first line `sep=;` names, as Excel reads it, and the text behind that line.
fn named_separator(text: &str) -> Option<(u8, &str)> {
    let (name, rest) = text.split_once('\n')?;
    match name.strip_prefix("sep=")?.trim_end_matches('\r').as_bytes() {
        [separator] if *separator != b'"' => Some((*separator, rest)),
        _ => None,
    }
}

/// The separator that the first lines have most often, and as often each.
fn separator(text: &str) -> u8 {
    let score = |separator: &u8| {
        let counts = text.lines().take(SAMPLE).map(|line| line.bytes().filter(|byte| byte == separator).count());
        let counts: Vec<usize> = counts.collect();
        let first = counts.first().copied().unwrap_or(0);
        let alike = counts.iter().filter(|count| **count == first).count();
        if first == 0 { 0 } else { alike * 1_000 + first.min(999) }
    };
    let usual = SEPARATORS.first().copied().unwrap_or(b',');
    // Of equal scores the first one counts.
    SEPARATORS.iter().rev().max_by_key(|separator| score(separator)).copied().unwrap_or(usual)
}
