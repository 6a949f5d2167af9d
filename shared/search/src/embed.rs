//! Vectors for passages: made in the background of searches by meaning, batch by batch, until no passage waits.
//!
//! A failure ends a run, and the next one begins after a wait that doubles. Searches by words know nothing of it.

use domain::{Code, Error, Usage};
use parking_lot::Mutex;
use ports::{EmbedAs, Embedded, Embedder, IndexVector, ModelError, SearchIndex, Unembedded};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::OwnedMutexGuard,
    time::{Instant, timeout},
};

/// How many passages are fetched at once.
const FETCHED: usize = 512;
/// The first and the longest wait after a failure.
const WAIT: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
/// How long a model may take for one batch, with the tries of its adapter.
const LASTS: Duration = Duration::from_secs(120);
/// The longest query that is embedded, in bytes.
const QUERY: usize = 4096;

/// The making of one index's vectors.
#[derive(Default)]
pub(crate) struct Embedding {
    /// Held by the run that goes on.
    running: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: u32,
    not_before: Option<Instant>,
}

impl Embedding {
    fn state(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Begins a run, unless one goes on or has to wait, and waits so long for its end.
    pub async fn follow(
        self: &Arc<Self>,
        index: &Arc<dyn SearchIndex>,
        embedder: &Arc<dyn Embedder>,
        patience: Duration,
    ) {
        let is_due = self.state().not_before.is_none_or(|at| Instant::now() >= at);
        if is_due && let Ok(alone) = self.running.clone().try_lock_owned() {
            let (this, index, embedder) = (self.clone(), index.clone(), embedder.clone());
            // It goes on after the search that began it: the next one finds more.
            tokio::spawn(async move { this.run(&*index, &*embedder, alone).await });
        }
        drop(timeout(patience, self.running.lock()).await);
    }

    async fn run(&self, index: &dyn SearchIndex, embedder: &dyn Embedder, _alone: OwnedMutexGuard<()>) {
        let outcome = Self::all(index, embedder).await;
        let mut state = self.state();
        match outcome {
            Ok(()) => (state.failures, state.not_before) = (0, None),
            Err(failure) => {
                let doubled = WAIT.saturating_mul(1 << state.failures.min(16)).min(LONGEST);
                let wait = doubled.max(failure.after.unwrap_or_default().min(LONGEST));
                state.failures = state.failures.saturating_add(1);
                state.not_before = Some(Instant::now() + wait);
                let (model, error, wait_s) = (embedder.space(), failure.told, wait.as_secs());
                tracing::warn!(model, error, wait_s, "passages wait for their vectors: the model did not embed them");
            }
        }
    }

    async fn all(index: &dyn SearchIndex, embedder: &dyn Embedder) -> Result<(), Failure> {
        loop {
            let waiting = index.unembedded(embedder.space(), FETCHED).await?;
            if waiting.is_empty() {
                return Ok(());
            }
            for batch in waiting.chunks(embedder.most_texts().max(1)) {
                let Batch { vectors, failed } = Self::batch(embedder, batch).await;
                if !vectors.is_empty() {
                    index.embed(embedder.space(), vectors).await?;
                }
                if let Some(failure) = failed {
                    return Err(failure);
                }
            }
        }
    }

    async fn batch(embedder: &dyn Embedder, batch: &[Unembedded]) -> Batch {
        let texts: Vec<String> = batch.iter().map(text).collect();
        let Embedded { vectors, failed, .. } = embed(embedder, &texts, EmbedAs::Passage)
            .await
            .unwrap_or_else(|failure| Embedded { failed: Some(failure), ..Embedded::default() });
        let count = vectors.len();
        let mut vectors: Vec<IndexVector> =
            batch.iter().zip(vectors).map(|(each, vector)| IndexVector { passage: each.passage, vector }).collect();
        match failed {
            Some(ModelError::Rejected(why)) if batch.len() > 1 => {
                let (passages, texts) =
                    (batch.get(count..).unwrap_or_default(), texts.get(count..).unwrap_or_default());
                let Batch { vectors: more, failed } = singly(embedder, passages, texts, why, count > 0).await;
                vectors.extend(more);
                Batch { vectors, failed }
            }
            failed => Batch { vectors, failed: failed.map(Failure::from) },
        }
    }

    /// The vector of a query, and the tokens for it.
    ///
    /// # Errors
    /// `UPSTREAM_REFUSED`, `UNPROCESSABLE` and `UPSTREAM_UNAVAILABLE`, as the model failed.
    pub async fn query(embedder: &dyn Embedder, query: &str) -> Result<(Vec<f32>, Usage), Error> {
        let cut = query.get(..query.floor_char_boundary(QUERY)).unwrap_or_default();
        let mut embedded =
            embed(embedder, &[cut.to_owned()], EmbedAs::Query).await.map_err(|error| of_model(&error))?;
        match embedded.failed {
            Some(failure) => Err(of_model(&failure)),
            None => Ok((embedded.vectors.pop().unwrap_or_default(), embedded.usage)),
        }
    }
}

/// The vectors of passages that are paid for, and why the others have none.
struct Batch {
    vectors: Vec<IndexVector>,
    failed: Option<Failure>,
}

/// The same, one by one: a text that the model does not take must not keep the others back. If it takes none, it is the model that is wrong;
/// `taken` says that it took others before.
async fn singly(
    embedder: &dyn Embedder,
    passages: &[Unembedded],
    texts: &[String],
    why: String,
    mut taken: bool,
) -> Batch {
    let (mut vectors, mut failed) = (Vec::new(), None);
    for (each, text) in passages.iter().zip(texts) {
        let one = embed(embedder, std::slice::from_ref(text), EmbedAs::Passage).await;
        let vector = match one.map(|one| (one.vectors.into_iter().next(), one.failed)) {
            Ok((Some(vector), _)) => {
                taken = true;
                vector
            }
            Ok((None, None | Some(ModelError::Rejected(_)))) | Err(ModelError::Rejected(_)) => Vec::new(),
            Ok((None, Some(failure))) | Err(failure) => {
                failed = Some(failure.into());
                break;
            }
        };
        vectors.push(IndexVector { passage: each.passage, vector });
        // A wrong name of a model is not asked for hundreds of times.
        if !taken && vectors.len() >= 4 {
            break;
        }
    }
    match taken {
        true => Batch { vectors, failed },
        false => Batch { vectors: Vec::new(), failed: failed.or_else(|| Some(ModelError::Rejected(why).into())) },
    }
}

/// Asks a model, and holds it to what it promises.
async fn embed(embedder: &dyn Embedder, texts: &[String], purpose: EmbedAs) -> Result<Embedded, ModelError> {
    let embedded = timeout(LASTS, embedder.embed(texts, purpose)).await;
    let embedded = embedded
        .unwrap_or_else(|_| Err(ModelError::Unavailable(format!("it did not embed within {} s", LASTS.as_secs()))))?;
    let is_one = |vector: &Vec<f32>| {
        !vector.is_empty()
            && vector.iter().all(|number| number.is_finite())
            && vector.iter().any(|number| *number != 0.0)
    };
    let is_whole = match embedded.failed {
        None => embedded.vectors.len() == texts.len(),
        Some(_) => embedded.vectors.len() < texts.len(),
    };
    if !is_whole || !embedded.vectors.iter().all(is_one) {
        return Err(ModelError::Broken("its vectors do not fit the texts".into()));
    }
    Ok(embedded)
}

/// All that is embedded of a passage.
fn text(passage: &Unembedded) -> String {
    match passage.heading.as_str() {
        "" => passage.text.clone(),
        heading => format!("{heading}\n{}", passage.text),
    }
}

/// Why a run ended.
struct Failure {
    told: String,
    after: Option<Duration>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let after = match &error {
            ModelError::RateLimited { retry_after } => *retry_after,
            ModelError::Postponed { after, .. } => Some(*after),
            _ => None,
        };
        Self { told: error.to_string(), after }
    }
}

impl From<ports::Error> for Failure {
    fn from(error: ports::Error) -> Self {
        Self { told: error.to_string(), after: None }
    }
}

/// The failure of a query as clients read it.
fn of_model(error: &ModelError) -> Error {
    let code = match error {
        ModelError::Unauthorized(_) => Code::UpstreamRefused,
        ModelError::Rejected(_) => Code::Unprocessable,
        // Too many requests of the installation are no fault of the caller.
        _ => Code::UpstreamUnavailable,
    };
    tracing::warn!(%error, "the embedding model did not embed a query");
    Error::new(code, format!("the query cannot be embedded: {error}")).hint("use the mode text, which needs no model")
}
