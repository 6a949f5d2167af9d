//! The programs that run here and are spoken to by their pipes, for callers that come back for their words.

use crate::idle::Idle;
use bytes::{Buf, Bytes, BytesMut};
use domain::{CallId, WorkspaceId};
use parking_lot::Mutex;
use ports::{Error, Exec, Piece, Result, RunningProgram};
use sandbox::{Commands, wire::LONGEST_WAIT};
use std::{
    collections::HashMap,
    path::Path,
    pin::pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Notify,
    time::{sleep, timeout},
};

/// After so long without a call a program ends: its caller is gone. A function that is frozen between two invocations comes back sooner.
const UNHEARD: Duration = Duration::from_secs(5 * 60);
/// The most programs at once, of all callers.
const MOST: usize = 32;
/// How many bytes wait for a caller before the program waits; of its errors, before some are left out.
const ROOM: usize = 1 << 20;
/// How long the last errors of a program are waited for that says no more.
const LAST_WORDS: Duration = Duration::from_millis(500);

fn gone() -> Error {
    Error::Conflict { write: 0 }
}

/// The programs that run.
#[derive(Default)]
pub(crate) struct Programs(Arc<Inner>);

#[derive(Default)]
struct Inner {
    all: Mutex<HashMap<CallId, Arc<Program>>>,
    /// Held while one starts: the same call then finds it.
    starting: tokio::sync::Mutex<()>,
}

impl Programs {
    /// Starts a program, unless its call has one already.
    pub async fn start(&self, commands: &Commands, workspace: WorkspaceId, latest: &Path, program: Exec) -> Result<()> {
        let _alone = self.0.starting.lock().await;
        let call = program.call;
        if self.0.all.lock().contains_key(&call) {
            return Ok(());
        }
        self.make_room()?;
        self.keep(call, commands.start_program(workspace, latest, program).await?);
        Ok(())
    }

    /// Makes room for one more: where there is none, the one that was not asked about for the longest time gives way, if its caller seems to be gone.
    fn make_room(&self) -> Result<()> {
        let oldest = {
            let all = self.0.all.lock();
            if all.len() < MOST {
                return Ok(());
            }
            let unheard = all.iter().map(|(call, program)| (program.idle.elapsed(), *call));
            unheard.filter(|(unheard, _)| *unheard > LONGEST_WAIT).max()
        };
        match oldest {
            Some((_, call)) => {
                self.end(call);
                Ok(())
            }
            None => Err(Error::unavailable("the sandbox", format!("it runs {MOST} programs of servers already"))),
        }
    }

    fn keep(&self, call: CallId, running: RunningProgram) {
        let RunningProgram { input, output, errors, is_outdated: _, is_there: _, end } = running;
        let words = Arc::<PipeBuffer>::default();
        tokio::spawn(listen(words.clone(), output, errors));
        let program = Program {
            input: tokio::sync::Mutex::new(input),
            written: AtomicU64::new(0),
            words,
            idle: Idle::new(),
            end: Mutex::new(Some(end)),
        };
        self.0.all.lock().insert(call, Arc::new(program));
        tokio::spawn(ends_when_unheard(Arc::downgrade(&self.0), call));
    }

    /// The program of a call.
    pub fn find(&self, call: CallId) -> Result<Arc<Program>> {
        self.0.all.lock().get(&call).cloned().ok_or_else(gone)
    }

    pub fn end(&self, call: CallId) {
        let ended = self.0.all.lock().remove(&call);
        if let Some(program) = ended {
            program.end();
        }
    }

    /// Ends all of them.
    pub fn end_all(&self) {
        let all = std::mem::take(&mut *self.0.all.lock());
        all.into_values().for_each(|program| program.end());
    }
}

/// Ends a program once nobody has asked about it for long.
async fn ends_when_unheard(programs: Weak<Inner>, call: CallId) {
    loop {
        let left = {
            let Some(programs) = programs.upgrade().map(Programs) else { return };
            let Ok(program) = programs.find(call) else { return };
            let left = UNHEARD.saturating_sub(program.idle.elapsed());
            if left.is_zero() {
                tracing::info!(%call, "a program of a server is ended, as nobody asks about it");
                programs.end(call);
                return;
            }
            left
        };
        sleep(left).await;
    }
}

