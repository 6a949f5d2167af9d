//! Sheets of Excel and OpenDocument, each as a table.

use crate::{
    bounded_zip::BoundedZip,
    budget::Limits,
    converted, damaged, failed,
    markdown::{Rows, cell, line},
    text::find,
};
use calamine::{Data, Error, Ods, OdsError, Range, Reader, Sheets, Xls, XlsError, Xlsb, XlsbError, Xlsx, XlsxError};
use ports::{Converted, NotConverted, counted};
use serde_json::json;
use std::io::Cursor;

/// Formulas are read with the sheet once more, which is left out for a larger one.
const MOST_LOOKED_AT: usize = 200_000;

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    if content.starts_with(b"PK") {
        // The library unpacks by itself; this looks at the sizes before.
        BoundedZip::open(content, limits)?;
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
        let mut formulas = formulas(&mut book, name, area(&range)).unwrap_or_default();
        if area(&formulas) > MOST_LOOKED_AT || across(&range, &formulas) > MOST_LOOKED_AT.max(area(&range)) {
            formulas = Range::default();
        }
        // A row may have nothing but formulas that were never computed.
        let ((top, left), (height, width)) = around(&range, &formulas);
        let mut rows = Rows::default();
        for y in (top..).take(height) {
            let value = |x| match (range.get_value((y, x)).unwrap_or(&Data::Empty), formulas.get_value((y, x))) {
                (Data::Empty, Some(formula)) if !formula.is_empty() => cell(&format!("={formula}")),
                (value, _) => cell(&shown(value)),
            };
            rows.push((left..).take(width).map(value).collect());
        }
        // The first row has the names of the columns.
        let count = height.saturating_sub(1);
        all += count;
        let (height, width) = (counted(count, "row"), counted(width, "column"));
        text.push_str(&format!("## {title}\n\n{height}, {width}\n\n{}\n", rows.table()));
        limits.fits(text.len())?;
    }
    Ok(converted(text, [("sheets", json!(names.len())), ("rows", json!(all))]))
}

/// The cells of a range.
fn area<T: calamine::CellType>(range: &Range<T>) -> usize {
    let (height, width) = range.get_size();
    height.saturating_mul(width)
}

/// The first cell, and the height and the width of what is around both.
fn around(values: &Range<Data>, formulas: &Range<String>) -> ((u32, u32), (usize, usize)) {
    let corners = [(values.start(), values.end()), (formulas.start(), formulas.end())];
    let corners: Vec<_> = corners.into_iter().filter_map(|(start, end)| Some((start?, end?))).collect();
    let top = corners.iter().map(|(start, _)| start.0).min().unwrap_or(0);
    let left = corners.iter().map(|(start, _)| start.1).min().unwrap_or(0);
    let height = corners.iter().map(|(_, end)| (end.0 - top) as usize + 1).max().unwrap_or(0);
    let width = corners.iter().map(|(_, end)| (end.1 - left) as usize + 1).max().unwrap_or(0);
    ((top, left), (height, width))
}

fn across(values: &Range<Data>, formulas: &Range<String>) -> usize {
    let (_, (height, width)) = around(values, formulas);
    height.saturating_mul(width)
}

/// The formulas of a sheet: one that its program has not computed has no value to show.
fn formulas(book: &mut Sheets<Cursor<&[u8]>>, sheet: &str, cells: usize) -> Option<Range<String>> {
    (cells <= MOST_LOOKED_AT).then(|| book.worksheet_formula(sheet).ok()).flatten()
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
                elapsed(time.as_f64())
            } else if 0.0 < time.as_f64() && time.as_f64() < 1.0 {
                // A time of no day.
                format!("{hour:02}:{minute:02}:{second:02}")
            } else if (hour, minute, second) == (0, 0, 0) {
                format!("{year:04}-{month:02}-{day:02}")
            } else {
                format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
            }
        }
        value => value.to_string(),
    }
}

/// A length of time in days, as `36:00:00`.
fn elapsed(days: f64) -> String {
    let seconds = (days.abs() * 86_400.0).round();
    let (hours, minutes) = ((seconds / 3_600.0).floor(), ((seconds % 3_600.0) / 60.0).floor());
    format!("{}{hours:.0}:{minutes:02.0}:{:02.0}", if days < 0.0 { "-" } else { "" }, seconds % 60.0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use calamine::{ExcelDateTime, ExcelDateTimeType};

    #[test]
    fn times_and_lengths_of_time_are_shown_as_such() {
        let check = |days: f64, kind: ExcelDateTimeType, expected: &str| {
            assert_eq!(shown(&Data::DateTime(ExcelDateTime::new(days, kind, false))), expected, "{days}");
        };
        check(1.5, ExcelDateTimeType::TimeDelta, "36:00:00");
        check(-0.25, ExcelDateTimeType::TimeDelta, "-6:00:00");
        check(0.5, ExcelDateTimeType::DateTime, "12:00:00");
        check(45_943.0, ExcelDateTimeType::DateTime, "2025-10-13");
        check(45_943.5, ExcelDateTimeType::DateTime, "2025-10-13 12:00:00");
    }
}
