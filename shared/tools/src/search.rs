//! Tools that walk files in `latest/`, which is first brought in line with the index if the disk is only a cache.

use crate::{
    call::{Answer, Call, CallOutcome, Done, path},
    disk::{Shows, Start, walking},
};
use domain::{Code, Error, FilePath};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::HashSet, sync::Arc};
use workspace::Action;

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
    let known = known(call, S::paths(&found)).await?;
    S::keep(&mut found, &known);
    Ok(args.show(found))
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

/// The paths that the index has: a file that was put into `latest/` by hand is not part of the workspace, and no other tool would find it.
async fn known(call: &Call<'_>, paths: Vec<FilePath>) -> Result<HashSet<FilePath>, Error> {
    /// How many paths are asked for one by one; of more, all that is there is listed.
    const ONE_BY_ONE: usize = 500;
    /// How much is listed at most.
    const LISTED: usize = 1_000_000;
    if paths.len() > ONE_BY_ONE {
        let (listed, whole) = call.workspace.list_tree(&FilePath::root(), LISTED).await?;
        if whole {
            return Ok(listed.into_iter().map(|info| info.path).collect());
        }
    }
    let mut known = HashSet::with_capacity(paths.len());
    for path in paths {
        match call.workspace.stat(&path).await {
            Ok(_) => drop(known.insert(path)),
            Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(known)
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
