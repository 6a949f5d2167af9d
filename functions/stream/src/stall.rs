//! A peer that takes nothing must not hold a connection for ever: a limit on how long a write may make no progress.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// The state of a guarded connection's writes, for code that cannot see the connection itself.
#[derive(Debug, Default)]
pub(crate) struct Flow(AtomicU8);

impl Flow {
    const FREE: u8 = 0;
    const BLOCKED: u8 = 1;
    const STALLED: u8 = 2;

    /// Whether the last write was taken.
    pub(crate) fn is_free(&self) -> bool {
        self.0.load(Relaxed) == Self::FREE
    }

    /// Whether a write was stuck for too long.
    pub(crate) fn is_stalled(&self) -> bool {
        self.0.load(Relaxed) == Self::STALLED
    }
}

/// A connection whose writes fail with [`io::ErrorKind::TimedOut`] when the peer has taken nothing for `limit`.
///
/// The timer exists only while a write is pending, so an idle connection pays nothing for it.
#[derive(Debug)]
pub struct StallGuard<IO> {
    io: IO,
    limit: Duration,
    on_stall: fn(&IO),
    timer: Option<Pin<Box<Sleep>>>,
    flow: Arc<Flow>,
}

impl<IO> StallGuard<IO> {
    /// Guards `io`. `on_stall` is called once when the limit is reached, before the write fails.
    pub fn new(io: IO, limit: Duration, on_stall: fn(&IO)) -> Self {
        Self { io, limit, on_stall, timer: None, flow: Arc::default() }
    }

    pub(crate) fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// The connection inside.
    pub fn get_ref(&self) -> &IO {
        &self.io
    }

    fn watch<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.timer.take().is_some() {
                self.flow.0.store(Flow::FREE, Relaxed);
            }
            return written;
        }
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if timer.as_mut().poll(context).is_pending() {
            self.flow.0.store(Flow::BLOCKED, Relaxed);
            return Poll::Pending;
        }
        self.flow.0.store(Flow::STALLED, Relaxed);
        (self.on_stall)(&self.io);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing")))
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for StallGuard<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for StallGuard<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, parts);
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_write_that_is_stuck_fails_at_the_limit() {
        let (near, _far) = duplex(4);
        let mut guard = StallGuard::new(near, LIMIT, |_| {});
        let began = tokio::time::Instant::now();
        let result = guard.write_all(b"more than fits").await;
        assert_eq!(result.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        assert!(guard.flow().is_stalled());
        assert_eq!(began.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_reads_is_left_alone() -> io::Result<()> {
        let (near, mut far) = duplex(4);
        let mut guard = StallGuard::new(near, LIMIT, |_| {});
        let reader = tokio::spawn(async move {
            let mut four = [0; 4];
            for _ in 0..5 {
                tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
                far.read_exact(&mut four).await?;
            }
            io::Result::Ok(far)
        });
        guard.write_all(&[7; 20]).await?;
        assert!(guard.flow().is_free());
        reader.await??;
        Ok(())
    }
}
