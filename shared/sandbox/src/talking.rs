//! The pipes of a program that runs.

use tokio::io::{AsyncRead, AsyncWrite};

/// A program that runs.
pub struct Talking {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its errors.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// It ends when this is dropped, with all that it started.
    pub end: Box<dyn Send + Sync>,
}
