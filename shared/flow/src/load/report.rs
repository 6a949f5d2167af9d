//! What is wrong with a folder, all of it together.

use super::tree::Place;
use serde::Serialize;
use std::{collections::BTreeSet, fmt};

/// Something that is wrong, with its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fault {
    /// The file, by its path in the folder.
    pub file: String,
    /// Counts from 1.
    pub line: u32,
    /// Counts from 1, in characters.
    pub column: u32,
    /// What sort of fault; stable, for machines.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}: {}", self.file, self.line, self.column, self.code, self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n    hint: {hint}"))
    }
}

/// Every fault of a folder, by place, none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Report {
    /// At least one.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        Ok(())
    }
}

/// Faults as they are found.
#[derive(Default)]
pub(super) struct Faults(BTreeSet<Fault>);

impl Faults {
    /// Adds one.
    pub(super) fn add(&mut self, at: At<'_>, code: &'static str, message: impl Into<String>, hint: Option<String>) {
        let (line, column) = (at.place.line.max(1), at.place.column.max(1));
        self.0.insert(Fault { file: at.file.into(), line, column, code, message: message.into(), hint });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn report(self) -> Report {
        Report { faults: self.0.into_iter().collect() }
    }
}

/// Where a fault is.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) file: &'a str,
    pub(super) place: Place,
}

/// The hint for a name that is not there: the nearest of those that are, else all of them, if they are few.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(near) = similar::get_close_matches(name, &known, 1, 0.6).first() {
        return Some(format!("did you mean `{near}`?"));
    }
    listed(known)
}

/// All names that there are, the first ones of many.
pub(super) fn listed<'a>(known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const MOST: usize = 20;
    let known: Vec<&str> = known.into_iter().collect();
    let names: Vec<String> = known.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    let more = known.len().saturating_sub(MOST);
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(format!("there are: {}", names.join(", "))),
        (false, more) => Some(format!("there are: {} and {more} more", names.join(", "))),
    }
}
