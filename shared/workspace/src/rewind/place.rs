//! Places of files while a plan is made: below `latest/`, or inside of an entry of the trash.

use domain::{FileId, FilePath};

/// The place of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryPlace {
    /// At a path.
    Latest(FilePath),
    /// In the trash: the removed entry, and the path from that entry on, empty for the entry itself.
    Trash(FileId, String),
    /// Purged.
    Gone,
}

impl EntryPlace {
    /// The removed entry itself.
    pub fn trashed(file_id: FileId) -> Self {
        Self::Trash(file_id, String::new())
    }

    /// The path, for an entry that is not removed.
    pub fn path(&self) -> Option<&FilePath> {
        match self {
            Self::Latest(path) => Some(path),
            Self::Trash(..) | Self::Gone => None,
        }
    }

    /// The folders above, without the root and without the removed entry, which have no place inside of anything.
    pub fn above(&self) -> Vec<Self> {
        let (path, removed) = match self {
            Self::Latest(path) => (Some(path.clone()), None),
            Self::Trash(id, rest) => (FilePath::parse(rest).ok(), Some(*id)),
            Self::Gone => (None, None),
        };
        let above = std::iter::successors(path.and_then(|path| path.parent()), FilePath::parent);
        let of = |path: FilePath| match removed {
            Some(id) => Self::Trash(id, path.to_string()),
            None => Self::Latest(path),
        };
        above.filter(|path| !path.is_root()).map(of).collect()
    }

    /// The place after the move of `from`, with all inside of it, to `to`; none when this place is not inside of `from`, or its path would be too
    /// long.
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        let rest = self.inside(from)?;
        match to {
            Self::Latest(path) => FilePath::parse(&format!("{path}{rest}")).ok().map(Self::Latest),
            Self::Trash(id, above) => Some(Self::Trash(*id, format!("{above}{rest}"))),
            Self::Gone => Some(Self::Gone),
        }
    }

    /// The path from `folder` to this place: empty, or beginning with `/`.
    fn inside(&self, folder: &Self) -> Option<&str> {
        let rest = match (self, folder) {
            (Self::Latest(path), Self::Latest(above)) => path.as_str().strip_prefix(above.as_str())?,
            (Self::Trash(id, path), Self::Trash(of, above)) if id == of => path.strip_prefix(above.as_str())?,
            _ => return None,
        };
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }
}
