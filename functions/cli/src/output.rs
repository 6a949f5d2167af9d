//! The writer of all that people and scripts read: results to standard output, notices and errors to standard error.

use crate::{
    failure::CliError,
    status_line,
    wrap::{cut, wrapped},
};
pub use domain::text::counted;
use domain::text::shortened;
use serde_json::Value;
use std::{
    fmt,
    io::{self, BufWriter, IsTerminal, Write},
};

/// How a piece of text looks on a terminal.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// Less important: thoughts, results, figures.
    Dim,
    /// Names of things.
    Bold,
    /// It worked.
    Good,
    /// It did not.
    Bad,
    /// A person is asked.
    Ask,
}

/// Whether looks are shown. Never in pipes and files, and never when `NO_COLOR` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    Plain,
    /// With colours.
    Colour,
}

impl Style {
    fn of(is_terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_terminal && !refused && !dumb { Self::Colour } else { Self::Plain }
    }

    /// The escape sequence that switches `look` on.
    pub fn on(self, look: Look) -> &'static str {
        match (self, look) {
            (Self::Plain, _) => "",
            (Self::Colour, Look::Dim) => "\x1b[2m",
            (Self::Colour, Look::Bold) => "\x1b[1m",
            (Self::Colour, Look::Good) => "\x1b[32m",
            (Self::Colour, Look::Bad) => "\x1b[31m",
            (Self::Colour, Look::Ask) => "\x1b[36m",
        }
    }

    /// The escape sequence that switches everything off.
    pub fn off(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Colour => "\x1b[0m",
        }
    }

    /// `text` in `look`.
    pub fn paint(self, look: Look, text: impl fmt::Display) -> String {
        format!("{}{text}{}", self.on(look), self.off())
    }
}

/// The two streams of a command. Holding standard output's lock for the whole run makes a line a single write.
///
/// # Errors
/// Of every method that writes: [`CliError::Io`] when a stream cannot be written, such as a pipe whose reader is gone.
pub struct Output {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    style: Style,
    err_style: Style,
    json: bool,
    /// Whether a line on standard error can be drawn again and again.
    live: bool,
    /// Whether such a line is shown.
    drawn: bool,
    /// Whether a status line is shown below the cursor.
    has_status: bool,
    /// Whether something was written since that was asked.
    written: bool,
    /// Whether standard output, and standard error, are terminals whose lines have a width.
    is_terminal: bool,
    err_is_terminal: bool,
    telling: WorkOutput,
}

/// The stream for an agent's work on its way to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOutput {
    /// On standard output, together with the answer: a person reads it, or a program that wants all of it.
    Together,
    /// On standard error: standard output has the answer alone.
    Beside,
    /// Nowhere.
    Nowhere,
}

impl Output {
    /// The streams of the process.
    pub fn standard(json: bool) -> Self {
        let (out, err) = (io::stdout().lock(), io::stderr());
        let (style, err_style) = (Style::of(out.is_terminal()), Style::of(err.is_terminal()));
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let live = err.is_terminal() && !dumb && !json;
        let (is_terminal, err_is_terminal) = (out.is_terminal() && !dumb, err.is_terminal() && !dumb);
        Self { err_style, live, is_terminal, err_is_terminal, ..Self::on(BufWriter::new(out), err, style, json) }
    }

    /// Other streams, for tests.
    #[cfg(test)]
    pub(crate) fn to(out: impl Write + 'static, err: impl Write + 'static, style: Style, json: bool) -> Self {
        Self { live: style == Style::Colour, ..Self::on(out, err, style, json) }
    }

    /// Streams that are no terminals.
    fn on(out: impl Write + 'static, err: impl Write + 'static, style: Style, json: bool) -> Self {
        Self {
            out: Box::new(out),
            err: Box::new(err),
            style,
            err_style: style,
            json,
            live: false,
            drawn: false,
            has_status: false,
            written: false,
            is_terminal: false,
            err_is_terminal: false,
            telling: WorkOutput::Together,
        }
    }

    /// Whether programs read along.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Characters of a line at this moment, where standard output is a terminal: people make their windows wider and narrower.
    pub fn width(&self) -> Option<usize> {
        self.is_terminal.then(|| columns(&io::stdout()))
    }

    /// Characters of a line of the stream for the work of agents, where it is a terminal.
    pub fn told_width(&self) -> Option<usize> {
        match self.telling {
            WorkOutput::Together => self.width(),
            WorkOutput::Beside => self.err_width(),
            WorkOutput::Nowhere => None,
        }
    }

    /// A notice as a terminal shows it, for a place where this writer does not write; none where nobody reads notices.
    pub fn noticed(&self, text: impl fmt::Display) -> Option<String> {
        let is_read = !self.json && self.telling != WorkOutput::Nowhere;
        is_read.then(|| self.err_style.paint(Look::Dim, self.arranged(text)))
    }

