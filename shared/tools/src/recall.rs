//! `search`: recall by words and by meaning, over the index of the workspace's texts.

use crate::{
    call::{Answer, Call, Done, path},
    caps::{self, MAX_BYTES},
    effects::{Declaration, Declare},
    find::modified,
    grep::{self, Grep},
};
use ::search::{Hit, HitKind, Request, Search};
use domain::{Code, Error, FilePath, Principal, Usage, text::counted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write as _};
use workspace::{FileKind, Info};

/// The name of the tool.
pub const NAME: &str = "search";
pub(crate) const SEARCH: &str = "Search the whole workspace by words, best matches first: files, documents and past conversations. Words \
    match in any form (parser finds parsing, parsers). Write \"a phrase\" for words in this order, begin* for a beginning, +word for a word that \
    must be there, -word for one that must not. Answers with paths, lines and snippets. For an exact pattern use grep.";

/// How many results there are without a limit.
const USUAL: usize = 10;

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Text,
    Regex,
    Semantic,
    Hybrid,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum KindArg {
    File,
    Document,
    Chat,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchArgs {
    /// The words to search for; with the mode regex, a regular expression.
    query: String,
    /// Words (text, the default), a regular expression for single lines (regex), the meaning (semantic), or words and meaning (hybrid).
    #[serde(default)]
    mode: Mode,
    /// The file or folder to search; the whole workspace by default.
    path: Option<String>,
    /// Only these kinds of files; all by default.
    #[schemars(length(max = 3))]
    kinds: Option<Vec<KindArg>>,
    /// Only versions by this author, as ls shows it, such as agent:builder.
    author: Option<String>,
    /// Only files that have this tag.
    tag: Option<String>,
    /// Only files that were written at or after this time, such as 2026-01-31T00:00:00Z.
    modified_after: Option<String>,
    /// Only files that were written before this time.
    modified_before: Option<String>,
    /// At most this many files; 10 by default.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
}

impl Declare for SearchArgs {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.searches("path", self.path.as_deref())
    }
}

pub(crate) async fn search(call: &Call<'_>, args: SearchArgs, search: &Search) -> Answer {
    let request = request(&args)?;
    let (found, mode) = match args.mode {
        Mode::Regex => (by_pattern(call, &request).await?, "regex"),
        Mode::Text => by_index(call, search, &request, ::search::Mode::Text).await?,
        Mode::Semantic => by_index(call, search, &request, ::search::Mode::Semantic).await?,
        Mode::Hybrid => by_index(call, search, &request, ::search::Mode::Hybrid).await?,
    };
    Ok(show(found, mode, request.limit))
}

fn request(args: &SearchArgs) -> Result<Request, Error> {
    let kind = |kind: &KindArg| match kind {
        KindArg::File => HitKind::File,
        KindArg::Document => HitKind::Document,
        KindArg::Chat => HitKind::Chat,
    };
    args.author.as_deref().map_or(Ok(()), Principal::check_author)?;
    let (since, until) = modified(args.modified_after.as_deref(), args.modified_before.as_deref())?;
    Ok(Request {
        query: args.query.clone(),
        path: args.path.as_deref().map_or(Ok(FilePath::root()), |text| path("path", text))?,
        kinds: args.kinds.iter().flatten().map(kind).collect(),
        author: args.author.clone(),
        tag: args.tag.clone(),
        since,
        until,
        limit: args.limit.unwrap_or(USUAL),
    })
}

/// Results as data, and as text for a model.
#[derive(Default)]
struct FoundFiles {
    results: Vec<(Value, String)>,
    total: usize,
    complete: bool,
    /// By meaning: how many passages wait for their vectors, the reason if words alone decided, and the tokens for the query.
    pending: u64,
    note: Option<String>,
    usage: Usage,
}

/// And how it was searched.
async fn by_index(
    call: &Call<'_>,
    search: &Search,
    request: &Request,
    mode: ::search::Mode,
) -> Result<(FoundFiles, &'static str), Error> {
    let answer = search.find(&call.workspace, request, mode).await?;
    let results = answer.results.iter().map(|hit| Ok((to_value(hit)?, hit_text(hit)))).collect::<Result<_, Error>>()?;
    let ::search::Answer { total, complete, pending, note, usage, .. } = answer;
    let mode = match answer.mode {
        ::search::Mode::Text => "text",
        ::search::Mode::Semantic => "semantic",
        ::search::Mode::Hybrid => "hybrid",
    };
    Ok((FoundFiles { results, total, complete, pending, note, usage }, mode))
}

fn to_value(hit: &Hit) -> Result<Value, Error> {
    serde_json::to_value(hit).map_err(|error| Error::new(Code::Internal, error.to_string()))
}

