//! Answers to permissions (spec 004 §5). An answer is to the request that was shown, and to no other: it names the request's id, and may name its
//! digest.

use super::{
    OfPermission,
    caller::Hub,
    schema::{Decision, RecordedDecision},
};
use crate::{
    Context,
    access::Approve,
    error::{Answer, excerpt},
    extract::{Json, Path},
    ids::Ids,
};
use axum::extract::State;
use chat::RuleScope;
use domain::{
    ChatEvent, ChatId, Code, CommandId, Error, PermissionId, Timestamp, WorkspaceId, event::PermissionOutcome,
};
use protocols::hub::{OFFERED, chosen};
use serde_json::Value;
use std::sync::Arc;

/// Answers a permission: with an outcome, or with one of the options of the request, which wins. 404 when nobody asked for it, 409 when it
/// is decided, or shows something else than the `digest` says.
#[utoipa::path(post, path = "/v1/permissions/{permission_id}", tag = "hub", params(OfPermission), request_body = Decision,
    responses((status = 200, description = "It is recorded.", body = RecordedDecision)))]
pub(crate) async fn answer_permission(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Approve>,
    Path(OfPermission { permission_id }): Path<OfPermission>,
    ids: Ids,
    Json(given): Json<Decision>,
) -> Answer<axum::Json<RecordedDecision>> {
    let found = context.threads().reader().permission(within.workspace, permission_id).await;
    // No chat has a log for it.
    let (chat, open) = found
        .inspect_err(|refusal| tracing::info!(by = %within.by, %refusal, "an answer to a permission is refused"))?;
    let command = CommandId(ids.id("command"));
    let Some(asked) = open else {
        let late = (permission_id, meant(&given));
        let refused = context.chats.refuse_decision(within.workspace, chat, command, late, &within.by).await;
        refused.map_err(|refusal| over(permission_id, refusal))?;
        // This very request was recorded before: its sender repeats it because the first answer was lost.
        let outcome = counted(&context, within.workspace, chat, permission_id).await?.unwrap_or(late.1);
        return Ok(axum::Json(RecordedDecision { permission_id: permission_id.0, status: "recorded", outcome }));
    };
    let has_rule = asked.get("always").is_some_and(Value::is_object);
    let options = asked.get("options").and_then(Value::as_array);
    let Meaning { outcome, always, option_id } = meaning(&given, options, has_rule)?;
    let (scope, digest) = (given.scope.unwrap_or_default(), given.digest);
    let decision = chat::Decision { always, scope, digest, option_id, ..chat::Decision::new(permission_id, outcome) };
    context.chats.decide(within.workspace, chat, command, decision, &within.by).await?;
    Ok(axum::Json(RecordedDecision { permission_id: permission_id.0, status: "recorded", outcome }))
}

/// The refusal of an answer that is late or second, in the words of the hub.
fn over(permission: PermissionId, refusal: Error) -> Error {
    if refusal.code != Code::Conflict {
        return refusal;
    }
    Error::new(Code::Conflict, format!("the permission {permission} is decided"))
        .detail("permissionId", permission.to_string())
        .hint("it was answered, withdrawn, or timed out; the thread's history tells which")
}

/// The outcome that counts for a permission, as the log of the chat has it.
async fn counted(
    context: &Context,
    workspace: WorkspaceId,
    chat: ChatId,
    permission: PermissionId,
) -> Result<Option<PermissionOutcome>, Error> {
    let mut counted = None;
    let take_in = |_: u64, _: Timestamp, event: &ChatEvent| match event {
        ChatEvent::PermissionResolved { permission_id, outcome, .. } if *permission_id == permission => {
            counted = Some(*outcome);
        }
        _ => {}
    };
    context.threads().reader().log(workspace, chat, 1, take_in).await?;
    Ok(counted)
}

/// The outcome of an answer whose request is not there any more: an option that is none of ours is no yes.
fn meant(given: &Decision) -> PermissionOutcome {
    let of_option = given.option_id.as_deref().map(|id| chosen(id).map(|offered| offered.outcome));
    let outcome = of_option.unwrap_or(given.outcome).unwrap_or(PermissionOutcome::Declined);
    if outcome == PermissionOutcome::Cancelled { PermissionOutcome::Declined } else { outcome }
}

/// A decision as the chat takes it.
#[derive(Debug, PartialEq)]
struct Meaning {
    outcome: PermissionOutcome,
    /// Whether it grants the rule that was offered.
    always: bool,
    /// The option that the coding agent hears; none for its own yes or no for this once.
    option_id: Option<String>,
}

