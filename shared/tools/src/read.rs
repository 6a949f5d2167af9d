//! `read`, `cat` and `read_many`: contents.

use crate::{
    call::{self, Answer, Call, Done},
    caps::{self, MAX_BYTES, MAX_LINE, MAX_LINES},
    effects::{Declaration, Declare},
    media::MediaRef,
};
use domain::{Code, Conversion, ConversionStatus, Error, FilePath, Principal, Sha256, text::counted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use workspace::{Action, Content, Decoded, FileKind, Info, media_type};

pub(crate) const READ: &str = "Read a file with line numbers; the end of the answer names the offset or from_byte to go on with, and the \
    hash of the file. Read a file before you change it. A document, such as a PDF or a sheet, is read as Markdown.";
pub(crate) const CAT: &str = "Show several files one after the other, whole and without line numbers.";
pub(crate) const READ_MANY: &str = "Read parts of several files at once, with line numbers. A file that cannot be read does not \
    keep the others from being read.";

/// The most bytes of files that a node of a flow gets from one call. With its quotes it fits into the largest output of a node.
const FILE_BYTES: usize = 160 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// The file.
    path: String,
    /// The first line, from 1.
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// Lines; 2000 by default.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<usize>,
    /// Instead of lines: the text from this byte on, from 0.
    from_byte: Option<usize>,
    /// Of a document: the file itself instead of its Markdown, such as a CSV file to edit.
    raw: Option<bool>,
    /// An earlier version, as file_info lists them; the current one by default.
    #[schemars(range(min = 1))]
    v: Option<u64>,
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
    /// The files to read, in order.
    #[schemars(length(min = 1, max = 20))]
    files: Vec<Read>,
}

/// A part of a file, ready to be shown.
struct Part {
    path: FilePath,
    digest: Option<Sha256>,
    /// Whether it is of an earlier version: the caller has not seen the current content then.
    is_earlier: bool,
    text: String,
    truncated: bool,
    result: Value,
}

impl Declare for Read {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.reads("path", &self.path)
    }
}

impl Declare for Cat {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        self.paths.iter().try_for_each(|path| into.reads("paths", path))
    }
}

impl Declare for ReadMany {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        self.files.iter().try_for_each(|file| into.reads("files", &file.path))
    }
}

pub(crate) async fn read(call: &Call<'_>, args: Read) -> Answer {
    let part = part(call, &args, Room { bytes: MAX_BYTES, lines: MAX_LINES }).await?;
    let seen = part.seen().into_iter().collect();
    Ok(Done { output: part.text, truncated: part.truncated, result: part.result, seen, ..Done::default() })
}

impl Part {
    /// The current content that the caller has seen.
    fn seen(&self) -> Option<(FilePath, Option<Sha256>)> {
        (!self.is_earlier).then(|| (self.path.clone(), self.digest))
    }
}

/// How much of an answer a file may fill.
#[derive(Clone, Copy)]
struct Room {
    bytes: usize,
    lines: usize,
}

impl Room {
    /// A fair share of the room left beside `output` for each of `files` more, without their headings and ends.
    fn share(output: &str, files: usize) -> Self {
        const ASIDE: usize = 4;
        let files = files.max(1);
        let lines = MAX_LINES.saturating_sub(output.matches('\n').count()) / files;
        let bytes = MAX_BYTES.saturating_sub(output.len()) / files;
        Self { bytes, lines: lines.saturating_sub(ASIDE).max(1) }
    }
}

/// A line of a text, and its offset.
struct Line<'a> {
    at: usize,
    text: &'a str,
}

fn lines(content: &str) -> Vec<Line<'_>> {
    let mut at = 0;
    let line = |text: &'_ str| {
        let begin = at;
        at += text.len();
        (begin, text.len())
    };
    let places: Vec<(usize, usize)> = content.split_inclusive('\n').map(line).collect();
    let line = |(at, len): (usize, usize)| Line { at, text: content.get(at..at + len).unwrap_or_default() };
    places.into_iter().map(line).collect()
}

