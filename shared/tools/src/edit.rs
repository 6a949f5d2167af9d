//! `edit`: search-and-replace blocks, all of them or none.

use crate::{
    call::{self, Answer, Call, Done, file_updated},
    caps,
    effects::{Declaration, Declare},
};
use domain::{Code, ConversionStatus, Error, FilePath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use workspace::{Change, Decoded, Expect};

pub(crate) const EDIT: &str = "Change a file by search-and-replace blocks, in order, all or none. Read the file first, and again when the \
    edit is refused because it has changed.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// The file.
    path: String,
    /// Each sees the result of the ones before.
    #[schemars(length(min = 1, max = 100))]
    edits: Vec<Block>,
    /// The hash that the edit is based on; the one that you read last by default.
    last_read_hash: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Block {
    /// In the file exactly once, character for character with its indentation, without the line numbers of read.
    #[schemars(length(min = 1))]
    old: String,
    /// Empty to delete.
    new: String,
    /// Whether to replace each occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Declare for Edit {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.writes("path", &self.path)
    }
}

pub(crate) async fn edit(call: &Call<'_>, args: Edit) -> Answer {
    let path = call::path("path", &args.path)?;
    if let Some(done) = call.applied().await? {
        return answer(call, done).await;
    }
    let content = call.workspace.read(&path, None).await?;
    let expect = call.expectation(&path, call::digest(args.last_read_hash.as_deref())?).await?;
    // Before the blocks are looked for: "not found" would be the wrong thing to say of a file that has changed.
    call.workspace.expect(&path, expect).await?;
    let decoded = Decoded::of(&content.bytes).ok_or_else(|| {
        Error::new(Code::Unprocessable, format!("{path} is a binary file")).hint("only text can be edited")
    })?;
    // read shows no ends of lines, so a model writes \n whatever the file has.
    let is_crlf = ends_lines_with_crlf(&decoded.text);
    let mut text = if is_crlf { decoded.text.replace("\r\n", "\n") } else { decoded.text.clone().into_owned() };
    // The agent has most likely read the Markdown, in which the text of the file is written in another way.
    let (conversion, count) = (content.info.conversion.as_ref(), args.edits.len());
    let is_read_as_markdown = conversion.is_some_and(|it| it.status == ConversionStatus::Done && it.markdown.is_some());
    for (position, block) in args.edits.into_iter().enumerate() {
        let block = if is_crlf { block.with_lf() } else { block };
        text = apply(&path, &text, &block).map_err(|error| {
            let error = match is_read_as_markdown {
                true if !text.contains(&block.old) => error.hint(
                    "read shows the Markdown of this document: read it with raw to see the text that edit changes",
                ),
                _ => error,
            };
            let number = position + 1;
            let which = if count == 1 { String::new() } else { format!("edit {number}: ") };
            Error { message: format!("{which}{}; nothing was changed", error.message), ..error }
                .detail("field", format!("edits.{position}.old"))
        })?;
    }
    if is_crlf {
        text = text.replace('\n', "\r\n");
    }
    // The content that the blocks were applied to must still be there.
    let expect = content.info.sha256.map_or(expect, Expect::Hash);
    let text = decoded.encode(&path, &content.bytes, text)?;
    let change = call.workspace.write(&path, text, expect, &call.writer()).await?;
    answer(call, change).await
}

/// Told from the versions alone, so that the call that runs again says the same.
async fn answer(call: &Call<'_>, change: Change) -> Answer {
    let diff = match change.v {
        0 | 1 => None,
        v => call.workspace.diff(change.file_id, v - 1, v).await?,
    };
    let hash = change.sha256.map(|digest| digest.to_string()).unwrap_or_default();
    let mut output = format!("edited {}: now version {}, hash {hash}", change.path, change.v);
    if let Some(diff) = &diff {
        output.push_str(&format!("\n{diff}"));
    }
    let result = json!({ "path": change.path, "file_id": change.file_id, "v": change.v, "hash": hash, "diff": diff });
    let (seen, events) = (vec![(change.path.clone(), change.sha256)], file_updated(&change, None));
    Ok(Done { output, result, seen, events, ..Done::default() })
}

