//! The work with the process of a thread: its updates are joined, bounded and reported, until the leg is over.

use super::copy::{Comparison, Copy, RefusedChange};
use crate::{
    machine::{AgentDoes, AgentReport, AgentWork, ChatMachine, Report},
    perform::ChatEffects,
    pieces::{PieceKind, Pieces},
};
use actor::EffectContext;
use domain::{AgentOptions, Code, Error, FilePath, MessageId, Principal, json_length};
use ports::{AgentTurn, AgentUpdate};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How long an agent may take to end a turn that was cancelled, with the grace after which it is killed.
const CANCELLED: Duration = Duration::from_secs(30);
/// How much of an update the log has, in bytes.
const MAX_UPDATE: usize = 128 * 1024;
/// How long a text in a long update may be, in bytes: shorter ones are tried until it fits.
const TEXTS: [usize; 4] = [32 * 1024, 8 * 1024, 1024, 128];

impl ChatEffects {
    pub(crate) async fn work_with_agent(&self, work: AgentWork, context: &EffectContext<ChatMachine>) -> Report {
        let (turn, leg, deadline) = (work.turn, work.leg, work.deadline);
        let report = |report| Report::Agent { leg, report };
        let done = match work.does {
            AgentDoes::Cancel => {
                let cancelled = self.agents.cancel(&turn).await;
                if let Some(copy) = self.copy_of(&work) {
                    self.settle_after_cancel(&copy, &turn).await;
                }
                cancelled
            }
            AgentDoes::End => self.agents.end(turn.workspace, turn.chat).await,
            AgentDoes::Prompt(_) | AgentDoes::Answer { .. } | AgentDoes::Follow => {
                let left = deadline.since(self.clock.now());
                let mut pieces = Pieces::new(leg);
                let ended = tokio::select! {
                    biased;
                    ended = self.follow_agent(work, &mut pieces, context) => {
                        ended.unwrap_or_else(|error| failed(&error))
                    }
                    // The report of a leg that was dropped is dropped.
                    () = context.cancelled.cancelled() => return Report::Told,
                    () = tokio::time::sleep(left) => {
                        if let Err(error) = self.agents.cancel(&turn).await {
                            tracing::warn!(error = %error.with_causes(), "an agent whose time is up was not told so");
                        }
                        let error = Error::new(Code::Timeout, "the turn's time is up");
                        AgentReport::Failed { error, timed_out: true }
                    }
                };
                pieces.report(context).await;
                return report(ended);
            }
        };
        if let Err(error) = done {
            tracing::warn!(error = %error.with_causes(), chat = %turn.chat, "an agent was not told to end");
        }
        Report::Told
    }

