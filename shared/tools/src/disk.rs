//! The way into `latest/` for tools that walk it.

use domain::{Error, FilePath};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::WalkBuilder;
use ports::crash::Id;
use std::{
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A folder or file to walk from, which exists, and its path on disk.
pub(crate) struct Start {
    pub path: FilePath,
    pub latest: PathBuf,
    pub on_disk: PathBuf,
    shows: Option<Shows>,
}

/// Whether a walk may look at this path, and whether it is a folder.
pub(crate) type Shows = Arc<dyn Fn(&FilePath, bool) -> bool + Send + Sync>;

impl Start {
    /// At a path of the workspace that is known to exist. Were a part of the way a link, planted since, it would lead elsewhere.
    ///
    /// # Errors
    /// `NOT_FOUND` when a part of the way is a link, or a folder was expected and a file is there.
    pub fn at(latest: PathBuf, path: FilePath, is_folder: bool, shows: Option<Shows>) -> Result<Self, Error> {
        let on_disk = latest.join(path.relative());
        let mut way = latest.clone();
        for name in path.names() {
            way.push(name);
            if way.is_symlink() || (is_folder && way.is_file()) {
                return Err(Error::not_found("file or folder", &path).hint("read it to have it put right"));
            }
        }
        Ok(Self { path, latest, on_disk, shows })
    }

    /// Walks everything that the caller may see: hidden files, ignored files; no links. Files that they may not see are not opened.
    pub fn walk(&self) -> WalkBuilder {
        let mut walk = WalkBuilder::new(&self.on_disk);
        walk.standard_filters(false).follow_links(false);
        if let Some(shows) = self.shows.clone() {
            let latest = self.latest.clone();
            walk.filter_entry(move |entry| {
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                logical(&latest, entry.path()).is_some_and(|path| shows(&path, is_folder))
            });
        }
        walk
    }

    /// The id of a file on disk for the check whether the process died of it. A changed file has another time, and so another id.
    pub fn id(&self, on_disk: &Path) -> Id {
        let found = std::fs::symlink_metadata(on_disk);
        let (length, changed) = found.map_or((0, (0, 0)), |found| (found.len(), (found.mtime(), found.mtime_nsec())));
        let text = format!("{length} {changed:?}");
        Id::of(&[b"search", on_disk.as_os_str().as_encoded_bytes(), text.as_bytes()])
    }

    /// The file or folder that a walk could not read; none when it went away meanwhile, or when it is no path of a workspace.
    pub fn unreadable(&self, error: &ignore::Error) -> Option<FilePath> {
        if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return None;
        }
        tracing::warn!(%error, "a search could not read a file or folder");
        path_of(error).map_or(Some(self.path.clone()), |on_disk| self.logical(on_disk))
    }

    /// The path in the workspace of a file on disk; none for a name that is no path.
    pub fn logical(&self, on_disk: &Path) -> Option<FilePath> {
        logical(&self.latest, on_disk)
    }
}

fn logical(latest: &Path, on_disk: &Path) -> Option<FilePath> {
    FilePath::parse(&format!("/{}", on_disk.strip_prefix(latest).ok()?.to_str()?)).ok()
}

/// The path on disk that an error is about.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

/// A glob that is matched against paths: one that begins with `/` against the whole path, one with a `/` in it against the
/// path below the folder that is searched, any other against the name.
///
/// A pattern compiles to a size that grows with its length, and the library recurses into its braces, so both are bounded first.
pub(crate) struct Pattern {
    matcher: GlobSet,
    against: Against,
    is_of_folders: bool,
}

enum Against {
    Path,
    Below,
    Name,
}

impl Pattern {
    /// The longest glob, in bytes.
    const LONGEST: usize = 1024;
    /// How deep braces may nest.
    const DEEPEST: usize = 8;

