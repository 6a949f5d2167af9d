//! Messages that come again: while they are worked on, and after they were deleted.

use crate::lane::{Lane, chat_id};
use actor::{Content, Envelope};
use aws_sdk_sqs::Client;
use domain::{ChatCommand, CommandId, Principal, Timestamp, TurnRequest};
use emulators::account;
use journeys::Emulators;
use ports::QueueMessage;
use std::sync::Arc;

impl Lane {
    /// Puts a message into the queue as a sender would, but under an identity of its own, so that the queue takes it for a new one.
    pub async fn send(&self, message: &QueueMessage, identity: &str) {
        let body = serde_json::to_string(message).unwrap();
        let client = Client::new(&account::sdk(self.world.sqs.endpoint()));
        let send = client.send_message().queue_url(self.world.queue_url("commands")).message_body(body);
        send.message_group_id(&message.group).message_deduplication_id(identity).send().await.unwrap();
    }

    /// A command of a chat once more.
    fn again(&self, chat: &str, id: CommandId, command: ChatCommand) -> QueueMessage {
        let content = Content::Command { body: command };
        let envelope = Envelope { id, at: Timestamp::default(), by: Principal::local(), content };
        envelope.to(&chat::actor_id(self.workspace, chat_id(chat))).unwrap()
    }
}

/// A lease runs out while its worker still works, and another one begins; the first one's writes are refused. And messages that were
/// deleted from the queue long ago come once more, in any order.
pub async fn repeated_messages_are_done_once(emulators: &Arc<Emulators>) {
    let lane = Lane::deploy(emulators, &[]).await;
    let (chat, watch) = lane.make("large-late").await;
    lane.say(&chat, "slow please").await;
    let streams = |attempt: u64| {
        move |events: &[journeys::Event]| {
            let begun =
                events.iter().rposition(|event| event.name == "turn_started" && event.data["attempt"] == attempt);
            begun.is_some_and(|at| events.get(at..).unwrap_or_default().iter().any(|event| event.name == "chunk"))
                && journeys::count(events, "done") == 1
        }
    };
    watch.until(|events| streams(1)(events) && journeys::count(events, "turn_started") == 2).await.unwrap();
    for attempt in [2, 3] {
        assert!(lane.world.worker.expire_leases().await > 0);
        watch.until(streams(attempt)).await.unwrap();
    }
    lane.client.post(&format!("{chat}/stop"), serde_json::Value::Null).await.unwrap();
    watch.until_event("stopped").await.unwrap();
    lane.check(&chat, &watch, "leases ran out").await;

    let log = lane.log(&chat).await;
    let commands: Vec<CommandId> = log.iter().flat_map(|entry| entry.commands.iter().copied()).collect();
    assert!(commands.len() >= 2);
    for (number, id) in commands.iter().rev().chain(&commands).enumerate() {
        let start = ChatCommand::StartTurn(TurnRequest { content: "large-late".into(), ..TurnRequest::default() });
        lane.send(&lane.again(&chat, *id, start), &format!("again-{number}")).await;
    }
    lane.check(&chat, &watch, "commands came again").await;
    assert_eq!(lane.log(&chat).await.len(), log.len(), "nothing more came of them");
}