    async fn follow_agent(
        &self,
        work: AgentWork,
        pieces: &mut Pieces,
        context: &EffectContext<ChatMachine>,
    ) -> ports::Result<AgentReport> {
        let copy = self.copy_of(&work);
        let AgentWork { turn, leg, by, does, .. } = work;
        if matches!(does, AgentDoes::Prompt(_) | AgentDoes::Follow)
            && let Err(error) = self.tell_denials(&by, (turn, leg), context).await
        {
            // The agent works already, and nobody would follow it any more.
            if matches!(does, AgentDoes::Follow) {
                self.agents.cancel(&turn).await?;
            }
            return Ok(AgentReport::Failed { error, timed_out: false });
        }
        self.begin_leg(does, &by, copy.as_ref(), (turn, leg), context).await?;
        loop {
            let updates = tokio::select! {
                biased;
                updates = self.agents.updates(&turn) => updates?,
                () = tokio::time::sleep_until(pieces.due), if !pieces.is_empty() => {
                    pieces.report(context).await;
                    continue;
                }
            };
            let (mut told, mut is_call_over) = (Vec::new(), false);
            for update in updates {
                if !matches!(update, AgentUpdate::Session(_)) && !told.is_empty() {
                    let report = AgentReport::Updated(std::mem::take(&mut told));
                    context.report(Report::Agent { leg, report }).await;
                }
                let rests =
                    matches!(update, AgentUpdate::Asks(_) | AgentUpdate::Ended { .. } | AgentUpdate::Gone { .. });
                if let Some(copy) = copy.as_ref().filter(|_| rests) {
                    pieces.report(context).await;
                    settle(copy, None, (turn, leg), context).await;
                }
                match update {
                    AgentUpdate::Text(text) => pieces.add(PieceKind::Text, &text, context).await,
                    AgentUpdate::Thought(text) => pieces.add(PieceKind::Reasoning, &text, context).await,
                    AgentUpdate::Session(update) => {
                        pieces.report(context).await;
                        is_call_over |= matches!(update["status"].as_str(), Some("completed" | "failed"));
                        told.push(bounded(update));
                    }
                    AgentUpdate::Bound { session } => {
                        let report = AgentReport::Bound(session);
                        context.report(Report::Agent { leg, report }).await;
                    }
                    AgentUpdate::Wrote { request, path } => {
                        self.settle_written(copy.as_ref(), (&request, &path), (turn, leg), context).await;
                    }
                    AgentUpdate::Asks(request) => return Ok(AgentReport::Asked(Box::new(request))),
                    AgentUpdate::Ended { stop_reason } => return Ok(AgentReport::Ended(stop_reason)),
                    AgentUpdate::Gone { reason } => {
                        let error = Error::new(Code::UpstreamUnavailable, reason)
                            .hint("what it has changed is kept; the next message starts the agent afresh");
                        return Ok(AgentReport::Failed { error, timed_out: false });
                    }
                }
            }
            if !told.is_empty() {
                context.report(Report::Agent { leg, report: AgentReport::Updated(told) }).await;
            }
            // The batch had all that waited. A request for more would be cut off at once, and it may go to another machine.
            if Instant::now() >= pieces.due {
                pieces.report(context).await;
            }
            if let Some(copy) = copy.as_ref().filter(|_| is_call_over) {
                settle(copy, None, (turn, leg), context).await;
            }
        }
    }

    /// Gives the agent the words of the person, or the answer to its request, if the leg has any.
    async fn begin_leg(
        &self,
        does: AgentDoes,
        by: &Principal,
        copy: Option<&Copy>,
        (turn, leg): (AgentTurn, MessageId),
        context: &EffectContext<ChatMachine>,
    ) -> ports::Result<()> {
        match does {
            AgentDoes::Prompt(mut prompt) => {
                if let Some(copy) = copy {
                    let (words, settled) = copy.bring().await?;
                    prompt.content.splice(0..0, words);
                    tell(settled, (turn, leg), context).await;
                }
                prompt.content = self.with_attachments(turn.workspace, by, prompt.content).await;
                self.agents.prompt(*prompt).await
            }
            AgentDoes::Answer { request, option } => self.agents.answer(&turn, &request, option.as_deref()).await,
            AgentDoes::Follow | AgentDoes::Cancel | AgentDoes::End => Ok(()),
        }
    }

    /// Makes a version of a file that the agent has written. The agent waits for the answer, which says whether the version was refused.
    async fn settle_written(
        &self,
        copy: Option<&Copy>,
        (request, path): (&str, &FilePath),
        (turn, leg): (AgentTurn, MessageId),
        context: &EffectContext<ChatMachine>,
    ) {
        let refused = match copy {
            Some(copy) => settle(copy, Some(path), (turn, leg), context).await,
            None => Vec::new(),
        };
        let why = refused.iter().find(|refused| refused.path == *path).map(|refused| &*refused.why);
        // A turn that is being cancelled has answered it.
        if let Err(error) = self.agents.settle(&turn, request, why).await {
            tracing::debug!(error = %error.with_causes(), "an agent does not hear of its file");
        }
    }

    /// Makes versions of the changes of a turn that was cancelled, once the agent has ended it.
    async fn settle_after_cancel(&self, copy: &Copy, turn: &AgentTurn) {
        let ended = async {
            while let Ok(updates) = self.agents.updates(turn).await {
                if updates.iter().any(|one| matches!(one, AgentUpdate::Ended { .. } | AgentUpdate::Gone { .. })) {
                    return;
                }
            }
        };
        // One that does not end is killed before that.
        let _ = tokio::time::timeout(CANCELLED, ended).await;
        if let Err(error) = copy.settle(None).await {
            tracing::warn!(%error, chat = %turn.chat, "the changes of a cancelled turn become versions with the next turn");
        }
    }
}

