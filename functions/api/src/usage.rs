//! The usage of turns in a workspace, by day, person, chat and model. A turn is counted once, with the chat that it is of; a chat with its agents is the
//! sum of its own turns and theirs.

use crate::{
    Context,
    access::{Access, Read},
    error::{Answer, excerpt},
    extract::Query,
    schema::{ModelUsage, UsageByChat, UsageByPurpose, UsageReport, UsageTotals},
    workspaces::InWorkspace,
};
use axum::{Json, extract::State};
use chat::TurnUsage;
use domain::{ChatId, Error, UserId};
use jiff::{ToSpan, civil::Date};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::IntoParams;
use workspace::DailyUsage;

/// The days that are told about when none are asked for.
const DAYS: i64 = 30;

/// A range of days.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Days {
    /// The first day, in UTC; 29 days before the last one when none.
    #[param(example = "2026-11-01")]
    from: Option<String>,
    /// The last day, in UTC; today when none.
    #[param(example = "2026-11-30")]
    to: Option<String>,
    /// Only this chat, with the agents that work for it: its executors, or its team.
    #[param(value_type = Option<uuid::Uuid>)]
    chat_id: Option<ChatId>,
    /// Only turns of agents that work for this person.
    #[param(value_type = Option<uuid::Uuid>)]
    user_id: Option<UserId>,
}

/// Tokens, money and calls of the turns that ended on these days of UTC, and of the work of models outside of turns: vectors for searches by meaning, and
/// descriptions of documents.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/usage", tag = "usage", params(InWorkspace, Days),
    responses((status = 200, description = "The sum, and its parts by day, person, chat and model.", body = UsageReport)))]
pub(crate) async fn get_usage(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
    Query(days): Query<Days>,
) -> Answer<Json<UsageReport>> {
    let now =
        jiff::Timestamp::from_millisecond(context.base.clock.now().as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let to = day("to", days.to.as_deref())?.unwrap_or(today);
    let from = day("from", days.from.as_deref())?.unwrap_or(to.saturating_sub((DAYS - 1).days()));
    if from > to {
        return Err(Error::invalid("from", "the first day is after the last one")
            .hint("give from and to as days, the earlier one as from")
            .into());
    }
    let (from, to) = (from.to_string(), to.to_string());
    let turns = context.chats.usage(at.workspace_id, &from, &to).await?;
    let spent = context.base.workspaces.open(at.workspace_id, files).await?.spent(&from, &to).await?;

    let (mut total, mut parts) = (UsageTotals::default(), BTreeMap::<_, UsageTotals>::new());
    let is_meant = |turn: &TurnUsage| {
        days.chat_id.is_none_or(|chat| turn.chat_id == chat || turn.parent_chat_id == Some(chat))
            && (days.user_id.is_none() || turn.user_id == days.user_id)
    };
    for turn in turns.into_iter().filter(is_meant) {
        total.add(turn.calls, turn.usage);
        let part = (turn.day, turn.chat_id, turn.parent_chat_id, turn.user_id, turn.model);
        parts.entry(part).or_default().add(turn.calls, turn.usage);
    }
    let parts = parts.into_iter().map(|((day, chat, parent, user, model), used)| UsageByChat {
        day,
        chat_id: chat.0,
        parent_chat_id: parent.map(|parent| parent.0),
        user_id: user.map(|user| user.0),
        model,
        used,
    });
    let parts = parts.collect();
    // Such work is of no chat, and of no person.
    let spent = spent.into_iter().filter(|_| days.chat_id.is_none() && days.user_id.is_none());
    let other = spent.map(|DailyUsage { day, purpose, model, calls, usage }| {
        total.add_work(calls, usage);
        UsageByPurpose { day, purpose: purpose.into(), model, work: ModelUsage::of(calls, usage) }
    });
    let other = other.collect();
    Ok(Json(UsageReport { from, to, total, parts, other }))
}

fn day(field: &str, text: Option<&str>) -> Result<Option<Date>, Error> {
    // Only this one of the many forms of ISO 8601: keys of the table begin with it.
    let parse = |text: &str| (text.len() == 10).then(|| text.parse::<Date>().ok()).flatten();
    let unfit =
        |text: &str| Error::invalid(field, format!("{:?} is no day", excerpt(text))).hint("write it like 2026-11-30");
    text.map(|text| parse(text).ok_or_else(|| unfit(text))).transpose()
}
