//! A program in a sandbox on another machine, with pipes as one has that runs here.

use crate::agents::{patiently, started};
use bytes::{Buf, Bytes, BytesMut};
use domain::{CallId, WorkspaceId};
use futures::FutureExt;
use ports::{Error, Exec, Pipes, Probe, Result, RunningProgram, Sandbox, Sandboxes};
use std::{
    future::{pending, ready},
    sync::Arc,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_util::sync::CancellationToken;

/// How many bytes wait for a reader in each direction, and are sent at once.
const ROOM: usize = 64 << 10;

/// Starts a program in the sandbox of a workspace, which is started for it. `prepare` is given the sandbox before the program starts.
///
/// The pipes end when the sandbox goes away or does not answer any more. The program ends when [`RunningProgram::end`] is dropped; in the place of a caller that
/// dies the sandbox ends it, after some minutes.
///
/// # Errors
/// `Invalid` for a program that makes no sense there, and when that machine cannot confine it; `Unavailable` when the sandbox does not start or does not
/// answer; those of `prepare`.
pub async fn start_program_in<P, F>(
    sandboxes: &dyn Sandboxes,
    workspace: WorkspaceId,
    program: Exec,
    prepare: P,
) -> Result<RunningProgram>
where
    P: Fn(Arc<dyn Sandbox>) -> F + Send + Sync,
    F: Future<Output = Result<()>> + Send,
{
    let (prepare, program) = (&prepare, &program);
    let start = move |sandbox: Arc<dyn Sandbox>, _| async move {
        prepare(sandbox.clone()).await?;
        let none = || Error::Invalid("the sandbox of this workspace runs no such programs".into());
        let pipes = sandbox.pipes().ok_or_else(none)?;
        pipes.start(program.clone()).await?;
        Ok::<_, Error>(pipes)
    };
    let pipes = patiently(|| started(sandboxes, workspace), start).await?;
    Ok(piped(pipes, program.call))
}

/// The pipes of a program that has started.
fn piped(pipes: Arc<dyn Pipes>, call: CallId) -> RunningProgram {
    let ((input, given), (output, told), (errors, complained)) = (duplex(ROOM), duplex(ROOM), duplex(ROOM));
    let stop = CancellationToken::new();
    let (stopped, asked) = (stop.clone(), pipes.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = stopped.cancelled() => {}
            () = listen(&pipes, call, told, complained) => {}
            // A caller that says nothing more may still listen.
            () = async { speak(&pipes, call, given).await; pending::<()>().await } => {}
        }
        if let Err(error) = pipes.end(call).await {
            tracing::debug!(error = %error.with_causes(), "a program in a sandbox ends by itself");
        }
    });
    let is_there: Probe = Box::new(move || {
        let pipes = asked.clone();
        async move { is_there(&pipes, call).await }.boxed()
    });
    RunningProgram {
        input: Box::new(input),
        output: Box::new(output),
        errors: Box::new(errors),
        is_outdated: Box::new(|| false),
        is_there: Some(is_there),
        end: Box::new(stop.drop_guard()),
    }
}

/// Whether a program is still there. One whose sandbox does not answer is not.
async fn is_there(pipes: &Arc<dyn Pipes>, call: CallId) -> bool {
    let ask = |pipes: Arc<dyn Pipes>, _| async move { pipes.write(call, 0, Bytes::new()).await };
    patiently(|| ready(Ok(pipes.clone())), ask).await.is_ok()
}

/// Carries the words of a program to its caller, until either of them is gone.
async fn listen(pipes: &Arc<dyn Pipes>, call: CallId, mut output: DuplexStream, mut errors: DuplexStream) {
    let mut seen = 0;
    loop {
        let read = |pipes: Arc<dyn Pipes>, _| async move { pipes.read(call, seen).await };
        let piece = match patiently(|| ready(Ok(pipes.clone())), read).await {
            Ok(piece) => piece,
            Err(error) => {
                tracing::info!(error = %error.with_causes(), "a program in a sandbox is gone");
                return;
            }
        };
        seen = piece.number;
        let is_taken = errors.write_all(&piece.errors).await.is_ok() && output.write_all(&piece.output).await.is_ok();
        if piece.is_over || !is_taken {
            return;
        }
    }
}

/// Carries the words of a caller to its program, until either of them is gone.
async fn speak(pipes: &Arc<dyn Pipes>, call: CallId, mut input: DuplexStream) {
    let (mut written, mut buffer) = (0_u64, BytesMut::new());
    loop {
        buffer.reserve(ROOM);
        if !matches!(input.read_buf(&mut buffer).await, Ok(1..)) {
            return;
        }
        let mut rest = buffer.split().freeze();
        while !rest.is_empty() {
            let (from, bytes) = (written, &rest);
            let write = |pipes: Arc<dyn Pipes>, _| async move { pipes.write(call, from, bytes.clone()).await };
            let Ok(has) = patiently(|| ready(Ok(pipes.clone())), write).await else { return };
            let taken = usize::try_from(has.saturating_sub(written)).unwrap_or(usize::MAX).min(rest.len());
            rest.advance(taken);
            written += taken as u64;
        }
    }
}
