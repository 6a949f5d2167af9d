//! A reader that ends when too much comes: a server that writes without an end must cost no more than its own connection.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, ReadBuf},
    time::Instant,
};

/// The bytes that may come in a window.
const MOST: u64 = 32 << 20;
const WINDOW: Duration = Duration::from_secs(10);

/// How much has come in the present window.
pub(crate) struct Flow {
    since: Instant,
    came: u64,
}

impl Default for Flow {
    fn default() -> Self {
        Self { since: Instant::now(), came: 0 }
    }
}

impl Flow {
    /// Counts bytes.
    ///
    /// # Errors
    /// When too many came in the window.
    pub fn takes(&mut self, bytes: usize) -> io::Result<()> {
        if self.since.elapsed() > WINDOW {
            (self.since, self.came) = (Instant::now(), 0);
        }
        self.came = self.came.saturating_add(bytes as u64);
        match self.came > MOST {
            true => Err(io::Error::other("the server writes more than a connection takes")),
            false => Ok(()),
        }
    }
}

/// Reads until too much comes at once.
pub(crate) struct Bounded<R> {
    inner: R,
    flow: Flow,
}

impl<R> Bounded<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, flow: Flow::default() }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, into);
        match self.flow.takes(into.filled().len() - before) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(()) => polled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn a_flood_ends_the_connection() {
        let mut reader = Bounded::new(tokio::io::repeat(b'x'));
        let copied = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
        assert!(copied.is_err_and(|error| error.to_string().contains("more than a connection takes")));
        let mut little = Bounded::new(&b"hello"[..]);
        let mut text = String::new();
        assert_eq!(little.read_to_string(&mut text).await.ok(), Some(5));
    }
}
