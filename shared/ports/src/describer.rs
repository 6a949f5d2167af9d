//! The describer port: a picture, a recording or a film in, a text out.

use crate::ModelError;
use async_trait::async_trait;
use bytes::Bytes;
use domain::Usage;

/// The words of a model about a content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// The description, as the model wrote it: it is as little to be trusted as the content. Empty where the model wrote none and was paid for it.
    pub text: String,
    /// The tokens used, with their cost if prices are known.
    pub usage: Usage,
}

/// Why a content is not described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsupportedContent {
    /// The model takes no contents of this type.
    Type,
    /// It takes no content that is longer than so many bytes.
    Longer(usize),
}

/// A model that describes contents that are no text.
#[async_trait]
pub trait Describer: Send + Sync {
    /// The name of the model, with its provider.
    fn model(&self) -> &str;
    /// Whether the model takes a content of this media type, such as `image/png`, and length in bytes.
    ///
    /// # Errors
    /// [`UnsupportedContent`].
    fn takes(&self, media_type: &str, length: usize) -> Result<(), UnsupportedContent>;
    /// Describes a content that it takes.
    ///
    /// # Errors
    /// Those of [`ModelError`]; [`ModelError::Rejected`] for a content that the model refuses.
    async fn describe(&self, media_type: &str, content: Bytes) -> Result<Description, ModelError>;
}
