//! Programs that run for long in a sandbox on another machine and are spoken to by their standard input and output, such as servers of tools.

use crate::{Exec, Result};
use async_trait::async_trait;
use bytes::Bytes;
use domain::CallId;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// The pipes of the programs of one sandbox. A program whose pipes nobody asks about for some minutes ends: so none outlives its caller for long.
///
/// # Errors
/// Of every method: `Unavailable` when the sandbox does not answer; asking again does nothing twice.
#[async_trait]
pub trait Pipes: Send + Sync {
    /// Starts a program, which is known by its call from then on. It needs no place, and has no time after which it ends. The same call again has no effect.
    ///
    /// # Errors
    /// Those of [`Pipes`], also when there are too many programs already; `Invalid` for a program that makes no sense there, and when that machine cannot
    /// confine it.
    async fn start(&self, program: Exec) -> Result<()>;
    /// Writes to the standard input of a program. `from` is the number of bytes that it was given before these; those of them that it has already are not
    /// written again. Returns the number of bytes that it has been given then: fewer than all when it does not read.
    /// Without bytes it is only asked whether the program is there, and is answered at once.
    ///
    /// # Errors
    /// Those of [`Pipes`]; `Conflict` when the program is gone, or lacks bytes before these.
    async fn write(&self, call: CallId, from: u64, input: Bytes) -> Result<u64>;
    /// The piece after the piece `seen`, which the caller has; 0 for none. Waits until there is one, for a while: then it is empty, with the number `seen`.
    ///
    /// # Errors
    /// Those of [`Pipes`]; `Conflict` when the program is not there.
    async fn read(&self, call: CallId, seen: u64) -> Result<Piece>;
    /// Ends a program with all that it started. One that is not there is fine.
    ///
    /// # Errors
    /// Those of [`Pipes`].
    async fn end(&self, call: CallId) -> Result<()>;
}

/// A piece of the words of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Its number, from 1. A piece is given again until the caller asks for the next one.
    pub number: u64,
    /// Bytes of its standard output.
    pub output: Bytes,
    /// Bytes of its standard error. Some are left out when there are too many.
    pub errors: Bytes,
    /// Whether this is the last piece.
    pub is_over: bool,
}

/// Asks whether a program is still there.
pub type Probe = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// A program that runs, wherever that is, and is spoken to by its pipes.
pub struct RunningProgram {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Whether the files that it sees are not the present ones any more, such as those of a folder in which something is hidden from it: it has to be
    /// started again for those.
    pub is_outdated: Box<dyn Fn() -> bool + Send + Sync>,
    /// Asks about a program on another machine, whose end may not have reached the pipes yet. None where the pipes end with the program.
    pub is_there: Option<Probe>,
    /// It ends when this is dropped, with all that it started.
    pub end: Box<dyn Send + Sync>,
}