    fn err_width(&self) -> Option<usize> {
        self.err_is_terminal.then(|| columns(&io::stderr()))
    }

    /// Lines of the terminal that standard error is; none where it does not tell.
    fn lines(&self) -> Option<usize> {
        let size = self.err_is_terminal.then(|| rustix::termios::tcgetwinsize(io::stderr()).ok()).flatten();
        size.map(|size| usize::from(size.ws_row)).filter(|lines| *lines > 0)
    }

    /// A text for standard error, whose lines end between words where a terminal shows them.
    fn arranged(&self, text: impl fmt::Display) -> String {
        match self.err_width() {
            Some(width) => wrapped(&text.to_string(), width),
            None => text.to_string(),
        }
    }

    /// From now on the work of agents is told there.
    pub fn tell_to(&mut self, telling: WorkOutput) {
        self.telling = telling;
    }

    /// The stream for the work of agents.
    pub fn telling(&self) -> WorkOutput {
        self.telling
    }

    /// How [`Self::tell`] may look.
    pub fn told_style(&self) -> Style {
        if self.telling == WorkOutput::Together { self.style } else { self.err_style }
    }

    /// Tells a step of an agent: a text as it is, control characters of ours included.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn tell_raw(&mut self, text: &str) -> Result<(), CliError> {
        if self.telling != WorkOutput::Nowhere {
            self.make_room()?;
        }
        match self.telling {
            WorkOutput::Together => Ok(self.out.write_all(text.as_bytes())?),
            WorkOutput::Beside => Ok(self.err.write_all(text.as_bytes())?),
            WorkOutput::Nowhere => Ok(()),
        }
    }

    /// Tells a step of an agent: a line.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn tell(&mut self, text: impl fmt::Display) -> Result<(), CliError> {
        self.tell_raw(&format!("{text}\n"))
    }

    /// How text on standard output may look.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Writes text as it is, control characters of ours included.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn raw(&mut self, text: &str) -> Result<(), CliError> {
        self.make_room()?;
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// Writes a line.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn line(&mut self, text: impl fmt::Display) -> Result<(), CliError> {
        self.make_room()?;
        Ok(writeln!(self.out, "{text}")?)
    }

    /// Writes a line of words, which a terminal shows as lines that end between them.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn words(&mut self, text: impl fmt::Display) -> Result<(), CliError> {
        match self.width() {
            Some(width) => self.line(wrapped(&text.to_string(), width)),
            None => self.line(text),
        }
    }

    /// Writes one JSON line.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn json(&mut self, value: &Value) -> Result<(), CliError> {
        self.line(value)?;
        self.flush()
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.make_room()?;
        Ok(self.out.write_all(bytes)?)
    }

    /// Flushes all output; a live line is erased before it.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn flush(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.drawn) {
            write!(self.err, "\r\x1b[2K")?;
            self.err.flush()?;
        }
        Ok(self.out.flush()?)
    }

    /// Whether [`Self::draw`] shows anything.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// How text on standard error may look.
    pub fn err_style(&self) -> Style {
        self.err_style
    }

    /// Draws a line on standard error in place of the one drawn before; the next output takes its place. It has to fit into a line of the
    /// terminal.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn draw(&mut self, line: &str) -> Result<(), CliError> {
        if !self.live {
            return Ok(());
        }
        self.out.flush()?;
        self.drawn = true;
        write!(self.err, "\r\x1b[2K{line}")?;
        Ok(self.err.flush()?)
    }

    /// Shows a status line below the cursor, in place of the one that is there; it is erased before anything is written. It takes no place in the
    /// output, and leaves letters that a person types meanwhile as they are. None is shown in the background, or where no line can be drawn again.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub(crate) fn show_status(&mut self, status: &str) -> Result<(), CliError> {
        let has_room = self.lines().is_none_or(|lines| lines >= status_line::MIN_LINES);
        if !self.live || !has_room || (self.err_is_terminal && status_line::is_in_background()) {
            return Ok(());
        }
        self.flush()?;
        self.has_status = true;
        let line = cut(status, self.err_width().map_or(usize::MAX, |width| width.saturating_sub(1)));
        self.err.write_all(status_line::drawn(&self.err_style.paint(Look::Dim, line)).as_bytes())?;
        Ok(self.err.flush()?)
    }

    /// Erases the status line, if one is shown. The screen of another command is left as it is.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub(crate) fn hide_status(&mut self) -> Result<(), CliError> {
        let is_shown = std::mem::take(&mut self.has_status);
        if is_shown && !(self.err_is_terminal && status_line::is_in_background()) {
            self.err.write_all(status_line::erased().as_bytes())?;
            self.err.flush()?;
        }
        Ok(())
    }

    /// Whether something was written since this was last asked.
    pub(crate) fn take_written(&mut self) -> bool {
        std::mem::take(&mut self.written)
    }

    /// Before anything is written.
    fn make_room(&mut self) -> Result<(), CliError> {
        self.written = true;
        self.hide_status()
    }

    /// Before standard error is written, behind all that is written to standard output.
    fn make_room_beside(&mut self) -> Result<(), CliError> {
        self.make_room()?;
        self.flush()
    }

    /// Says how it goes on, on standard error, in its own looks; nothing when programs read along.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn progress(&mut self, line: impl fmt::Display) -> Result<(), CliError> {
        self.make_room_beside()?;
        if self.json {
            return Ok(());
        }
        let line = self.arranged(line);
        Ok(writeln!(self.err, "{line}")?)
    }

    /// Says something beside the result, on standard error; nothing when programs read along.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn notice(&mut self, text: impl fmt::Display) -> Result<(), CliError> {
        self.make_room_beside()?;
        let Some(line) = self.noticed(text) else { return Ok(()) };
        Ok(writeln!(self.err, "{line}")?)
    }

    /// Asks for input, on standard error: standard output may be a file, and has results only.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn prompt(&mut self, text: impl fmt::Display) -> Result<(), CliError> {
        self.make_room_beside()?;
        if self.json {
            return Ok(());
        }
        let text = self.err_style.paint(Look::Ask, self.arranged(text));
        write!(self.err, "{text}")?;
        Ok(self.err.flush()?)
    }

    /// Says that something went wrong, but not the command.
    ///
    /// # Errors
    /// Those of [`Output`].
    pub fn problem(&mut self, message: &str, hint: Option<&str>) -> Result<(), CliError> {
        self.make_room_beside()?;
        if self.json {
            return Ok(());
        }
        let style = self.err_style;
        let line = self.arranged(format_args!("{} {message}", style.paint(Look::Bad, "error:")));
        writeln!(self.err, "{line}")?;
        if let Some(hint) = hint {
            let line = self.arranged(format_args!("{} {hint}", style.paint(Look::Dim, "hint:")));
            writeln!(self.err, "{line}")?;
        }
        Ok(())
    }

    /// Says why the command failed.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn failure(&mut self, failure: &CliError) -> io::Result<()> {
        // Earlier output is shown first, if it still can be.
        let _ = self.make_room_beside();
        if failure.is_silent() {
            return Ok(());
        }
        if self.json {
            return writeln!(self.err, "{}", failure.json());
        }
        let style = self.err_style;
        // A person reads the words; a log or a script may look for the code.
        let code = if self.is_live() { String::new() } else { format!(" ({})", failure.code()) };
        let message = clean(&failure.to_string());
        let line = self.arranged(format_args!("{} {message}{code}", style.paint(Look::Bad, "error:")));
        writeln!(self.err, "{line}")?;
        if let Some(hint) = failure.hint() {
            let line = self.arranged(format_args!("{} {}", style.paint(Look::Dim, "hint:"), clean(&hint)));
            writeln!(self.err, "{line}")?;
        }
        if let Some(refusal) = failure.refusal()
            && let (true, Some(id)) = (refusal.status >= 500, &refusal.request_id)
        {
            writeln!(self.err, "{} {id}", style.paint(Look::Dim, "request:"))?;
        }
        Ok(())
    }
}

