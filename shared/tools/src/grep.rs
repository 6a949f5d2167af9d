//! `grep`: searches the text of files, by ripgrep's own crates over `latest/`.

use crate::{
    call::{Answer, Call, Done},
    caps::{self, MAX_BYTES, MAX_LINES},
    disk::{Pattern, Start},
    effects::{Declaration, Declare},
    search::{self, Search, UNREADABLE, left_out},
};
use domain::{Error, FilePath, text::counted};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use ignore::WalkState;
use parking_lot::Mutex;
use ports::crash::{self, gate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};
use tokio::time::Instant;

pub(crate) const GREP: &str = "Search the text of files by a regular expression (Rust syntax): `12:` is a match, `11-` is context. \
    Past conversations are under /chats.";

/// The most matches kept of one file, and of all of them.
const PER_FILE: usize = 200;
const KEPT: usize = 20_000;
/// The longest pattern, in bytes.
const LONGEST: usize = 4096;
/// How deep a pattern may nest.
const DEEPEST: u32 = 64;
/// The largest size of a compiled pattern, in bytes: a pattern of 100,000 repeated letters is a mistake.
const COMPILED: usize = 1024 * 1024;
/// The largest size of a thread's cache of matching, in bytes.
const REMEMBERED: usize = 16 * 1024 * 1024;
/// How long one search may take.
const LASTS: Duration = Duration::from_secs(20);
/// The most bytes of one line that is shown.
const MAX_LINE: usize = 500;

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Content,
    Files,
    Count,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grep {
    /// The regular expression.
    pattern: String,
    /// The file or folder; the whole workspace by default.
    path: Option<String>,
    /// Only files that match, such as src/**/*.ts.
    glob: Option<String>,
    /// Whether case is ignored.
    #[serde(default)]
    ignore_case: bool,
    /// Whether the pattern is plain text.
    #[serde(default)]
    literal: bool,
    /// Lines around each match; 0 by default.
    #[schemars(range(max = 20))]
    context: Option<usize>,
    /// Lines (content), paths (files), or the number of matching lines per file (count).
    #[serde(default)]
    mode: Mode,
    /// Matching lines, or files; 200 by default.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<usize>,
}

impl Declare for Grep {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.searches("path", self.path.as_deref())
    }
}

pub(crate) async fn grep(call: &Call<'_>, args: Grep) -> Answer {
    search::search(call, args).await
}

impl Search for Grep {
    const TOOL: &'static str = "grep";
    const READS: bool = true;

    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn check(&self) -> Result<(), Error> {
        self.matcher()?;
        self.pattern_of_paths().map(drop)
    }

    type Found = FoundLines;

    fn walk(&self, start: &Start) -> Result<FoundLines, Error> {
        let (matcher, glob) = (self.matcher()?, self.pattern_of_paths()?);
        let until = Instant::now() + LASTS;
        Ok(search(start, &matcher, glob.as_ref(), self.wants(), &|| Instant::now() >= until))
    }

    fn paths(found: &FoundLines) -> Vec<FilePath> {
        let left_out = found.large.iter().chain(&found.refused).chain(&found.unreadable);
        found.files.iter().map(|hits| &hits.path).chain(left_out).cloned().collect()
    }

    fn keep(found: &mut FoundLines, known: &HashSet<FilePath>) {
        found.files.retain(|hits| known.contains(&hits.path));
        found.large.retain(|path| known.contains(path));
        found.refused.retain(|path| known.contains(path));
        found.unreadable.retain(|path| known.contains(path));
    }

    fn show(&self, found: FoundLines) -> Done {
        let limit = self.limit.unwrap_or(200);
        let largest = workspace::MAX_FILE / (1024 * 1024);
        let left_out = [
            left_out(&found.large, &format!("over {largest} MiB")),
            left_out(&found.refused, "the server died of searching it"),
            left_out(&found.unreadable, UNREADABLE),
        ];
        let not_searched: Vec<_> = found.large.iter().chain(&found.refused).chain(&found.unreadable).cloned().collect();
        let mut done = match self.mode {
            Mode::Content => show_lines(&found, limit),
            Mode::Files => show_files(&found, limit, |hits| hits.path.to_string(), |hits| json!(hits.path)),
            Mode::Count => show_files(
                &found,
                limit,
                |hits| format!("{}: {}", hits.path, hits.matches),
                |hits| json!({ "path": hits.path, "count": hits.matches }),
            ),
        };
        left_out.iter().flatten().for_each(|told| done.output.push_str(told));
        if !not_searched.is_empty() {
            done.result["not_searched"] = json!(not_searched);
        }
        done
    }
}

