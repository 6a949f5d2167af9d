//! One call: its output, its end, and its followers.

use crate::output::{KeptOutput, Piece};
use futures::stream::{self, BoxStream, StreamExt};
use parking_lot::Mutex;
use ports::{Error, ExecEnd, ExecEvent, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

/// Why a command did not begin.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// It makes no sense here, or this machine cannot confine it.
    #[error("{0}")]
    Refused(String),
    /// It may go another time.
    #[error("{0}")]
    Failed(String),
}

/// How a command's own process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEnd {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// The usage, if it is known.
    pub used: Option<Used>,
}

/// The usage of a command with all its processes, as far as they were waited for or seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Used {
    pub cpu_ms: u64,
    /// The most bytes that were seen at once; 0 if it ended before the first look.
    pub memory: u64,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Refused(reason) => Self::Invalid(reason),
            Refusal::Failed(reason) => Self::unavailable("the sandbox", reason),
        }
    }
}

#[derive(Clone, Debug)]
enum Phase {
    Starting,
    Running,
    Refused(Refusal),
    Ended {
        end: ExecEnd,
        at: Instant,
    },
    /// Its supervisor is gone: its outcome is not known.
    Lost,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    kept: KeptOutput,
    /// How many bytes it wrote.
    written: u64,
    /// The events about files that it leaves.
    files: Vec<ExecEvent>,
    /// The memory that they take, in bytes.
    files_bytes: usize,
}

/// A call that is known.
#[derive(Debug)]
pub(crate) struct Run {
    state: Mutex<State>,
    changed: watch::Sender<()>,
    /// Ends it.
    pub stop: CancellationToken,
}

impl Run {
    pub fn new(max_output: usize) -> Arc<Self> {
        let (phase, kept) = (Phase::Starting, KeptOutput::new(max_output));
        let state = Mutex::new(State { phase, kept, written: 0, files: Vec::new(), files_bytes: 0 });
        Arc::new(Self { state, changed: watch::Sender::new(()), stop: CancellationToken::new() })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state.lock());
        self.changed.send_replace(());
        result
    }

    pub fn began(&self) {
        self.change(|state| state.phase = Phase::Running);
    }

    pub fn refused(&self, refusal: Refusal) {
        self.change(|state| state.phase = Phase::Refused(refusal));
    }

    pub fn wrote(&self, error: bool, text: &str) {
        if !text.is_empty() {
            self.change(|state| {
                state.kept.push(error, text);
                state.written += text.len() as u64;
            });
        }
    }

    /// How many bytes it wrote.
    pub fn written(&self) -> u64 {
        self.state.lock().written
    }

    /// The result of `look` on the kept standard error.
    pub fn errors<T>(&self, look: impl FnOnce(&str) -> T) -> T {
        let state = self.state.lock();
        let pieces = state.kept.head().iter().chain(state.kept.tail().iter()).filter(|piece| piece.error);
        let text: String = pieces.map(|piece| piece.text.as_str()).collect();
        look(&text)
    }

    /// Takes the events about the files that it leaves.
    pub fn leaves(&self, files: Vec<ExecEvent>) {
        let of = |event: &ExecEvent| match event {
            ExecEvent::Kept(file) => file.content.len() + file.below.as_str().len(),
            ExecEvent::LeftOut(left) => left.why.len() + left.below.as_str().len(),
            ExecEvent::Output { .. } | ExecEvent::Dropped { .. } | ExecEvent::Ended(_) => 0,
        };
        let bytes = files.iter().map(|event| of(event) + size_of::<ExecEvent>()).sum();
        self.change(|state| (state.files, state.files_bytes) = (files, bytes));
    }

    pub fn ended(&self, end: ExecEnd) {
        self.change(|state| state.phase = Phase::Ended { end, at: Instant::now() });
    }

    /// Marks a run as lost when its supervisor is gone; does nothing when it has ended.
    pub fn lost(&self) {
        self.change(|state| {
            if matches!(state.phase, Phase::Starting | Phase::Running) {
                state.phase = Phase::Lost;
            }
        });
    }

    /// When it ended, and how many bytes are kept of it; none while it runs.
    pub fn over(&self) -> Option<(Instant, usize)> {
        let state = self.state.lock();
        match state.phase {
            Phase::Ended { at, .. } => Some((at, state.kept.bytes() + state.files_bytes)),
            _ => None,
        }
    }

    /// Whether it begins or runs.
    pub fn runs(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Starting | Phase::Running)
    }

    /// Waits until `ready` holds.
    async fn until<T>(&self, ready: impl Fn(&Phase) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if let Some(found) = ready(&self.state.lock().phase) {
                return found;
            }
            // The sender is a part of `self`.
            let _ = changed.changed().await;
        }
    }

    /// Waits until it has begun, or has been refused: then the reason, if it may begin another time.
    ///
    /// # Errors
    /// `Invalid` if it can never begin.
    pub async fn begun(&self) -> Result<Option<String>> {
        let refusal = |phase: &Phase| match phase {
            Phase::Starting => None,
            Phase::Refused(Refusal::Refused(reason)) => Some(Err(Error::Invalid(reason.clone()))),
            Phase::Refused(Refusal::Failed(reason)) => Some(Ok(Some(reason.clone()))),
            Phase::Running | Phase::Ended { .. } | Phase::Lost => Some(Ok(None)),
        };
        self.until(refusal).await
    }

    /// Waits until nothing of it is left.
    pub async fn gone(&self) {
        self.until(|phase| (!matches!(phase, Phase::Starting | Phase::Running)).then_some(())).await;
    }

    /// All that it does, from the beginning.
    ///
    /// # Errors
    /// As the last item: [`Error::Invalid`] when the command was refused, [`Error::Unavailable`] when it may go another time, or its
    /// outcome is not known.
    pub fn follow(self: &Arc<Self>) -> BoxStream<'static, Result<ExecEvent>> {
        let follower =
            Follower { run: self.clone(), changed: self.changed.subscribe(), place: ReadPosition::Head(0, 0) };
        stream::unfold(follower, |mut follower| async move {
            loop {
                follower.changed.borrow_and_update();
                match follower.next() {
                    Next::Event(event) => return Some((event, follower)),
                    Next::Over => return None,
                    Next::Later => follower.changed.changed().await.ok()?,
                }
            }
        })
        .boxed()
    }
}

