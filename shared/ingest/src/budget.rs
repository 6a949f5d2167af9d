//! The bounds of a conversion.

use crate::failed;
use ports::NotConverted;
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// The bounds of one conversion; parts of a document share them.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The time after which a document of many parts is cut, and says so.
    pub time: Duration,
    /// The longest Markdown, in bytes.
    pub output: usize,
    /// The most bytes that compressed parts may have when they are inflated, all together.
    pub inflated: u64,
    /// The most parts of an archive.
    pub entries: usize,
    /// How deep elements of XML may be nested.
    pub depth: usize,
    /// How deep elements of a page may be nested. Browsers keep to some hundreds; mails that quote each other have more.
    pub page_depth: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(45),
            output: 31 * 1024 * 1024,
            inflated: 256 * 1024 * 1024,
            entries: 10_000,
            depth: 256,
            page_depth: 2_000,
        }
    }
}

/// The budget, and how much of it is used up.
pub(crate) struct Limits {
    budget: Budget,
    since: Instant,
    inflated: Cell<u64>,
}

impl Limits {
    #[expect(
        clippy::disallowed_methods,
        reason = "a process of its own has no clock to be given, and no test that turns it"
    )]
    pub fn new(budget: Budget) -> Self {
        Self { budget, since: Instant::now(), inflated: Cell::new(0) }
    }

    pub fn depth(&self) -> usize {
        self.budget.depth
    }

    pub fn page_depth(&self) -> usize {
        self.budget.page_depth
    }

    /// That elements are nested deeper than they may be.
    pub fn too_deep(&self, most: usize) -> NotConverted {
        failed("too_deep", format!("its elements are nested more than {most} deep"))
    }

    pub fn entries(&self) -> usize {
        self.budget.entries
    }

    /// Whether the time is up.
    pub fn is_late(&self) -> bool {
        self.since.elapsed() > self.budget.time
    }

    /// How many bytes may still be inflated.
    pub fn inflatable(&self) -> u64 {
        self.budget.inflated.saturating_sub(self.inflated.get())
    }

    /// Counts inflated bytes.
    pub fn inflate(&self, bytes: u64) -> Result<(), NotConverted> {
        let all = self.inflated.get().saturating_add(bytes);
        self.inflated.set(all);
        if all > self.budget.inflated { Err(self.bomb()) } else { Ok(()) }
    }

    pub fn bomb(&self) -> NotConverted {
        failed("too_large", format!("it unpacks to more than {} MiB", self.budget.inflated >> 20))
    }

    /// That Markdown of this length is not too long.
    pub fn fits(&self, length: usize) -> Result<(), NotConverted> {
        if length <= self.budget.output {
            return Ok(());
        }
        Err(failed(
            "output_too_large",
            format!("it would be longer than {} MB of Markdown", self.budget.output / 1_000_000),
        ))
    }
}