impl Grep {
    /// A search for lines, with everything else as usual.
    pub(crate) fn of(pattern: String, path: String, limit: usize) -> Self {
        let (glob, context, mode) = (None, None, Mode::Content);
        Self { pattern, path: Some(path), glob, ignore_case: false, literal: false, context, mode, limit: Some(limit) }
    }

    fn matcher(&self) -> Result<RegexMatcher, Error> {
        if self.pattern.len() > LONGEST {
            let message = format!("the pattern is {} bytes long; {LONGEST} fit", self.pattern.len());
            return Err(Error::invalid("pattern", message).hint("search for a part of it"));
        }
        let built = RegexMatcherBuilder::new()
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.literal)
            .line_terminator(Some(b'\n'))
            .nest_limit(DEEPEST)
            .size_limit(COMPILED)
            .dfa_size_limit(REMEMBERED)
            .build(&self.pattern);
        built.map_err(|error| {
            // A plain text with a line break is refused, too: to set `literal` would not help.
            let hint = match self.pattern.contains('\n') || self.pattern.contains("\\n") {
                true => "search for one of the lines, and set context to see those around it",
                false => "escape special characters with \\, or set literal to true",
            };
            Error::invalid("pattern", format!("the pattern is not a regular expression for single lines: {error}"))
                .hint(hint)
        })
    }

    fn wants(&self) -> Wants {
        Wants {
            context: if matches!(self.mode, Mode::Content) { self.context.unwrap_or(0) } else { 0 },
            lines: matches!(self.mode, Mode::Content),
            first_only: matches!(self.mode, Mode::Files),
        }
    }

    fn pattern_of_paths(&self) -> Result<Option<Pattern>, Error> {
        let pattern = self.glob.as_deref().map(|glob| Pattern::of_argument("glob", glob)).transpose()?;
        if pattern.as_ref().is_some_and(Pattern::is_of_folders) {
            return Err(Error::invalid("glob", "a glob that ends with / matches folders alone, which have no text")
                .hint("end it with /** to search the files in them"));
        }
        Ok(pattern)
    }
}

#[derive(Clone, Copy)]
struct Wants {
    context: usize,
    /// Whether lines are kept, or only counted.
    lines: bool,
    /// Whether one match per file is enough.
    first_only: bool,
}

/// The matches in one file.
pub(crate) struct Hits {
    path: FilePath,
    matches: usize,
    lines: Vec<Line>,
}

pub(crate) struct Line {
    number: u64,
    is_match: bool,
    /// Whether lines between the one before and this one are left out.
    after_gap: bool,
    text: String,
}

/// The matches in all files.
pub(crate) struct FoundLines {
    files: Vec<Hits>,
    /// Why the search was given up, if it was.
    gave_up: Option<GaveUp>,
    /// The files that are too large to be searched.
    large: Vec<FilePath>,
    /// The files that the process died of.
    refused: Vec<FilePath>,
    /// The files and folders that the disk did not give.
    unreadable: Vec<FilePath>,
}

#[derive(Clone, Copy, PartialEq)]
enum GaveUp {
    /// There was too much.
    Full,
    /// It took too long.
    Late,
}

/// Whether the time of a search is over.
type IsLate<'a> = &'a (dyn Fn() -> bool + Sync);

/// The text of a file, until the time of its search is over.
struct TimedText<'a> {
    file: File,
    is_late: IsLate<'a>,
    late: &'a AtomicBool,
}

impl Read for TimedText<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if (self.is_late)() {
            self.late.store(true, Ordering::Relaxed);
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(into)
    }
}

