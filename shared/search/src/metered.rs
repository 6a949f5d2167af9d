//! The embedder of one workspace's searches: each request is noted in the usage of that workspace.

use async_trait::async_trait;
use ports::{EmbedAs, Embedded, Embedder, ModelError};
use std::sync::Arc;
use workspace::{Purpose, Workspace};

pub(crate) struct Metered {
    inner: Arc<dyn Embedder>,
    workspace: Workspace,
}

impl Metered {
    pub fn of(inner: &Arc<dyn Embedder>, workspace: &Workspace) -> Arc<dyn Embedder> {
        Arc::new(Self { inner: inner.clone(), workspace: workspace.clone() })
    }
}

#[async_trait]
impl Embedder for Metered {
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
