//! Tools that walk files in `latest/`, which is first brought in line with the index if the disk is only a cache.

use crate::{
    call::{Answer, Call, CallOutcome, Done, path},
    disk::{Shows, Start, walking},
};
use domain::{Code, Error, FilePath};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::HashSet, sync::Arc};
use workspace::{Action, ReadableTree, is_damage_of_index};

/// The arguments of a tool that only looks at files.
pub(crate) trait Search: JsonSchema + DeserializeOwned + Serialize + Send + 'static {
    /// The tool's name.
    const TOOL: &'static str;

    /// Whether contents are read, and not only names.
    const READS: bool;

    /// The file or folder to search.
    fn path(&self) -> Option<&str>;

    /// Refuses arguments that mean nothing, before anything is fetched for them.
    fn check(&self) -> Result<(), Error>;

    /// The result of a search, by path.
    type Found: Send + 'static;

    /// Searches the files at `start`. Waits for the disk.
    fn walk(&self, start: &Start) -> Result<Self::Found, Error>;

    /// The paths that were found.
    fn paths(found: &Self::Found) -> Vec<FilePath>;

    /// Drops results whose paths are not in `known`.
    fn keep(found: &mut Self::Found, known: &HashSet<FilePath>);

    /// The answer.
    fn show(&self, found: Self::Found) -> Done;
}

/// Runs a tool that walks files over the workspace of a call.
pub(crate) async fn search<S: Search>(call: &Call<'_>, args: S) -> Answer {
    args.check()?;
    let at = path("path", args.path().unwrap_or("/"))?;
    let info = call.workspace.stat(&at).await?;
    if let Some(answer) = sandbox_mirror(call, &at, &args).await {
        return answer;
    }
    let hydrated = call.workspace.hydrate(&at).await?;
    if S::READS && info.kind != workspace::FileKind::Folder {
        call.workspace.demand(Action::Read, &at)?;
    }
    let seen_by = call.workspace.clone();
    let shows: Shows = Arc::new(move |path, is_folder| match S::READS && !is_folder {
        true => seen_by.may_read(path),
        false => seen_by.shows(path),
    });
    let start = Start::at(call.workspace.latest(), at, info.kind == workspace::FileKind::Folder, Some(shows))?;
    let (args, found) = walking(move || {
        let found = args.walk(&start);
        (args, found)
    })
    .await?;
    drop(hydrated);
    let mut found = found?;
    let (known, damaged) = known(call, S::paths(&found)).await?;
    S::keep(&mut found, &known);
    let mut done = args.show(found);
    if let Some(told) = left_out(&damaged, DAMAGED) {
        done.output.push_str(&told);
        done.truncated = true;
    }
    Ok(done)
}

/// The note about files and folders that were not searched.
pub(crate) fn left_out(paths: &[FilePath], why: &str) -> Option<String> {
    /// How many are named.
    const NAMED: usize = 5;
    let named: Vec<&str> = paths.iter().take(NAMED).map(FilePath::as_str).collect();
    let more = if paths.len() > NAMED { format!(" and {} more", paths.len() - NAMED) } else { String::new() };
    (!paths.is_empty()).then(|| format!("\n[not searched, as {why}: {}{more}]", named.join(", ")))
}

/// Why a file or folder was not searched that the disk does not give.
pub(crate) const UNREADABLE: &str = "the disk of the server did not give it";
/// Why a result is not given whose entry cannot be read.
const DAMAGED: &str = "the index of the workspace is damaged there";

/// The paths that the index has: a file that was put into `latest/` by hand is not part of the workspace, and no other tool would find it. And the paths of
/// which nobody knows that, because an entry on the way to them cannot be read.
async fn known(call: &Call<'_>, mut paths: Vec<FilePath>) -> Result<(HashSet<FilePath>, Vec<FilePath>), Error> {
    /// How many paths are asked for one by one; of more, all that is there is listed.
    const ONE_BY_ONE: usize = 500;
    /// How much is listed at most.
    const LISTED: usize = 1_000_000;
    let mut known = HashSet::with_capacity(paths.len());
    if paths.len() > ONE_BY_ONE {
        let ReadableTree { entries, is_whole, left_out } =
            call.workspace.list_readable(&FilePath::root(), LISTED).await?;
        if is_whole {
            known.extend(entries.into_iter().map(|info| info.path));
            if left_out == 0 {
                return Ok((known, Vec::new()));
            }
            paths.retain(|path| !known.contains(path));
        }
    }
    let mut damaged = Vec::new();
    for path in paths {
        match call.workspace.stat(&path).await {
            Ok(_) => drop(known.insert(path)),
            Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => {}
            Err(error) if is_damage_of_index(&error) => damaged.push(path),
            Err(error) => return Err(error),
        }
    }
    Ok((known, damaged))
}

/// The answer of the workspace's sandbox, if it has one that is ready and answers. After a failure there, the search runs here.
async fn sandbox_mirror<S: Search>(call: &Call<'_>, at: &FilePath, args: &S) -> Option<Answer> {
    let args = serde_json::to_string(args).ok()?;
    let answer = call.workspace.search_on_sandbox(at, S::TOOL, &args).await?;
    // Commands run beside it: its answer is trusted as little as a file.
    const LONGEST: usize = 2 * crate::caps::MAX_BYTES;
    let outcome: CallOutcome = serde_json::from_str(&answer).ok()?;
    let CallOutcome { output, truncated, result, .. } =
        (outcome.success && outcome.output.len() <= LONGEST).then_some(outcome)?;
    Some(Ok(Done { output, truncated, result, capped: true, ..Done::default() }))
}
