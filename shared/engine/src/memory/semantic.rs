//! Ranking by meaning: the nearness of vectors.

use super::Ranker;
use async_trait::async_trait;
use domain::{Code, Error, Sha256, WorkspaceId};
use parking_lot::Mutex;
use ports::{EmbedAs, Embedder, ModelError};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};
use workspace::{Access, Purpose, Workspaces};

/// The part of a text, and of a query, that is embedded, in bytes.
const LOOK_AT: usize = 6 * 1024;
/// How many vectors are kept: items are ranked again at each node that reads them, and change seldom.
const KEPT: usize = 4096;

/// Scores a text by the cosine of the angle between its vector and the query's.
pub struct SemanticRanker {
    embedder: Arc<dyn Embedder>,
    workspaces: Workspaces,
    kept: Mutex<VectorCache>,
}

#[derive(Default)]
struct VectorCache {
    vectors: HashMap<Sha256, Arc<[f32]>>,
    /// The oldest first.
    order: VecDeque<Sha256>,
}

impl SemanticRanker {
    /// With this embedder, whose usage is noted in the workspaces that it works for.
    pub fn new(embedder: Arc<dyn Embedder>, workspaces: Workspaces) -> Self {
        Self { embedder, workspaces, kept: Mutex::default() }
    }

    /// Makes vectors, and notes their usage.
    async fn embed(&self, workspace: WorkspaceId, texts: &[String], purpose: EmbedAs) -> Result<Vec<Vec<f32>>, Error> {
        let made = self.embedder.embed(texts, purpose).await.map_err(|error| failed(&error))?;
        match self.workspaces.open(workspace, Access::platform("notes the usage of memory")).await {
            Ok(workspace) => workspace.note_spent(Purpose::Embedding, self.embedder.space(), made.usage).await,
            Err(error) => tracing::warn!(%workspace, %error, "the usage of a model was not noted"),
        }
        match made.failed {
            Some(error) => Err(failed(&error)),
            None => Ok(made.vectors),
        }
    }

    /// The vectors of texts, by their digests: those that are known, and those that are made now.
    async fn vectors(&self, workspace: WorkspaceId, texts: &[&str]) -> Result<HashMap<Sha256, Arc<[f32]>>, Error> {
        let (mut found, mut missing) = (HashMap::new(), BTreeMap::new());
        {
            let kept = self.kept.lock();
            for text in texts.iter().filter(|text| !text.trim().is_empty()) {
                let digest = Sha256::of(text.as_bytes());
                match kept.vectors.get(&digest) {
                    Some(vector) => drop(found.insert(digest, vector.clone())),
                    None => drop(missing.insert(digest, (*text).to_owned())),
                }
            }
        }
        let (digests, missing): (Vec<Sha256>, Vec<String>) = missing.into_iter().unzip();
        let most = self.embedder.most_texts().max(1);
        for (digests, texts) in digests.chunks(most).zip(missing.chunks(most)) {
            let made = self.embed(workspace, texts, EmbedAs::Passage).await?;
            let mut kept = self.kept.lock();
            for (digest, vector) in digests.iter().zip(made) {
                let vector: Arc<[f32]> = vector.into();
                found.insert(*digest, vector.clone());
                if kept.vectors.insert(*digest, vector).is_none() {
                    kept.order.push_back(*digest);
                }
            }
            while kept.order.len() > KEPT {
                if let Some(oldest) = kept.order.pop_front() {
                    kept.vectors.remove(&oldest);
                }
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl Ranker for SemanticRanker {
    async fn rank(&self, workspace: WorkspaceId, query: &str, texts: &[&str]) -> Result<Vec<f64>, Error> {
        let query = beginning(query);
        if query.trim().is_empty() || texts.is_empty() {
            return Ok(vec![0.0; texts.len()]);
        }
        let asked = self.embed(workspace, &[query.to_owned()], EmbedAs::Query).await?;
        let asked = asked.into_iter().next().unwrap_or_default();
        let texts: Vec<&str> = texts.iter().map(|text| beginning(text)).collect();
        let vectors = self.vectors(workspace, &texts).await?;
        let score =
            |text: &&str| vectors.get(&Sha256::of(text.as_bytes())).map_or(0.0, |vector| cosine(&asked, vector));
        Ok(texts.iter().map(score).collect())
    }
}

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LOOK_AT.min(text.len()))).unwrap_or_default()
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let product = |one: &[f32], other: &[f32]| {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum::<f64>()
    };
    let lengths = (product(one, one) * product(other, other)).sqrt();
    if lengths > 0.0 && one.len() == other.len() { product(one, other) / lengths } else { 0.0 }
}

fn failed(error: &ModelError) -> Error {
    let code = match error {
        ModelError::Unauthorized(_) => Code::UpstreamRefused,
        ModelError::Rejected(_) => Code::Unprocessable,
        _ => Code::UpstreamUnavailable,
    };
    Error::new(code, format!("memory cannot be ranked by meaning: {error}"))
        .hint("try again, or set retrieval_policy to recency")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::Principal;
    use ports::{Clock, SystemClock};
    use testkit::fakes::{FakeBlobs, FakeEmbedder, FakeTable, Faults};

    #[tokio::test]
    async fn s4_texts_near_in_meaning_score_most_and_known_ones_are_not_embedded_again() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let (blobs, root) = (Arc::new(FakeBlobs::new(1, Faults::none())), tempfile::tempdir().unwrap());
        let workspaces = Workspaces::new(table, blobs, clock, root.path().into());
        let at = WorkspaceId::from_key("tests", "ranked");
        workspaces.create(at, "test", &Principal::local()).await.unwrap();
        let embedder = Arc::new(FakeEmbedder::new("fake/one"));
        let ranker = SemanticRanker::new(embedder.clone(), workspaces.clone());
        let texts = ["soup", "an automobile", " ", "the car is a vehicle"];
        let scores = ranker.rank(at, "cars", &texts).await.unwrap();
        assert!(scores[3] > scores[1] && scores[1] > scores[0] && scores[0] == 0.0 && scores[2] == 0.0, "{scores:?}");
        assert_eq!(embedder.take_asked().len(), 4, "the query, and three texts");
        assert_eq!(ranker.rank(at, "cars", &texts).await.unwrap(), scores);
        assert_eq!(embedder.take_asked(), ["cars"]);
        assert_eq!(ranker.rank(at, "", &texts).await.unwrap(), [0.0; 4]);
        embedder.fail(Some(ModelError::Unavailable("down".into())));
        assert_eq!(ranker.rank(at, "cars", &texts).await.unwrap_err().code, Code::UpstreamUnavailable);

        let workspace = workspaces.open(at, Access::platform("a test")).await.unwrap();
        let spent = workspace.spent("2000-01-01", "2999-12-31").await.unwrap();
        let is_noted = |it: &workspace::DailyUsage| it.purpose == Purpose::Embedding && it.model == "fake/one";
        assert!(spent.iter().all(is_noted), "{spent:?}");
        assert_eq!(spent.iter().map(|it| it.calls).sum::<u64>(), 3, "the passages once, and each query");
        assert!(spent.iter().all(|it| it.usage.input_tokens > 0), "{spent:?}");
    }
}
