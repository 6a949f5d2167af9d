//! Recall: search over the texts of a workspace, by words and by meaning (spec 001 §2C; docs/architecture/search.md).
//!
//! The index of a workspace is a cache beside its files. Nothing keeps it up to date in the background: each search first reads the records of the
//! changes that were committed since the search before (`refresh.rs`), so a committed write is found by the next search. A lost or damaged index is
//! made anew.
//!
//! Architecture invariant: the index has everything, and its results are those of the caller. Each path is asked for before anything is counted,
//! ranked or cut: BM25 gets its statistics from files that the caller may read, so neither a count nor a score tells of others.
//!
//! The pure pieces are [words](mod@words), [queries](mod@query), [passages](mod@chunk), [ranks](mod@rank) and [snippets](mod@snippet). This crate holds
//! no database: [`ports::SearchIndexes`] is one.

mod answer;
mod chunk;
mod embed;
mod fuse;
mod metered_embedder;
mod outline;
mod query;
mod rank;
mod refresh;
mod snippet;
mod stem;
mod words;

pub use answer::{Answer, Hit, Lines, Score};
pub use refresh::Bounds;
pub use snippet::Part;

use domain::{Code, Error, FilePath, Timestamp, Usage, WorkspaceId};
use embed::Embedding;
use metered_embedder::MeteredEmbedder;
use parking_lot::Mutex;
use ports::{Clock, Embedder, SearchIndex, SearchIndexes};
use refresh::RefreshFault;
use std::{collections::HashMap, sync::Arc};
use workspace::{Access, DeletionObserver, Workspace, Workspaces};

/// The kinds of files that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    /// A file.
    File,
    /// A document under `/data`, by its Markdown.
    Document,
    /// A conversation.
    Chat,
}

/// How a query is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// By its words.
    Text,
    /// By its meaning.
    Semantic,
    /// By both.
    Hybrid,
}

/// A search.
#[derive(Clone, Debug)]
pub struct Request {
    /// The query.
    pub query: String,
    /// The file or folder to search.
    pub path: FilePath,
    /// Only these kinds; all if there are none.
    pub kinds: Vec<HitKind>,
    /// Only versions by this principal.
    pub author: Option<String>,
    /// Only files that have this tag.
    pub tag: Option<String>,
    /// Only versions that were written then or later.
    pub since: Option<Timestamp>,
    /// Only versions that were written before.
    pub until: Option<Timestamp>,
    /// At most this many results.
    pub limit: usize,
}

/// Searches workspaces. Cheap to clone.
#[derive(Clone)]
pub struct Search(Arc<Inner>);

struct Inner {
    workspaces: Workspaces,
    indexes: Arc<dyn SearchIndexes>,
    embedder: Option<Arc<dyn Embedder>>,
    clock: Arc<dyn Clock>,
    bounds: Bounds,
    open: Mutex<HashMap<WorkspaceId, Arc<Opened>>>,
}

struct Opened {
    index: Arc<dyn SearchIndex>,
    /// Held while it is brought up to date.
    refreshing: tokio::sync::Mutex<()>,
    embedding: Arc<Embedding>,
}

impl std::fmt::Debug for Search {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Search")
    }
}

impl Search {
    /// Over the files of these workspaces, with these indexes: by words.
    pub fn new(workspaces: Workspaces, indexes: Arc<dyn SearchIndexes>, clock: Arc<dyn Clock>) -> Self {
        let (embedder, bounds, open) = (None, Bounds::default(), Mutex::default());
        Self::of(Inner { workspaces, indexes, embedder, clock, bounds, open })
    }

    /// The same with other bounds on the work that one search does for the index.
    #[must_use]
    pub fn within(self, bounds: Bounds) -> Self {
        let Inner { workspaces, indexes, embedder, clock, .. } = &*self.0;
        let (workspaces, indexes, clock) = (workspaces.clone(), indexes.clone(), clock.clone());
        let (embedder, open) = (embedder.clone(), Mutex::default());
        Self::of(Inner { workspaces, indexes, embedder, clock, bounds, open })
    }

    /// The same, by meaning, too, if there is an embedder.
    #[must_use]
    pub fn embedding(self, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let Inner { workspaces, indexes, clock, bounds, .. } = &*self.0;
        let (workspaces, indexes, clock) = (workspaces.clone(), indexes.clone(), clock.clone());
        let (bounds, open) = (*bounds, Mutex::default());
        Self::of(Inner { workspaces, indexes, embedder, clock, bounds, open })
    }

    /// The index of a workspace is closed when this process deletes the workspace: an open one keeps its place on the disk, and would answer for a
    /// workspace that is made again under the id.
    fn of(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        let observer = Arc::downgrade(&inner);
        inner.workspaces.observe_deletions(observer);
        Self(inner)
    }

