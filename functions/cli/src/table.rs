//! Lists as tables: with headings and fitted to the width on a terminal, bare in a pipe.

use crate::{
    failure::CliError,
    output::{Look, Output, one_line},
};
use domain::Timestamp;
use ports::{Clock, SystemClock};
use unicode_width::UnicodeWidthStr;

/// The narrowest that the widest column becomes.
const NARROWEST: usize = 12;

/// A cell: its text, and how it looks.
pub(crate) type Cell = (String, Option<Look>);

/// Rows under headings.
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// With these headings and no row.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Writes it; nothing when it has no row.
    pub(crate) fn print(&self, out: &mut Output) -> Result<(), CliError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let width = out.width();
        let headings = self.headings.iter().map(|heading| heading.to_uppercase());
        let mut columns: Vec<usize> = match width {
            Some(_) => headings.clone().map(|heading| heading.width()).collect(),
            None => vec![0; self.headings.len()],
        };
        for (column, wide) in columns.iter_mut().enumerate() {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.width());
            *wide = cells.max().unwrap_or(0).max(*wide);
        }
        if let Some(width) = width {
            fit(&mut columns, width);
            let cells: Vec<Cell> = headings.map(|heading| (heading, Some(Look::Dim))).collect();
            line(&cells, &columns, true, out)?;
        }
        self.rows.iter().try_for_each(|row| line(row, &columns, width.is_some(), out))
    }
}

/// Makes the widest columns narrower until all fit.
fn fit(columns: &mut [usize], width: usize) {
    let gaps = 2 * columns.len().saturating_sub(1);
    while columns.iter().sum::<usize>() + gaps > width {
        match columns.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => return,
        }
    }
}

fn line(cells: &[Cell], columns: &[usize], cut: bool, out: &mut Output) -> Result<(), CliError> {
    let style = out.style();
    let mut line = String::new();
    for (place, ((text, look), wide)) in cells.iter().zip(columns).enumerate() {
        let text = if cut { one_line(text, *wide) } else { text.clone() };
        let last = place + 1 == cells.len();
        let blanks = if last { 0 } else { wide.saturating_sub(text.width()) + 2 };
        match look {
            Some(look) => line.push_str(&style.paint(*look, &text)),
            None => line.push_str(&text),
        }
        line.push_str(&" ".repeat(blanks));
    }
    out.line(line.trim_end())
}

/// A time for a column: how long ago it was on a terminal, the moment elsewhere.
pub(crate) fn when(time: &str, out: &Output) -> String {
    if out.width().is_some() { since(time) } else { moment(time) }
}

/// A time to the second: `2025-11-05 09:12:44Z`.
pub(crate) fn moment(time: &str) -> String {
    match (time.get(..10), time.get(11..19)) {
        (Some(day), Some(second)) if time.is_ascii() => format!("{day} {second}Z"),
        _ => one_line(time, 24),
    }
}

/// How long ago a time was, for people.
pub(crate) fn since(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(at) => ago(SystemClock.now().since(at).as_secs()),
        Err(_) => moment(time),
    }
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..10 => "just now".into(),
        10..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(moment("2025-11-05T09:12:44.123Z"), "2025-11-05 09:12:44Z");
        assert_eq!(moment(""), "");
        assert_eq!(moment("ääääääääääääääääääääääääää"), "äääääääääääääääääääääää…");
    }

    #[test]
    fn the_widest_columns_give_way_first() {
        let mut columns = [36, 9, 60];
        fit(&mut columns, 80);
        assert_eq!(columns.iter().sum::<usize>() + 4, 80);
        assert_eq!(columns[1], 9);
        let mut narrow = [10, 10];
        fit(&mut narrow, 5);
        assert_eq!(narrow, [10, 10], "a narrow column already wraps");
    }

    #[test]
    fn times_are_told_as_people_do() {
        for (seconds, words) in
            [(3, "just now"), (59, "59 s ago"), (61, "1 min ago"), (7_300, "2 h ago"), (90_000, "1 d ago")]
        {
            assert_eq!(ago(seconds), words);
        }
    }
}