/// A part that fits.
async fn part(call: &Call<'_>, args: &Read, room: Room) -> Result<Part, Error> {
    let path = call::path("path", &args.path)?;
    if args.from_byte.is_some() && (args.offset.is_some() || args.limit.is_some()) {
        return Err(Error::invalid("from_byte", "from_byte counts bytes, and offset and limit count lines")
            .hint("give either from_byte or lines"));
    }
    let (content, current) = match args.v {
        Some(v) => version(call, &path, v).await?,
        None => match call.workspace.read(&path, None).await {
            Err(error) if error.code == Code::PayloadTooLarge => return large(call, path, args, room).await,
            content => (content?, None),
        },
    };
    let is_earlier = current.is_some();
    let (info, mut bytes) = (content.info, content.bytes);
    let digest = info.sha256;
    let hash = digest.map(|digest| digest.to_string()).unwrap_or_default();
    // A model that can sees or hears the file beside its words; of a PDF with Markdown it has the words alone.
    let media = media_type(&bytes).filter(|_| !is_program(call));
    let reference = media.map(|media_type| {
        let (file, v, size) = (info.file_id, info.v, info.size);
        MediaRef { path: path.to_string(), media_type, file, v, size }.tag()
    });
    let mut about = json!({ "path": path, "file_id": info.file_id, "v": info.v, "size": info.size, "hash": hash });
    if !args.raw.unwrap_or(false)
        && let Some(markdown) = call.workspace.markdown_of(&info).await?
    {
        about["markdown"] = json!(markdown.info.path);
        bytes = markdown.bytes;
    }
    let Some(decoded) = Decoded::of(&bytes) else {
        let why = info.conversion.as_ref().map(unconverted).unwrap_or_default();
        let size = counted(info.size, "byte");
        let mut text = format!("[{path} is a binary file of {size}{why}; hash {hash}]");
        if let Some(reference) = reference {
            text.push_str(&format!("\n{reference}"));
        }
        if let Some(current) = current {
            text.push_str(&earlier(&info, current));
        }
        let result = with(about, json!({ "binary": true }));
        return Ok(Part { path, digest, is_earlier, text, truncated: false, result });
    };
    let content = &*decoded.text;
    if let Some(encoding) = decoded.encoding() {
        about["encoding"] = json!(encoding);
    }
    let (text, truncated, more) = match (args.from_byte, is_program(call)) {
        (Some(from), program) => {
            let most = if program { FILE_BYTES } else { room.bytes };
            from_byte(&path, content, from, most, &hash)?
        }
        (None, true) => for_program(&path, content, args)?,
        (None, false) => numbered(&path, content, args, room, &hash)?,
    };
    // A node gets the data; the text for a model stays short, because a node does not read it.
    let mut text = if is_program(call) { format!("[{path}, version {}; hash {hash}]", info.v) } else { text };
    if let Some(reference) = reference.filter(|_| media != Some("application/pdf")) {
        text.push_str(&format!("\n{reference}"));
    }
    if let Some(encoding) = decoded.encoding() {
        text.push_str(&format!("\n[the file is in {encoding}; edit keeps that, and write makes it UTF-8]"));
    }
    if let Some(current) = current {
        text.push_str(&earlier(&info, current));
    }
    Ok(Part { path, digest, is_earlier, text, truncated, result: with(about, more) })
}

/// The note about an earlier version.
fn earlier(info: &Info, current: u64) -> String {
    let Info { v, author, updated_at, .. } = info;
    format!("\n[this is version {v}, by {author} at {updated_at}; version {current} is current]")
}

