//! A status line on a terminal: it says what runs, two lines below the cursor, until something is written.
//!
//! A person may type while a turn runs. The terminal itself shows their letters then, at the cursor, and this program knows none of them before
//! the line is complete. So nothing here writes or erases in the line of the cursor or above it, and the cursor is back at its place afterwards:
//! letters that are typed meanwhile stay as they are. The line between has room for a typed line that is wider than the terminal, until the status
//! line is drawn again below it.
//!
//! Two limits are left, and the lines that are sent are whole in both. Where typed letters end at the right edge when the status line is drawn, the next
//! letter is shown in place of the last one. A paste of several lines goes over the status line, and the rest of it stays beside them.

use rustix::{process::getpgrp, termios::tcgetpgrp};
use std::io;

/// Makes room for two lines below the cursor: the screen is scrolled where there are none. Then remembers the cursor's place, goes to the next
/// line, and erases from there. The place is remembered after the scrolling, since it does not move with the text.
const BELOW: &str = "\x1bD\x1bD\x1b[2A\x1b7\x1b[B\x1b[1G\x1b[J";
/// Goes back to the remembered place.
const BACK: &str = "\x1b8";
/// With fewer lines a terminal has no room for a status line.
pub(crate) const MIN_LINES: usize = 6;

/// The codes that draw `line` in place of a status line that is shown. It must have room in a line of the terminal.
pub(crate) fn drawn(line: &str) -> String {
    // The text at the cursor may have a look.
    format!("{BELOW}\x1b[B\x1b[0m{line}{BACK}")
}

/// The codes that erase a status line.
pub(crate) fn erased() -> String {
    format!("{BELOW}{BACK}")
}