/// Searches all files below the start, on all processors, as `rg` does, until it is late.
fn search(
    start: &Start,
    matcher: &RegexMatcher,
    glob: Option<&Pattern>,
    wants: Wants,
    is_late: IsLate<'_>,
) -> FoundLines {
    let files = Mutex::new(Vec::new());
    let large = Mutex::new(Vec::new());
    let kept = AtomicUsize::new(0);
    let late = AtomicBool::new(false);
    let (refused, unreadable) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let handed = crash::hand_on();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(12);
    let threads = if handed.one_at_a_time() { 1 } else { threads };
    // This thread only waits for those that search.
    let walk = || start.walk().threads(threads).build_parallel();
    gate::outside(|| {
        walk().run(|| {
            let (matcher, files, kept, late) = (matcher.clone(), &files, &kept, &late);
            let (large, refused, unreadable, mut marked) = (&large, &refused, &unreadable, handed.files());
            let mut searcher = SearcherBuilder::new()
                .line_number(wants.lines)
                .before_context(wants.context)
                .after_context(wants.context)
                .binary_detection(BinaryDetection::quit(0))
                .build();
            Box::new(move |entry| {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        let path = start.unreadable(&error);
                        unreadable.lock().extend(path);
                        return WalkState::Continue;
                    }
                };
                if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                    return WalkState::Continue;
                }
                let Some(path) = start.logical(entry.path()) else { return WalkState::Continue };
                if glob.is_some_and(|glob| !glob.matches(&start.path, &path)) {
                    return WalkState::Continue;
                }
                // A chat's file has short lines, however long it gets.
                let is_large = entry.metadata().is_ok_and(|found| found.len() > workspace::MAX_FILE as u64);
                if is_large && !path.as_str().starts_with("/chats/") {
                    large.lock().push(path);
                    return WalkState::Continue;
                }
                let mut hits = Collect { wants, hits: Hits { path, matches: 0, lines: Vec::new() }, gap: false };
                let (place, id) = (|| format!("a search of {}", entry.path().display()), || start.id(entry.path()));
                let searched = marked.file(place, id, || -> io::Result<()> {
                    let text = TimedText { file: File::open(entry.path())?, is_late, late };
                    searcher.search_reader(&matcher, text, &mut hits)
                });
                let hits = hits.hits;
                match searched {
                    Ok(Ok(())) => {}
                    // The hits that the file had by then are shown.
                    Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut && late.load(Ordering::Relaxed) => {}
                    Ok(Err(error)) => {
                        let path = start.unreadable(&ignore::Error::Io(error)).map(|_| hits.path.clone());
                        unreadable.lock().extend(path);
                    }
                    Err(_) => {
                        refused.lock().push(hits.path);
                        return WalkState::Continue;
                    }
                }
                if hits.matches > 0 {
                    let sum = kept.fetch_add(hits.lines.len().max(1), Ordering::Relaxed);
                    files.lock().push(hits);
                    if sum > KEPT && wants.lines {
                        return WalkState::Quit;
                    }
                }
                if late.load(Ordering::Relaxed) { WalkState::Quit } else { WalkState::Continue }
            })
        })
    });
    let mut files = files.into_inner();
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    let gave_up = match (wants.lines && kept.into_inner() > KEPT, late.into_inner()) {
        (true, _) => Some(GaveUp::Full),
        (_, true) => Some(GaveUp::Late),
        _ => None,
    };
    let mut large = large.into_inner();
    large.sort_unstable();
    let mut refused = refused.into_inner();
    refused.sort_unstable();
    let mut unreadable = unreadable.into_inner();
    unreadable.sort_unstable();
    FoundLines { files, gave_up, large, refused, unreadable }
}

/// Collects the matches of the searcher in one file.
struct Collect {
    wants: Wants,
    hits: Hits,
    gap: bool,
}

impl Collect {
    fn keep(&mut self, number: Option<u64>, is_match: bool, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = caps::line(text.trim_end_matches(['\n', '\r']), MAX_LINE).into_owned();
        let after_gap = std::mem::take(&mut self.gap) && !self.hits.lines.is_empty();
        self.hits.lines.push(Line { number: number.unwrap_or(0), is_match, after_gap, text });
    }
}

