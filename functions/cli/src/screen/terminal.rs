//! The terminal of the process: raw mode, the second screen, and ratatui's cells as control sequences (ECMA-48, xterm).
//!
//! It writes to the descriptor of standard output itself. So it can be restored from any thread, whoever holds the lock of the stream.

use parking_lot::Mutex;
use ratatui::{
    backend::{Backend, ClearType, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
    style::{Color, Modifier},
};
use rustix::{
    io::Errno,
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use std::{fmt::Write as _, io};

/// The second screen, pastes in brackets, the wheel.
const ENTER: &str = "\x1b[?1049h\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[2J\x1b[H";
const LEAVE: &str = "\x1b[0m\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not tell its own.
const USUAL: Size = Size { width: 80, height: 24 };

/// The settings from before, while the terminal is ours.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Takes the terminal.
pub(crate) fn enter() -> io::Result<()> {
    let mut before = BEFORE.lock();
    let settings = tcgetattr(io::stdin())?;
    let mut raw = settings.clone();
    raw.make_raw();
    tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
    before.get_or_insert(settings);
    write_all(ENTER.as_bytes())
}

/// Gives it back as it was. May be called again and again, and from any thread.
pub(crate) fn restore() {
    let mut before = BEFORE.lock();
    if let Some(settings) = before.take() {
        // A terminal that is gone needs nothing.
        let _ = write_all(LEAVE.as_bytes());
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &settings);
    }
}

/// The size of the terminal.
pub(crate) fn size() -> Size {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size { width: size.ws_col, height: size.ws_row },
        _ => USUAL,
    }
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(io::stdout(), bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let stdout = io::stdout();
                let mut ready = [rustix::event::PollFd::new(&stdout, rustix::event::PollFlags::OUT)];
                let _ = rustix::event::poll(&mut ready, None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Gives the terminal back when it goes.
pub(crate) struct TakenTerminal;

impl TakenTerminal {
    /// Takes the terminal, also back from a panic.
    pub(crate) fn take() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enter()?;
        Ok(Self)
    }
}

impl Drop for TakenTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Writes cells: what is drawn goes out at once, when it is flushed.
#[derive(Debug, Default)]
pub(crate) struct Ansi {
    out: String,
    cursor: Position,
}

impl Backend for Ansi {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let (mut next, mut look) = (None, None);
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                let _ = write!(self.out, "\x1b[{};{}H", y + 1, x + 1);
            }
            let this = (cell.fg, cell.bg, cell.modifier);
            if look != Some(this) {
                self.look(this);
                look = Some(this);
            }
            self.out.push_str(cell.symbol());
            // Only after narrow cells the terminal's cursor is surely where the next cell is.
            next = cell.symbol().is_ascii().then_some((x + 1, y));
        }
        self.out.push_str("\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.out.push_str("\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.out.push_str("\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = position.into();
        let _ = write!(self.out, "\x1b[{};{}H", self.cursor.y + 1, self.cursor.x + 1);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.out.push_str("\x1b[0m\x1b[2J");
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        // Only screens without a viewport of their own are drawn, which are cleared as a whole.
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        Ok(size())
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: size(), pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        // Terminals that know it show the whole of it at once.
        if out.is_empty() { Ok(()) } else { write_all(format!("\x1b[?2026h{out}\x1b[?2026l").as_bytes()) }
    }
}

impl Ansi {
    fn look(&mut self, (front, back, modifier): (Color, Color, Modifier)) {
        self.out.push_str("\x1b[0");
        let codes = [
            (Modifier::BOLD, 1),
            (Modifier::DIM, 2),
            (Modifier::ITALIC, 3),
            (Modifier::UNDERLINED, 4),
            (Modifier::REVERSED, 7),
            (Modifier::CROSSED_OUT, 9),
        ];
        for (on, code) in codes {
            if modifier.contains(on) {
                let _ = write!(self.out, ";{code}");
            }
        }
        for (color, base) in [(front, 30), (back, 40)] {
            let place = match color {
                Color::Black => 0,
                Color::Red => 1,
                Color::Green => 2,
                Color::Yellow => 3,
                Color::Blue => 4,
                Color::Magenta => 5,
                Color::Cyan => 6,
                Color::Gray => 7,
                // The screen uses the eight colours that every theme of a terminal sets.
                _ => continue,
            };
            let _ = write!(self.out, ";{}", base + place);
        }
        self.out.push('m');
    }
}