/// A program that runs.
pub(crate) struct Program {
    input: tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>,
    /// How many bytes it was given.
    written: AtomicU64,
    words: Arc<PipeBuffer>,
    idle: Idle,
    /// It ends when this is dropped.
    end: Mutex<Option<Box<dyn Send + Sync>>>,
}

impl Program {
    fn end(&self) {
        drop(self.end.lock().take());
        self.words.change(|said| said.is_over = true);
    }

    /// Gives it these bytes, as far as it takes them for a while; the number of bytes that it has been given then.
    pub async fn write(&self, from: u64, mut bytes: Bytes) -> Result<u64> {
        let _used = self.idle.used();
        if bytes.is_empty() {
            let is_over = self.words.said.lock().is_over;
            return if is_over { Err(gone()) } else { Ok(self.written.load(Ordering::Acquire)) };
        }
        let writing = async {
            let mut input = self.input.lock().await;
            let known = self.written.load(Ordering::Acquire).checked_sub(from).ok_or_else(gone)?;
            bytes.advance(usize::try_from(known).unwrap_or(usize::MAX).min(bytes.len()));
            while bytes.has_remaining() {
                match input.write_buf(&mut bytes).await {
                    Ok(length @ 1..) => self.written.fetch_add(length as u64, Ordering::AcqRel),
                    Ok(0) | Err(_) => return Err(gone()),
                };
            }
            Ok(())
        };
        if let Ok(written) = timeout(LONGEST_WAIT, writing).await {
            written?;
        }
        Ok(self.written.load(Ordering::Acquire))
    }

    /// The piece after this one, or an empty one when there is none for a while.
    pub async fn read(&self, seen: u64) -> Piece {
        let _used = self.idle.used();
        let next = self.words.until(|said| said.next(seen));
        timeout(LONGEST_WAIT, next).await.unwrap_or_else(|_| Piece { number: seen, ..Piece::default() })
    }
}

/// The words of a program on their way to its caller.
#[derive(Default)]
struct PipeBuffer {
    said: Mutex<PipeState>,
    changed: Notify,
}

#[derive(Default)]
struct PipeState {
    output: BytesMut,
    errors: BytesMut,
    is_over: bool,
    /// The last piece that was handed out. Its answer may be lost on the way, and it is given again then.
    piece: Piece,
}

impl PipeState {
    fn next(&mut self, seen: u64) -> Option<Piece> {
        if self.piece.number <= seen {
            if self.output.is_empty() && self.errors.is_empty() && !self.is_over {
                return None;
            }
            let (output, errors) = (self.output.split().freeze(), self.errors.split().freeze());
            self.piece = Piece { number: self.piece.number + 1, output, errors, is_over: self.is_over };
        }
        Some(self.piece.clone())
    }
}

impl PipeBuffer {
    fn change(&self, change: impl FnOnce(&mut PipeState)) {
        change(&mut self.said.lock());
        self.changed.notify_waiters();
    }

    /// Waits until there is what is looked for.
    async fn until<T>(&self, look: impl Fn(&mut PipeState) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on nothing is missed.
            changed.as_mut().enable();
            let found = look(&mut self.said.lock());
            if let Some(found) = found {
                // A reader that waits for room has some now.
                self.changed.notify_waiters();
                return found;
            }
            changed.await;
        }
    }
}

