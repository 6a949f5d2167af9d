//! The kinds of tools.

/// The kinds of tools, by their effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// It looks, and can be run again at will.
    Read,
    /// It writes a file, once under one call id.
    Write,
    /// It makes folders, moves or removes, once under one call id.
    Arrange,
    /// It runs a command: once under one call id, with an unknown outcome if it is interrupted.
    Exec,
    /// It is not run: it suspends the turn until people have answered.
    Ask,
    /// A server of others runs it, which does what it likes: it may have taken effect when it is interrupted.
    Served,
}