    /// The files that match, best first, as the party of the handle may read them. Without an embedder a hybrid search is one by words, and so it is
    /// when the model fails: the answer says so.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a query without words, or one that is too long, and for a tag that is none; `NOT_FOUND` for a path where nothing is; those of [`Workspace`];
    /// `UPSTREAM_UNAVAILABLE` and `STORAGE_FULL` when the index cannot be read or written. Of a semantic search: `UNPROCESSABLE` with the reason
    /// `NO_EMBEDDING_MODEL` without an embedder, and the errors of its model.
    pub async fn find(&self, reader: &Workspace, request: &Request, mode: Mode) -> Result<Answer, Error> {
        let terms = match mode {
            Mode::Semantic => query::words_of(&request.query)?,
            Mode::Text | Mode::Hybrid => query::parse(&request.query)?,
        };
        let embedder = match (&self.0.embedder, mode) {
            (_, Mode::Text) => None,
            (None, Mode::Semantic) => return Err(no_embedder()),
            (embedder, _) => embedder.as_ref().map(|embedder| MeteredEmbedder::of(embedder, reader)),
        };
        if !request.path.is_root() {
            reader.stat(&request.path).await?;
        }
        let tagged = match &request.tag {
            Some(tag) => Some(Arc::new(answer::paths_tagged(reader, tag).await?)),
            None => None,
        };
        let (mut wanted, mut usage) = (None, Usage::default());
        let lacks_model = mode == Mode::Hybrid && embedder.is_none();
        let mut note = lacks_model.then(|| "words alone decided: no embedding model is configured".to_owned());
        if let Some(embedder) = &embedder {
            match Embedding::query(&**embedder, &request.query).await {
                Ok((vector, used)) => (wanted, usage) = (Some(answer::WantedMeaning { embedder, vector }), used),
                Err(error) if mode == Mode::Semantic => return Err(error),
                Err(error) => note = Some(format!("words alone decided: {}", error.message)),
            }
        }
        let mode = if wanted.is_some() { mode } else { Mode::Text };
        let asked = answer::AskedSearch { reader, request, tagged, terms: &terms, mode, wanted };
        let found = match self.try_find(&asked).await {
            Err(RefreshFault::Index(ports::Error::Damaged(error))) => {
                tracing::warn!(workspace = %reader.id(), error, "the index of a workspace is damaged, and is made anew");
                self.0.close(reader.id());
                self.0.indexes.remove(reader.id()).await.map_err(refresh::of_index)?;
                self.try_find(&asked).await
            }
            answer => answer,
        };
        match found {
            Ok(answer) => Ok(Answer { note, usage, ..answer }),
            Err(RefreshFault::Files(error)) => Err(error),
            Err(RefreshFault::Index(error)) => Err(refresh::of_index(error)),
        }
    }

    /// [`Search::find`] by words.
    ///
    /// # Errors
    /// Those of [`Search::find`].
    pub async fn text(&self, reader: &Workspace, request: &Request) -> Result<Answer, Error> {
        self.find(reader, request, Mode::Text).await
    }

    async fn try_find(&self, asked: &answer::AskedSearch<'_>) -> Result<Answer, RefreshFault> {
        let opened = self.opened(asked.reader.id()).await?;
        let state = self.refresh(&opened, asked.reader.id(), asked.request).await?;
        if let Some(wanted) = &asked.wanted {
            opened.embedding.follow(&opened.index, wanted.embedder, self.0.bounds.embedding).await;
        }
        let answer = answer::answer(&*opened.index, asked, state).await?;
        // A state without an age is that of another search, which goes on.
        if state.age > 0
            && let Err(error) = opened.index.keep(state.age).await
        {
            tracing::warn!(workspace = %asked.reader.id(), error = %error.with_causes(), "no copy of an index was kept");
        }
        Ok(answer)
    }

    async fn refresh(
        &self,
        opened: &Opened,
        id: WorkspaceId,
        request: &Request,
    ) -> Result<refresh::State, RefreshFault> {
        let until = tokio::time::Instant::now() + self.0.bounds.time;
        let Ok(_alone) = tokio::time::timeout_at(until, opened.refreshing.lock()).await else {
            return Ok(refresh::State::default());
        };
        let access = Access::platform("the index has all texts; a search gives those that its caller may read");
        let files = self.0.workspaces.open(id, access).await.map_err(RefreshFault::Files)?;
        let refresh = refresh::Refresh {
            index: &*opened.index,
            files: &files,
            clock: &*self.0.clock,
            bounds: self.0.bounds,
            until,
        };
        refresh.run(&request.path).await
    }

    async fn opened(&self, id: WorkspaceId) -> Result<Arc<Opened>, RefreshFault> {
        let known = self.0.open.lock().get(&id).cloned();
        if let Some(opened) = known {
            return Ok(opened);
        }
        let index = self.0.indexes.open(id).await.map_err(RefreshFault::Index)?;
        let mut open = self.0.open.lock();
        if open.len() >= self.0.indexes.most_open() {
            open.retain(|_, opened| Arc::strong_count(opened) > 1);
        }
        let opened = Opened { index, refreshing: tokio::sync::Mutex::default(), embedding: Arc::default() };
        Ok(open.entry(id).or_insert_with(|| Arc::new(opened)).clone())
    }
}

impl Inner {
    fn close(&self, id: WorkspaceId) {
        self.open.lock().remove(&id);
    }
}

impl DeletionObserver for Inner {
    fn deleted(&self, workspace: WorkspaceId) {
        self.close(workspace);
    }
}

/// Whether an error of a read says that the file is not there as expected, and no more.
fn is_gone(error: &Error) -> bool {
    matches!(error.code, Code::NotFound | Code::Unprocessable)
}

fn no_embedder() -> Error {
    Error::new(Code::Unprocessable, "no embedding model is configured, so nothing is found by its meaning")
        .hint("use the mode text, or hybrid, which is text alone without such a model; search.embedding_model configures one")
        .detail("field", "mode")
        .detail("reason", "NO_EMBEDDING_MODEL")
}
