//! Persisted shapes of chats, as every version wrote them; and an old log folds to the same state in every version.

#![expect(clippy::unwrap_used, reason = "tests")]

use actor::Machine as _;
use buildscale_chat::{ChatMachine, ChatState, TurnUsage};
use domain::{ChatEvent, ChatId, TaskId, TurnId, Usage, UserId};
use serde_json::json;
use testkit::golden;
use uuid::Uuid;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Snapshots hold the folded state: a change of it makes earlier snapshots invalid.
#[test]
fn an_old_log_folds_to_what_it_always_did() {
    let log = include_str!("../../domain/tests/golden/chat_events/22.json");
    let events: Vec<ChatEvent> = serde_json::from_str(log).unwrap();
    let (mut state, mut states) = (ChatState::default(), Vec::new());
    for (number, event) in (1..).zip(&events) {
        state.apply(number, event);
        let is_shown = matches!(
            event,
            ChatEvent::TurnQueued { .. }
                | ChatEvent::Chunk { .. }
                | ChatEvent::CallStarted { .. }
                | ChatEvent::PermissionRequired { .. }
                | ChatEvent::PermissionResolved { .. }
                | ChatEvent::Asked { .. }
                | ChatEvent::StopRequested { .. }
                | ChatEvent::Paused { .. }
                | ChatEvent::Unpaused { .. }
                | ChatEvent::Deleted { .. }
                | ChatEvent::Analysed { .. }
                | ChatEvent::Planned { .. }
                | ChatEvent::StepStarted { .. }
                | ChatEvent::StepEnded { .. }
                | ChatEvent::Team { .. }
                | ChatEvent::HandedOut(_)
                | ChatEvent::ModelStarted { context: Some(_), .. }
                | ChatEvent::DenialsRead { .. }
        );
        if is_shown {
            states.push(serde_json::to_value(&state).unwrap());
        }
    }
    let states: Vec<ChatState> = serde_json::from_value(json!(states)).unwrap();
    let version = golden::check(ROOT, "chat_states", &states);
    assert_eq!(version, ChatMachine::VERSION, "another fold is another version of the machine");
}

#[test]
fn old_usage_of_turns_is_read_for_ever() {
    let usage = TurnUsage {
        day: "2026-01-01".into(),
        chat_id: ChatId(Uuid::from_u128(1)),
        turn_id: TurnId(Uuid::from_u128(2)),
        task_id: Some(TaskId(Uuid::from_u128(3))),
        parent_chat_id: Some(ChatId(Uuid::from_u128(4))),
        of_session: false,
        user_id: Some(UserId(Uuid::from_u128(5))),
        model: Some("a/b".into()),
        calls: 2,
        usage: Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 2, cost_usd: 0.25 },
    };
    golden::check(ROOT, "turn_usage", &usage);
}
