//! The pipes of a program that runs.

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// Asks whether a program is still there.
pub type Probe = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// A program that runs.
pub struct Talking {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its errors.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Whether a folder in which something is hidden has other entries than when it began: it still has the earlier ones.
    pub is_outdated: Box<dyn Fn() -> bool + Send + Sync>,
    /// Asks about a program on another machine, whose end may not have reached the pipes yet. None where the pipes end with the program.
    pub is_there: Option<Probe>,
    /// It ends when this is dropped, with all that it started.
    pub end: Box<dyn Send + Sync>,
}
