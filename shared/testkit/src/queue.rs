//! All sides of a queue at once, for the suite and the decorators: they stand for whole adapters.

use ports::{DeadLetterQueue, QueueReceiver, QueueSender};

/// A whole queue: its two ends, and its dead letters.
pub trait Queue: QueueSender + QueueReceiver + DeadLetterQueue {}

impl<Q: QueueSender + QueueReceiver + DeadLetterQueue> Queue for Q {}
