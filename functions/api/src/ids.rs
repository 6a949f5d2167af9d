//! The ids of the things that a request makes: under an idempotency key (`idempotency`) a repetition makes the same ones.

use crate::Context;
use axum::extract::FromRequestParts;
use http::request::Parts;
use std::sync::Arc;
use uuid::Uuid;

/// The source of the ids that a request makes: its idempotency key, or the clock.
#[derive(Clone)]
pub(crate) enum Ids {
    /// The scope and the key.
    Key(String, String),
    /// No key was sent.
    Fresh(Arc<dyn ports::Clock>),
}

impl Ids {
    /// The id for the `kind` of thing that the request makes.
    pub(crate) fn id(&self, kind: &str) -> Uuid {
        match self {
            Self::Key(scope, key) => domain::CommandId::from_key(&format!("{scope}/{kind}"), key).0,
            Self::Fresh(clock) => clock.id(),
        }
    }

    /// The source of the ids of one of several requests in one, by its place.
    pub(crate) fn nth(&self, place: usize) -> Self {
        match self {
            Self::Key(scope, key) => Self::Key(format!("{scope}/{place}"), key.clone()),
            Self::Fresh(clock) => Self::Fresh(clock.clone()),
        }
    }

    /// The same source, which gives the same id each time that it is asked for a kind.
    pub(crate) fn fixed(&self) -> Self {
        match self {
            Self::Key(..) => self.clone(),
            Self::Fresh(clock) => Self::Key("request".to_owned(), clock.id().to_string()),
        }
    }
}

impl FromRequestParts<Arc<Context>> for Ids {
    type Rejection = std::convert::Infallible;
    async fn from_request_parts(parts: &mut Parts, context: &Arc<Context>) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self::Fresh(context.base.clock.clone())))
    }
}
