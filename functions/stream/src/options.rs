//! The options, with the defaults that the figures in docs/benchmarks.md were measured with.

use std::time::Duration;

/// Scatters the numbers of streams (Knuth's multiplicative hash).
pub(crate) fn spread_of(serial: u64) -> u64 {
    serial.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}

/// How feeds keep and send events.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// The most frames that one feed keeps.
    pub window_frames: usize,
    /// The most bytes of frames that one feed keeps; one frame larger than that is still kept.
    pub window_bytes: usize,
    /// The most bytes joined into one write; one frame larger than that is written alone.
    pub chunk_bytes: usize,
    /// The longest silence on a connection: a comment is sent before it is over.
    pub keep_alive: Duration,
    /// The time that clients are told to wait before they connect again.
    pub retry: Duration,
    /// The longest life of a stream. Permission is checked when it begins and again when it is resumed: so a member who was removed, or
    /// whose token has expired, sees events without permission for at most this long. The API ends streams of workspaces sooner after a removal.
    pub max_life: Duration,
    /// Whether a stream whose clients take its end for that of what it shows breaks off where it ends before that. Lambda has no such end: its runtime
    /// writes the failure into the answer, as text, and ends it in good order.
    pub may_break_off: bool,
}

impl Default for FeedOptions {
    fn default() -> Self {
        Self {
            window_frames: 1024,
            window_bytes: 256 * 1024,
            chunk_bytes: 64 * 1024,
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_millis(500),
            max_life: Duration::from_secs(15 * 60),
            may_break_off: true,
        }
    }
}

impl FeedOptions {
    /// The interval between two beats of a feed. A comment is due after two silent beats, so the third is left for a busy machine.
    pub(crate) fn beat(&self) -> Duration {
        (self.keep_alive / 3).max(Duration::from_millis(10))
    }

    /// The number of beats after which the stream with this number ends. Up to an eighth fewer than the limit, so that those that began
    /// together do not all come back together.
    pub(crate) fn life_in_beats(&self, serial: u64) -> u32 {
        let beats = u32::try_from(self.max_life.as_millis() / self.beat().as_millis().max(1)).unwrap_or(u32::MAX);
        let spread = u64::from(beats / 8 + 1);
        let sooner = u32::try_from(spread_of(serial) % spread).unwrap_or(0);
        (beats - sooner).max(1)
    }
}

/// How connections are served.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The most connections at once. Some further ones are answered with 503 and closed, but for those that ask whether the server
    /// lives: one that is full is not dead.
    pub max_connections: usize,
    /// The most connections at once of one client (an IPv4 address, or a network of 64 bits of IPv6); none for no bound. Further ones are
    /// closed without an answer. Clients on this machine have no bound unless `bounds_loopback`.
    pub max_per_address: Option<usize>,
    /// Whether `max_per_address` holds for loopback addresses, too. A proxy on this machine brings the connections of all clients from there.
    pub bounds_loopback: bool,
    /// The longest head of a request, in bytes (at least 8 KiB); a longer one is answered with 431.
    pub max_head_bytes: usize,
    /// How long a head may take to arrive, and how long a connection may be idle between requests.
    pub head_timeout: Duration,
    /// How long a peer may take nothing before its connection is closed.
    pub stall_limit: Duration,
    /// The kernel's send buffer per peer, in bytes (the kernel doubles it for its own bookkeeping).
    pub send_buffer_bytes: usize,
    /// How long requests in flight may take to end after a shutdown began.
    pub drain: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 16 * 1024,
            max_per_address: None,
            bounds_loopback: false,
            max_head_bytes: 32 * 1024,
            head_timeout: Duration::from_secs(30),
            stall_limit: Duration::from_secs(30),
            send_buffer_bytes: 64 * 1024,
            drain: Duration::from_secs(10),
        }
    }
}
