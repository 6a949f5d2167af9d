//! Dead letters, for the operator: messages that the queue put aside after too many attempts. Their contents are not shown, since they
//! are words of people.

use crate::{
    Context,
    error::{Answer, ApiError},
    extract::{Json, Operator, Query, page_length},
    schema,
};
use axum::extract::State;
use domain::{Error, text::shortened};
use ports::DeadLetterQueue;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The usual number of letters in a list, and the most.
const USUAL: usize = 50;
const MOST: usize = 200;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many at most; 1 to 200 [default: 50].
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// The dead letters to send again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RedriveRequest {
    /// The group: those of one actor, as the list names it.
    #[schema(example = "chat/019bf537-f228-7cd3-aa1c-3da8af302e12/019bf537-f228-7cd3-aa1c-3da8af302e13")]
    group: String,
}

/// The messages that were put aside after too many attempts, the oldest first. They are for the operator of the server.
#[utoipa::path(get, path = "/api/v1/dead-letters", tag = "health", params(ListQuery),
    responses((status = 200, description = "Some of them.", body = schema::DeadLetters)))]
pub(crate) async fn list_dead_letters(
    State(context): State<Arc<Context>>,
    Operator: Operator,
    Query(query): Query<ListQuery>,
) -> Answer<axum::Json<schema::DeadLetters>> {
    let limit = page_length(query.limit, USUAL, MOST)?;
    let mut letters = queue(&context)?.dead_letters(limit + 1).await?;
    let has_more = letters.len() > limit;
    letters.truncate(limit);
    let dead_letters = letters.into_iter().map(|letter| schema::DeadLetter {
        group: letter.message.group,
        id: letter.message.id,
        attempts: letter.attempts,
        put_aside_at: letter.at.to_string(),
    });
    Ok(axum::Json(schema::DeadLetters { dead_letters: dead_letters.collect(), has_more }))
}

/// Sends the dead letters of one actor again, in their order, with no attempts used. They come after the messages that the actor has now.
#[utoipa::path(post, path = "/api/v1/dead-letters/redrive", tag = "health", request_body = RedriveRequest,
    responses((status = 200, description = "They are sent.", body = schema::Redriven)))]
pub(crate) async fn redrive_dead_letters(
    State(context): State<Arc<Context>>,
    Operator: Operator,
    Json(request): Json<RedriveRequest>,
) -> Answer<axum::Json<schema::Redriven>> {
    match queue(&context)?.redrive(&request.group).await? {
        0 => {
            let error = Error::not_found("dead letter", format!("of {:?}", shortened(&request.group, 100)));
            Err(error.hint("GET /api/v1/dead-letters lists the groups that have any").into())
        }
        redriven => Ok(axum::Json(schema::Redriven { redriven })),
    }
}

fn queue(context: &Context) -> Result<&dyn DeadLetterQueue, ApiError> {
    context.base.dead_letters.as_deref().ok_or_else(|| {
        let error = Error::not_found("route", "for dead letters on AWS");
        error
            .hint("scripts/redrive lists them and sends them again, with the rights of an operator of the stack")
            .into()
    })
}
