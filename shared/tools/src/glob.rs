//! `glob`: paths by pattern.

use crate::{
    call::{Answer, Call, Done},
    disk::{Pattern, Start},
    effects::{Declaration, Declare},
    search::{self, Search},
};
use domain::{Error, FilePath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;

pub(crate) const GLOB: &str = "Find files and folders by a glob pattern, sorted by path. `*` stays inside one folder, `**` \
    goes through all. A pattern without a slash matches names at any depth. Hidden files are included.";

const LIMIT: usize = 1000;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Glob {
    /// The pattern, such as *.rs, src/**/*.ts or /data/**.
    pattern: String,
    /// The folder to search, such as /projects/app; the whole workspace by default.
    path: Option<String>,
    /// At most this many paths; 200 by default.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

impl Declare for Glob {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.searches("path", self.path.as_deref())
    }
}

pub(crate) async fn glob(call: &Call<'_>, args: Glob) -> Answer {
    search::search(call, args).await
}

impl Search for Glob {
    const TOOL: &'static str = "glob";

    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn check(&self) -> Result<(), Error> {
        Pattern::parse("pattern", &self.pattern).map(drop)
    }

    /// Paths, and whether each is a folder.
    type Found = Vec<(FilePath, bool)>;

    fn walk(&self, start: &Start) -> Result<Self::Found, Error> {
        let pattern = Pattern::parse("pattern", &self.pattern)?;
        let mut found = Vec::new();
        for entry in start.walk().build().filter_map(Result::ok).filter(|entry| entry.depth() > 0) {
            let Some(kind) = entry.file_type().filter(|kind| kind.is_file() || kind.is_dir()) else { continue };
            let Some(path) = start.logical(entry.path()).filter(|path| pattern.matches(&start.path, path)) else {
                continue;
            };
            found.push((path, kind.is_dir()));
        }
        Ok(found)
    }

    fn paths(found: &Self::Found) -> Vec<FilePath> {
        found.iter().map(|(path, _)| path.clone()).collect()
    }

    fn keep(found: &mut Self::Found, known: &HashSet<FilePath>) {
        found.retain(|(path, _)| known.contains(path));
    }

    fn show(&self, found: Self::Found) -> Done {
        let limit = self.limit.unwrap_or(200).min(LIMIT);
        let shown = |(path, is_folder): (FilePath, bool)| if is_folder { format!("{path}/") } else { path.to_string() };
        let mut found: Vec<String> = found.into_iter().map(shown).collect();
        found.sort_unstable();
        let total = found.len();
        found.truncate(limit);
        let mut output = if total == 0 { "nothing matches".into() } else { found.join("\n") };
        if total > limit {
            output.push_str(&format!(
                "\n[{limit} of {total} paths; narrow the pattern or raise the limit to see the rest]"
            ));
        }
        let result = json!({ "paths": found, "total": total });
        Done { output, truncated: total > limit, result, ..Done::default() }
    }
}
