//! The uses of tools in a turn, from its events: how long each waited and took, and its result.

use domain::{CallId, ChatEvent, Message, Status, Timestamp, event::PlaceWait, task::ToolUse};
use serde::{Deserialize, Serialize};

/// The calls of a turn that have no answer yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ToolUses {
    /// The calls of the last message, with their arguments.
    asked: Vec<(CallId, String)>,
    /// The call that was begun last, and when.
    begun: Option<(CallId, Timestamp)>,
    /// The call that waited last, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    awaited: Option<(CallId, Timestamp)>,
}

impl ToolUses {
    /// Takes in the next event; the use that it ends, if it ends one. `shown` is as much of arguments as is kept.
    pub fn see(&mut self, event: &ChatEvent, shown: impl Fn(&str) -> String) -> Option<ToolUse> {
        match event {
            ChatEvent::MessageAdded { message: Message::Assistant { calls, .. } } => {
                self.asked = calls.iter().map(|call| (call.call_id, shown(&call.args))).collect();
            }
            ChatEvent::PlaceAwaited(PlaceWait { call_id, at, .. }) => {
                self.awaited = self.awaited.filter(|(awaited, _)| awaited == call_id).or(Some((*call_id, *at)));
                // It has not begun: this overrides an earlier event.
                self.begun = self.begun.filter(|(begun, _)| begun != call_id);
            }
            ChatEvent::CallStarted { call_id, at: Some(at), .. } => {
                self.begun = self.begun.filter(|(begun, _)| begun == call_id).or(Some((*call_id, *at)));
            }
            ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, at, .. } => {
                let args = self.asked.iter().find(|(asked, _)| asked == call_id).map(|(_, args)| args.clone());
                let since = |of: Option<(CallId, Timestamp)>| of.filter(|(call, _)| call == call_id).map(|(_, at)| at);
                let begun = since(self.begun);
                let took = begun.map_or(0, |begun| at.since(begun).as_millis());
                let waited = since(self.awaited).map_or(0, |awaited| begun.unwrap_or(*at).since(awaited).as_millis());
                return Some(ToolUse {
                    tool: tool.clone(),
                    args: args.unwrap_or_default(),
                    status: match (success, misuse) {
                        (true, _) => Status::Success,
                        (false, true) => Status::Failure,
                        (false, false) => Status::Partial,
                    },
                    output: output.clone(),
                    code: *code,
                    duration_ms: u64::try_from(took).unwrap_or(u64::MAX),
                    queue_ms: u64::try_from(waited).unwrap_or(u64::MAX),
                    resources: *resources,
                });
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{MessageId, ToolCall, task::Resources};
    use uuid::Uuid;

    #[test]
    fn s10_4_the_use_of_a_tool_says_what_it_waited_for_and_used() {
        let (call_id, at) = (CallId(Uuid::from_u128(1)), Timestamp::from_millis);
        let resources = Some(Resources { cpu_ms: 4, peak_memory_bytes: 5, bytes_in: 6, bytes_out: 7 });
        let call = ToolCall { call_id, tool: "exec".into(), args: "{}".into() };
        let message = Message::Assistant {
            id: MessageId(Uuid::nil()),
            at: at(0),
            content: String::new(),
            calls: vec![call],
            reasoning: String::new(),
            provider: serde_json::Value::Null,
        };
        let started = |attempt, now| ChatEvent::CallStarted {
            call_id,
            attempt,
            tool: "exec".into(),
            path: None,
            args: "{}".into(),
            at: Some(at(now)),
        };
        let awaited = |attempt, now, until| {
            ChatEvent::PlaceAwaited(PlaceWait { call_id, attempt, at: at(now), why: None, until })
        };
        let mut uses = ToolUses::default();
        let before = [
            ChatEvent::MessageAdded { message },
            awaited(1, 1_000, None),
            started(1, 3_000),
            // The machine was not ready.
            awaited(2, 3_500, Some(at(5_000))),
            started(2, 5_000),
            // A crash: it goes on.
            started(3, 6_000),
        ];
        assert!(before.iter().all(|event| uses.see(event, str::to_owned).is_none()));
        let observed = ChatEvent::Observed {
            call_id,
            tool: "exec".into(),
            output: "done".into(),
            success: true,
            misuse: false,
            code: None,
            resources,
            truncated: false,
            seen: Vec::new(),
            at: at(9_000),
        };
        let used = uses.see(&observed, str::to_owned);
        let told = used.map(|used| (used.args, used.queue_ms, used.duration_ms, used.resources));
        assert_eq!(told, Some(("{}".to_owned(), 4_000, 4_000, resources)));
    }
}
