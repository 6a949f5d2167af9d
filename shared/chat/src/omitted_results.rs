//! A turn that alone is longer than the context goes on without the results of its earlier calls. The model has read them, and can look again.
//!
//! The choice is a function of the turn and its budget. More results are left out at once than needed. So the bytes before them, and with these the
//! provider's cache of the prefix, stay the same for many calls. The log keeps every result.

use crate::{session_plan::RUN_PLAN, tool_disclosure::TOOL_INFO};
use domain::{Message, text::counted};
use std::sync::Arc;

/// The tokens of the results that are left out are a multiple of a power of two, which is at least this percentage of the budget. So the choice does not
/// follow small changes of the budget, which the counts of the provider change a little with each call.
const STEP_PERCENT: u64 = 30;
/// A shorter result stays, in tokens: the note in its place would be about as long.
const SHORT: u64 = 200;
/// The tools whose results stay: no second call gives them again, or the declarations of tools follow from them.
const KEPT: [&str; 4] = ["ask_user", RUN_PLAN, TOOL_INFO, tools::SERVED_SEARCH];

/// The messages of a turn without results that make it `over` tokens longer than its `budget`, and the tokens of these; none where that is not enough.
pub(crate) fn without_results(turn: &[Arc<Message>], over: u64, budget: u64) -> Option<(Vec<Arc<Message>>, u64)> {
    let step = (budget / 100 * STEP_PERCENT).next_power_of_two();
    let wanted = over.div_ceil(step) * step;
    // The model has not read the results of its last calls: no more of them are left out than needed, and never the newest one.
    let unread = turn.iter().rposition(|message| matches!(**message, Message::Assistant { .. })).unwrap_or_default();
    let (mut messages, mut freed) = (turn.to_vec(), 0);
    let newest = turn.iter().rposition(|message| matches!(**message, Message::Tool { .. })).unwrap_or_default();
    for (place, message) in messages.iter_mut().enumerate().take(newest) {
        let needed = if place < unread { wanted } else { over };
        if freed >= needed {
            break;
        }
        let size = message.tokens();
        let Message::Tool { call_id, tool, at, output, success } = &**message else { continue };
        if size < SHORT || KEPT.contains(&tool.as_str()) {
            continue;
        }
        // A call that changed something is not made again for its result.
        let came = if *success { "succeeded" } else { "failed" };
        let output = format!(
            "[This call {came}. Its result of {} is left out, as the turn is longer than your context. Look again where you \
             need it, at a smaller part.]",
            counted(output.len(), "byte")
        );
        let note = Message::Tool { call_id: *call_id, tool: tool.clone(), at: *at, output, success: *success };
        freed += size - note.tokens();
        *message = Arc::new(note);
    }
    (freed >= over).then_some((messages, freed))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use domain::{CallId, MessageId, Timestamp};
    use uuid::Uuid;

    const BUDGET: u64 = 10_000;

    fn result(number: u128, tool: &str) -> Arc<Message> {
        let (call_id, at) = (CallId(Uuid::from_u128(number)), Timestamp::default());
        Arc::new(Message::Tool { call_id, tool: tool.into(), at, output: "x".repeat(4_000), success: true })
    }

    fn answer() -> Arc<Message> {
        let (id, at) = (MessageId(Uuid::nil()), Timestamp::default());
        let (content, calls, reasoning) = (String::new(), Vec::new(), String::new());
        Arc::new(Message::Assistant { id, at, content, calls, reasoning, provider: serde_json::Value::Null })
    }

    /// The places of the results that are left out.
    fn left_out(turn: &[Arc<Message>], over: u64) -> Option<Vec<usize>> {
        let (kept, freed) = without_results(turn, over, BUDGET)?;
        let size = |messages: &[Arc<Message>]| messages.iter().map(|message| message.tokens()).sum::<u64>();
        assert_eq!(size(turn) - size(&kept), freed);
        assert_eq!(kept.len(), turn.len(), "each call keeps a result");
        Some((0..turn.len()).filter(|at| kept[*at] != turn[*at]).collect())
    }

    #[test]
    fn the_oldest_results_give_way_in_steps_and_those_that_no_call_gives_again_stay() {
        let one_by_one = |tool| (0..8).flat_map(move |number| [answer(), result(number, tool)]).collect::<Vec<_>>();
        let turn = one_by_one("read");
        let first = left_out(&turn, 1).unwrap();
        assert_eq!(first, [1, 3, 5, 7, 9], "4,096 tokens at once");
        assert_eq!(left_out(&turn, 4_096).unwrap(), first, "the same bytes until the next step");
        assert!(left_out(&turn, 4_097).unwrap().starts_with(&[1, 3, 5, 7, 9, 11]));
        assert_eq!(without_results(&turn, 1, 9_000), without_results(&turn, 1, BUDGET), "and for a budget near it");
        assert_eq!(left_out(&turn, 9_000), None, "the newest result stays");
        for tool in KEPT {
            assert_eq!(left_out(&one_by_one(tool), 1), None, "{tool}");
        }
    }

    #[test]
    fn results_that_the_model_has_not_read_give_way_as_far_as_they_have_to() {
        let turn: Vec<_> = [answer()].into_iter().chain((0..8).map(|number| result(number, "read"))).collect();
        assert_eq!(left_out(&turn, 1).unwrap(), [1]);
        assert_eq!(left_out(&turn, 1_500).unwrap(), [1, 2]);
        let (id, at) = (MessageId(Uuid::nil()), Timestamp::default());
        let words = Message::System { id, at, content: "Be quick.".into() };
        let turn = [turn[0].clone(), turn[1].clone(), Arc::new(words)];
        assert_eq!(left_out(&turn, 1), None, "the newest result stays, also before words");
    }
}
