//! `find`: files by their metadata.

use crate::{
    call::{self, Answer, Call, Done},
    disk::{Pattern, walking},
    effects::{Declaration, Declare},
    list::{row, to_value},
};
use domain::{Error, FilePath, Timestamp, text::counted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use workspace::{FileKind, Info, ReadableTree};

pub(crate) const FIND: &str = "Find files and folders by name, type, tag, size and time of the last change. All conditions must \
    hold. Sorted by path. To search what files say, use grep.";

/// How much of a tree is looked at.
const LOOK_AT: usize = 100_000;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Type {
    File,
    Folder,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Find {
    /// The folder to search; the whole workspace by default.
    path: Option<String>,
    /// A glob for the name, such as *.md, or for the path below the folder when it has a slash.
    name: Option<String>,
    /// Only files, or only folders.
    #[serde(rename = "type")]
    kind: Option<Type>,
    /// At least this many bytes.
    min_size: Option<u64>,
    /// At most this many bytes.
    max_size: Option<u64>,
    /// Changed at or after this time, such as 2026-01-31T00:00:00Z.
    modified_after: Option<String>,
    /// Changed before this time.
    modified_before: Option<String>,
    /// Only those with this tag.
    tag: Option<String>,
    /// At most this many; 200 by default.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

impl Declare for Find {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.searches("path", self.path.as_deref())
    }
}

pub(crate) async fn find(call: &Call<'_>, args: Find) -> Answer {
    let path = args.path.as_deref().map_or(Ok(FilePath::root()), |path| call::path("path", path))?;
    let name = args.name.as_deref().map(|name| Pattern::of_argument("name", name)).transpose()?;
    let (after, before) = modified(args.modified_after.as_deref(), args.modified_before.as_deref())?;
    let tagged = match &args.tag {
        Some(tag) => Some(call.workspace.ids_tagged(tag).await?),
        None => None,
    };
    let ReadableTree { entries: infos, is_whole, left_out } = call.workspace.list_readable(&path, LOOK_AT).await?;
    // Up to 100,000 paths are compared with a pattern and sorted: no other request waits for it.
    walking(move || {
        let holds = |info: &Info| {
            name.as_ref().is_none_or(|name| name.matches_entry(&path, &info.path, info.kind == FileKind::Folder))
                && tagged.as_ref().is_none_or(|tagged| tagged.contains(&info.file_id))
                && args.kind.is_none_or(|kind| matches!(kind, Type::Folder) == (info.kind == FileKind::Folder))
                && args.min_size.is_none_or(|min| info.kind != FileKind::Folder && info.size >= min)
                && args.max_size.is_none_or(|max| info.kind != FileKind::Folder && info.size <= max)
                && after.is_none_or(|after| info.updated_at >= after)
                && before.is_none_or(|before| info.updated_at < before)
        };
        let mut found: Vec<Info> = infos.into_iter().filter(holds).collect();
        found.sort_by(|one, other| one.path.cmp(&other.path));
        show(found, (is_whole, left_out), args.limit.unwrap_or(200))
    })
    .await?
}

/// The answer; of the tree, whether it was looked at to its end, and how many of its entries cannot be read.
fn show(mut found: Vec<Info>, (is_whole, left_out): (bool, usize), limit: usize) -> Answer {
    let total = found.len();
    found.truncate(limit);
    let lines = found.iter().map(|info| format!("{}{}", info.path, row(info).trim_start_matches(&*info.name)));
    let mut output = if total == 0 { "nothing matches".into() } else { lines.collect::<Vec<_>>().join("\n") };
    if total > limit {
        output.push_str(&format!("\n[{limit} of {total}; add conditions or raise the limit to see the rest]"));
    }
    if !is_whole {
        output.push_str(&format!("\n[only the first {LOOK_AT} files and folders were looked at; name a folder]"));
    }
    if left_out > 0 {
        let entries = counted(left_out, "entry");
        output.push_str(&format!("\n[{entries} left out, as the index of the workspace is damaged there]"));
    }
    let is_complete = is_whole && left_out == 0;
    let result = json!({ "entries": to_value(&found)?, "total": total, "complete": is_complete });
    Ok(Done { output, truncated: total > limit || !is_complete, result, ..Done::default() })
}

/// The arguments `modified_after` and `modified_before`: the first moment of a range, and the first one behind it.
///
/// # Errors
/// `INVALID_ARGUMENT` for a text that is no time, and for a range in which nothing can be.
pub(crate) fn modified(
    after: Option<&str>,
    before: Option<&str>,
) -> Result<(Option<Timestamp>, Option<Timestamp>), Error> {
    let (from, to) = (time("modified_after", after)?, time("modified_before", before)?);
    match (from, to) {
        (Some(from), Some(to)) if from >= to => {
            Err(Error::invalid("modified_before", format!("nothing is modified after {from} and before {to}"))
                .hint("modified_before is later than modified_after"))
        }
        range => Ok(range),
    }
}

fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Error> {
    let parse = |text: &str| {
        text.parse().map_err(|_| {
            Error::invalid(field, format!("{text:?} is not a time"))
                .hint("write it with its date, hour and zone, like 2026-01-31T00:00:00Z")
        })
    };
    text.map(parse).transpose()
}