impl Block {
    fn with_lf(self) -> Self {
        let Self { old, new, replace_all } = self;
        Self { old: old.replace("\r\n", "\n"), new: new.replace("\r\n", "\n"), replace_all }
    }
}

/// Whether each line of a text ends with `\r\n`. A text with both ends is edited as it is.
fn ends_lines_with_crlf(text: &str) -> bool {
    let lines = text.matches('\n').count();
    lines > 0 && lines == text.matches("\r\n").count()
}

fn apply(path: &FilePath, text: &str, block: &Block) -> Result<String, Error> {
    let Block { old, new, replace_all } = block;
    if old == new {
        return Err(Error::invalid("new", "the old and the new text are the same"));
    }
    let found: Vec<usize> = text.match_indices(old.as_str()).map(|(at, _)| at).collect();
    match found.as_slice() {
        [] => Err(not_found(path, text, old)),
        [_] => Ok(text.replacen(old.as_str(), new, 1)),
        _ if *replace_all => Ok(text.replace(old.as_str(), new)),
        many => {
            const SHOWN: usize = 10;
            let line = |at: &usize| (text.get(..*at).unwrap_or_default().matches('\n').count() + 1).to_string();
            let lines: Vec<String> = many.iter().take(SHOWN).map(line).collect();
            let more = if many.len() > SHOWN { ", …" } else { "" };
            let (count, lines) = (many.len(), lines.join(", "));
            let message = format!("the old text is in {path} {count} times, at lines {lines}{more}");
            Err(Error::new(Code::Unprocessable, message)
                .hint("add lines around it until it is unique, or set replace_all"))
        }
    }
}

/// The refusal when the text is not there, with the nearest that is.
fn not_found(path: &FilePath, text: &str, old: &str) -> Error {
    let error = Error::new(Code::Unprocessable, format!("the old text is not in {path}"));
    if text.contains("\r\n") && !old.contains("\r\n") && text.replace("\r\n", "\n").contains(old) {
        return error.hint("the file ends some of its lines with \\r\\n: write these ends in the old text, too");
    }
    match nearest(text, old) {
        Some((line, near, true)) => {
            error.hint(format!("with other white space it is at line {line}: {:?}", caps::line(&near, 400)))
        }
        Some((line, near, false)) => {
            error.hint(format!("the nearest text is at line {line}: {:?}", caps::line(&near, 400)))
        }
        None => error.hint("read the file again: nothing in it is similar"),
    }
}

/// The lines that are the most like `old`, their first line, and whether only white space differs.
fn nearest(text: &str, old: &str) -> Option<(usize, String, bool)> {
    /// So much is looked at; for a hint that is enough.
    const LOOK_AT: usize = 5000;
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.lines().map(squeeze).collect();
    let lines: Vec<&str> = text.lines().take(LOOK_AT).collect();
    let squeezed: Vec<String> = lines.iter().map(|line| squeeze(line)).collect();
    let shown = |from: usize| lines.iter().skip(from).take(wanted.len().min(5)).copied().collect::<Vec<_>>().join("\n");
    if let Some(from) = squeezed.windows(wanted.len().max(1)).position(|window| window == wanted.as_slice()) {
        return Some((from + 1, shown(from), true));
    }
    let first = wanted.iter().find(|line| !line.is_empty())?;
    let candidates: Vec<&str> = squeezed.iter().map(String::as_str).filter(|line| line.len() <= 500).collect();
    let near = *similar::get_close_matches(first.as_str(), &candidates, 1, 0.6).first()?;
    let from = squeezed.iter().position(|line| line == near)?;
    Some((from + 1, shown(from), false))
}
