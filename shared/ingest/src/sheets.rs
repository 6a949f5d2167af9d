//! Sheets of Excel and OpenDocument, each as a table.

use crate::{
    budget::Limits,
    converted, damaged, failed,
    kind::find,
    markdown::{Rows, cell, line},
    zipped::Zipped,
};
use calamine::{Data, Error, Ods, OdsError, Reader, Sheets, Xls, XlsError, Xlsb, XlsbError, Xlsx, XlsxError};
use ports::{Converted, NotConverted};
use serde_json::json;
use std::io::Cursor;

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    if content.starts_with(b"PK") {
        // The library unpacks by itself; this looks at the sizes before.
        Zipped::open(content, limits)?;
    }
    let mut book = open(content).map_err(|error| wrong(&error))?;
    let names = book.sheet_names();
    let (mut text, mut all) = (String::new(), 0);
    for name in &names {
        if limits.is_late() {
            text.push_str(&format!("[the time was up: sheets from {} on are left out]\n", line(name)));
            break;
        }
        let title = line(name);
        let range = match book.worksheet_range(name) {
            Ok(range) => range,
            Err(_) => {
                text.push_str(&format!("## {title}\n\n[this sheet cannot be read]\n\n"));
                continue;
            }
        };
        let (height, width) = range.get_size();
        let mut rows = Rows::default();
        for row in range.rows() {
            rows.push(row.iter().map(|value| cell(&shown(value))).collect());
        }
        // The first row has the names of the columns.
        let count = height.saturating_sub(1);
        all += count;
        text.push_str(&format!("## {title}\n\n{count} rows, {width} columns\n\n{}\n", rows.table()));
        limits.fits(text.len())?;
    }
    Ok(converted(text, [("sheets", json!(names.len())), ("rows", json!(all))]))
}

/// The workbook, by its own kind: a search for the kind by trial, as the library has it, tells no reason when it finds none.
fn open(content: &[u8]) -> Result<Sheets<Cursor<&[u8]>>, Error> {
    let has = |mark: &[u8]| find(content, mark).is_some();
    let content = Cursor::new(content);
    if !content.get_ref().starts_with(b"PK") {
        return Ok(Sheets::Xls(Xls::new(content)?));
    }
    if has(b"opendocument.spreadsheet") {
        Ok(Sheets::Ods(Ods::new(content)?))
    } else if has(b"xl/workbook.bin") {
        Ok(Sheets::Xlsb(Xlsb::new(content)?))
    } else {
        Ok(Sheets::Xlsx(Xlsx::new(content)?))
    }
}

fn shown(value: &Data) -> String {
    match value {
        Data::DateTime(time) => {
            let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
            if time.is_duration() {
                format!("{}", time.as_f64())
            } else if (hour, minute, second) == (0, 0, 0) {
                format!("{year:04}-{month:02}-{day:02}")
            } else {
                format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
            }
        }
        value => value.to_string(),
    }
}

fn wrong(error: &Error) -> NotConverted {
    match error {
        Error::Xls(XlsError::Password)
        | Error::Xlsx(XlsxError::Password)
        | Error::Xlsb(XlsbError::Password)
        | Error::Ods(OdsError::Password) => failed("encrypted", "it is protected by a password"),
        _ => damaged("its sheets cannot be read"),
    }
}
