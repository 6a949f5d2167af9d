//! The embedder port: texts in, vectors out.

use crate::ModelError;
use async_trait::async_trait;
use domain::Usage;

/// The use of a text that is embedded. Some models embed a question in another way than the passages that answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmbedAs {
    /// It is looked for.
    Query,
    /// It is found.
    Passage,
}

/// The vectors of texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embedded {
    /// One per text, in their order, all of one length. Where the last texts failed, those of the texts before them.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens used, with their cost if prices are known: of all requests that were answered, also of those whose vectors are missing.
    pub usage: Usage,
    /// Why the last texts have no vectors, although something was used. None when each text has its vector.
    pub failed: Option<ModelError>,
}

/// A model that embeds texts: near vectors (by their angle) are near in meaning.
///
/// Guarantees: a vector per text, in their order, of at least one number, all finite, and none all zero.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Names the model, and the chosen length of its vectors: vectors under different names cannot be compared.
    fn space(&self) -> &str;
    /// The most texts of one request.
    fn most_texts(&self) -> usize;
    /// Embeds texts. None of them may be blank. A failure after something was used is in [`Embedded::failed`], so that the usage is counted.
    ///
    /// # Errors
    /// Those of [`ModelError`], when nothing was used; [`ModelError::Rejected`] for too many texts, a blank one, and one that the model does not take.
    async fn embed(&self, texts: &[String], purpose: EmbedAs) -> Result<Embedded, ModelError>;
}
