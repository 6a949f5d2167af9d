//! The conversion of documents to Markdown, such as a PDF under `/data` or one that is attached to a chat (spec 001 §2 B).

use crate::FileId;
use serde::{Deserialize, Serialize};

/// The progress of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversionStatus {
    /// It waits for a worker.
    Queued,
    /// A worker converts it.
    Running,
    /// The Markdown is there.
    Done,
    /// The document cannot be converted; the reason says why.
    Failed,
    /// There is nothing to convert; the reason says why.
    Skipped,
}

/// The conversion of the current version of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversion {
    /// Its progress.
    pub status: ConversionStatus,
    /// Why it failed or was skipped, for programs, such as `encrypted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The file with the Markdown. Until the status is `done` it is that of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markdown: Option<FileId>,
    /// The folder with the attachments of a message. Until the status is `done` they are those of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<FileId>,
    /// Whether it is a document because a message of a chat has it attached, and not because it lies under `/data`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
}

impl Conversion {
    /// One of a document under `/data`, without a reason and without attachments.
    pub fn new(status: ConversionStatus, markdown: Option<FileId>) -> Self {
        Self { status, reason: None, message: None, markdown, attachments: None, attached: false }
    }

    /// The same with a folder of attachments.
    #[must_use]
    pub fn with_attachments(self, attachments: Option<FileId>) -> Self {
        Self { attachments, ..self }
    }

    /// The same with a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>, message: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self.message = Some(message.into());
        self
    }

    /// Whether a worker has still something to do.
    pub fn is_open(&self) -> bool {
        match self.status {
            ConversionStatus::Queued | ConversionStatus::Running => true,
            ConversionStatus::Done | ConversionStatus::Failed | ConversionStatus::Skipped => false,
        }
    }

    /// Whether there are files that were made from the document.
    pub fn has_files(&self) -> bool {
        self.markdown.is_some() || self.attachments.is_some()
    }
}
