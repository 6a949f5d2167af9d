//! The mailbox of the queue, for the threads that share it.

use crate::mailbox::Mailbox;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The mailbox and the bell of waiting receivers; shared with the writer, which adds sent messages.
pub(crate) struct SharedMailbox {
    mailbox: Mutex<Mailbox>,
    pub bell: Notify,
}

impl SharedMailbox {
    pub fn new(mailbox: Mailbox) -> Self {
        Self { mailbox: Mutex::new(mailbox), bell: Notify::new() }
    }

    /// Works with the mailbox, and then rings once for each waiter that has a reason to look.
    pub fn with<T>(&self, work: impl FnOnce(&mut Mailbox) -> T) -> T {
        let mut mailbox = self.lock();
        let answer = work(&mut mailbox);
        let wakes = std::mem::take(&mut mailbox.wakes);
        drop(mailbox);
        (0..wakes).for_each(|_| self.bell.notify_one());
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock()
    }

    /// Ends all waiting.
    pub fn close(&self) {
        self.lock().closed = true;
        self.bell.notify_waiters();
        self.bell.notify_one();
    }
}
