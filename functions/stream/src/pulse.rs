//! When a reader of the bus looks at the truth behind it: its last message may have been lost, and no other one will tell.

/// Beats without a message between two checks: 1, 2, 4, ... up to this many (one minute by default).
const MOST_BEATS_UNCHECKED: u32 = 12;

/// The memory of a reader from beat to beat.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Beats since something came.
    pub(crate) silent: u32,
    /// The silent beat at which the log is looked at next: its last message may have been lost, and no other one will tell.
    check_at: u32,
    /// The log is known to have more.
    pub(crate) behind: bool,
    /// The bus has ended the subscription.
    pub(crate) deaf: bool,
    /// The feed had no subscriber at the last beat.
    pub(crate) alone: bool,
}

impl Pulse {
    /// Something came.
    pub(crate) fn heard(&mut self) {
        (self.silent, self.check_at) = (0, 0);
    }

    /// Counts a beat, and tells whether to look at the log.
    pub(crate) fn check_is_due(&mut self) -> bool {
        self.silent = self.silent.saturating_add(1);
        let due = self.silent > self.check_at;
        if due {
            self.check_at = self.silent + self.silent.min(MOST_BEATS_UNCHECKED);
        }
        due || self.behind || self.deaf
    }
}
