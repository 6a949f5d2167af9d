//! The answer to a search: what may be read by its caller, ranked, filtered, cut and shown.

use crate::{
    Kind, Request, is_gone,
    query::Term,
    rank::{Ranked, rank},
    refresh::{Fault, State, kind},
    snippet::{Part, snippet},
};
use domain::{FileId, FilePath, Timestamp};
use ports::{IndexMatches, IndexTerm, IndexedFile, Passage, SearchIndex};
use serde::Serialize;
use std::sync::Arc;
use workspace::Workspace;

/// The files that match.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The best ones, best first.
    pub results: Vec<Hit>,
    /// How many files match.
    pub total: usize,
    /// Whether every committed write was searched. Else the index is being made, and a later search finds more.
    pub complete: bool,
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
    pub kind: Kind,
    /// The principal that wrote the version.
    pub author: String,
    /// When it was written.
    pub updated_at: Timestamp,
    /// The lines of the snippet, of a document those of its Markdown; none when only the name matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// The headings above the snippet.
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
    /// Their sum.
    pub total: f64,
    /// BM25 of the best passage.
    pub text: f64,
    /// BM25 of the name, which counts half.
    pub name: f64,
}

/// A file as it is shown: the document instead of its Markdown.
struct Shown<'a> {
    ranked: &'a Ranked,
    file: &'a IndexedFile,
    kind: Kind,
}

pub(crate) async fn answer(
    index: &dyn SearchIndex,
    reader: &Workspace,
    request: &Request,
    terms: &[Term],
    state: State,
) -> Result<Answer, Fault> {
    let sight = reader.clone();
    let visible = Arc::new(move |path: &FilePath| sight.may_read(path));
    let wanted: Vec<IndexTerm> = terms.iter().map(|term| term.term.clone()).collect();
    let found = index.look_up(wanted, visible).await?;
    let ranked = rank(terms, &found);
    let shown = filtered(&ranked, &found, request);
    let (shown, total) = if state.current {
        let total = shown.len();
        (shown, total)
    } else {
        let known = as_known(reader, shown, request.limit).await?;
        let total = known.len();
        (known, total)
    };
    let shown: Vec<Shown<'_>> = shown.into_iter().take(request.limit).collect();
    let passages = index.passages(shown.iter().filter_map(|shown| shown.ranked.passage).collect()).await?;
    let hits = shown.iter().map(|shown| hit(shown, shown.ranked.passage.and_then(|id| passages.get(&id)), terms));
    Ok(Answer { results: hits.collect(), total, complete: state.complete && !found.cut })
}

fn filtered<'a>(ranked: &'a [Ranked], found: &'a IndexMatches, request: &Request) -> Vec<Shown<'a>> {
    let shown = |ranked: &'a Ranked| {
        let hit = found.files.get(&ranked.file)?;
        let file = hit.document.as_ref().unwrap_or(&hit.file);
        Some(Shown { ranked, file, kind: kind(file, hit.document.is_some()) })
    };
    let fits = |shown: &Shown<'_>| {
        let Request { path, kinds, author, since, until, .. } = request;
        let file = shown.file;
        file.path.is_within(path)
            && (kinds.is_empty() || kinds.contains(&shown.kind))
            && author.as_ref().is_none_or(|author| *author == file.author)
            && since.is_none_or(|since| file.updated_at >= since)
            && until.is_none_or(|until| file.updated_at < until)
    };
    let mut files: Vec<Shown<'a>> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for shown in ranked.iter().filter_map(shown).filter(fits) {
        // A document by its name and by its Markdown is one result, in the better place.
        if known.insert(shown.file.file_id) {
            files.push(shown);
        }
    }
    files
}

/// The first results that are where the index has them: it may be behind, and a path that it does not know yet may be hidden from the caller.
async fn as_known<'a>(reader: &Workspace, shown: Vec<Shown<'a>>, limit: usize) -> Result<Vec<Shown<'a>>, Fault> {
    let mut known = Vec::new();
    for shown in shown {
        if known.len() >= limit {
            break;
        }
        match reader.stat(&shown.file.path).await {
            Ok(info) if info.file_id == shown.file.file_id && info.v == shown.file.v => known.push(shown),
            Ok(_) => {}
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(known)
}

fn hit(shown: &Shown<'_>, passage: Option<&Passage>, terms: &[Term]) -> Hit {
    let Shown { ranked, file, kind } = shown;
    let text = passage.map_or(file.path.as_str(), |passage| passage.text.as_str());
    let found = snippet(text, terms);
    let lines = passage.map(|passage| Lines {
        first: (passage.first_line + found.first).min(passage.last_line),
        last: (passage.first_line + found.last).min(passage.last_line),
    });
    let matched: Vec<&str> =
        ranked.terms.iter().filter_map(|at| terms.get(*at)).map(|term| term.shown.as_str()).collect();
    let places = match (ranked.passages, ranked.name > 0.0) {
        (0, _) => "in its name".into(),
        (1, false) => "in 1 passage".into(),
        (1, true) => "in 1 passage and its name".into(),
        (passages, false) => format!("in {passages} passages"),
        (passages, true) => format!("in {passages} passages and its name"),
    };
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
        passages: ranked.passages,
        score: Score { total: round(ranked.total()), text: round(ranked.text), name: round(ranked.name) },
        why: format!("{} {places}{above}", matched.join(", ")),
    }
}

/// Four digits tell scores apart.
fn round(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}