/// Makes versions of the changes of an agent, and tells of those that were refused. Changes that cannot be told now are found the next time.
async fn settle(
    copy: &Copy,
    told: Option<&FilePath>,
    (turn, leg): (AgentTurn, MessageId),
    context: &EffectContext<ChatMachine>,
) -> Vec<RefusedChange> {
    match copy.settle(told).await {
        Ok(settled) => tell(settled, (turn, leg), context).await,
        Err(error) => {
            tracing::warn!(%error, chat = %turn.chat, "the changes of an agent become versions with its next call or turn");
            Vec::new()
        }
    }
}

/// Tells of what came of a comparison; the refusals.
async fn tell(
    settled: Comparison,
    (turn, leg): (AgentTurn, MessageId),
    context: &EffectContext<ChatMachine>,
) -> Vec<RefusedChange> {
    let Comparison { changed, refused } = settled;
    if !changed.is_empty() {
        context.report(Report::Agent { leg, report: AgentReport::Changed(changed) }).await;
    }
    if !refused.is_empty() {
        let report = AgentReport::Updated(RefusedChange::as_updates(&refused, turn));
        context.report(Report::Agent { leg, report }).await;
    }
    refused
}

fn failed(error: &ports::Error) -> AgentReport {
    let error = match error {
        ports::Error::Conflict { .. } => return AgentReport::Lost,
        ports::Error::Invalid(why) => Error::new(Code::Unprocessable, why.clone()).hint(
            "GET /api/v1/agents lists agents and their folders; PATCH /v1/threads/ID changes the options of a thread",
        ),
        ports::Error::Unavailable { source, .. } => {
            Error::new(Code::UpstreamUnavailable, source.to_string()).hint("the next message starts the agent afresh")
        }
        ports::Error::Damaged(why) => Error::new(Code::Internal, why.clone()),
        ports::Error::Lost { place, damage } => damage.refusal(place),
    };
    AgentReport::Failed { error, timed_out: false }
}

/// An update as the log has it: whole, or with its long texts cut.
fn bounded(mut update: Value) -> Value {
    // The settings of a thread follow the options of its agent: of a long list the ids and the values stay.
    if update["sessionUpdate"] == "config_option_update" && json_length(&update) > MAX_UPDATE {
        let options = AgentOptions::current(&update["configOptions"]).into_iter();
        let options: Vec<Value> = options.map(|(id, value)| json!({ "id": id, "currentValue": value })).collect();
        update["configOptions"] = json!(options);
    }
    for most in TEXTS {
        if json_length(&update) <= MAX_UPDATE {
            return update;
        }
        cut(&mut update, most);
    }
    if json_length(&update) <= MAX_UPDATE {
        return update;
    }
    json!({
        "sessionUpdate": update["sessionUpdate"], "toolCallId": update["toolCallId"], "status": update["status"],
        "title": "an update that is too long for the log",
    })
}

fn cut(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.len() > most => {
            text.truncate(text.floor_char_boundary(most));
            text.push('…');
        }
        Value::Array(all) => all.iter_mut().for_each(|one| cut(one, most)),
        Value::Object(all) => all.values_mut().for_each(|one| cut(one, most)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_update_is_cut_and_stays_json() {
        let small = json!({ "sessionUpdate": "plan", "entries": [] });
        assert_eq!(bounded(small.clone()), small);
        let long = bounded(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "rawOutput": "ä".repeat(1 << 20) }),
        );
        assert!(json_length(&long) <= MAX_UPDATE);
        assert_eq!(long["toolCallId"], "t");
        let wide = bounded(json!({ "sessionUpdate": "plan", "entries": vec!["x"; 1 << 17] }));
        assert_eq!(wide["title"], "an update that is too long for the log");
        let options = vec![json!({ "id": "effort", "currentValue": "high", "options": vec!["x"; 1 << 17] })];
        let chosen = bounded(
            json!({ "sessionUpdate": "config_option_update", "configOptions": options, "changed": ["effort"] }),
        );
        assert_eq!(chosen["configOptions"], json!([{ "id": "effort", "currentValue": "high" }]));
        assert_eq!(chosen["changed"], json!(["effort"]));
    }
}