/// Whether the terminal that standard error is belongs to another command: a shell runs this one in the background.
pub(crate) fn is_in_background() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|group| group != getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Output, Style};
    use std::{cell::RefCell, rc::Rc};

    const WIDTH: usize = 20;
    const HEIGHT: usize = 6;

    /// A terminal, as far as this program drives one.
    struct Grid {
        rows: Vec<Vec<char>>,
        at: (usize, usize),
        kept: (usize, usize),
    }

    impl Grid {
        fn new() -> Self {
            Self { rows: vec![vec![' '; WIDTH]; HEIGHT], at: (0, 0), kept: (0, 0) }
        }

        /// Shows what a program writes, or the terminal itself for keys.
        fn show(&mut self, text: &str) {
            let mut rest = text.chars();
            while let Some(c) = rest.next() {
                match c {
                    '\r' => self.at.1 = 0,
                    // Terminals are set so that a new line begins at the left edge.
                    '\n' => {
                        self.at.1 = 0;
                        self.down();
                    }
                    '\x1b' => self.code(&mut rest),
                    c => {
                        // The edge: a letter that has no room goes to the next line.
                        if self.at.1 == WIDTH {
                            self.at.1 = 0;
                            self.down();
                        }
                        self.rows[self.at.0][self.at.1] = c;
                        self.at.1 += 1;
                    }
                }
            }
        }

        fn down(&mut self) {
            if self.at.0 + 1 < HEIGHT {
                self.at.0 += 1;
            } else {
                self.rows.remove(0);
                self.rows.push(vec![' '; WIDTH]);
            }
        }

        fn code(&mut self, rest: &mut std::str::Chars<'_>) {
            match rest.next() {
                Some('D') => self.down(),
                Some('7') => self.kept = self.at,
                Some('8') => self.at = self.kept,
                Some('[') => {
                    let mut number = String::new();
                    let end = rest.by_ref().find(|c| {
                        number.extend(c.is_ascii_digit().then_some(*c));
                        c.is_ascii_alphabetic()
                    });
                    let count = number.parse().unwrap_or(1);
                    match end {
                        Some('A') => self.at.0 = self.at.0.saturating_sub(count),
                        Some('B') => self.at.0 = (self.at.0 + count).min(HEIGHT - 1),
                        Some('G') => self.at.1 = count - 1,
                        Some('J') => {
                            let (row, column) = self.at;
                            self.rows[row][column.min(WIDTH)..].fill(' ');
                            self.rows[row + 1..].iter_mut().for_each(|row| row.fill(' '));
                        }
                        Some('m') => {}
                        other => panic!("an unknown code: {other:?}"),
                    }
                }
                other => panic!("an unknown code: {other:?}"),
            }
        }

        /// The lines without blanks at their ends, up to the last one that has text.
        fn lines(&self) -> Vec<String> {
            let mut lines: Vec<String> = self.rows.iter().map(|row| row.iter().collect::<String>()).collect();
            lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
            while lines.last().is_some_and(String::is_empty) {
                lines.pop();
            }
            lines
        }
    }

    /// Both streams of a command, on one terminal.
    #[derive(Clone)]
    struct Shown(Rc<RefCell<Grid>>);

    impl io::Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().show(&String::from_utf8_lossy(bytes));
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_status_line_is_erased_before_anything_is_written() {
        let grid = Rc::new(RefCell::new(Grid::new()));
        let mut out = Output::to(Shown(grid.clone()), Shown(grid.clone()), Style::Colour, false);
        let writes: [fn(&mut Output) -> bool; 6] = [
            |out| out.line("a").is_ok(),
            |out| out.notice("b").is_ok(),
            |out| out.tell("c").is_ok(),
            |out| out.problem("d", None).is_ok(),
            |out| out.prompt("e\n").is_ok(),
            |out| out.hide_status().is_ok(),
        ];
        for (written, write) in writes.iter().enumerate() {
            assert!(out.show_status("… model").is_ok());
            assert_eq!(grid.borrow().lines().last().map(String::as_str), Some("… model"), "{written}");
            assert!(out.take_written() == (written > 0), "a status line itself is nothing that was written");
            assert!(write(&mut out));
            assert!(!grid.borrow().lines().iter().any(|line| line.contains("model")), "{written}");
        }
        // A status line at the end of the screen has scrolled the first lines out.
        assert_eq!(grid.borrow().lines(), ["c", "error: d", "e"]);
    }

    #[test]
    fn a_pipe_gets_no_status_line() {
        let grid = Rc::new(RefCell::new(Grid::new()));
        let mut out = Output::to(Shown(grid.clone()), Shown(grid.clone()), Style::Plain, false);
        assert!(out.show_status("… model").is_ok() && out.hide_status().is_ok());
        assert_eq!(grid.borrow().lines(), Vec::<String>::new());
    }

    #[test]
    fn letters_that_are_typed_meanwhile_stay_as_they_are() {
        let check = |before: &str, steps: &[&str], with_status: &[&str], without: &[&str]| {
            let mut grid = Grid::new();
            grid.show(before);
            for typed in steps {
                grid.show(&drawn("… model  1 s"));
                grid.show(typed);
            }
            grid.show(&drawn("… model  2 s"));
            assert_eq!(grid.lines(), with_status, "{before:?}, {steps:?}");
            let at = grid.at;
            grid.show(&erased());
            assert_eq!(
                (grid.lines().as_slice(), grid.at),
                (&without.iter().map(ToString::to_string).collect::<Vec<_>>()[..], at)
            );
        };
        check("one\n", &["hel", "lo"], &["one", "hello", "", "… model  2 s"], &["one", "hello"]);
        check("one\n", &[""], &["one", "", "", "… model  2 s"], &["one"]);
        // In the last line of the screen.
        let full = "1\n2\n3\n4\n5\n";
        check(full, &["hel", "lo"], &["3", "4", "5", "hello", "", "… model  2 s"], &["3", "4", "5", "hello"]);
        // Wider than the screen, once and twice.
        let wide = ["abcdefghijkl", "mnopqrstuvwx", "yzabcdefghijklmno", "pq"];
        let lines = ["abcdefghijklmnopqrst", "uvwxyzabcdefghijklmn", "opq"];
        check("", &wide, &[&lines[..], &["", "… model  2 s"]].concat(), &lines);
        check(full, &wide, &[&["5"], &lines[..], &["", "… model  2 s"]].concat(), &[&["5"], &lines[..]].concat());
        // A line that is sent, with the next one begun.
        check("one\n", &["hello\n", "y"], &["one", "hello", "y", "", "… model  2 s"], &["one", "hello", "y"]);
    }
}
