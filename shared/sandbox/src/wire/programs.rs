//! The requests to the programs of a sandbox that are spoken to by their pipes.

use domain::CallId;
use ports::Exec;
use serde::{Deserialize, Serialize};

/// A call of [`ports::Pipes`]. The body is [`super::packed`]: the call as JSON, and with [`ProgramCall::Write`] the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramCall {
    /// The answer is empty.
    Start(Box<Exec>),
    /// The answer is the number of bytes that the program has been given, within [`super::LONGEST_WAIT`].
    Write {
        /// The program.
        call: CallId,
        /// The number of bytes before these.
        from: u64,
    },
    /// The answer is [`super::packed`], within [`super::LONGEST_WAIT`]: [`PieceHead`] as JSON, the output, and the errors.
    Read {
        /// The program.
        call: CallId,
        /// The number of the last piece that the caller has; 0 for none.
        seen: u64,
    },
    /// The answer is empty.
    End(CallId),
}

/// The numbers of a [`ports::Piece`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceHead {
    /// Its number.
    pub number: u64,
    /// Whether it is the last one.
    pub is_over: bool,
}