/// The meaning of an answer. `options` are those of a coding agent that asks; `has_rule`: whether the request offers a rule.
fn meaning(given: &Decision, options: Option<&Vec<Value>>, has_rule: bool) -> Result<Meaning, Error> {
    let kind_of = |id: &str| options?.iter().find(|one| one["option_id"] == id)?["kind"].as_str();
    let plain = |outcome| Ok(Meaning { outcome, always: false, option_id: None });
    match (given.option_id.as_deref(), given.outcome) {
        (Some(id), _) => match kind_of(id) {
            Some(kind) => of_agent(id, kind, given.scope, has_rule),
            None => ours(id, options, has_rule),
        },
        // A person who withdraws says no.
        (None, Some(PermissionOutcome::Cancelled)) => plain(PermissionOutcome::Declined),
        (None, Some(outcome)) => plain(outcome),
        (None, None) => Err(Error::invalid("outcome", "there is neither an outcome nor an optionId")
            .hint("send {\"outcome\": \"approved\"}, {\"outcome\": \"declined\"} or an optionId of the request")),
    }
}

/// The agent reads its own option: one of several yeses is not another. With a scope, an option for good is a rule of ours instead.
/// Where the request offers no rule, the option is passed on for the chat, and refused for more than that.
fn of_agent(id: &str, kind: &str, scope: Option<RuleScope>, has_rule: bool) -> Result<Meaning, Error> {
    let outcome = if kind.starts_with("allow") { PermissionOutcome::Approved } else { PermissionOutcome::Declined };
    let wants_rule = scope.is_some() && kind.ends_with("_always");
    if wants_rule && !has_rule && scope != Some(RuleScope::Chat) {
        return Err(Error::invalid("scope", "the request offers no rule that could be granted")
            .hint("leave scope out: the agent hears its own option"));
    }
    let always = wants_rule && has_rule;
    Ok(Meaning { outcome, always, option_id: (!always).then(|| id.to_owned()) })
}

/// One of the options that are ours, which every request has.
fn ours(id: &str, options: Option<&Vec<Value>>, has_rule: bool) -> Result<Meaning, Error> {
    let Some(offered) = chosen(id) else {
        let of_agent = options.into_iter().flatten().filter_map(|one| one["option_id"].as_str());
        let known: Vec<&str> = of_agent.chain(OFFERED.map(|offered| offered.id)).collect();
        return Err(Error::invalid("optionId", format!("the request offers no option {:?}", excerpt(id)))
            .hint(format!("one of: {}", known.join(", "))));
    };
    if offered.always && !has_rule {
        return Err(Error::invalid("optionId", "the request offers no rule that could be granted")
            .hint("send allow_once or reject_once: this call can be decided on alone"));
    }
    Ok(Meaning { outcome: offered.outcome, always: offered.always, option_id: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(body: Value, options: &Value) -> Option<Meaning> {
        meaning(&serde_json::from_value(body).ok()?, options.as_array(), true).ok()
    }

    fn meant(outcome: PermissionOutcome, always: bool, option_id: Option<&str>) -> Option<Meaning> {
        Some(Meaning { outcome, always, option_id: option_id.map(str::to_owned) })
    }

    #[test]
    fn an_option_for_good_is_a_rule_of_ours_where_it_has_a_scope() {
        use PermissionOutcome::{Approved, Declined};
        let option = |id: &str, kind: &str| json!({ "option_id": id, "name": id, "kind": kind });
        let of_agent = json!([
            option("yes", "allow_once"),
            option("ever", "allow_always"),
            option("no", "reject_once"),
            option("never", "reject_always"),
        ]);
        for (body, expected) in [
            (json!({ "optionId": "ever" }), meant(Approved, false, Some("ever"))),
            (json!({ "optionId": "ever", "scope": "thread" }), meant(Approved, true, None)),
            (json!({ "optionId": "never", "scope": "workspace" }), meant(Declined, true, None)),
            (json!({ "optionId": "never" }), meant(Declined, false, Some("never"))),
            (json!({ "optionId": "no", "scope": "chat" }), meant(Declined, false, Some("no"))),
            (json!({ "optionId": "reject_always" }), meant(Declined, true, None)),
            (json!({ "optionId": "allow_once" }), meant(Approved, false, None)),
            (json!({ "optionId": "other" }), None),
            (json!({ "outcome": "cancelled" }), meant(Declined, false, None)),
            (json!({}), None),
        ] {
            assert_eq!(given(body.clone(), &of_agent), expected, "{body}");
        }
        let ours = json!({ "optionId": "reject_always", "scope": "person" });
        assert_eq!(given(ours, &Value::Null), meant(Declined, true, None));
    }

    #[test]
    fn an_option_for_good_of_a_request_without_a_rule_is_the_agents_own() {
        let options = json!([{ "option_id": "never", "name": "Never", "kind": "reject_always" }]);
        let without = |body: Value| match serde_json::from_value(body) {
            Ok(given) => meaning(&given, options.as_array(), false),
            Err(error) => Err(Error::invalid("body", error.to_string())),
        };
        let in_chat = without(json!({ "optionId": "never", "scope": "chat" })).ok();
        assert_eq!(in_chat, meant(PermissionOutcome::Declined, false, Some("never")));
        for (body, field) in [
            (json!({ "optionId": "never", "scope": "workspace" }), "scope"),
            (json!({ "optionId": "reject_always" }), "optionId"),
        ] {
            let error = json!(without(body.clone()).err());
            assert!(error.to_string().contains(&format!("\"field\":\"{field}\"")), "{body}: {error}");
        }
    }
}