/// A version of a file with its content, and the number of the current one if that is another. The conversion of a document is of the current version
/// alone.
async fn version(call: &Call<'_>, path: &FilePath, v: u64) -> Result<(Content, Option<u64>), Error> {
    let now = call.workspace.stat(path).await?;
    if now.kind != FileKind::File {
        return Err(Error::new(Code::Unprocessable, format!("{path} has no versions")).hint("read it without v"));
    }
    call.workspace.demand(Action::Read, path)?;
    let (version, bytes) = call.workspace.version(now.file_id, v).await.map_err(|error| match error.code {
        Code::NotFound => {
            Error::new(Code::NotFound, format!("{path} has no version {v}; version {} is current", now.v))
                .detail("field", "v")
                .hint("file_info lists the versions")
        }
        Code::PayloadTooLarge => {
            error.hint("only the current version of such a large file is read in parts: leave v out")
        }
        _ => error,
    })?;
    let current = (v != now.v).then_some(now.v);
    let conversion = if current.is_none() { now.conversion.clone() } else { None };
    let (sha256, size, author) = (Some(version.sha256), version.size, version.author);
    let info = Info { v, sha256, size, author, updated_at: version.at, conversion, ..now };
    Ok((Content { info, bytes }, current))
}

/// Why a document has no Markdown, as the end of a sentence about it.
pub fn unconverted(conversion: &Conversion) -> String {
    match (conversion.status, &conversion.message) {
        (ConversionStatus::Queued | ConversionStatus::Running, _) => {
            "; it is being converted to Markdown: read it again in a moment".into()
        }
        (ConversionStatus::Done, _) | (_, None) => "; its Markdown is gone".into(),
        (ConversionStatus::Failed | ConversionStatus::Skipped, Some(message)) => {
            format!("; there is no Markdown of it: {message}")
        }
    }
}

/// A part of a file that nothing reads whole: by bytes only, since to count its lines is to read it.
async fn large(call: &Call<'_>, path: FilePath, args: &Read, room: Room) -> Result<Part, Error> {
    let info = call.workspace.stat(&path).await?;
    let (digest, size) = (info.sha256, info.size);
    let hash = digest.map(|digest| digest.to_string()).unwrap_or_default();
    let about =
        json!({ "path": path, "file_id": info.file_id, "v": info.v, "size": size, "hash": hash, "large": true });
    let Some(from) = args.from_byte else {
        let text = format!(
            "[{path} has {size} bytes, too many to be read by lines; hash {hash}. Read a part of it with from_byte, or by a \
             command, such as: head -c 4000 FILE, or tail -n 50 FILE]"
        );
        return Ok(Part { path, digest, is_earlier: false, text, truncated: true, result: about });
    };
    let most = if is_program(call) { FILE_BYTES } else { room.bytes };
    let (from, most) = (from as u64, most as u64);
    demand_byte(&path, from, size)?;
    let bytes = call.workspace.read(&path, Some(from..from.saturating_add(most))).await?.bytes;
    let end = from + bytes.len() as u64;
    // A part may begin and end in the middle of a character.
    let part = String::from_utf8_lossy(&bytes);
    let goes_on = if end < size { format!("; go on with from_byte {end}") } else { ", the end".into() };
    let text = format!("{part}\n[bytes {from}-{end} of {size}{goes_on}; hash {hash}]");
    let more = json!({ "content": part, "from_byte": from, "to_byte": end, "bytes": size });
    Ok(Part { path, digest, is_earlier: false, text, truncated: end < size, result: with(about, more) })
}

/// Whether a node of a flow calls: it reads the data of a tool, and a cut in it would go unnoticed.
fn is_program(call: &Call<'_>) -> bool {
    matches!(call.by, Principal::Task { .. })
}

type ShownText = (String, bool, Value);