    /// A glob as text.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about `field` for a text that is no glob, is too long, or nests its braces too deep.
    pub fn parse(field: &str, text: &str) -> Result<Self, Error> {
        if text.len() > Self::LONGEST {
            let message = format!("the glob is {} bytes long; {} fit", text.len(), Self::LONGEST);
            return Err(Error::invalid(field, message).hint("search with a shorter glob, or several times"));
        }
        let (mut open, mut deepest) = (0_usize, 0);
        for character in text.chars() {
            match character {
                '{' => open += 1,
                '}' => open = open.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(open);
        }
        if deepest > Self::DEEPEST {
            let message = format!("the braces of the glob nest {deepest} deep; {} fit", Self::DEEPEST);
            return Err(Error::invalid(field, message).hint("such as src/**/*.{ts,tsx}"));
        }
        let against = match text {
            _ if text.starts_with('/') => Against::Path,
            _ if text.contains('/') => Against::Below,
            _ => Against::Name,
        };
        let refused = |error: globset::Error| {
            Error::invalid(field, format!("{text:?} is not a glob: {error}"))
                .hint("such as *.rs, src/**/*.{ts,tsx} or /data/*")
        };
        let glob = GlobBuilder::new(text).literal_separator(true).build().map_err(refused)?;
        // A set of one: compiling a single matcher panics on globs for which the set gives an error.
        let matcher = GlobSetBuilder::new().add(glob).build().map_err(refused)?;
        Ok(Self { matcher, against, is_of_folders: false })
    }

    /// A glob that a tool is called with, as shells and search programs write it: one that ends with `/` matches folders alone, and `./` in front means the
    /// folder that is searched.
    ///
    /// # Errors
    /// As [`Pattern::parse`]; `INVALID_ARGUMENT` for a `!` in front, since a search program would take it for an exclusion.
    pub fn of_argument(field: &str, text: &str) -> Result<Self, Error> {
        if text.starts_with('!') {
            return Err(Error::invalid(field, format!("{text:?} excludes nothing: a glob says which files match"))
                .hint("name those that are wanted; \\! in front means a name that begins with !"));
        }
        let (is_below, rest) = text.strip_prefix("./").map_or((false, text), |rest| (true, rest));
        let glob = match rest.trim_end_matches('/') {
            "" => rest,
            glob => glob,
        };
        let mut pattern = Self::parse(field, glob)?;
        pattern.is_of_folders = glob.len() < rest.len();
        if is_below && matches!(pattern.against, Against::Name) {
            pattern.against = Against::Below;
        }
        Ok(pattern)
    }

    /// Whether no file matches.
    pub fn is_of_folders(&self) -> bool {
        self.is_of_folders
    }

    pub fn matches_entry(&self, start: &FilePath, path: &FilePath, is_folder: bool) -> bool {
        (is_folder || !self.is_of_folders) && self.matches(start, path)
    }

    pub fn matches(&self, start: &FilePath, path: &FilePath) -> bool {
        match self.against {
            Against::Path => self.matcher.is_match(path.as_str()),
            Against::Name => self.matcher.is_match(path.name()),
            Against::Below => {
                let below = path.as_str().strip_prefix(start.as_str()).unwrap_or(path.as_str());
                self.matcher.is_match(below.trim_start_matches('/'))
            }
        }
    }
}

/// Checks a glob over whole paths.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a text that is no glob, is too long, or nests its braces too deep.
pub fn check_glob(field: &str, glob: &str) -> Result<(), Error> {
    Pattern::parse(field, glob).map(drop)
}

/// Whether a glob over whole paths means a path. A text that is no glob means none.
pub fn is_at(glob: &str, path: &FilePath) -> bool {
    Pattern::parse("glob", glob).is_ok_and(|pattern| pattern.matches(&FilePath::root(), path))
}

/// Runs a walk on a thread that may wait for the disk.
pub(crate) async fn walking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    workspace::blocking::run(work).await.map_err(|error| {
        tracing::error!(%error, "a walk did not run to its end");
        Error::new(domain::Code::Internal, "the search did not run to its end")
    })
}
