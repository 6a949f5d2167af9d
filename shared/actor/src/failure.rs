//! The reasons for which a drive ends before its actor is at rest.

use ports::Error;

/// Why a drive ended before its actor was at rest.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriveError {
    /// Another worker wrote the next entry: this one does not own the actor.
    #[error("another worker drives this actor")]
    Lost,
    /// The log was removed while a step was under way: the actor is no more.
    #[error("the log of this actor was removed")]
    Removed,
    #[error(transparent)]
    Port(#[from] Error),
    /// It is of a version that knows more: that is for a worker of that version.
    #[error("this cannot be read here: {0}")]
    Newer(String),
    #[error("panicked: {0}")]
    Panicked(String),
    /// No worker of this version can do it: the actor has to be paused.
    #[error("{0}")]
    Poison(String),
    #[error("the machine says that effects are in flight, and none is")]
    Stranded,
}

impl DriveError {
    /// Whether it is the actor's own, and not of the stores, of another worker or of a newer version.
    pub fn is_own(&self) -> bool {
        match self {
            Self::Panicked(_) | Self::Stranded | Self::Port(Error::Invalid(_) | Error::Conflict { .. }) => true,
            // Unreadable data pauses the actor at once.
            Self::Poison(_) | Self::Lost | Self::Removed | Self::Newer(_) => false,
            Self::Port(Error::Unavailable { .. } | Error::Damaged(_) | Error::Lost { .. }) => false,
        }
    }

    /// Whether a worker of another version may well be able to do it, and this one never will. So it is with data that is lost: a backup may
    /// bring it back.
    pub fn is_for_another_version(&self) -> bool {
        matches!(self, Self::Newer(_) | Self::Port(Error::Damaged(_) | Error::Lost { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that are written again and again refuse fields that they do not know. During a deploy that must pause no actor.
    #[test]
    fn rows_of_a_newer_version_are_left_to_it_and_are_no_failure_of_the_actor() {
        for failure in [DriveError::Newer("a stop".into()), DriveError::Port(Error::Damaged("unknown field".into()))] {
            assert!(failure.is_for_another_version() && !failure.is_own(), "{failure}");
        }
        let own = DriveError::Port(Error::Invalid("too many writes".into()));
        assert!(own.is_own() && !own.is_for_another_version());
    }
}