/// The lines that fit, with their numbers.
fn numbered(path: &FilePath, content: &str, args: &Read, room: Room, hash: &str) -> Result<ShownText, Error> {
    let lines = lines(content);
    let (total, offset) = (lines.len(), first_line(path, lines.len(), args)?);
    let (mut text, mut next) = (String::new(), offset);
    // The line to continue from if the first line is too long to be shown whole, and the number of such lines.
    let (mut goes_on, mut long) = (None, 0);
    let wanted = lines.iter().skip(offset - 1).take(args.limit.unwrap_or(room.lines).min(room.lines));
    for line in wanted {
        let shown = line.text.trim_end_matches(['\n', '\r']);
        let row = format!("{next:>6}\t{}\n", caps::line(shown, MAX_LINE));
        if text.len() + row.len() > room.bytes && next > offset {
            break;
        }
        if shown.len() > MAX_LINE {
            goes_on.get_or_insert((next, line.at + shown.floor_char_boundary(MAX_LINE)));
            long += 1;
        }
        text.push_str(&row);
        next += 1;
    }
    text.push_str(&match (total, next <= total) {
        (0, _) => format!("[{path} is empty; hash {hash}]"),
        (_, false) if offset == 1 && long == 0 => format!("[{}, all shown; hash {hash}]", counted(total, "line")),
        (_, false) => format!("[lines {offset}-{} of {total}, the end; hash {hash}]", next - 1),
        (_, true) => format!("[lines {offset}-{} of {total}; go on with offset {next}; hash {hash}]", next - 1),
    });
    if let Some((line, byte)) = goes_on {
        let others = match long {
            0 | 1 => String::new(),
            2 => ", and 1 more line does".to_owned(),
            _ => format!(", and {} more lines do", long - 1),
        };
        text.push_str(&format!("\n[line {line} goes on{others}: read it with from_byte {byte}]"));
    }
    let truncated = next <= total || goes_on.is_some();
    let part = between(content, &lines, offset, next);
    Ok((text, truncated, json!({ "content": part, "from_line": offset, "to_line": next - 1, "lines": total })))
}

/// Refuses a part that begins behind the end of a file.
fn demand_byte(path: &FilePath, from: u64, total: u64) -> Result<(), Error> {
    if from <= total {
        return Ok(());
    }
    let message = format!("{path} has {}; there is no byte {from}", counted(total, "byte"));
    Err(Error::new(Code::Unprocessable, message).detail("field", "from_byte"))
}

/// The text from a byte on, as it is.
fn from_byte(path: &FilePath, content: &str, from: usize, most: usize, hash: &str) -> Result<ShownText, Error> {
    let total = content.len();
    demand_byte(path, from as u64, total as u64)?;
    let from = content.floor_char_boundary(from);
    let end = content.floor_char_boundary(from.saturating_add(most));
    let part = content.get(from..end).unwrap_or_default();
    let gap = if part.is_empty() || part.ends_with('\n') { "" } else { "\n" };
    let text = match end < total {
        true => format!("{part}{gap}[bytes {from}-{end} of {total}; go on with from_byte {end}; hash {hash}]"),
        false => format!("{part}{gap}[bytes {from}-{end} of {total}, the end; hash {hash}]"),
    };
    Ok((text, end < total, json!({ "content": part, "from_byte": from, "to_byte": end, "bytes": total })))
}

/// The whole range that was asked for, byte for byte. A node that went on with a part of a file would give a wrong result without notice, so a
/// text that is too long is refused.
fn for_program(path: &FilePath, content: &str, args: &Read) -> Result<ShownText, Error> {
    let lines = lines(content);
    let (total, offset) = (lines.len(), first_line(path, lines.len(), args)?);
    let next = args.limit.map_or(total + 1, |limit| offset.saturating_add(limit)).min(total + 1);
    let part = between(content, &lines, offset, next);
    check_fits(path, part.len())?;
    let (truncated, to) = (offset > 1 || next <= total, next.max(offset) - 1);
    let more = json!({
        "content": part, "from_line": offset, "to_line": to, "lines": total, "truncated": truncated,
    });
    Ok((String::new(), truncated, more))
}

fn check_fits(path: &FilePath, bytes: usize) -> Result<(), Error> {
    if bytes <= FILE_BYTES {
        return Ok(());
    }
    let message = format!("{path} gives {bytes} bytes; a node of a flow is given {FILE_BYTES} at most at once");
    Err(Error::new(Code::PayloadTooLarge, message)
        .hint("read it in parts, by offset and limit or by from_byte, one for each subtask of a split"))
}

