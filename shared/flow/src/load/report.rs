//! Faults while they are found, with their places and hints.

use super::tree::SourcePosition;
use crate::report::{ManifestFault, Report};
use std::{cell::Cell, collections::BTreeSet};

/// About how many pairs of characters one load compares to find the names that were meant. Names are of any length, and thousands may be mistyped among
/// thousands.
const MOST_COMPARED: usize = 100_000_000;
/// The price of a name beside its length.
const EACH: usize = 8;

thread_local! {
    /// How many pairs are left for the load on this thread.
    static LEFT: Cell<usize> = const { Cell::new(MOST_COMPARED) };
}

/// Begins the hints of a load, which stays on one thread.
pub(super) fn begin_hints() {
    LEFT.set(MOST_COMPARED);
}

/// Faults as they are found.
#[derive(Default)]
pub(super) struct Faults {
    faults: BTreeSet<ManifestFault>,
    notes: BTreeSet<ManifestFault>,
    /// Whether the manifests were accepted before and tasks run them.
    is_accepted: bool,
}

impl Faults {
    /// For manifests that are checked now, or for those that were accepted before.
    pub(super) fn new(is_accepted: bool) -> Self {
        Self { is_accepted, ..Self::default() }
    }

    /// Adds one without which there is no flow.
    pub(super) fn add(&mut self, at: At<'_>, code: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        self.faults.insert(fault(at, code, message.into(), hint.into()));
    }

    /// Adds one of a flow that could run all the same. Manifests that an earlier version accepted keep running: neither a new check
    /// nor a version that has stopped matching ends a task.
    pub(super) fn refuse(
        &mut self,
        at: At<'_>,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if !self.is_accepted {
            self.add(at, code, message, hint);
        }
    }

    /// Notes a key that has no effect here, and is no fault.
    pub(super) fn note(&mut self, at: At<'_>, code: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        self.notes.insert(fault(at, code, message.into(), hint.into()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.faults.len()
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    pub(super) fn report(self) -> Report {
        Report { faults: self.faults.into_iter().collect(), notes: self.notes.into_iter().collect() }
    }
}

fn fault(at: At<'_>, code: &'static str, message: String, hint: String) -> ManifestFault {
    let (line, column) = (at.place.line.max(1), at.place.column.max(1));
    ManifestFault { file: at.file.into(), line, column, code, message, hint }
}

/// The place of a fault.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) file: &'a str,
    pub(super) place: SourcePosition,
}

/// How all entry points can be seen.
pub(super) const ENTRYPOINTS: &str = "`buildscale flow entrypoints`";

/// The hint for a name that is not there: the nearest known name, else all known ones. None when there is nothing of the kind.
/// `all` says where all of them can be seen.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, all: &str) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    match meant(name, &known) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None => there_are(name, &known, all),
    }
}

/// The name that was meant, if one is so near.
pub(super) fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    close(name, known, 1, 0.6).first().copied()
}

/// The known names that are near to this one, the nearest first; none where the search would take more than is left.
fn close<'a>(name: &str, known: &[&'a str], most: usize, least: f32) -> Vec<&'a str> {
    let price = |known: &&str| (known.len() + EACH).saturating_mul(name.len() + EACH);
    let Some(left) = LEFT.get().checked_sub(known.iter().map(price).fold(0, usize::saturating_add)) else {
        return Vec::new();
    };
    LEFT.set(left);
    similar::get_close_matches(name, known, most, least)
}

/// The known names; of many only those nearest to `name`, with their number and the place of the whole list.
pub(super) fn there_are(name: &str, known: &[&str], all: &str) -> Option<String> {
    const MOST: usize = 12;
    if known.len() <= MOST {
        return listed(known.iter().copied());
    }
    let (near, count) = (close(name, known, MOST, 0.0), known.len());
    Some(match near.is_empty() {
        true => format!("there are {count}; {all} has all of them"),
        false => format!("the nearest of {count} are: {}; {all} has all of them", quoted(near)),
    })
}

/// All names that there are; none when there are none.
pub(super) fn listed<'a>(known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names = quoted(known);
    (!names.is_empty()).then(|| format!("there are: {names}"))
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
