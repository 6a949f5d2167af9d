//! Searches by the names of their tools, with arguments that are not read yet.

use crate::{
    args,
    call::{Answer, CallOutcome, path},
    disk::{Start, walking},
    glob::Glob,
    grep::Grep,
    search::Search,
};
use domain::{Code, Error, FilePath};
use serde_json::Value;
use std::path::Path;

/// Refuses a search whose patterns mean nothing or are too large, by its arguments. Other tools have none.
///
/// # Errors
/// `INVALID_ARGUMENT` for a pattern that is none or too large, and for arguments of another form.
pub fn check_search(tool: &str, args: Value) -> Result<(), Error> {
    match tool {
        Glob::TOOL => args::read::<Glob>(args)?.check(),
        Grep::TOOL => args::read::<Grep>(args)?.check(),
        _ => Ok(()),
    }
}

/// Runs a tool that only walks files (`grep`, `glob`) over a folder that has a workspace's current files, with arguments as JSON text: a
/// sandbox runs it over its mirror. The answer is that of the tool itself over the same files.
///
/// `find` is none of these: it asks the index, which has authors and times.
pub async fn search_folder(latest: &Path, tool: &str, args: &str) -> CallOutcome {
    let answer = match tool {
        Grep::TOOL => in_folder::<Grep>(latest, args).await,
        Glob::TOOL => in_folder::<Glob>(latest, args).await,
        _ => Err(Error::invalid("tool", format!("{tool:?} does not only look at files")).hint(format!(
            "those that do are {} and {}",
            Grep::TOOL,
            Glob::TOOL
        ))),
    };
    answer.into()
}

async fn in_folder<S: Search>(latest: &Path, text: &str) -> Answer {
    // The caller has checked them as arguments of a tool. A check here would take the schemas of all tools, which would double the size of a
    // machine that only searches.
    let args: S = serde_json::from_str(text).map_err(|error| Error::invalid("args", error.to_string()))?;
    args.check()?;
    let at = path("path", args.path().unwrap_or("/"))?;
    let latest = latest.to_owned();
    walking(move || {
        let on_disk = latest.join(at.relative());
        let found = std::fs::symlink_metadata(&on_disk).ok().filter(|found| !found.is_symlink());
        let found = found.ok_or_else(|| nothing_at(&at))?;
        args.walk(&Start::at(latest, at, found.is_dir(), None)?).map(|found| args.show(found))
    })
    .await?
}

fn nothing_at(path: &FilePath) -> Error {
    Error::new(Code::NotFound, format!("there is no file or folder {path}"))
}