struct Follower {
    run: Arc<Run>,
    changed: watch::Receiver<()>,
    place: ReadPosition,
}

/// The next thing that a follower reads.
enum ReadPosition {
    /// This piece of the first half, from this byte on.
    Head(usize, usize),
    Dropped,
    Tail(usize),
    Files(usize),
    End,
    Over,
}

enum Next {
    Event(Result<ExecEvent>),
    Later,
    Over,
}

impl Follower {
    fn next(&mut self) -> Next {
        let state = self.run.state.lock();
        loop {
            match self.place {
                ReadPosition::Head(at, from) => {
                    if let Some(piece) = state.kept.head().get(at) {
                        let rest = piece.text.get(from..).unwrap_or_default();
                        // The last piece may still grow.
                        let is_last = at + 1 == state.kept.head().len();
                        self.place = if is_last {
                            ReadPosition::Head(at, piece.text.len())
                        } else {
                            ReadPosition::Head(at + 1, 0)
                        };
                        if !rest.is_empty() {
                            return output(piece.error, rest);
                        }
                        if !is_last {
                            continue;
                        }
                    }
                    match state.phase {
                        Phase::Starting | Phase::Running => return Next::Later,
                        Phase::Ended { .. } => self.place = ReadPosition::Dropped,
                        Phase::Refused(_) | Phase::Lost => self.place = ReadPosition::End,
                    }
                }
                ReadPosition::Dropped => {
                    self.place = ReadPosition::Tail(0);
                    if state.kept.dropped() > 0 {
                        return Next::Event(Ok(ExecEvent::Dropped { bytes: state.kept.dropped() }));
                    }
                }
                ReadPosition::Tail(at) => match state.kept.tail().get(at) {
                    Some(Piece { error, text }) => {
                        self.place = ReadPosition::Tail(at + 1);
                        return output(*error, text);
                    }
                    None => self.place = ReadPosition::Files(0),
                },
                ReadPosition::Files(at) => match state.files.get(at) {
                    Some(event) => {
                        self.place = ReadPosition::Files(at + 1);
                        return Next::Event(Ok(event.clone()));
                    }
                    None => self.place = ReadPosition::End,
                },
                ReadPosition::End => {
                    self.place = ReadPosition::Over;
                    return match &state.phase {
                        Phase::Ended { end, .. } => Next::Event(Ok(ExecEvent::Ended(end.clone()))),
                        Phase::Refused(refusal) => Next::Event(Err(refusal.clone().into())),
                        Phase::Starting | Phase::Running | Phase::Lost => {
                            let why = "the command was left behind: its outcome is not known";
                            Next::Event(Err(Error::unavailable("the sandbox", why)))
                        }
                    };
                }
                ReadPosition::Over => return Next::Over,
            }
        }
    }
}

fn output(error: bool, text: &str) -> Next {
    Next::Event(Ok(ExecEvent::Output { error, text: text.into() }))
}
