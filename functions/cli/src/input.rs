//! Lines from standard input.
//!
//! A thread of its own reads them, since a read of a terminal cannot be given up. It begins only when a line is wanted: a
//! command that asks nothing leaves the input to the next one in the script.

use crate::{
    editor::{Terminal, Typed, Words},
    failure::CliError,
};
use std::{
    io::{self, BufRead},
    sync::Arc,
    thread,
};
use tokio::{signal::unix::Signal, sync::mpsc};

/// Standard input, line by line.
#[derive(Default)]
pub(crate) struct Lines {
    receiver: Option<mpsc::Receiver<String>>,
    /// The terminal on which a person edits lines, if there is one.
    terminal: Option<Terminal>,
    ended: bool,
}

impl Lines {
    /// One line, read at once and nothing after it: an editor may read the lines that follow.
    pub(crate) fn unbuffered() -> Option<String> {
        let (mut line, mut byte) = (Vec::new(), [0]);
        // Standard input without the buffer of the standard library, which would keep the bytes after the line.
        while let Ok(1) = rustix::io::read(io::stdin(), &mut byte) {
            if byte == [b'\n'] {
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            line.extend(byte);
        }
        None
    }

    /// An input that has ended: there was none, or it is used up.
    pub(crate) fn none() -> Self {
        Self { ended: true, ..Self::default() }
    }

    /// Lines of a person at this terminal.
    pub(crate) fn of(terminal: Terminal) -> Self {
        Self { terminal: Some(terminal), ..Self::default() }
    }

    /// Writes lines above the one that a person edits; false when nobody does.
    pub(crate) fn tell_above(&self, lines: &str) -> bool {
        self.terminal.as_ref().is_some_and(|terminal| terminal.tell_above(lines))
    }

    /// Whether a person edits a line at this moment.
    pub(crate) fn is_edited(&self) -> bool {
        self.terminal.as_ref().is_some_and(Terminal::is_edited)
    }

    /// The terminal, if a person edits lines.
    pub(crate) fn terminal(&self) -> Option<&Terminal> {
        self.terminal.as_ref()
    }

    /// A line that a person edits after this prompt, plain and as it looks; without an editor, the next line. May be dropped at any time
    /// without losing a line.
    pub(crate) async fn edit(&mut self, prompt: (String, String), words: &Arc<Words>) -> Typed {
        let typed = match &mut self.terminal {
            Some(terminal) => terminal.edit(prompt, words.clone()).await,
            None => self.next().await.map_or(Typed::End, Typed::Line),
        };
        self.ended |= typed == Typed::End;
        typed
    }

    /// A line that a person edits while nothing runs, or as the terminal gives it while something does and Ctrl-C has to reach that.
    /// May be dropped at any time without losing a line.
    pub(crate) async fn typed(&mut self, prompt: (String, String), words: &Arc<Words>, idle: bool) -> Typed {
        let typed = match &mut self.terminal {
            Some(terminal) if idle => terminal.edit(prompt, words.clone()).await,
            Some(terminal) => terminal.read().await,
            None => self.next().await.map_or(Typed::End, Typed::Line),
        };
        self.ended |= typed == Typed::End;
        typed
    }

    /// The next line without its end; none at the end. May be dropped at any time without losing a line.
    pub(crate) async fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let line = match &mut self.terminal {
            None => self.receiver.get_or_insert_with(start).recv().await,
            Some(terminal) => match terminal.read().await {
                Typed::Line(line) => Some(line),
                Typed::Interrupted | Typed::End => None,
            },
        };
        self.ended = line.is_none();
        line
    }

    /// Whether the input has ended.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }
}

fn start() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    // A thread that cannot be started drops the sender, and the input has ended.
    let _ = thread::Builder::new().name("input".into()).spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&line);
            if sender.blocking_send(line.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A hub that hangs must not keep a person from leaving.
pub(crate) async fn unless_interrupted<T>(
    interrupts: &mut Signal,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    tokio::select! {
        result = work => result,
        _ = interrupts.recv() => Err(CliError::Interrupted),
    }
}
