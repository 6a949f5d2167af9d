//! Lines from standard input.
//!
//! A thread of its own reads them, since a read of a terminal cannot be given up. It begins only when a line is wanted: a
//! command that asks nothing leaves the input to the next one in the script.

use crate::cli::failure::Failure;
use std::{
    io::{self, BufRead},
    thread,
};
use tokio::{signal::unix::Signal, sync::mpsc};

/// Standard input, line by line.
#[derive(Default)]
pub(crate) struct Lines {
    receiver: Option<mpsc::Receiver<String>>,
    ended: bool,
}

impl Lines {
    /// An input that has ended: there was none, or it is used up.
    pub(crate) fn none() -> Self {
        Self { receiver: None, ended: true }
    }

    /// The next line without its end; none at the end. May be dropped at any time without losing a line.
    pub(crate) async fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let line = self.receiver.get_or_insert_with(start).recv().await;
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
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        _ = interrupts.recv() => Err(Failure::Interrupted),
    }
}