/// Keeps the words of a program for its caller, until it says no more.
async fn listen(
    words: Arc<PipeBuffer>,
    mut output: Box<dyn AsyncRead + Send + Unpin>,
    mut errors: Box<dyn AsyncRead + Send + Unpin>,
) {
    let beside = words.clone();
    let mut complaints = tokio::spawn(async move {
        let mut buffer = BytesMut::with_capacity(ROOM / 16);
        while let Ok(1..) = errors.read_buf(&mut buffer).await {
            beside.change(|said| {
                let left = ROOM.saturating_sub(said.errors.len()).min(buffer.len());
                said.errors.extend_from_slice(&buffer[..left]);
            });
            buffer.clear();
        }
    });
    let mut buffer = BytesMut::with_capacity(ROOM / 16);
    loop {
        words.until(|said| (said.is_over || said.output.len() < ROOM).then_some(())).await;
        let Ok(1..) = output.read_buf(&mut buffer).await else { break };
        words.change(|said| said.output.extend_from_slice(&buffer));
        buffer.clear();
    }
    if timeout(LAST_WORDS, &mut complaints).await.is_err() {
        complaints.abort();
    }
    words.change(|said| said.is_over = true);
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use tokio::{
        io::{DuplexStream, duplex},
        time::advance,
    };
    use tokio_util::sync::{CancellationToken, DropGuard};
    use uuid::Uuid;

    fn call(number: u128) -> CallId {
        CallId(Uuid::from_u128(number))
    }

    /// The other ends of the pipes of a program, and whether it has been ended.
    struct Other {
        input: DuplexStream,
        output: DuplexStream,
        ended: CancellationToken,
    }

    fn program(programs: &Programs, number: u128) -> Other {
        let ((ours, input), (output, its_output)) = (duplex(8), duplex(8));
        let ended = CancellationToken::new();
        let end: Box<DropGuard> = Box::new(ended.clone().drop_guard());
        let errors = Box::new(tokio::io::empty());
        let running = RunningProgram {
            input: Box::new(ours),
            output: Box::new(output),
            errors,
            is_outdated: Box::new(|| false),
            is_there: None,
            end,
        };
        programs.keep(call(number), running);
        Other { input, output: its_output, ended }
    }

    #[tokio::test]
    async fn a_piece_is_given_until_a_caller_says_that_it_has_it() {
        let programs = Programs::default();
        let mut other = program(&programs, 1);
        let found = programs.find(call(1)).unwrap();
        other.output.write_all(b"one").await.unwrap();
        let one = found.read(0).await;
        assert_eq!((one.number, &*one.output, one.is_over), (1, &b"one"[..], false));
        assert_eq!(found.read(0).await, one, "its answer was lost");
        other.output.write_all(b"two").await.unwrap();
        assert_eq!(found.read(0).await, one);
        let two = found.read(1).await;
        assert_eq!((two.number, &*two.output), (2, &b"two"[..]));
        drop(other.output);
        let last = found.read(2).await;
        assert!(last.is_over && last.output.is_empty(), "{last:?}");
        assert!(matches!(found.write(0, Bytes::new()).await, Err(Error::Conflict { .. })), "it is not there any more");
    }

    #[tokio::test(start_paused = true)]
    async fn input_is_written_once_and_as_far_as_it_is_read() {
        let programs = Programs::default();
        let mut other = program(&programs, 1);
        let found = programs.find(call(1)).unwrap();
        assert_eq!(found.write(0, Bytes::from_static(b"0123")).await.unwrap(), 4);
        assert_eq!(found.write(0, Bytes::from_static(b"012345")).await.unwrap(), 6, "an answer was lost");
        assert!(matches!(found.write(7, Bytes::from_static(b"7")).await, Err(Error::Conflict { .. })));
        assert_eq!(found.write(6, Bytes::from_static(b"6789")).await.unwrap(), 8, "the pipe is full");
        assert_eq!(found.write(0, Bytes::new()).await.unwrap(), 8, "it is there, and nothing is written");
        let mut read = [0; 8];
        other.input.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"01234567");
        drop(other.input);
        assert!(matches!(found.write(8, Bytes::from_static(b"89")).await, Err(Error::Conflict { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_ends_when_nobody_asks_about_it() {
        let programs = Programs::default();
        let (one, other) = (program(&programs, 1), program(&programs, 2));
        advance(UNHEARD / 2).await;
        assert_eq!(programs.find(call(1)).unwrap().read(0).await.number, 0, "it has said nothing");
        other.ended.cancelled().await;
        assert!(programs.find(call(2)).is_err() && !one.ended.is_cancelled());
        one.ended.cancelled().await;
        assert!(programs.find(call(1)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_nobody_asks_about_gives_way_to_another() {
        let programs = Programs::default();
        let most = u128::try_from(MOST).unwrap();
        let others: Vec<_> = (0..most).map(|number| program(&programs, number)).collect();
        assert!(programs.make_room().is_err_and(|error| matches!(error, Error::Unavailable { .. })));
        advance(LONGEST_WAIT * 2).await;
        for number in 1..most {
            assert_eq!(programs.find(call(number)).unwrap().write(0, Bytes::from_static(b"x")).await.unwrap(), 1);
        }
        programs.make_room().unwrap();
        assert!(others[0].ended.is_cancelled() && !others[1].ended.is_cancelled());
        programs.end_all();
        assert!(others.iter().all(|other| other.ended.is_cancelled()));
    }
}
