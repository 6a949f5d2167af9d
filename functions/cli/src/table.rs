//! Lists as tables: on a terminal with headings and fitted to its width, and row by row where it is too narrow for that; bare in a pipe.

use crate::{
    failure::CliError,
    output::{Look, Output, one_line},
    wrap::wrapped,
};
use domain::Timestamp;
use ports::{Clock, SystemClock};
use unicode_width::UnicodeWidthStr;

/// The narrowest that the widest column becomes.
const NARROWEST: usize = 12;
/// The same of a column of sentences.
const SENTENCES: usize = 24;

/// A cell: its text, and how it looks.
pub(crate) type Cell = (String, Option<Look>);

/// Rows under headings.
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    /// Whether the last column goes on in further lines, and is not cut.
    is_whole: bool,
}

impl Table {
    /// With these headings and no row.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new(), is_whole: false }
    }

    /// With a last column of sentences: it goes on in further lines where a terminal would cut it.
    pub(crate) fn with_whole_sentences(headings: &[&'static str]) -> Self {
        Self { is_whole: true, ..Self::new(headings) }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Writes it; nothing when it has no row.
    pub(crate) fn print(&self, out: &mut Output) -> Result<(), CliError> {
        self.print_at(out.width(), out)
    }

    fn print_at(&self, width: Option<usize>, out: &mut Output) -> Result<(), CliError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let headings = self.headings.iter().map(|heading| heading.to_uppercase());
        let mut columns: Vec<usize> = match width {
            Some(_) => headings.clone().map(|heading| heading.width()).collect(),
            None => vec![0; self.headings.len()],
        };
        for (column, wide) in columns.iter_mut().enumerate() {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.width());
            *wide = cells.max().unwrap_or(0).max(*wide);
        }
        let Some(width) = width else {
            return self.rows.iter().try_for_each(|row| line(row, &columns, Cells::Bare, out));
        };
        let mut least = 0;
        if self.is_whole
            && let Some((sentences, others)) = columns.split_last_mut()
        {
            let room = width.saturating_sub(others.iter().sum::<usize>() + 2 * others.len());
            *sentences = (*sentences).min(room.max(SENTENCES));
            least = *sentences;
        }
        if !fit(&mut columns, width) || columns.last().is_some_and(|wide| *wide < least) {
            return self.print_rows(width, out);
        }
        let cells: Vec<Cell> = headings.map(|heading| (heading, Some(Look::Dim))).collect();
        line(&cells, &columns, Cells::Cut, out)?;
        let cells = if self.is_whole { Cells::CutButTheLast } else { Cells::Cut };
        self.rows.iter().try_for_each(|row| line(row, &columns, cells, out))
    }

    /// Writes each row as lines of a heading and its cell, whole: a terminal is too narrow for columns.
    fn print_rows(&self, width: usize, out: &mut Output) -> Result<(), CliError> {
        let style = out.style();
        let widest = self.headings.iter().map(|heading| heading.width()).max().unwrap_or(0);
        for (place, row) in self.rows.iter().enumerate() {
            if place > 0 {
                out.line("")?;
            }
            for (heading, (text, look)) in self.headings.iter().zip(row).filter(|(_, (text, _))| !text.is_empty()) {
                let blanks = " ".repeat(widest.saturating_sub(heading.width()));
                let heading = style.paint(Look::Dim, heading.to_uppercase());
                let text = one_line(text, usize::MAX);
                let cell = look.map_or_else(|| text.clone(), |look| style.paint(look, &text));
                out.line(wrapped(&format!("{heading}{blanks}  {cell}"), width))?;
            }
        }
        Ok(())
    }
}

/// Makes the widest columns narrower until all fit; false when they cannot.
fn fit(columns: &mut [usize], width: usize) -> bool {
    let gaps = 2 * columns.len().saturating_sub(1);
    while columns.iter().sum::<usize>() + gaps > width {
        match columns.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => return false,
        }
    }
    true
}

/// The way in which cells become as wide as their columns.
#[derive(Clone, Copy)]
enum Cells {
    /// Not at all.
    Bare,
    /// Longer ones are cut.
    Cut,
    /// The last one goes on in further lines of its column.
    CutButTheLast,
}

