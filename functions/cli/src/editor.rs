//! Lines that a person edits on a terminal: with history, completion, and keys as in every shell.
//!
//! The editor blocks, so it has a thread of its own, which does one thing at a time: it edits a line, or it reads one as the terminal gives
//! it, while a task runs and Ctrl-C has to reach the task. It reads only on request.

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use rustyline::{
    Behavior, CompletionType, Config, Context, Editor, ExternalPrinter, Helper,
    completion::{Completer, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::MemHistory,
    validate::Validator,
};
use std::{
    io::{self, BufRead, Read, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};
use tokio::sync::oneshot;

/// The result of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C: the typed line is dropped.
    Interrupted,
    /// Ctrl-D on an empty line, or the terminal is gone.
    End,
}

/// The words that can be completed: those that a line may begin with, and by these the words that may come after them. By `@` the words
/// that begin with it, anywhere in a line.
#[derive(Debug, Default)]
pub(crate) struct Words(pub(crate) Vec<(String, Vec<String>)>);

/// A terminal.
pub(crate) struct Terminal {
    wants: mpsc::Sender<Want>,
    /// Wakes the thread when the line that it waits for is cancelled.
    wake: UnixStream,
    /// The number up to which requests for lines are cancelled.
    unwanted: Arc<AtomicU64>,
    /// The number of the next line to be read.
    number: u64,
    pending: Option<Pending>,
    /// Takes the lines that are written above the one that is being edited, where the terminal can do that.
    above: Option<mpsc::Sender<String>>,
}

struct Pending {
    answer: oneshot::Receiver<Typed>,
    /// The number of a line that is only read.
    read: Option<u64>,
}

enum Want {
    /// These lines can be recalled, the last one first; no others.
    Recall(Vec<String>),
    /// Let a line be edited after this prompt, plain and as it looks.
    Edit { prompt: (String, String), words: Arc<Words>, answer: oneshot::Sender<Typed> },
    /// Read a line as the terminal gives it.
    Read { number: u64, answer: oneshot::Sender<Typed> },
}

impl Terminal {
    /// The terminal of this process; none when lines cannot be edited on it.
    pub(crate) fn open() -> Option<Self> {
        let config = Config::builder()
            .auto_add_history(true)
            .completion_type(CompletionType::List)
            // Standard output may be a file: prompts go to the terminal itself.
            .behavior(Behavior::PreferTerm)
            .build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::<Completion, MemHistory>::with_history(config, history).ok()?;
        let above = editor.create_external_printer().ok().and_then(written_above);
        let (wants, wanted) = mpsc::channel();
        let (wake, woken) = UnixStream::pair().ok()?;
        let unwanted = Arc::<AtomicU64>::default();
        let serving = Serving { editor, woken, unwanted: unwanted.clone() };
        thread::Builder::new().name("terminal".into()).spawn(move || serving.serve(&wanted)).ok()?;
        Some(Self { wants, wake, unwanted, number: 1, pending: None, above })
    }

    /// Writes lines above the one that is being edited, which is drawn again below them; false when no line is being edited.
    pub(crate) fn tell_above(&self, lines: &str) -> bool {
        self.above.as_ref().filter(|_| self.is_edited()).is_some_and(|above| above.send(format!("{lines}\n")).is_ok())
    }

    /// Whether a line is being edited: the editor draws it then, and has the cursor.
    pub(crate) fn is_edited(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.read.is_none())
    }

    /// Makes these the lines that can be recalled.
    pub(crate) fn recall(&self, lines: Vec<String>) {
        // A thread that is gone has nothing to recall.
        let _ = self.wants.send(Want::Recall(lines));
    }

    /// Lets a person edit a line. May be dropped at any time without losing one: the next call waits for the same line.
    pub(crate) async fn edit(&mut self, prompt: (String, String), words: Arc<Words>) -> Typed {
        if let Some(number) = self.pending.as_ref().and_then(|pending| pending.read) {
            // The prompt's reason is over. A line that was typed in the meantime is this one.
            self.unwanted.fetch_max(number, Ordering::SeqCst);
            // A thread that cannot be woken is gone.
            let _ = self.wake.write(&[0]);
            let typed = self.answer().await;
            if typed != Typed::Interrupted {
                return typed;
            }
        }
        if self.pending.is_none() {
            self.ask(None, |answer| Want::Edit { prompt, words, answer });
        }
        self.answer().await
    }

    /// Reads a line as the terminal gives it. May be dropped at any time without losing one.
    pub(crate) async fn read(&mut self) -> Typed {
        if self.pending.is_none() {
            let number = self.number;
            self.number += 1;
            self.ask(Some(number), |answer| Want::Read { number, answer });
        }
        self.answer().await
    }

    fn ask(&mut self, read: Option<u64>, want: impl FnOnce(oneshot::Sender<Typed>) -> Want) {
        let (sender, answer) = oneshot::channel();
        // A thread that is gone drops the sender, which is an answer.
        let _ = self.wants.send(want(sender));
        self.pending = Some(Pending { answer, read });
    }

    async fn answer(&mut self) -> Typed {
        let Some(pending) = &mut self.pending else { return Typed::End };
        let typed = (&mut pending.answer).await.unwrap_or(Typed::End);
        self.pending = None;
        typed
    }
}

