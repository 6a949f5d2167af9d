//! Values with separators.

use crate::{
    budget::Limits,
    converted, damaged,
    markdown::{Rows, cell},
    text,
};
use ports::{Converted, NotConverted, counted};
use serde_json::json;

/// The separators that occur. Of two that fit alike, the later one counts, so the comma comes first: numbers and names have commas, too.
const SEPARATORS: [u8; 4] = [b',', b'|', b';', b'\t'];
/// The rows by which the separator is found.
const SAMPLE: usize = 20;
/// How far these rows go, in bytes.
const LOOK_AT: usize = 64 * 1024;

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

/// The separator by which most of the first rows have as many values as the first one; of several, the one that occurs least in values.
fn separator(text: &str) -> u8 {
    let start = text.get(..text.floor_char_boundary(LOOK_AT)).unwrap_or_default();
    let score = |separator: &u8| {
        let mut rows = csv::ReaderBuilder::new();
        rows.has_headers(false).flexible(true).delimiter(*separator);
        let rows = rows.from_reader(start.as_bytes());
        let widths: Vec<usize> = rows.into_records().take(SAMPLE).map_while(Result::ok).map(|row| row.len()).collect();
        let first = widths.first().copied().filter(|first| *first > 1);
        first.map_or(0, |first| widths.iter().filter(|width| **width == first).count())
    };
    let found = SEPARATORS.iter().max_by_key(|separator| score(separator)).filter(|separator| score(separator) > 0);
    found.copied().unwrap_or(b',')
}
