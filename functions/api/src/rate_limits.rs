//! Limits of requests that put agents or machines to work, or this server to long computations. Looking at the work of agents is free: a page that
//! shows a chat asks often.
//!
//! A handler that takes [`Paced`] counts. It stands behind `Access`, so strangers use up no member's allowance, and behind the idempotency
//! key, so the same request again counts once.
//!
//! Without accounts there is one person, and nothing is counted but messages to the planner chat ([`PacedMessage`]): their pace is a part of its
//! protocol (spec 003 §1).

use crate::{Context, error::ApiError, extract};
use async_trait::async_trait;
use axum::extract::FromRequestParts;
use chat::{Chats, UsageScope};
use domain::{Error, Timestamp, UserId};
use http::request::Parts;
use identity::{Allowance, Ledger, Limits, TurnTokens};
use std::sync::Arc;

/// This request counts, and was let in.
pub(crate) struct Paced;

impl FromRequestParts<Arc<Context>> for Paced {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, context: &Arc<Context>) -> Result<Self, ApiError> {
        admit(context, extract::caller(parts)?.user).await?;
        Ok(Self)
    }
}

/// This message to the planner chat counts, and was let in.
pub(crate) struct PacedMessage;

impl FromRequestParts<Arc<Context>> for PacedMessage {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, context: &Arc<Context>) -> Result<Self, ApiError> {
        let (user, auth) = (extract::caller(parts)?.user, &context.base.auth);
        match (auth.allowance(), auth.session_allowance()) {
            (None, Some(allowance)) => count(context, user, allowance, UsageScope::Sessions).await?,
            _ => admit(context, user).await?,
        }
        Ok(Self)
    }
}

/// Counts a request of this person, for routes that only some requests of count.
pub(crate) async fn admit(context: &Context, user: UserId) -> Result<(), Error> {
    match context.base.auth.allowance() {
        Some(allowance) => count(context, user, allowance, UsageScope::Anything).await,
        None => Ok(()),
    }
}

async fn count(context: &Context, user: UserId, allowance: Allowance, by: UsageScope) -> Result<(), Error> {
    let turns = Arc::new(Turns(context.chats.clone(), by));
    Limits::new(context.base.table.clone(), context.base.clock.clone(), turns, allowance).admit(user).await
}

/// The tokens that turns used, from the records that they leave when they end.
struct Turns(Chats, UsageScope);

#[async_trait]
impl Ledger for Turns {
    async fn spent(&self, user: UserId, since: Timestamp, enough: u64) -> Result<Vec<TurnTokens>, Error> {
        let turns = self.0.spent(user, self.1, since, enough).await?;
        Ok(turns.into_iter().map(|(at, tokens)| TurnTokens { at, tokens }).collect())
    }
}