/// Characters per line of a terminal; a common width when it does not tell.
fn columns(terminal: &impl std::os::fd::AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal).map(|size| usize::from(size.ws_col));
    size.ok().filter(|columns| *columns > 0).unwrap_or(80)
}

/// `text` without characters that could drive a terminal: texts of agents and files must not move the cursor, rewrite a question for
/// permission, or reverse the reading direction. Line ends and tabs stay.
pub fn clean(text: &str) -> String {
    let drives = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(|c| !drives(*c)).collect()
}

/// `text` in one line of at most `limit` characters.
pub fn one_line(text: &str, limit: usize) -> String {
    let words = clean(&text.replace(['\n', '\t', '\r'], " "));
    shortened(words.trim(), limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_drives_a_terminal_gets_through() {
        assert_eq!(clean("a\x1b[31mb\u{9b}2Jc\r\nd\te\u{202e}f\x07"), "a[31mb2Jc\nd\tef");
        assert_eq!(one_line("\x1b]0;title\x07 rm\n -rf", 80), "]0;title rm  -rf");
    }

    #[test]
    fn lines_are_cut_by_characters() {
        assert_eq!(one_line("äöüß", 4), "äöüß");
        assert_eq!(one_line("äöüßé", 4), "äöü…");
        assert_eq!(one_line("", 4), "");
    }

    #[test]
    fn plain_text_carries_no_codes() {
        assert_eq!(Style::Plain.paint(Look::Bad, "x"), "x");
        assert_eq!(Style::Colour.paint(Look::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