fn line(cells: &[Cell], columns: &[usize], how: Cells, out: &mut Output) -> Result<(), CliError> {
    let style = out.style();
    let mut line = String::new();
    for (place, ((text, look), wide)) in cells.iter().zip(columns).enumerate() {
        let last = place + 1 == cells.len();
        let text = match how {
            Cells::Bare => text.clone(),
            Cells::CutButTheLast if last => {
                let before = columns.iter().take(place).sum::<usize>() + 2 * place;
                wrapped(&one_line(text, usize::MAX), *wide).replace('\n', &format!("\n{}", " ".repeat(before)))
            }
            Cells::Cut | Cells::CutButTheLast => one_line(text, *wide),
        };
        let blanks = if last { 0 } else { wide.saturating_sub(text.width()) + 2 };
        match look {
            Some(look) => line.push_str(&style.paint(*look, &text)),
            None => line.push_str(&text),
        }
        line.push_str(&" ".repeat(blanks));
    }
    out.line(line.trim_end())
}

/// A time for a column: how long ago it was or how soon it is on a terminal, the moment elsewhere.
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

/// How long ago a time was, or how soon it is, for people.
pub(crate) fn since(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(at) => relative(at, SystemClock.now()),
        Err(_) => moment(time),
    }
}

fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = if at > now { at.since(now) } else { now.since(at) }.as_secs();
    let distance = match seconds {
        // The clocks of two machines differ by as much.
        0..10 => return "just now".into(),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    };
    if at > now { format!("in {distance}") } else { format!("{distance} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments() {
        assert_eq!(moment("2025-11-05T09:12:44.123Z"), "2025-11-05 09:12:44Z");
        assert_eq!(moment(""), "");
        assert_eq!(moment("ääääääääääääääääääääääääää"), "äääääääääääääääääääääää…");
    }

    #[test]
    fn the_widest_columns_give_way_first() {
        let mut columns = [36, 9, 60];
        assert!(fit(&mut columns, 80));
        assert_eq!(columns.iter().sum::<usize>() + 4, 80);
        assert_eq!(columns[1], 9);
        let mut narrow = [10, 10];
        assert!(!fit(&mut narrow, 5), "such a terminal has no room for columns");
    }

    /// The table on a terminal of this width.
    fn shown(table: &Table, width: Option<usize>) -> String {
        #[derive(Clone, Default)]
        struct Sink(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);
        impl std::io::Write for Sink {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.borrow_mut().write(bytes)
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let sink = Sink::default();
        let mut out = Output::to(sink.clone(), sink.clone(), crate::output::Style::Plain, false);
        assert!(table.print_at(width, &mut out).is_ok());
        let bytes = sink.0.borrow();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn a_terminal_too_narrow_for_columns_shows_a_row_as_lines_and_a_pipe_whole_cells() {
        let mut table = Table::new(&["id", "status", "active", "title"]);
        let id = "41ecf894-337a-5568-bedd-2525ff979753";
        for title in ["Show me what you can do", ""] {
            table.row([id, "idle", "1 min ago", title].map(|cell| (cell.to_owned(), None)).to_vec());
        }
        let lines = "ID      41ecf894-337a-5568-bedd-2525ff979753\nSTATUS  idle\nACTIVE  1 min ago\n";
        assert_eq!(shown(&table, Some(38)), format!("{lines}TITLE   Show me what you can do\n\n{lines}"));
        assert!(shown(&table, Some(60)).lines().all(|line| line.chars().count() <= 60));
        assert_eq!(
            shown(&table, None),
            format!("{id}  idle  1 min ago  Show me what you can do\n{id}  idle  1 min ago\n")
        );
    }

    #[test]
    fn sentences_go_on_in_further_lines_of_their_column() {
        let mut table = Table::with_whole_sentences(&["agent", "note"]);
        table.row(vec![("codex".into(), None), ("codex-acp is not on the PATH: npm install it".into(), None)]);
        let lines = "AGENT  NOTE\ncodex  codex-acp is not on the\n       PATH: npm install it\n";
        assert_eq!(shown(&table, Some(32)), lines);
        let lines = "AGENT  codex\nNOTE   codex-acp is not on\n       the PATH: npm\n       install it\n";
        assert_eq!(shown(&table, Some(26)), lines, "a column would be too narrow for sentences");
    }

    #[test]
    fn times_are_told_as_people_do() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        for (seconds, before, after) in [
            (3, "just now", "just now"),
            (59, "59 s ago", "in 59 s"),
            (61, "1 min ago", "in 1 min"),
            (7_300, "2 h ago", "in 2 h"),
            (90_000, "1 d ago", "in 1 d"),
        ] {
            let distance = Duration::from_secs(seconds);
            assert_eq!(
                (relative(now, now + distance), relative(now + distance, now)),
                (before.to_owned(), after.to_owned())
            );
        }
    }
}
