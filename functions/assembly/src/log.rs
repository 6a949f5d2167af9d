//! The log, without secrets: JSON lines for programs, text for people. Panics are lines like all others.

use crate::secrets::RedactedStream;
use domain::panic_text;
use ports::KnownSecrets;
use std::io::Write;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    filter::{Filtered, Targets},
    fmt,
    layer::{Layer, SubscriberExt},
    registry::Registry,
    util::SubscriberInitExt,
};

/// The variable that names the format.
pub(crate) const FORMAT: &str = "BUILDSCALE_LOG_FORMAT";

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An object.
    Json,
    /// A text, with the fields of the request or the actor before the message.
    Text,
}

impl Format {
    /// The format that `BUILDSCALE_LOG_FORMAT` names, `json` or `text`; else text on a terminal and JSON elsewhere. Another value is a fault of the
    /// configuration ([`crate::Sources::read`]).
    pub fn chosen(is_terminal: bool) -> Self {
        let usual = if is_terminal { Self::Text } else { Self::Json };
        std::env::var(FORMAT).ok().and_then(|name| Self::named(&name)).unwrap_or(usual)
    }

    /// The format of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name.trim() {
            "json" => Some(Self::Json),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}

/// From here on this process logs to `stream`, such as `std::io::stdout`. `BUILDSCALE_LOG` sets the levels, as in `info,buildscale_actor=debug`; when
/// it is absent or malformed, messages of `level` and above are logged. In a process that logs already, as a test may, it has no effect.
pub fn begin<W: Write + 'static>(stream: fn() -> W, level: LevelFilter, format: Format, known: KnownSecrets) {
    let asked = std::env::var("BUILDSCALE_LOG").ok().filter(|text| !text.trim().is_empty());
    let filter: Option<Targets> = asked.as_deref().and_then(|text| text.parse().ok());
    let misread = filter.is_none() && asked.is_some();
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(level));
    let writer = RedactedStream(known, stream);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        Format::Json => fmt::layer().json().with_writer(writer).boxed(),
        Format::Text => fmt::layer().with_ansi(false).with_writer(writer).boxed(),
    };
    let lines: Filtered<_, _, Registry> = lines.with_filter(filter);
    if tracing_subscriber::registry().with(lines).try_init().is_err() {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        let (thread, text) = (std::thread::current(), panic_text(panic.payload()));
        tracing::error!(panic = text, at, thread = thread.name(), "a thread panicked");
    }));
    if misread {
        tracing::warn!("BUILDSCALE_LOG cannot be understood; it is written as in info,buildscale_actor=debug");
    }
}
