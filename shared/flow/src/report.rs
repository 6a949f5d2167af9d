//! The report about the manifests of a flow: all their faults, and remarks that are none.

use serde::Serialize;
use std::fmt;

/// Something that is wrong, with its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ManifestFault {
    /// The file, by its path in the folder.
    pub file: String,
    /// Counts from 1.
    pub line: u32,
    /// Counts from 1, in characters.
    pub column: u32,
    /// The kind of fault; stable, for machines.
    pub code: &'static str,
    /// The fault, as a sentence.
    pub message: String,
    /// A way to correct it.
    pub hint: String,
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, code, message, hint } = self;
        write!(f, "{file}:{line}:{column}: {code}: {message}\n    hint: {hint}")
    }
}

/// Every fault of a folder, by place, none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Report {
    /// At least one.
    pub faults: Vec<ManifestFault>,
    /// The keys without an effect here, with their places. They are no faults.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ManifestFault>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        Ok(())
    }
}
