//! The log: JSON lines, without secrets. Panics are lines like all others.

use crate::secrets::Clean;
use domain::panic_text;
use ports::KnownSecrets;
use std::io::Write;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// From here on this process logs to `stream`, such as `std::io::stdout`. `BUILDSCALE_LOG` says how much, as in `info,actor=debug`; where it says nothing that can be
/// understood, what is of this level or above. In a process that logs already, as a test may, it has no effect.
pub fn begin<W: Write + 'static>(stream: fn() -> W, level: LevelFilter, known: KnownSecrets) {
    let asked: Option<Targets> = std::env::var("BUILDSCALE_LOG").ok().and_then(|text| text.parse().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(level));
    let lines = fmt::layer().json().with_writer(Clean(known, stream));
    if tracing_subscriber::registry().with(lines).with(filter).try_init().is_ok() {
        std::panic::set_hook(Box::new(|panic| {
            let at = panic.location().map(ToString::to_string).unwrap_or_default();
            let (thread, text) = (std::thread::current(), panic_text(panic.payload()));
            tracing::error!(panic = text, at, thread = thread.name(), "a thread panicked");
        }));
    }
}
