//! The ends of turns, and their exit codes for scripts.

use crate::{failure::Exit, follow::Event, value::text};

/// The end of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The turn.
    pub(crate) turn_id: String,
    /// The exit code of a command that waited for it.
    pub(crate) exit: Exit,
    /// A remark for people; none when all is well.
    pub(crate) remark: Option<String>,
}

/// The end of a turn, if `event` is one.
pub(crate) fn ending(event: &Event) -> Option<Ending> {
    let (exit, remark) = match event.name.as_str() {
        "done" => match text(&event.data, "stop_reason") {
            "end_turn" | "" => (Exit::Done, None),
            reason => (Exit::Cut, Some(explained(reason))),
        },
        "stopped" => (Exit::Stopped, Some(format!("stopped ({})", text(&event.data, "reason")))),
        _ => return None,
    };
    Some(Ending { turn_id: text(&event.data, "turn_id").to_owned(), exit, remark })
}

fn explained(reason: &str) -> String {
    match reason {
        "max_output_tokens" => "the answer reached the length that the model may write at once".into(),
        "refusal" => "the model's provider refused to go on".into(),
        "step_limit" => "ended: the turn used all its steps; another message goes on".into(),
        "token_limit" => "ended: the turn used all its tokens; another message goes on".into(),
        "time_limit" => "ended: the turn used all its time; another message goes on".into(),
        "cost_limit" => "ended: the turn used all its money; another message goes on".into(),
        "context_limit" => "ended: the turn is longer than the model's context".into(),
        "error" => "ended by the error above".into(),
        other => format!("ended: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ends_and_their_exit_codes() {
        let check = |name: &str, data, expected: Option<Exit>| {
            let event = Event { number: Some(1), name: name.into(), data };
            assert_eq!(ending(&event).map(|ending| ending.exit), expected, "{event:?}");
        };
        check("done", json!({ "stop_reason": "end_turn", "turn_id": "t" }), Some(Exit::Done));
        check("done", json!({ "stop_reason": "step_limit" }), Some(Exit::Cut));
        check("done", json!({ "stop_reason": "error" }), Some(Exit::Cut));
        check("done", json!({ "stop_reason": "something new" }), Some(Exit::Cut));
        check("stopped", json!({ "reason": "user_cancelled" }), Some(Exit::Stopped));
        check("error", json!({ "code": "INTERNAL" }), None);
        check("message", json!({}), None);
    }
}
