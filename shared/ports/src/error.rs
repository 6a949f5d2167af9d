//! What can go wrong behind a port.

/// The result of a port's call.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a port.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write's expectation did not hold; nothing was written. A lost race is normal: reload and decide anew.
    #[error("the write at position {write} found another revision than it expected")]
    Conflict {
        /// The position of the first such write in the commit.
        write: usize,
    },
    /// The caller asked for something that no retry can make right (too many writes, a broken cursor).
    #[error("{0}")]
    Invalid(String),
    /// What is stored is not what was written.
    #[error("stored data is damaged: {0}")]
    Damaged(String),
    /// The store did not answer. The call may or may not have taken effect.
    #[error("{what} is unavailable")]
    Unavailable {
        /// Which store.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Try again, or reload and decide anew.
    Retry,
    /// Tell the caller: it asked for something impossible.
    Reject,
    /// Ours: log it, keep the data, look into it.
    Bug,
}

impl Error {
    /// `what` did not answer, because of `source`.
    pub fn unavailable(what: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable { what, source: source.into() }
    }

    /// What to do about it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Conflict { .. } | Self::Unavailable { .. } => Kind::Retry,
            Self::Invalid(_) => Kind::Reject,
            Self::Damaged(_) => Kind::Bug,
        }
    }
}
