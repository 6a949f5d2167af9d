//! `glob`: paths by pattern.

use crate::{
    call::{Answer, Call, Done},
    disk::{Pattern, Start},
    effects::{Declaration, Declare},
    search::{self, Search, UNREADABLE, left_out},
};
use domain::{Error, FilePath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;

pub(crate) const GLOB: &str =
    "Find files and folders by a glob, sorted by path; one without a slash matches names at any depth.";

const LIMIT: usize = 1000;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Glob {
    /// Such as *.rs, src/**/*.ts or /data/**.
    pattern: String,
    /// The folder; the whole workspace by default.
    path: Option<String>,
    /// 200 by default.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

impl Declare for Glob {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.searches("path", self.path.as_deref())
    }
}

/// The paths that match.
#[derive(Default)]
pub(crate) struct FoundPaths {
    /// Each with whether it is a folder.
    paths: Vec<(FilePath, bool)>,
    /// The files and folders that the disk did not give.
    unreadable: Vec<FilePath>,
}

pub(crate) async fn glob(call: &Call<'_>, args: Glob) -> Answer {
    search::search(call, args).await
}

impl Search for Glob {
    const TOOL: &'static str = "glob";
    const READS: bool = false;

    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn check(&self) -> Result<(), Error> {
        Pattern::of_argument("pattern", &self.pattern).map(drop)
    }

    type Found = FoundPaths;

    fn walk(&self, start: &Start) -> Result<FoundPaths, Error> {
        let pattern = Pattern::of_argument("pattern", &self.pattern)?;
        let mut found = FoundPaths::default();
        for entry in start.walk().build() {
            let entry = match entry {
                Ok(entry) if entry.depth() == 0 => continue,
                Ok(entry) => entry,
                Err(error) => {
                    found.unreadable.extend(start.unreadable(&error));
                    continue;
                }
            };
            let Some(kind) = entry.file_type().filter(|kind| kind.is_file() || kind.is_dir()) else { continue };
            let is_match = |path: &FilePath| pattern.matches_entry(&start.path, path, kind.is_dir());
            let Some(path) = start.logical(entry.path()).filter(is_match) else { continue };
            found.paths.push((path, kind.is_dir()));
        }
        Ok(found)
    }

    fn paths(found: &FoundPaths) -> Vec<FilePath> {
        found.paths.iter().map(|(path, _)| path).chain(&found.unreadable).cloned().collect()
    }

    fn keep(found: &mut FoundPaths, known: &HashSet<FilePath>) {
        found.paths.retain(|(path, _)| known.contains(path));
        found.unreadable.retain(|path| known.contains(path));
    }

    fn show(&self, FoundPaths { paths, mut unreadable }: FoundPaths) -> Done {
        let limit = self.limit.unwrap_or(200).min(LIMIT);
        let shown = |(path, is_folder): (FilePath, bool)| if is_folder { format!("{path}/") } else { path.to_string() };
        let mut found: Vec<String> = paths.into_iter().map(shown).collect();
        found.sort_unstable();
        let total = found.len();
        found.truncate(limit);
        let mut output = if total == 0 { "nothing matches".into() } else { found.join("\n") };
        if total > limit {
            output.push_str(&format!(
                "\n[{limit} of {total} paths; narrow the pattern or raise the limit to see the rest]"
            ));
        }
        let mut result = json!({ "paths": found, "total": total });
        unreadable.sort_unstable();
        if let Some(told) = left_out(&unreadable, UNREADABLE) {
            output.push_str(&told);
            result["not_searched"] = json!(unreadable);
        }
        Done { output, truncated: total > limit, result, ..Done::default() }
    }
}
