//! Why a document is left as it is for now.

use domain::Error;
use workspace::is_damage_of_index;

/// The reason for which a document cannot be dealt with now.
pub(crate) enum Left {
    /// A store does not answer, or the like.
    Error(Error),
    /// The converter cannot be started.
    Unavailable(String),
    /// The model that describes documents does not answer.
    Undescribed(String),
}

impl From<Error> for Left {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Left {
    /// Whether a row of the document, or of a folder above it, cannot be read: that stays so until somebody repairs it.
    pub fn is_of_damaged_row(&self) -> bool {
        matches!(self, Self::Error(error) if is_damage_of_index(error))
    }

    /// Tells the log of a document of this group.
    pub fn tell(&self, group: &str) {
        match self {
            Self::Error(error) => tracing::warn!(group, %error, "a document could not be dealt with"),
            Self::Undescribed(why) => tracing::warn!(group, why, "a document waits for the model that describes it"),
            Self::Unavailable(why) => tracing::error!(group, why, "the converter of documents cannot be started"),
        }
    }
}
