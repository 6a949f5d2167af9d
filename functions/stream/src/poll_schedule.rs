//! When a reader of the bus polls the log behind it: its last message may have been lost, and no other one will tell.

/// Beats without a message between two polls: 1, 2, 4, ... up to this many (one minute by default).
const MOST_BEATS_BETWEEN_POLLS: u32 = 12;

/// The poll schedule of a reader, from beat to beat.
#[derive(Debug, Default)]
pub(crate) struct PollSchedule {
    /// Beats since something came.
    pub(crate) silent: u32,
    /// The silent beat at which the log is polled next.
    poll_at: u32,
    /// The log is known to have more.
    pub(crate) behind: bool,
    /// The bus has ended the subscription.
    pub(crate) deaf: bool,
    /// The feed had no subscriber at the last beat.
    pub(crate) alone: bool,
}

impl PollSchedule {
    /// Something came.
    pub(crate) fn heard(&mut self) {
        (self.silent, self.poll_at) = (0, 0);
    }

    /// Counts a beat, and tells whether to poll the log.
    pub(crate) fn poll_is_due(&mut self) -> bool {
        self.silent = self.silent.saturating_add(1);
        let due = self.silent > self.poll_at;
        if due {
            self.poll_at = self.silent + self.silent.min(MOST_BEATS_BETWEEN_POLLS);
        }
        due || self.behind || self.deaf
    }
}
