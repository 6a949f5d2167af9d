//! Paths inside a workspace: absolute, normalised, and safe to join under a folder on disk.

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use std::{fmt, str::FromStr, sync::Arc};

/// The longest path, in bytes.
const MAX_PATH: usize = 4096;
/// The longest name of one file or folder, in bytes.
const MAX_NAME: usize = 255;

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin with `/`.
    #[error("the path {0:?} is not absolute: begin it with /, as in /projects/app/main.rs")]
    Relative(String),
    /// It has a `..` in it.
    #[error("the path {0:?} has a .. in it: name the file by its full path")]
    Traversal(String),
    /// It has a control character in it.
    #[error("the path {0:?} has a control character or a NUL in it")]
    Control(String),
    /// A name is over 255 bytes.
    #[error("a name in the path is {0} bytes long; the limit is {MAX_NAME}")]
    LongName(usize),
    /// A new name has a character that is not visible, or that changes the display order of others.
    #[error("the name {0:?} has the character U+{1:04X} in it, which is not shown or turns others around")]
    Invisible(String, u32),
    /// A new name has letters in parts that there is one character for.
    #[error("the name {0:?} is not in Unicode's normalization form NFC")]
    NotComposed(String),
    /// A new name begins or ends with a space.
    #[error("the name {0:?} begins or ends with a space")]
    Padded(String),
    /// The path of a file ends with `/` or `/.`.
    #[error("{0} names a folder, and not the file in it")]
    Folder(String),
    /// The path is over 4 KiB.
    #[error("the path is {0} bytes long; the limit is {MAX_PATH}")]
    LongPath(usize),
}

impl From<PathError> for crate::Error {
    fn from(error: PathError) -> Self {
        let hint = match &error {
            PathError::Invisible(..) => "leave that character out".into(),
            PathError::NotComposed(name) => format!("name it {:?}", nfc().normalize(name)),
            PathError::Padded(_) => "leave that space out".into(),
            PathError::Folder(text) => {
                let folder = FilePath::parse(text).map_or_else(|_| text.clone(), |path| path.to_string());
                format!("give the whole path with the name of the file, such as {folder}/notes.md")
            }
            _ => "paths are absolute inside the workspace, such as /projects/app/main.rs".into(),
        };
        Self::invalid("path", error.to_string()).hint(hint)
    }
}

fn nfc() -> ComposingNormalizerBorrowed<'static> {
    ComposingNormalizerBorrowed::new_nfc()
}

/// Refuses a name for a new file or folder that people could not tell from another one: with characters that are not shown or turn others
/// around, with a space at an end, or with letters in parts (NFD). A file that has such a name already keeps it.
///
/// U+200C and U+200D join and part letters of Persian, of Indian scripts and of emoji, so they are allowed, and names that differ in
/// them alone may look the same; so may names in letters of several scripts.
///
/// # Errors
/// [`PathError::Invisible`] with the character, [`PathError::NotComposed`] for letters in parts, [`PathError::Padded`] for a space at an end.
pub fn check_new_name(name: &str) -> Result<(), PathError> {
    if let Some(c) = name.chars().find(|c| is_invisible(*c)) {
        return Err(PathError::Invisible(name.into(), c.into()));
    }
    if !nfc().is_normalized(name) {
        return Err(PathError::NotComposed(name.into()));
    }
    if name.trim() == name { Ok(()) } else { Err(PathError::Padded(name.into())) }
}

/// The name nearest to `name` that [`check_new_name`] takes, without control characters.
pub fn nearest_new_name(name: &str) -> String {
    let shown: String = name.chars().filter(|c| !c.is_control() && !is_invisible(*c)).collect();
    nfc().normalize(shown.trim()).into_owned()
}

/// Marks of direction, spaces without width, fillers, separators of lines, tags.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E007F}'
    )
}

/// A path inside a workspace. Always begins with `/`, never ends with one (but for the root), has no empty, `.` or `..`
/// part, no control character, no name over 255 bytes, and is at most 4 KiB long.
///
/// Those rules make it safe to join under a folder; code that opens files checks the targets of symbolic links on disk.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct FilePath(Arc<str>);

impl FilePath {
    /// The root folder, `/`.
    pub fn root() -> Self {
        Self("/".into())
    }