impl Sink for Collect {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.hits.matches += 1;
        if self.wants.lines && self.hits.matches <= PER_FILE {
            self.keep(found.line_number(), true, found.bytes());
        }
        Ok(!self.wants.first_only)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> Result<bool, io::Error> {
        let after_last = matches!(found.kind(), SinkContextKind::After) && self.hits.matches == PER_FILE;
        if self.wants.lines && (self.hits.matches < PER_FILE || after_last) {
            self.keep(found.line_number(), false, found.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.gap = true;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        // Matches before the first NUL are as binary as the rest.
        self.hits.matches = 0;
        self.hits.lines.clear();
        Ok(false)
    }
}

fn show_lines(found: &FoundLines, limit: usize) -> Done {
    let total: usize = found.files.iter().map(|hits| hits.matches).sum();
    let (mut output, mut results, mut shown, mut rows) = (String::new(), Vec::new(), 0, 0);
    'all: for hits in &found.files {
        let mut heading = Some(format!("{}{}\n", if output.is_empty() { "" } else { "\n" }, hits.path));
        for line in &hits.lines {
            let full = output.len() + line.text.len() > MAX_BYTES || rows + 3 > MAX_LINES;
            if full || (line.is_match && shown == limit) {
                break 'all;
            }
            if let Some(heading) = heading.take() {
                output.push_str(&heading);
                rows += 2;
            }
            if line.after_gap {
                output.push_str("--\n");
                rows += 1;
            }
            let mark = if line.is_match { ':' } else { '-' };
            output.push_str(&format!("{}{mark} {}\n", line.number, line.text));
            rows += 1;
            if line.is_match {
                shown += 1;
                results.push(json!({ "path": hits.path, "line": line.number, "text": line.text }));
            }
        }
        if hits.matches > PER_FILE {
            output.push_str(&format!("[{} more in this file]\n", hits.matches - PER_FILE));
        }
    }
    let truncated = shown < total || found.gave_up.is_some();
    output.push_str(&summary(total, found, shown, truncated));
    let result =
        json!({ "matches": results, "total": total, "files": found.files.len(), "complete": found.gave_up.is_none() });
    Done { output, truncated, result, ..Done::default() }
}

fn ended_late() -> String {
    format!(
        "the search ended after {} s without having seen all files: narrow the pattern, path or glob",
        LASTS.as_secs()
    )
}

fn summary(total: usize, found: &FoundLines, shown: usize, truncated: bool) -> String {
    let least = if found.gave_up.is_some() { "at least " } else { "" };
    let (lines, files) = (counted(total, "matching line"), counted(found.files.len(), "file"));
    match (total, truncated) {
        (_, true) if found.gave_up == Some(GaveUp::Late) => {
            format!("[{lines} in {files}; {}]", ended_late())
        }
        (0, _) => "nothing matches".into(),
        (_, false) => format!("[{lines} in {files}]"),
        (_, true) => format!(
            "[{shown} of {least}{lines} in {least}{files}; narrow the pattern, path or glob, raise the \
             limit, or use mode \"files\" to see the rest]"
        ),
    }
}

fn show_files(found: &FoundLines, limit: usize, row: impl Fn(&Hits) -> String, data: impl Fn(&Hits) -> Value) -> Done {
    let shown = found.files.get(..limit.min(found.files.len())).unwrap_or_default();
    let is_late = found.gave_up == Some(GaveUp::Late);
    let (files, truncated) = (found.files.len(), is_late || shown.len() < found.files.len());
    let mut output = shown.iter().map(row).collect::<Vec<_>>().join("\n");
    output.push_str(&match (files, truncated) {
        (0, _) if is_late => format!("[nothing was found; {}]", ended_late()),
        _ if is_late => format!("\n[{}; {}]", counted(files, "file"), ended_late()),
        (0, _) => "nothing matches".into(),
        (_, false) => format!("\n[{}]", counted(files, "file")),
        (_, true) => format!("\n[{} of {files} files; narrow the search or raise the limit]", shown.len()),
    });
    let result = json!({ "files": shown.iter().map(data).collect::<Vec<_>>(), "total": files, "complete": !is_late });
    Done { output, truncated, result, ..Done::default() }
}

#[cfg(test)]
mod tests;
