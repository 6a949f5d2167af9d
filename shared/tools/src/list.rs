//! `ls` and `file_info`: the entries of a folder, and the metadata of a file.

use crate::{
    call::{self, Answer, Call, Done},
    effects::{Declaration, Declare},
};
use domain::{Code, Conversion, ConversionStatus, Error, FileId, FilePath, IdError, Timestamp, text::counted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use workspace::{FileKind, Info};

pub(crate) const LS: &str = "List a folder, in pages: name, size in bytes, version, author and time of each entry.";
pub(crate) const FILE_INFO: &str =
    "Show the metadata of a file or folder, by its path or its file_id, and its newest versions.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ls {
    /// The folder; the root by default.
    path: Option<String>,
    /// 200 by default.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// From the answer with the page before.
    cursor: Option<String>,
    /// Whether to list the Markdown that a converter keeps beside documents, too.
    hidden: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileInfo {
    /// The file or folder; with a file_id, the folder that it has to be in.
    path: Option<String>,
    /// Its identity, which it keeps when it moves.
    file_id: Option<String>,
}

impl Declare for Ls {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.searches("path", self.path.as_deref())
    }
}

impl Declare for FileInfo {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        match (&self.path, &self.file_id) {
            (Some(path), _) => into.reads("path", path),
            // Its path is not known yet.
            (None, Some(_)) => into.searches("path", None),
            (None, None) => Err(nameless()),
        }
    }
}

pub(crate) async fn ls(call: &Call<'_>, args: Ls) -> Answer {
    let path = match &args.path {
        Some(path) => call::path("path", path)?,
        None => FilePath::root(),
    };
    let is_later_page = args.cursor.is_some();
    let mut listing = call.workspace.ls(&path, args.limit.unwrap_or(200), args.cursor).await?;
    if !args.hidden.unwrap_or(false) {
        listing.entries.retain(|entry| entry.document().is_none());
    }
    let mut output: String = listing.entries.iter().map(row).collect::<Vec<_>>().join("\n");
    if output.is_empty() {
        output = match &listing.next_cursor {
            // All entries of a page can be hidden.
            Some(_) => "nothing to show on this page".into(),
            None if is_later_page => "nothing more".into(),
            None => format!("{path} is empty"),
        };
    }
    if let Some(cursor) = &listing.next_cursor {
        output.push_str(&format!("\n[more: call ls again with cursor {cursor:?}]"));
    }
    let truncated = listing.next_cursor.is_some();
    Ok(Done { output, truncated, result: to_value(&listing)?, ..Done::default() })
}

/// One thing of a list.
pub(crate) fn row(info: &Info) -> String {
    match info.kind {
        FileKind::Folder => format!("{}/", info.name),
        FileKind::File => {
            let conversion = info.conversion.as_ref().map(conversion).unwrap_or_default();
            let (size, v, author) = (info.size, info.v, &info.author);
            let size = counted(size, "byte");
            format!("{}  {size}  v{v}  {author}  {}{conversion}", info.name, day(info.updated_at))
        }
        FileKind::Projection => format!("{}  {}  kept by its chat", info.name, counted(info.size, "byte")),
    }
}

/// How far the conversion of a document is; nothing for a text.
fn conversion(conversion: &Conversion) -> String {
    match (conversion.status, conversion.reason.as_deref()) {
        (ConversionStatus::Done, _) => "  as Markdown".into(),
        (ConversionStatus::Queued | ConversionStatus::Running, _) => "  is being converted".into(),
        (ConversionStatus::Skipped, _) => String::new(),
        (ConversionStatus::Failed, reason) => format!("  not converted: {}", reason.unwrap_or("failed")),
    }
}

fn day(at: Timestamp) -> String {
    at.to_string().chars().take(16).collect::<String>().replace('T', " ")
}

pub(crate) async fn file_info(call: &Call<'_>, args: FileInfo) -> Answer {
    const VERSIONS: usize = 10;
    let info = match (&args.path, &args.file_id) {
        (within, Some(id)) => by_id(call, id, within.as_deref()).await?,
        (Some(path), None) => call.workspace.stat(&call::path("path", path)?).await?,
        (None, None) => return Err(nameless()),
    };
    let path = &info.path;
    let kind = match info.kind {
        FileKind::File => "file",
        FileKind::Folder => "folder",
        FileKind::Projection => "file kept by its chat",
    };
    let mut output = format!("path: {path}\nkind: {kind}\nid: {}\ncreated: {}", info.file_id, info.created_at);
    let mut versions = Vec::new();
    if info.kind != FileKind::Folder {
        output.push_str(&format!("\nsize: {}", counted(info.size, "byte")));
    }
    if let Some(digest) = info.sha256 {
        versions = call.workspace.versions(info.file_id, VERSIONS, None).await?.versions;
        output.push_str(&format!("\nhash: {digest}\nversions: {}", info.v));
        for version in &versions {
            let size = counted(version.size, "byte");
            output.push_str(&format!("\n  v{}  {size}  {}  {}", version.v, version.author, version.at));
        }
    }
    let relations = call.workspace.relations(info.file_id).await?;
    if !relations.tags.is_empty() {
        output.push_str(&format!("\ntags: {}", relations.tags.join(", ")));
    }
    if !relations.links.is_empty() || !relations.backlinks.is_empty() {
        let (from, to) = (relations.links.len(), relations.backlinks.len());
        output.push_str(&format!("\nlinks: {from} from it, {to} to it; related shows them"));
    }
    let counts = json!({ "from": relations.links.len(), "to": relations.backlinks.len() });
    let result = json!({ "info": info, "versions": versions, "tags": relations.tags, "links": counts });
    Ok(Done { output, result, ..Done::default() })
}

/// The file or folder with an identity, which has to be in this folder. One that is elsewhere is as one that is not there.
async fn by_id(call: &Call<'_>, id: &str, within: Option<&str>) -> Result<Info, Error> {
    let within = within.map_or(Ok(FilePath::root()), |path| call::path("path", path))?;
    let id: FileId = id.parse().map_err(|error: IdError| {
        Error::invalid("file_id", error.to_string()).hint("take file_id of a listing or of a search")
    })?;
    match call.workspace.by_id(id).await {
        Ok(info) if info.path.is_within(&within) => Ok(info),
        Ok(_) => Err(Error::not_found("file", id)),
        // That it is in the trash tells of a place, too.
        Err(error) if error.code == Code::NotFound && !within.is_root() => Err(Error::not_found("file", id)),
        Err(error) => Err(error),
    }
}

fn nameless() -> Error {
    Error::invalid("path", "no file is named").hint("give its path or its file_id")
}

pub(crate) fn to_value(value: &impl serde::Serialize) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| Error::new(Code::Internal, error.to_string()))
}
