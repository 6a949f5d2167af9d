//! `read`, `cat` and `read_many`: contents.

use crate::{
    call::{self, Answer, Call, Done},
    caps::{self, MAX_BYTES, MAX_LINE, MAX_LINES},
};
use domain::{Code, Error, FilePath, Sha256};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) const READ: &str = "Read a file with line numbers. Long files come in parts: go on with the offset that the end of \
    the answer names. The answer ends with the hash of the whole file. Read a file before you edit or overwrite it.";
pub(crate) const CAT: &str = "Show several files one after the other, whole and without line numbers.";
pub(crate) const READ_MANY: &str = "Read parts of several files at once, with line numbers. A file that cannot be read does not \
    keep the others from being read.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// The file, such as /projects/app/main.rs.
    path: String,
    /// The first line, from 1; 1 by default.
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// At most this many lines; 2000 by default.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cat {
    /// The files, in order.
    #[schemars(length(min = 1, max = 20))]
    paths: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadMany {
    /// What to read, in order.
    #[schemars(length(min = 1, max = 20))]
    files: Vec<Read>,
}

/// A part of a file, ready to be shown.
struct Part {
    path: FilePath,
    digest: Option<Sha256>,
    text: String,
    truncated: bool,
    result: Value,
}

pub(crate) async fn read(call: &Call<'_>, args: Read) -> Answer {
    let Part { path, digest, text, truncated, result } =
        part(call, &args, Room { bytes: MAX_BYTES, lines: MAX_LINES }).await?;
    Ok(Done { output: text, truncated, result, seen: vec![(path, digest)], ..Done::default() })
}

/// How much of an answer a file may fill.
#[derive(Clone, Copy)]
struct Room {
    bytes: usize,
    lines: usize,
}

impl Room {
    /// A fair share of what is left beside `output` for each of `files` more, their headings and ends aside.
    fn share(output: &str, files: usize) -> Self {
        const ASIDE: usize = 4;
        let files = files.max(1);
        let lines = MAX_LINES.saturating_sub(output.matches('\n').count()) / files;
        let bytes = MAX_BYTES.saturating_sub(output.len()) / files;
        Self { bytes, lines: lines.saturating_sub(ASIDE).max(1) }
    }
}

/// A part that fits.
async fn part(call: &Call<'_>, args: &Read, room: Room) -> Result<Part, Error> {
    let path = call::path("path", &args.path)?;
    let content = call.workspace.read(&path, None).await?;
    let (info, bytes) = (content.info, content.bytes);
    let digest = info.sha256;
    let hash = digest.map(|digest| digest.to_string()).unwrap_or_default();
    let about = json!({ "path": path, "file_id": info.file_id, "v": info.v, "size": info.size, "hash": hash });
    let Some(content) = as_text(&bytes) else {
        let text = format!("[{path} is a binary file of {} bytes; hash {hash}]", info.size);
        return Ok(Part { path, digest, text, truncated: false, result: with(about, json!({ "binary": true })) });
    };
    let lines: Vec<&str> = content.lines().collect();
    let (total, offset) = (lines.len(), args.offset.unwrap_or(1));
    if offset > total.max(1) {
        let message = format!("{path} has {total} lines; there is no line {offset}");
        return Err(Error::new(Code::Unprocessable, message).detail("field", "offset"));
    }
    let (mut text, mut next) = (String::new(), offset);
    let wanted = lines.iter().skip(offset - 1).take(args.limit.unwrap_or(room.lines).min(room.lines));
    for line in wanted {
        let row = format!("{next:>6}\t{}\n", caps::line(line, MAX_LINE));
        if text.len() + row.len() > room.bytes && next > offset {
            break;
        }
        text.push_str(&row);
        next += 1;
    }
    let truncated = next <= total;
    let part: String = lines.get(offset - 1..next - 1).unwrap_or_default().join("\n");
    text.push_str(&match (total, truncated) {
        (0, _) => format!("[{path} is empty; hash {hash}]"),
        (_, false) if offset == 1 => format!("[{total} lines, all shown; hash {hash}]"),
        (_, false) => format!("[lines {offset}-{} of {total}, the end; hash {hash}]", next - 1),
        (_, true) => format!("[lines {offset}-{} of {total}; go on with offset {next}; hash {hash}]", next - 1),
    });
    let result = with(about, json!({ "content": part, "from_line": offset, "to_line": next - 1, "lines": total }));
    Ok(Part { path, digest, text, truncated, result })
}

pub(crate) async fn cat(call: &Call<'_>, args: Cat) -> Answer {
    let mut done = Done::default();
    let mut results = Vec::new();
    for (position, text) in args.paths.iter().enumerate() {
        let path = call::path("paths", text)?;
        let content = call.workspace.read(&path, None).await?;
        let room = Room::share(&done.output, args.paths.len() - position);
        let fits = |text: &str| {
            let lines = text.match_indices('\n').nth(room.lines).map_or(text.len(), |(at, _)| at + 1);
            text.floor_char_boundary(room.bytes.min(lines))
        };
        let shown = match as_text(&content.bytes) {
            None => format!("[a binary file of {} bytes]", content.info.size),
            Some(text) if fits(text) == text.len() => text.into(),
            Some(text) => {
                done.truncated = true;
                let part = text.get(..fits(text)).unwrap_or_default();
                let line = part.lines().count().max(1);
                let left = text.len() - part.len();
                format!(
                    "{}\n[cut here: {left} bytes more; read {path} from offset {line}]",
                    part.trim_end_matches('\n')
                )
            }
        };
        let gap = if done.output.is_empty() || done.output.ends_with('\n') { "" } else { "\n" };
        done.output.push_str(&format!("{gap}==> {path} <==\n{shown}"));
        results.push(json!({ "path": path, "v": content.info.v, "hash": content.info.sha256, "content": shown }));
        done.seen.push((path, content.info.sha256));
    }
    done.result = json!({ "files": results });
    Ok(done)
}

pub(crate) async fn read_many(call: &Call<'_>, args: ReadMany) -> Answer {
    let mut done = Done::default();
    let (mut results, mut failed) = (Vec::new(), 0);
    for (position, file) in args.files.iter().enumerate() {
        let room = Room::share(&done.output, args.files.len() - position);
        let text = match part(call, file, room).await {
            Ok(part) => {
                done.truncated |= part.truncated;
                results.push(part.result);
                done.seen.push((part.path, part.digest));
                part.text
            }
            Err(error) => {
                failed += 1;
                results.push(json!({ "path": file.path, "error": error }));
                format!("[{error}]")
            }
        };
        let gap = if done.output.is_empty() { "" } else { "\n\n" };
        done.output.push_str(&format!("{gap}==> {} <==\n{text}", file.path));
    }
    if failed == args.files.len() {
        let message = format!("none of the {failed} files could be read:\n{}", done.output);
        return Err(Error::new(Code::NotFound, message));
    }
    done.result = json!({ "files": results });
    Ok(done)
}

/// A content as text; none when it is binary.
pub(crate) fn as_text(bytes: &[u8]) -> Option<&str> {
    const LOOK_AT: usize = 8 * 1024;
    if bytes.iter().take(LOOK_AT).any(|byte| *byte == 0) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

fn with(mut about: Value, more: Value) -> Value {
    if let (Value::Object(about), Value::Object(more)) = (&mut about, more) {
        about.extend(more);
    }
    about
}