fn hit_text(hit: &Hit) -> String {
    let lines = hit.lines.map(|lines| format!(":{}-{}", lines.first, lines.last)).unwrap_or_default();
    let snippet: String = hit.snippet.iter().map(|part| part.text.as_str()).collect();
    let snippet = if hit.lines.is_some() { indented(&snippet) } else { String::new() };
    format!("{}{lines} (score {}; {})\n{snippet}", hit.path, hit.score.total, hit.why)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// The lines that a regular expression matches, in the form of results: all files are equally good, and in the order of their paths.
async fn by_pattern(call: &Call<'_>, request: &Request) -> Result<FoundFiles, Error> {
    /// How many lines are looked at, of which filters leave some.
    const LOOKED_AT: usize = 2000;
    let args = Grep::of(request.query.clone(), request.path.to_string(), LOOKED_AT);
    let tagged = match &request.tag {
        Some(tag) => Some(call.workspace.ids_tagged(tag).await?),
        None => None,
    };
    let done = grep::grep(call, args).await.map_err(of_query)?;
    let mut files: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for found in done.result.get("matches").and_then(Value::as_array).into_iter().flatten() {
        let of = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let line = found.get("line").and_then(Value::as_u64).unwrap_or_default();
        files.entry(of("path")).or_default().push((line, of("text")));
    }
    let (mut results, mut total) = (Vec::new(), 0);
    for (path, lines) in files {
        let info = match call.workspace.stat(&FilePath::parse(&path)?).await {
            Ok(info) => info,
            Err(error) if error.code == Code::NotFound => continue,
            Err(error) => return Err(error),
        };
        let shown = of_document(call, &info).await;
        let (shown, is_document) = shown.as_ref().map_or((&info, false), |document| (document, true));
        let kind = match (info.kind, is_document) {
            (FileKind::Projection, _) => HitKind::Chat,
            (_, true) => HitKind::Document,
            _ => HitKind::File,
        };
        if !request.kinds.is_empty() && !request.kinds.contains(&kind)
            || request.author.as_ref().is_some_and(|author| *author != shown.author)
            || tagged.as_ref().is_some_and(|tagged| !tagged.contains(&shown.file_id))
            || request.since.is_some_and(|since| shown.updated_at < since)
            || request.until.is_some_and(|until| shown.updated_at >= until)
        {
            continue;
        }
        total += 1;
        if results.len() < request.limit {
            results.push(of_lines(shown, kind, &lines));
        }
    }
    Ok(FoundFiles { results, total, complete: !done.truncated, ..FoundFiles::default() })
}

/// The refusal of a pattern in the words of this tool, where it is the query.
fn of_query(error: Error) -> Error {
    if error.details.get("field").and_then(Value::as_str) != Some("pattern") {
        return error;
    }
    error.detail("field", "query").hint("escape special characters with \\, or search for words with the mode text")
}

/// The document that a file is the Markdown of, where the caller may read it.
async fn of_document(call: &Call<'_>, info: &Info) -> Option<Info> {
    let document = call.workspace.by_id(info.document()?).await.ok()?;
    call.workspace.may_read(&document.path).then_some(document)
}

fn of_lines(info: &Info, kind: HitKind, lines: &[(u64, String)]) -> (Value, String) {
    let (first, text) = lines.first().cloned().unwrap_or_default();
    let why = match lines.len() {
        1 => "1 line matches".to_owned(),
        many => format!("{many} lines match"),
    };
    let result = json!({
        "path": info.path,
        "file_id": info.file_id,
        "v": info.v,
        "kind": kind,
        "author": info.author,
        "updated_at": info.updated_at,
        "lines": { "first": first, "last": first },
        "snippet": [{ "text": text, "mark": true }],
        "passages": lines.len(),
        "score": { "total": 0.0, "text": 0.0, "name": 0.0 },
        "why": why,
    });
    (result, format!("{}:{first} ({why})\n{}", info.path, indented(&text)))
}

fn show(found: FoundFiles, mode: &str, limit: usize) -> Done {
    let (mut output, mut results) = (String::new(), Vec::new());
    for (result, text) in found.results {
        if output.len() + text.len() <= MAX_BYTES {
            output.push_str(&text);
        }
        results.push(result);
    }
    let (shown, total) = (results.len(), found.total);
    let rest = match (shown, total > shown) {
        (0, _) => "nothing matches".to_owned(),
        (_, false) => format!("[{}]", counted(total, "file")),
        (_, true) => format!("[{shown} of {total} files; add words or a path, or raise the limit of {limit}]"),
    };
    output.push_str(&rest);
    if found.pending > 0 {
        let _ = write!(output, "\n[not found by their meaning yet: {}]", counted(found.pending, "passage"));
    } else if !found.complete {
        output.push_str("\n[not everything was searched: search again, or narrow the path, to find more]");
    }
    if let Some(note) = &found.note {
        let _ = write!(output, "\n[{note}]");
    }
    let mut result = json!({
        "mode": mode, "results": results, "total": total, "complete": found.complete, "pending": found.pending,
    });
    if let Some(note) = found.note {
        result["note"] = note.into();
    }
    if !found.usage.is_none() {
        result["usage"] = json!(found.usage);
    }
    let (output, cut) = caps::cap(output);
    Done { output, truncated: cut || total > shown || !found.complete, result, ..Done::default() }
}
