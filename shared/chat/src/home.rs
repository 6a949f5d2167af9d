//! The files of a person's home that their chats begin with: the person's own words about themselves. A handle of somebody without that home has none.

use domain::{Code, Error, FilePath};
use workspace::{PROFILE, Workspace};

/// How much of a file of a home is read, in bytes; budgets in tokens are narrower.
const READ: u64 = 16 * 1024;

/// The person's own words about themselves, with the keys above them, and their place; none for a person without a profile.
///
/// # Errors
/// Those of reading the workspace's files.
pub(crate) async fn profile(files: &Workspace) -> Result<Option<(FilePath, String)>, Error> {
    let Some(path) = files.home().and_then(|home| home.join(PROFILE).ok()) else { return Ok(None) };
    Ok(own_file(files, &path).await?.map(|text| (path, text)))
}

/// The beginning of a file of the person's home; none where there is none.
///
/// # Errors
/// Those of reading the workspace's files.
pub(crate) async fn own_file(files: &Workspace, path: &FilePath) -> Result<Option<String>, Error> {
    let content = if_there(files.read(path, Some(0..READ)).await)?;
    Ok(content.map(|content| String::from_utf8_lossy(&content.bytes).trim().to_owned()))
}

/// A part of a home, if it is there. A home is its person's to arrange: a file where a folder should be, or a policy that keeps it away, refuses no
/// chat.
pub(crate) fn if_there<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if matches!(error.code, Code::NotFound | Code::Forbidden | Code::Unprocessable) => Ok(None),
        Err(error) => Err(error),
    }
}