fn first_line(path: &FilePath, total: usize, args: &Read) -> Result<usize, Error> {
    let offset = args.offset.unwrap_or(1).max(1);
    if offset > total.max(1) {
        let message = format!("{path} has {}; there is no line {offset}", counted(total, "line"));
        return Err(Error::new(Code::Unprocessable, message).detail("field", "offset"));
    }
    Ok(offset)
}

/// The text from one line up to another, with the ends of its lines.
fn between<'a>(content: &'a str, lines: &[Line<'_>], from: usize, next: usize) -> &'a str {
    let at = |line: usize| lines.get(line - 1).map_or(content.len(), |line| line.at);
    content.get(at(from)..at(next)).unwrap_or_default()
}

pub(crate) async fn cat(call: &Call<'_>, args: Cat) -> Answer {
    let mut done = Done::default();
    let (mut results, mut given) = (Vec::new(), 0);
    for (position, text) in args.paths.iter().enumerate() {
        let path = call::path("paths", text)?;
        let content = call.workspace.read(&path, None).await.map_err(|error| match error.code {
            Code::PayloadTooLarge => error.hint("use read with from_byte, or a command such as: head -c 4000 FILE"),
            _ => error,
        })?;
        let room = Room::share(&done.output, args.paths.len() - position);
        let fits = |text: &str| {
            let lines = text.match_indices('\n').nth(room.lines).map_or(text.len(), |(at, _)| at + 1);
            text.floor_char_boundary(room.bytes.min(lines))
        };
        let decoded = Decoded::of(&content.bytes);
        let shown = match decoded.as_ref().map(|decoded| &*decoded.text) {
            None => {
                let is_converted =
                    content.info.conversion.as_ref().is_some_and(|it| it.status == ConversionStatus::Done);
                let more = if is_converted { "; read shows its Markdown" } else { "" };
                format!("[a binary file of {}{more}]", counted(content.info.size, "byte"))
            }
            Some(text) if is_program(call) => {
                given += text.len();
                check_fits(&path, given)?;
                text.into()
            }
            Some(text) if fits(text) == text.len() => text.into(),
            Some(text) => {
                done.truncated = true;
                let part = text.get(..fits(text)).unwrap_or_default();
                let (at, left) = (part.len(), text.len() - part.len());
                format!(
                    "{}\n[cut here: {} more; read {path} with from_byte {at}]",
                    part.trim_end_matches('\n'),
                    counted(left, "byte")
                )
            }
        };
        let gap = if done.output.is_empty() || done.output.ends_with('\n') { "" } else { "\n" };
        let told = if is_program(call) { "" } else { shown.as_str() };
        done.output.push_str(&format!("{gap}==> {path} <==\n{told}"));
        results.push(json!({ "path": path, "v": content.info.v, "hash": content.info.sha256, "content": shown }));
        done.seen.push((path, content.info.sha256));
    }
    done.result = json!({ "files": results });
    Ok(done)
}

pub(crate) async fn read_many(call: &Call<'_>, args: ReadMany) -> Answer {
    // A call whose paths are not known touches nothing: no rule could have looked at it.
    args.files.iter().try_for_each(|file| call::path("files", &file.path).map(drop))?;
    let mut done = Done::default();
    let (mut results, mut failed) = (Vec::new(), 0);
    for (position, file) in args.files.iter().enumerate() {
        let room = Room::share(&done.output, args.files.len() - position);
        let text = match part(call, file, room).await {
            Ok(part) => {
                done.truncated |= part.truncated;
                done.seen.extend(part.seen());
                results.push(part.result);
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
        let files = match failed {
            1 => "the file could not be read".to_owned(),
            _ => format!("none of the {failed} files could be read"),
        };
        let message = format!("{files}:\n{}", done.output);
        return Err(Error::new(Code::NotFound, message));
    }
    done.result = json!({ "files": results });
    Ok(done)
}

fn with(mut about: Value, more: Value) -> Value {
    if let (Value::Object(about), Value::Object(more)) = (&mut about, more) {
        about.extend(more);
    }
    about
}
