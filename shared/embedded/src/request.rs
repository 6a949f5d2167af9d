//! The requests to the writer.

use crate::messages::DeferredWrite;
use ports::{QueueMessage, Result, Write};
use tokio::sync::oneshot;

pub(crate) type Answer<T> = oneshot::Sender<Result<T>>;

/// The requests to the writer.
pub(crate) enum Request {
    /// Writes to the table, and messages that are sent unless the writes meet a conflict. One of both may be empty.
    Commit {
        writes: Vec<Write>,
        messages: Vec<QueueMessage>,
        answer: Answer<()>,
    },
    Redrive {
        group: String,
        answer: Answer<usize>,
    },
    /// No caller waits for it.
    Lazy {
        seq: i64,
        change: DeferredWrite,
    },
    /// Writes lazy changes now.
    Flush {
        answer: Answer<()>,
    },
    Ping {
        answer: Answer<()>,
    },
    /// Looks how much room the disk has.
    Look,
    Close {
        answer: Answer<()>,
    },
}

impl Request {
    /// The partition or the group that it is about; nothing for one that is about the whole store.
    pub fn place(&self) -> &str {
        match self {
            Self::Commit { writes, messages, .. } => {
                let partition = writes.first().map(|write| write.key().pk.as_str());
                partition.or_else(|| messages.first().map(|message| message.group.as_str())).unwrap_or_default()
            }
            Self::Redrive { group, .. } => group,
            Self::Lazy { .. } | Self::Flush { .. } | Self::Ping { .. } | Self::Look | Self::Close { .. } => "",
        }
    }

    /// How many rows it writes, and how many bytes of bodies.
    pub fn weight(&self) -> (usize, usize) {
        match self {
            Self::Commit { writes, messages, .. } => {
                let bytes = writes.iter().map(write_bytes).chain(messages.iter().map(|message| message.body.len()));
                (writes.len() + messages.len(), bytes.sum())
            }
            _ => (1, 0),
        }
    }
}

fn write_bytes(write: &Write) -> usize {
    match write {
        Write::Put { body, .. } => body.len(),
        Write::Delete { .. } | Write::Check { .. } => 0,
    }
}
