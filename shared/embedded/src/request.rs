//! The requests to the writer.

use crate::messages::Lazy;
use ports::{QueueMessage, Result, Write};
use tokio::sync::oneshot;

pub(crate) type Answer<T> = oneshot::Sender<Result<T>>;

/// The requests to the writer.
pub(crate) enum Request {
    Commit {
        writes: Vec<Write>,
        answer: Answer<()>,
    },
    Send {
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
        change: Lazy,
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
            Self::Commit { writes, .. } => writes.first().map_or("", |write| &write.key().pk),
            Self::Send { messages, .. } => messages.first().map_or("", |message| &message.group),
            Self::Redrive { group, .. } => group,
            Self::Lazy { .. } | Self::Flush { .. } | Self::Ping { .. } | Self::Look | Self::Close { .. } => "",
        }
    }

    /// How many rows it writes, and how many bytes of bodies.
    pub fn weight(&self) -> (usize, usize) {
        match self {
            Self::Commit { writes, .. } => (writes.len(), writes.iter().map(write_bytes).sum()),
            Self::Send { messages, .. } => (messages.len(), messages.iter().map(|message| message.body.len()).sum()),
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