/// Begins a thread that writes lines with this printer. The printer waits while a person chooses among completions: the program must not.
fn written_above(mut printer: impl ExternalPrinter + Send + 'static) -> Option<mpsc::Sender<String>> {
    let (sender, lines) = mpsc::channel();
    let serve = move || while lines.recv().is_ok_and(|lines| printer.print(lines).is_ok()) {};
    thread::Builder::new().name("printer".into()).spawn(serve).ok()?;
    Some(sender)
}

/// The state of the thread.
struct Serving {
    editor: Editor<Completion, MemHistory>,
    woken: UnixStream,
    unwanted: Arc<AtomicU64>,
}

impl Serving {
    fn serve(mut self, wanted: &mpsc::Receiver<Want>) {
        while let Ok(want) = wanted.recv() {
            // The receiver may be gone; the line is lost with the session.
            match want {
                Want::Recall(lines) => {
                    // History in memory takes everything.
                    let _ = self.editor.clear_history();
                    for line in lines {
                        let _ = self.editor.add_history_entry(line);
                    }
                }
                Want::Edit { prompt, words, answer } => {
                    self.editor.set_helper(Some(Completion(words)));
                    let _ = answer.send(match self.editor.readline(&prompt) {
                        Ok(line) => Typed::Line(line),
                        Err(ReadlineError::Interrupted) => Typed::Interrupted,
                        Err(_) => Typed::End,
                    });
                }
                Want::Read { number, answer } => drop(answer.send(self.read(number))),
            }
        }
    }

    /// A line as the terminal gives it, unless the request is cancelled.
    fn read(&mut self, number: u64) -> Typed {
        let input = io::stdin();
        loop {
            if self.unwanted.load(Ordering::SeqCst) >= number {
                return Typed::Interrupted;
            }
            let mut ready = [PollFd::new(&input, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return Typed::End,
            }
            let [typed, woken] = ready.map(|each| !each.revents().is_empty());
            if woken && self.woken.read(&mut [0; 64]).is_err() {
                return Typed::End;
            }
            if !typed {
                continue;
            }
            let mut line = Vec::new();
            return match input.lock().read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => Typed::End,
                Ok(_) => Typed::Line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
            };
        }
    }
}

struct Completion(Arc<Words>);

impl Words {
    /// The completions of `line`, up to the cursor: the start of the word, and the words.
    fn complete(&self, line: &str) -> (usize, Vec<&str>) {
        let begin = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        if let Some(typed) = line.get(begin..).filter(|word| word.starts_with('@')) {
            let paths = self.0.iter().filter(|(word, _)| word == "@").flat_map(|(_, paths)| paths);
            return (begin, paths.map(String::as_str).filter(|path| path.starts_with(typed)).collect());
        }
        let Some((first, rest)) = line.split_once(' ') else {
            let words = self.0.iter().map(|(word, _)| word.as_str());
            // A line that is no command is an input, which cannot be completed.
            return (0, words.filter(|word| line.starts_with('/') && word.starts_with(line)).collect());
        };
        let typed = rest.trim_start();
        let words = self.0.iter().filter(|(word, _)| word == first).flat_map(|(_, words)| words);
        (line.len() - typed.len(), words.map(String::as_str).filter(|word| word.starts_with(typed)).collect())
    }
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.0.complete(line.get(..at).unwrap_or_default());
        let takes_more = |word: &str| self.0.0.iter().any(|(known, rest)| known == word && !rest.is_empty());
        let pair = |word: &str| {
            let space = if start == 0 && takes_more(word) { " " } else { "" };
            Pair { display: word.to_owned(), replacement: format!("{word}{space}") }
        };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Hinter for Completion {
    type Hint = String;
}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s10_9_commands_and_their_arguments_are_completed() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let all = Words(vec![
            ("/profile".into(), words(&["quick", "quiet", "thorough"])),
            ("/flow".into(), words(&["choice"])),
            ("/files".into(), words(&[])),
            ("@".into(), words(&["@/projects/a.md", "@/notes.md"])),
        ]);
        for (line, start, expected) in [
            ("/f", 0, vec!["/flow", "/files"]),
            ("/profile qui", 9, vec!["quick", "quiet"]),
            ("/profile  th", 10, vec!["thorough"]),
            ("/flow ", 6, vec!["choice"]),
            ("/files ", 7, vec![]),
            ("", 0, vec![]),
            ("write", 0, vec![]),
            ("look at @/no", 8, vec!["@/notes.md"]),
        ] {
            assert_eq!(all.complete(line), (start, expected), "{line}");
        }
    }
}
