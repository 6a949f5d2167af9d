//! The answer to a search: what may be read by its caller, ranked, filtered, cut and shown.

use crate::{
    HitKind, Mode, Request,
    fuse::{self, RankedFile},
    is_gone,
    query::Term,
    rank::rank,
    refresh::{RefreshFault, State, kind},
    snippet::{Part, snippet},
};
use domain::{FileId, FilePath, Timestamp, Usage, text::counted};
use ports::{
    Embedder, FileFilter, IndexMatches, IndexNearest, IndexTerm, Passage, SearchIndex, ShownFile, Visibility, Visible,
};
use serde::Serialize;
use std::{collections::HashSet, sync::Arc};
use workspace::{Workspace, is_damage_of_index};

/// How many of the nearest passages are looked at, at least.
const NEAREST: usize = 200;

/// The files that match.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The best ones, best first.
    pub results: Vec<Hit>,
    /// How many files match; by meaning how many of the nearest there are.
    pub total: usize,
    /// Whether every committed write was searched. Else the index is being made, and a later search finds more.
    pub complete: bool,
    /// How it was searched.
    pub mode: Mode,
    /// How many passages of files that were looked for have no vector yet; 0 in a search by words.
    pub pending: u64,
    /// The reason if it was searched in another way than asked.
    pub note: Option<String>,
    /// The tokens for the query.
    pub usage: Usage,
}

/// A file that matches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// Its path.
    pub path: FilePath,
    /// Its identity.
    pub file_id: FileId,
    /// Its version; 0 for a chat.
    pub v: u64,
    /// Its kind.
    pub kind: HitKind,
    /// The principal that wrote the version.
    pub author: String,
    /// When it was written.
    pub updated_at: Timestamp,
    /// The lines of the snippet, of a document those of its Markdown; none when only the name matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// The headings above the snippet, or the items of code around it, from the outermost: `Parser > next`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub heading: String,
    /// The place that matches best.
    pub snippet: Vec<Part>,
    /// How many passages of the file match.
    pub passages: usize,
    /// The parts of its score.
    pub score: Score,
    /// Why it was found, for people.
    pub why: String,
}

/// Lines, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// The parts of a score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// By words their sum; by meaning that part; by both, the sum of 1 / (60 + place) over the two orders.
    pub total: f64,
    /// BM25 of the best passage.
    pub text: f64,
    /// BM25 of the name, which counts half.
    pub name: f64,
    /// The nearness of the meaning: the cosine of the angle between the vectors of the query and of the nearest passage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<f64>,
}

/// A search as it is answered.
pub(crate) struct AskedSearch<'a> {
    pub reader: &'a Workspace,
    pub request: &'a Request,
    pub terms: &'a [Term],
    pub mode: Mode,
    /// Where a tag is asked for: the paths that have it.
    pub tagged: Option<Arc<HashSet<FilePath>>>,
    /// By meaning, too.
    pub wanted: Option<WantedMeaning<'a>>,
}

/// The meaning that is looked for.
pub(crate) struct WantedMeaning<'a> {
    pub embedder: &'a Arc<dyn Embedder>,
    pub vector: Vec<f32>,
}

pub(crate) async fn answer(
    index: &dyn SearchIndex,
    asked: &AskedSearch<'_>,
    state: State,
) -> Result<Answer, RefreshFault> {
    let AskedSearch { reader, request, tagged, terms, mode, wanted } = asked;
    let visible: Visible = Arc::new(Readable((*reader).clone()));
    let words: Vec<IndexTerm> = terms.iter().map(|term| term.term.clone()).collect();
    let found = match mode {
        Mode::Semantic => IndexMatches::default(),
        Mode::Text | Mode::Hybrid => index.look_up(words, visible.clone()).await?,
    };
    let near = match wanted {
        Some(WantedMeaning { embedder, vector }) => {
            let (filter, tagged) = ((*request).clone(), tagged.clone());
            let looked: FileFilter = Arc::new(move |file| fits(&filter, tagged.as_deref(), file));
            let most = NEAREST.max(request.limit.saturating_mul(10));
            index.nearest(embedder.space(), vector.clone(), most, visible, looked).await?
        }
        None => IndexNearest::default(),
    };
    let ranked = if *mode == Mode::Semantic { Vec::new() } else { rank(terms, &found) };
    let by_words = fuse::by_words(&ranked, &found, |file| fits(request, tagged.as_deref(), file));
    let shown = match mode {
        Mode::Text => by_words,
        Mode::Semantic => fuse::by_meaning(&near),
        Mode::Hybrid => {
            let allowed = fuse::Allowed::of(terms, &found, &by_words);
            let by_meaning = fuse::by_meaning(&near).into_iter().filter(|shown| allowed.has(shown)).collect();
            fuse::both(by_words, by_meaning)
        }
    };
    let shown = if state.current { shown } else { as_known(reader, shown, request.limit).await? };
    let total = shown.len();
    let shown: Vec<RankedFile<'_>> = shown.into_iter().take(request.limit).collect();
    let passages = index.passages(shown.iter().filter_map(|shown| shown.passage).collect()).await?;
    let hits = shown.iter().map(|shown| hit(shown, shown.passage.and_then(|id| passages.get(&id)), terms));
    let (results, pending) = (hits.collect(), near.pending);
    let complete = state.complete && !found.cut && pending == 0;
    Ok(Answer { results, total, complete, mode: *mode, pending, note: None, usage: Usage::default() })
}