    /// Parses and normalises: doubled and trailing slashes and `.` parts are dropped.
    ///
    /// # Errors
    /// The rule that the text breaks: [`PathError::Relative`], [`PathError::Traversal`], [`PathError::Control`], [`PathError::LongName`] or
    /// [`PathError::LongPath`].
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH {
            return Err(PathError::LongPath(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(PathError::Control(text.into()));
        }
        let Some(rest) = text.strip_prefix('/') else { return Err(PathError::Relative(text.into())) };
        let mut path = String::with_capacity(text.len());
        for name in rest.split('/').filter(|name| !name.is_empty() && *name != ".") {
            if name == ".." {
                return Err(PathError::Traversal(text.into()));
            }
            if name.len() > MAX_NAME {
                return Err(PathError::LongName(name.len()));
            }
            path.push('/');
            path.push_str(name);
        }
        Ok(if path.is_empty() { Self::root() } else { Self(path.into()) })
    }

    /// The same for a file that is made. A text that ends with `/` means a folder, and the file would get the folder's name.
    ///
    /// # Errors
    /// Those of [`FilePath::parse`], and [`PathError::Folder`].
    pub fn parse_file(text: &str) -> Result<Self, PathError> {
        let path = Self::parse(text)?;
        let names_folder = text.ends_with('/') || text.ends_with("/.");
        if names_folder && !path.is_root() { Err(PathError::Folder(text.into())) } else { Ok(path) }
    }

    /// The text, beginning with `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Whether it is `/`.
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }
    /// The text without the leading `/`, to join under a folder on disk; empty for the root.
    pub fn relative(&self) -> &str {
        &self.0[1..]
    }
    /// The names from the root down.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.relative().split('/').filter(|name| !name.is_empty())
    }
    /// The last name; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
    /// The folder that it is in; none for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        match self.0.rfind('/') {
            None | Some(0) => Some(Self::root()),
            Some(end) => Some(Self(self.0[..end].into())),
        }
    }
    /// The path of `name` (one name or several with slashes between) inside this folder.
    ///
    /// # Errors
    /// Those of [`FilePath::parse`].
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        Self::parse(&format!("{}/{name}", self.0))
    }
    /// Whether it is `folder` or inside of it.
    pub fn is_within(&self, folder: &Self) -> bool {
        folder.is_root() || self == folder || self.0.strip_prefix(&*folder.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl FromStr for FilePath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_and_takes_apart() -> Result<(), PathError> {
        let path = FilePath::parse("//projects/./app//main.rs/")?;
        assert_eq!(path.as_str(), "/projects/app/main.rs");
        assert_eq!(path.name(), "main.rs");
        assert_eq!(path.parent(), Some(FilePath::parse("/projects/app")?));
        assert_eq!(FilePath::parse("/a")?.parent(), Some(FilePath::root()));
        assert_eq!(FilePath::root().parent(), None);
        assert_eq!(FilePath::root().join("a/b")?.as_str(), "/a/b");
        assert!(path.is_within(&FilePath::parse("/projects")?));
        assert!(!FilePath::parse("/projects2")?.is_within(&FilePath::parse("/projects")?));
        Ok(())
    }

    #[test]
    fn a_new_name_is_one_that_people_can_tell_from_others() {
        for fine in ["a b.md", "übersicht.md", "報告.md", "می‌خواهم.md", "👩‍🚀.png", "❤️.md", "..."]
        {
            assert_eq!(check_new_name(fine), Ok(()), "{fine:?}");
        }
        let odd = [
            "invoice\u{202E}fdp.exe",
            "a\u{200B}b",
            "\u{FEFF}a",
            "a\u{2066}b",
            "a\u{2028}b",
            "soft\u{AD}hyphen",
            "\u{3164}",
        ];
        for odd in odd {
            let error = check_new_name(odd).map_err(crate::Error::from);
            assert!(error.is_err_and(|error| error.message.contains("U+")), "{odd:?}");
        }
        for padded in ["notes.md ", " notes.md", "\u{3000}notes.md", " "] {
            assert_eq!(check_new_name(padded), Err(PathError::Padded(padded.into())));
            assert_eq!(check_new_name(&nearest_new_name(padded)), Ok(()));
        }
        let parts = check_new_name("u\u{308}bersicht.md").map_err(crate::Error::from);
        assert_eq!(parts.err().and_then(|error| error.hint).as_deref(), Some("name it \"übersicht.md\""));
        // Existing entries with such names are found.
        assert!(FilePath::parse("/u\u{308}/a\u{202E}b").is_ok());
    }

    #[test]
    fn refuses_what_could_escape() {
        for bad in ["", "a", "../a", "/a/../b", "/a\0b", "/a\nb", "/a\u{85}b"] {
            assert!(FilePath::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(FilePath::parse(&format!("/{}", "a".repeat(256))), Err(PathError::LongName(256)));
        assert!(FilePath::parse(&format!("/{}", "a".repeat(255))).is_ok());
        assert_eq!(FilePath::parse(&"/a".repeat(2049)), Err(PathError::LongPath(4098)));
        assert!(FilePath::parse("/a/..b/...").is_ok());
    }

    #[test]
    fn the_path_of_a_new_file_does_not_end_as_that_of_a_folder() {
        for folder in ["/a/b/", "/a/b/.", "/a//b/./"] {
            assert_eq!(FilePath::parse_file(folder), Err(PathError::Folder(folder.into())));
            assert!(FilePath::parse(folder).is_ok());
        }
        let hint = crate::Error::from(PathError::Folder("/a/b/.".into())).hint;
        assert_eq!(hint.as_deref(), Some("give the whole path with the name of the file, such as /a/b/notes.md"));
        for file in ["/a//b", "/a/./b.", "/"] {
            assert_eq!(FilePath::parse_file(file), FilePath::parse(file));
        }
    }
}
