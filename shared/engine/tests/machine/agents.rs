//! Agent nodes: a conversation until the answer fits.

use crate::play::{Play, node};
use buildscale_engine::machine::{NodeResult, TaskEffect, TaskReport};
use domain::{
    CallId, ChatCommand, ChatEvent, Code, Error, QuestionId, Status, TaskCommand, TaskEvent, Timestamp, task::is_stop,
};
use serde_json::json;
use uuid::Uuid;

fn agent(more: serde_json::Value) -> Play {
    let mut agent = node("write", "linear", more);
    agent["kind"] = json!("agent");
    agent["agent_id"] = json!("writer");
    let mut play = Play::chain(json!([agent]));
    play.start();
    play.gives(json!("s"));
    play
}

#[test]
fn an_agent_is_asked_and_its_answer_is_the_output() {
    let mut play = agent(json!({}));
    assert_eq!(play.agent_ready(), ["asked 1"]);
    assert_eq!(play.prompts(), ["write"]);
    let chat = play.chat("write", 0);
    assert!(play.says(chat, 2, "from another round").is_empty());
    assert_eq!(play.says(chat, 1, "hello"), ["replied", "write success", "write > done", "done 1"]);
    assert_eq!(*play.run().input, json!("hello"));
    assert!(play.says(chat, 1, "hello").is_empty(), "once");
    let metrics = play.log.iter().find_map(|event| match event {
        TaskEvent::NodeFinished { node, metrics, .. } if node.as_str() == "write" => Some(metrics.clone()),
        _ => None,
    });
    assert_eq!(metrics.unwrap().usage.input_tokens, 10, "its usage is the node's");
    assert_eq!(play.state.usage.output_tokens, 5);
    play.check_fold();
}

#[test]
fn an_agent_tells_its_task_that_it_waits_for_people() {
    let mut play = agent(json!({}));
    play.agent_ready();
    let chat = play.chat("write", 0);
    let (question_id, call_id) = (QuestionId(Uuid::from_u128(7)), CallId(Uuid::from_u128(8)));
    let at = Timestamp::default();
    let asked = ChatEvent::Asked { question_id, call_id, questions: Vec::new(), at, expires_at: at };
    let waits = |round, asked| TaskCommand::AgentWaits { chat, round, asked, cut: false, declined: false };
    let is_waiting = |play: &Play| play.state.execution.as_ref().unwrap().agent_waits;
    assert!(play.command(waits(2, Some(Box::new(asked.clone())))).is_empty(), "another round");
    assert_eq!(play.command(waits(1, Some(Box::new(asked.clone())))), ["agent waits"]);
    assert!(is_waiting(&play));
    assert_eq!(play.command(waits(1, None)), ["agent goes on"]);
    assert!(!is_waiting(&play));
    play.command(waits(1, Some(Box::new(asked))));
    play.check_fold();
    assert_eq!(play.turn_ends(chat, 1, "", "stopped", None)[0], "replied");
    assert!(is_stop(&play.end().unwrap().2.unwrap()), "a stop may reach the agent before its task");
    assert!(play.state.execution.as_ref().is_none_or(|execution| !execution.agent_waits), "its turn is over");
    assert!(play.command(waits(1, None)).is_empty(), "a late message");
}