/// The files whose contents this handle of a workspace may read.
struct Readable(Workspace);

impl Visibility for Readable {
    fn has(&self, file: &FilePath) -> bool {
        self.0.may_read(file)
    }

    fn has_all_in(&self, folder: &FilePath) -> Option<bool> {
        self.0.may_read_in(folder)
    }
}

fn fits(request: &Request, tagged: Option<&HashSet<FilePath>>, file: &ShownFile<'_>) -> bool {
    let Request { path, kinds, author, since, until, .. } = request;
    file.path.is_within(path)
        && tagged.is_none_or(|tagged| tagged.contains(file.path))
        && (kinds.is_empty() || kinds.contains(&kind(file)))
        && author.as_ref().is_none_or(|author| author == file.author)
        && since.is_none_or(|since| file.updated_at >= since)
        && until.is_none_or(|until| file.updated_at < until)
}

/// The paths of the files that have a tag, of those that the reader sees.
pub(crate) async fn paths_tagged(reader: &Workspace, tag: &str) -> Result<HashSet<FilePath>, domain::Error> {
    let (mut paths, mut cursor) = (HashSet::new(), None);
    loop {
        let page = reader.tagged(tag, 1000, cursor).await?;
        paths.extend(page.files.into_iter().map(|info| info.path));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(paths);
        }
    }
}

/// The first results that are where the index has them: it may be behind, and a path that it does not know yet may be hidden from the caller.
async fn as_known<'a>(
    reader: &Workspace,
    shown: Vec<RankedFile<'a>>,
    limit: usize,
) -> Result<Vec<RankedFile<'a>>, RefreshFault> {
    let mut known = Vec::new();
    for shown in shown {
        if known.len() >= limit {
            break;
        }
        match reader.stat(&shown.file.path).await {
            Ok(info) if info.file_id == shown.file.file_id && info.v == shown.file.v => known.push(shown),
            Ok(_) => {}
            Err(error) if is_gone(&error) || is_damage_of_index(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(known)
}

fn hit(shown: &RankedFile<'_>, passage: Option<&Passage>, terms: &[Term]) -> Hit {
    let RankedFile { file, kind, text, name, meaning, total, passages, .. } = shown;
    let found = snippet(passage.map_or(file.path.as_str(), |passage| passage.text.as_str()), terms);
    let lines = passage.map(|passage| Lines {
        first: (passage.first_line + found.first).min(passage.last_line),
        last: (passage.first_line + found.last).min(passage.last_line),
    });
    let heading = passage.map(|passage| passage.heading.clone()).unwrap_or_default();
    let above = if heading.is_empty() { String::new() } else { format!("; the best is under {heading:?}") };
    Hit {
        path: file.path.clone(),
        file_id: file.file_id,
        v: file.v,
        kind: *kind,
        author: file.author.clone(),
        updated_at: file.updated_at,
        lines,
        heading,
        snippet: found.parts,
        passages: *passages,
        score: Score {
            total: round(*total),
            text: round(*text),
            name: round(*name),
            meaning: meaning.map(|(near, _)| round(near)),
        },
        why: format!("{}{above}", why(shown, terms)),
    }
}

fn why(shown: &RankedFile<'_>, terms: &[Term]) -> String {
    let matched: Vec<&str> =
        shown.terms.iter().filter_map(|at| terms.get(*at)).map(|term| term.shown.as_str()).collect();
    let places = match (shown.with_words, shown.name > 0.0) {
        (0, _) => "in its name".into(),
        (passages, false) => format!("in {}", counted(passages, "passage")),
        (passages, true) => format!("in {} and its name", counted(passages, "passage")),
    };
    let by_words = (!matched.is_empty()).then(|| format!("{} {places}", matched.join(", ")));
    let by_meaning = shown.meaning.map(|(near, place)| match by_words {
        Some(_) => format!("near in meaning (place {place}, {near:.2})"),
        None => format!("near in meaning ({near:.2})"),
    });
    [by_words, by_meaning].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Four digits tell scores apart.
fn round(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}
