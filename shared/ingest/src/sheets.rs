//! Sheets of Excel and OpenDocument, each as a table.

use crate::{
    bounded_zip::BoundedZip,
    budget::Limits,
    converted, damaged, failed,
    markdown::{Rows, cell, line},
    text::find,
};
use calamine::{
    Cell, Data, DataRef, Error, Ods, OdsError, Range, Reader, Sheets, Xls, XlsError, Xlsb, XlsbError, Xlsx, XlsxError,
};
use ports::{Converted, NotConverted, counted};
use serde_json::json;
use std::{collections::BTreeSet, io::Cursor};

/// Formulas are read with the sheet once more, which is left out for a larger one.
const MOST_LOOKED_AT: usize = 200_000;
/// A larger sheet in which fewer than one of so many cells has a value is shown without its empty rows and columns.
const SPARSE: usize = 4;

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
        let (range, note) = match values(&mut book, name) {
            Ok(values) => values,
            Err(_) => {
                text.push_str(&format!("## {title}\n\n[this sheet cannot be read]\n\n"));
                continue;
            }
        };
        let cells = if note.is_empty() { area(&range) } else { usize::MAX };
        let mut formulas = formulas(&mut book, name, cells).unwrap_or_default();
        if area(&formulas) > MOST_LOOKED_AT || across(&range, &formulas) > MOST_LOOKED_AT.max(area(&range)) {
            formulas = Range::default();
        }
        // A row may have nothing but formulas that were never computed.
        let ((top, left), (height, width)) = around(&range, &formulas);
        let mut rows = Rows::default();
        for y in (top..).take(height) {
            let value = |x| match (range.get_value((y, x)).unwrap_or(&Data::Empty), formulas.get_value((y, x))) {
                (Data::Empty, Some(formula)) if !formula.is_empty() => cell(&format!("={formula}")),
                (value, _) => cell(&cell_text(value)),
            };
            rows.push((left..).take(width).map(value).collect());
        }
        // The first row has the names of the columns.
        let count = height.saturating_sub(1);
        all += count;
        let (height, width) = (counted(count, "row"), counted(width, "column"));
        text.push_str(&format!("## {title}\n\n{height}, {width}\n\n{note}{}\n", rows.table()));
        limits.fits(text.len())?;
    }
    Ok(converted(text, [("sheets", json!(names.len())), ("rows", json!(all))]))
}

/// The values of a sheet, and what a line says about the empty rows and columns that are left out of them. The library makes room for all cells between
/// the first and the last one, so one value that somebody lost at the end of a sheet would take all memory.
fn values(book: &mut Sheets<Cursor<&[u8]>>, sheet: &str) -> Result<(Range<Data>, String), Error> {
    let cells = match book {
        Sheets::Xlsx(book) => match book.worksheet_cells_reader(sheet) {
            Ok(mut reader) => gathered(|| reader.next_cell())?,
            Err(XlsxError::NotAWorksheet(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        },
        Sheets::Xlsb(book) => {
            let mut reader = book.worksheet_cells_reader(sheet)?;
            gathered(|| reader.next_cell())?
        }
        Sheets::Xls(_) | Sheets::Ods(_) => return Ok((book.worksheet_range(sheet)?, String::new())),
    };
    let (cells, left) = without_empty(cells);
    Ok((Range::from_sparse(cells), left))
}

/// All cells with a value.
fn gathered<'a, E>(mut next: impl FnMut() -> Result<Option<Cell<DataRef<'a>>>, E>) -> Result<Vec<Cell<Data>>, E> {
    let mut cells = Vec::new();
    while let Some(cell) = next()? {
        let value = Data::from(cell.get_value().clone());
        if value != Data::Empty {
            cells.push(Cell::new(cell.get_position(), value));
        }
    }
    Ok(cells)
}

/// The cells of a sheet that is nearly empty, moved together.
fn without_empty(cells: Vec<Cell<Data>>) -> (Vec<Cell<Data>>, String) {
    let places = || cells.iter().map(Cell::get_position);
    let extent = |axis: fn((u32, u32)) -> u32| match (places().map(axis).min(), places().map(axis).max()) {
        (Some(first), Some(last)) => (last - first) as usize + 1,
        _ => 0,
    };
    let (height, width) = (extent(|(row, _)| row), extent(|(_, column)| column));
    if height.saturating_mul(width) <= cells.len().saturating_mul(SPARSE).max(MOST_LOOKED_AT) {
        return (cells, String::new());
    }
    let used = |axis: fn((u32, u32)) -> u32| {
        let used: BTreeSet<u32> = places().map(axis).collect();
        used.into_iter().collect::<Vec<_>>()
    };
    let (rows, columns) = (used(|(row, _)| row), used(|(_, column)| column));
    let (no_rows, no_columns) = (height - rows.len(), width - columns.len());
    if (no_rows, no_columns) == (0, 0) {
        return (cells, String::new());
    }
    let place = |used: &[u32], at: u32| u32::try_from(used.partition_point(|each| *each < at)).unwrap_or(at);
    let moved = cells.iter().map(|cell| {
        let (row, column) = cell.get_position();
        Cell::new((place(&rows, row), place(&columns, column)), cell.get_value().clone())
    });
    let (no_rows, no_columns) = (counted(no_rows, "empty row"), counted(no_columns, "empty column"));
    (moved.collect(), format!("[left out: {no_rows}, {no_columns}]\n\n"))
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

fn cell_text(value: &Data) -> String {
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
            assert_eq!(cell_text(&Data::DateTime(ExcelDateTime::new(days, kind, false))), expected, "{days}");
        };
        check(1.5, ExcelDateTimeType::TimeDelta, "36:00:00");
        check(-0.25, ExcelDateTimeType::TimeDelta, "-6:00:00");
        check(0.5, ExcelDateTimeType::DateTime, "12:00:00");
        check(45_943.0, ExcelDateTimeType::DateTime, "2025-10-13");
        check(45_943.5, ExcelDateTimeType::DateTime, "2025-10-13 12:00:00");
    }
}