#[test]
fn s3_2_an_answer_that_does_not_fit_goes_back_twice_then_the_node_fails() {
    let mut play = agent(json!({ "schema_out": "number" }));
    play.agent_ready();
    play.prompts();
    let chat = play.chat("write", 0);
    assert_eq!(play.says(chat, 1, "I would say seven."), ["replied", "rejected 1", "asked 2"]);
    assert!(play.prompts()[0].contains("not JSON"));
    assert_eq!(play.says(chat, 2, r#"{"n": "seven"}"#), ["replied", "rejected 2", "asked 3"]);
    assert!(play.prompts()[0].contains("/n"), "the model is told where");
    assert_eq!(play.says(chat, 3, r#"{"m": 7}"#), ["replied", "rejected 3", "write failure", "finished failure"]);
    assert_eq!(play.end().unwrap().2.unwrap().code, Code::Unprocessable);
    let usage = play.log.iter().find_map(|event| match event {
        TaskEvent::NodeFinished { node, metrics, .. } if node.as_str() == "write" => Some(metrics.usage.input_tokens),
        _ => None,
    });
    assert_eq!(usage, Some(30));
}

#[test]
fn s3_2_an_answer_that_fits_on_the_second_try_is_taken() {
    let mut play = agent(json!({ "schema_out": "number" }));
    play.agent_ready();
    let chat = play.chat("write", 0);
    play.says(chat, 1, "seven");
    assert_eq!(play.says(chat, 2, "```json\n{\"n\": 7}\n```")[..2], ["replied", "write success"]);
    assert_eq!(*play.run().input, json!({ "n": 7 }));
}

#[test]
fn a_turn_that_fails_for_a_passing_reason_is_tried_again_in_a_chat_of_its_own() {
    let mut play = agent(json!({ "retries": 1 }));
    play.agent_ready();
    let chat = play.chat("write", 0);
    let error = || Some(Error::new(Code::RateLimited, "busy"));
    assert_eq!(play.turn_ends(chat, 1, "", "error", error()), ["replied", "write waits"]);
    assert_eq!(play.wakes(), ["write 2 retry 1"]);
    play.agent_ready();
    let next = play.chat("write", 1);
    assert_ne!(chat, next);
    assert!(play.says(chat, 1, "late").is_empty());
    assert_eq!(play.turn_ends(next, 1, "", "error", error())[1], "write failure");
}

#[test]
fn a_key_that_is_refused_is_not_tried_again() {
    let mut play = agent(json!({ "retries": 3 }));
    play.agent_ready();
    let chat = play.chat("write", 0);
    let refused = Error::new(Code::UpstreamRefused, "refused");
    assert_eq!(play.turn_ends(chat, 1, "", "error", Some(refused))[1], "write failure");
}

#[test]
fn s3_5_an_agent_that_runs_out_of_the_nodes_time_is_asked_again() {
    let mut play = agent(json!({ "retries": 1, "timeout_seconds": 2 }));
    play.agent_ready();
    let chat = play.chat("write", 0);
    assert_eq!(play.turn_ends(chat, 1, "I was", "time_limit", None), ["replied", "write waits"]);
    assert_eq!(play.wakes(), ["write 2 retry 1"]);
    play.agent_ready();
    let chat = play.chat("write", 1);
    assert_eq!(play.turn_ends(chat, 1, "I was", "time_limit", None)[1], "write failure");
    assert_eq!(play.end().unwrap().2.unwrap().code, Code::Timeout);
}

#[test]
fn a_turn_that_does_not_come_to_its_end_fails_the_node() {
    let mut play = agent(json!({}));
    play.agent_ready();
    let chat = play.chat("write", 0);
    play.turn_ends(chat, 1, "I was about to", "max_steps", None);
    assert_eq!(play.end().unwrap().2.unwrap().code, Code::LimitReached);
}

#[test]
fn a_stop_reaches_the_agent_in_both_ways() {
    let mut play = agent(json!({}));
    play.agent_ready();
    play.sent.clear();
    assert_eq!(play.stop(), ["stop", "write failure", "finished failure"]);
    assert_eq!(play.end().unwrap().0, Status::Failure);
    let command: ChatCommand = serde_json::from_value(play.sent[0].command.clone()).unwrap();
    assert!(matches!(command, ChatCommand::Stop { .. }), "for a turn that waits");
    let told = play.running.values().any(|effect| matches!(effect, TaskEffect::StopAgent(..)));
    assert!(told, "for a turn that runs");
    let chat = play.chat("write", 0);
    play.reports(TaskReport::Archived { files: 1 });
    assert!(play.says(chat, 2, "from another round").is_empty());
    let late = play.says(chat, 1, "late");
    assert!(matches!(&late[..], [told] if told.contains("AgentEnded")), "{late:?}");
    assert_eq!((play.state.usage.input_tokens, play.state.usage.output_tokens), (10, 5), "it was paid for");
    assert!(play.says(chat, 1, "late").is_empty(), "once");
    play.check_fold();
}

#[test]
fn a_stop_before_the_question_is_asked_asks_nothing() {
    let mut play = agent(json!({}));
    assert_eq!(play.stop(), ["stop"]);
    assert_eq!(play.agent_ready(), ["write failure", "finished failure"]);
    assert!(play.prompts().is_empty());
}

#[test]
fn an_answer_that_is_to_be_remembered_is_not_asked_for_again_after_a_crash() {
    let mut play = agent(json!({ "schema_out": "number", "remember": { "store": "task" } }));
    play.agent_ready();
    play.prompts();
    let chat = play.chat("write", 0);
    assert_eq!(play.says(chat, 1, "seven"), ["replied", "rejected 1", "asked 2"]);
    assert_eq!(play.says(chat, 2, r#"{"n": 7}"#), ["replied"], "it is remembered first");
    assert_eq!(play.run().given, Some(json!({ "n": 7 })));
    play.prompts();
    assert_eq!(play.dies(), ["write 2"]);
    assert_eq!((play.run().given, play.prompts().len()), (Some(json!({ "n": 7 })), 0));
    assert_eq!(play.gives(json!({ "n": 7 })), ["write success", "write > done", "done 1"]);
    assert_eq!(*play.run().input, json!({ "n": 7 }));
    play.check_fold();
}

#[test]
fn a_list_that_an_agent_answers_is_split_before_any_child_begins_and_asked_for_once() {
    let mut plan = node("plan", "split", json!({ "split": { "over": "input" } }));
    plan["kind"] = json!("agent");
    plan["agent_id"] = json!("writer");
    let [begin, work] = [("s", "start"), ("work", "linear")].map(|(id, role)| node(id, role, json!({})));
    let [join, done] = [("join", "merge"), ("done", "exit")].map(|(id, role)| node(id, role, json!({})));
    let edges = [("s", "plan"), ("plan", "work"), ("work", "join"), ("join", "done")];
    let mut play = Play::new(json!([begin, plan, work, join, done]), &edges);
    play.start();
    play.gives(json!("s"));
    play.agent_ready();
    let chat = play.chat("plan", 0);
    assert_eq!(play.says(chat, 1, "[1, 2, 3]"), ["replied"]);
    assert_eq!(play.run().given, Some(json!([1, 2, 3])));
    assert_eq!(play.dies(), ["plan 2"]);
    assert_eq!(play.run().given, Some(json!([1, 2, 3])), "another worker has the answer");
    let split = NodeResult { output: json!([1, 2, 3]), elements: Some(3), ..NodeResult::default() };
    assert_eq!(play.ends(split), ["plan success", "plan forks 3", "spawned 3"]);
    play.check_fold();
}
