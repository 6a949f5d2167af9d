//! The embedder of one workspace's searches: each request is noted in the usage of that workspace.

use async_trait::async_trait;
use ports::{EmbedAs, Embedded, Embedder, ModelError};
use std::sync::Arc;
use workspace::{Purpose, Workspace};

pub(crate) struct MeteredEmbedder {
    inner: Arc<dyn Embedder>,
    workspace: Workspace,
}

impl MeteredEmbedder {
    pub fn of(inner: &Arc<dyn Embedder>, workspace: &Workspace) -> Arc<dyn Embedder> {
        Arc::new(Self { inner: inner.clone(), workspace: workspace.clone() })
    }
}

#[async_trait]
impl Embedder for MeteredEmbedder {
    fn space(&self) -> &str {
        self.inner.space()
    }

    fn most_texts(&self) -> usize {
        self.inner.most_texts()
    }

    async fn embed(&self, texts: &[String], purpose: EmbedAs) -> Result<Embedded, ModelError> {
        let embedded = self.inner.embed(texts, purpose).await?;
        self.workspace.note_spent(Purpose::Embedding, self.inner.space(), embedded.usage).await;
        Ok(embedded)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::{Principal, WorkspaceId};
    use ports::{Clock, SystemClock};
    use testkit::{
        conformance,
        fakes::{FakeBlobs, FakeEmbedder, FakeTable, Faults},
    };
    use workspace::{Access, Workspaces};

    #[tokio::test]
    async fn a_metered_embedder_conforms_and_its_tokens_are_noted() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let (blobs, root) = (Arc::new(FakeBlobs::new(1, Faults::none())), tempfile::tempdir().unwrap());
        let all = Workspaces::new(table, blobs, clock, root.path().into());
        let id = WorkspaceId::from_key("tests", "metered");
        all.create(id, "test", &Principal::local()).await.unwrap();
        let workspace = all.open(id, Access::platform("a test")).await.unwrap();
        let inner: Arc<dyn Embedder> = Arc::new(FakeEmbedder::new("fake/words"));
        conformance::embedder(|| async { MeteredEmbedder::of(&inner, &workspace) }).await;
        let spent = workspace.spent("2000-01-01", "2999-12-31").await.unwrap();
        assert!(spent.iter().any(|it| it.purpose == Purpose::Embedding && it.usage.input_tokens > 0), "{spent:?}");
    }
}
