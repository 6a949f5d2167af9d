//! Deletion, priority and labels: their effects on a task in any phase.

use crate::play::{Play, node};
use actor::{Input, Machine};
use buildscale_engine::{
    FlowCache, TaskMachine,
    machine::{TaskDescendants, TaskEffect, TaskReport},
};
use domain::{
    ChatCommand, Code, Error, Principal, Status, TaskCommand, TaskEvent, TaskId, TaskPhase, TaskView, task::ChildName,
};
use serde_json::json;
use slots::{Places, SlotsCommand};
use std::collections::BTreeSet;

/// The children that the effect in flight is to delete.
fn clears(play: &Play) -> BTreeSet<TaskId> {
    let is_due = play.running.values().any(|effect| matches!(effect, TaskEffect::Clear(_)));
    assert!(is_due, "nothing is cleared: {:?}", play.log);
    let mut left = TaskDescendants::default();
    play.log.iter().for_each(|event| left.note(&play.config, event));
    left.children
}

fn is_listed(play: &Play) -> bool {
    TaskMachine::view(&play.state).is_some_and(|view| view.body.is_some())
}

fn split() -> Play {
    let nodes = json!([
        node("s", "start", json!({})),
        node("each", "split", json!({ "split": { "over": "input" } })),
        node("work", "linear", json!({})),
        node("join", "merge", json!({})),
        node("done", "exit", json!({})),
    ]);
    let mut play = Play::new(nodes, &[("s", "each"), ("each", "work"), ("work", "join"), ("join", "done")]);
    play.start();
    play.gives(json!([1, 2]));
    play.ends(buildscale_engine::machine::NodeResult {
        output: json!([1, 2]),
        elements: Some(2),
        ..Default::default()
    });
    play
}

#[test]
fn a_task_that_has_ended_is_off_the_lists_at_once_and_clears_up_again_after_a_crash() {
    let mut play = Play::chain(json!([node("a", "linear", json!({}))]));
    play.start();
    for _ in 0..3 {
        play.gives(json!(1));
    }
    assert!(play.end().is_some() && is_listed(&play));
    assert_eq!(play.command(TaskCommand::Delete), ["deleted"]);
    assert!(!is_listed(&play) && clears(&play).is_empty());
    assert!(play.dies().is_empty());
    clears(&play);
    assert_eq!(play.reports(TaskReport::Cleared), ["cleared"]);
    assert!(play.command(TaskCommand::Delete).is_empty() && play.running.is_empty());
    play.check_fold();
}

#[test]
fn a_task_that_runs_is_stopped_before_it_clears_up() {
    let mut play = Play::chain(json!([node("a", "linear", json!({}))]));
    play.start();
    assert_eq!(play.command(TaskCommand::Delete), ["deleted", "stop"]);
    assert!(!is_listed(&play), "the node that runs comes to its end");
    assert_eq!(play.gives(json!(1)), ["s success", "finished failure"]);
    clears(&play);
    play.reports(TaskReport::Cleared);
    play.check_fold();
}

#[test]
fn a_task_that_was_deleted_before_it_began_ends_with_its_first_message() {
    let mut play = Play::chain(json!([node("a", "linear", json!({}))]));
    assert_eq!(play.command(TaskCommand::Delete), ["deleted"]);
    let start = play.start();
    assert_eq!(start.last().map(String::as_str), Some("finished failure"), "{start:?}");
    assert!(start.iter().all(|told| !told.starts_with("s ")), "no node begins: {start:?}");
    assert!(matches!(play.log.get(1), Some(TaskEvent::Created { .. })), "its first message is not kept any more");
    assert!(!is_listed(&play) && clears(&play).is_empty());
    play.reports(TaskReport::Cleared);
    assert!(play.start().is_empty());
    play.check_fold();
}

#[test]
fn a_task_whose_manifests_are_gone_ends_once_and_stores_its_artifacts() {
    let mut play = Play::chain(json!([node("a", "linear", json!({}))]));
    play.config.keep_artifacts = true;
    play.start();
    play.machine.flows = FlowCache::default();
    let ended = play.gives(json!(1));
    assert_eq!(ended.last().map(String::as_str), Some("finished failure"), "{ended:?}");
    assert!(play.running.values().any(|effect| matches!(effect, TaskEffect::Archive(_))));
    assert!(play.dies().is_empty());
    play.reports(TaskReport::Archived { files: 0 });
    assert!(play.running.is_empty() && !play.state.archiving);
    play.check_fold();
}

#[test]
fn the_children_of_a_deleted_task_are_told_those_that_have_ended_too() {
    let mut play = split();
    play.child_ends("each/work[0]", Status::Failure, json!(null));
    let told = play.command(TaskCommand::Delete);
    assert_eq!(told, ["deleted", "stop", "finished failure"]);
    let child = |name: &str| play.config.task.child(&ChildName(name.into()));
    assert_eq!(clears(&play), BTreeSet::from([child("each/work[0]"), child("each/work[1]")]));
}

#[test]
fn a_paused_task_asks_for_nothing_when_its_priority_changes() {
    let wake = TaskCommand::Wake { node: "a".into(), attempt: 1, request: Some(1) };
    let begin = TaskCommand::BeginCommand { node: "a".into(), attempt: 1, request: Some(1) };
    for (more, granted) in [(json!({ "max_concurrency": 1 }), wake), (json!({ "op": { "command": ["true"] } }), begin)]
    {
        let mut play = Play::chain(json!([node("a", "linear", more)]));
        play.machine.places = Some(Places { at_once: 32, shared: true });
        play.start();
        assert_eq!(play.gives(json!(1)), ["s success", "s > a", "a waits"]);
        play.command(TaskCommand::Pause { before: vec![], hold: None });
        assert_eq!(play.command(granted), ["paused before a"]);
        play.sent.clear();
        assert_eq!(play.command(TaskCommand::Prioritize { priority: 9 }), ["priority 9"]);
        assert!(play.sent.is_empty(), "nobody would give it back: {:?}", play.sent);
        assert_eq!(play.command(TaskCommand::Resume), ["continues", "a waits"]);
        let asks = play.sent.iter().filter_map(|message| serde_json::from_value(message.command.clone()).ok());
        let asks: Vec<SlotsCommand> = asks.collect();
        assert!(matches!(&asks[..], [SlotsCommand::Ask { ask }] if ask.priority == 9), "{asks:?}");
    }
}

#[test]
fn a_grant_that_comes_twice_ends_no_back_off() {
    let wake = || TaskCommand::Wake { node: "a".into(), attempt: 1, request: Some(1) };
    let mut play = Play::chain(json!([node("a", "linear", json!({ "max_concurrency": 1, "retries": 2 }))]));
    play.start();
    play.gives(json!(1));
    assert_eq!(play.command(wake()), ["a 1"]);
    assert_eq!(play.fails(Error::new(Code::UpstreamUnavailable, "away")), ["a waits"]);
    play.sent.clear();
    assert!(play.command(wake()).is_empty(), "its time has not come");
    assert_eq!(play.wakes(), ["a waits"], "for its slots again");
    play.check_fold();
}

#[test]
fn another_priority_counts_where_the_task_waits_and_for_all_below_it() {
    let limited = node("a", "linear", json!({ "max_concurrency": 1 }));
    let mut play = Play::chain(json!([limited]));
    play.start();
    assert_eq!(play.gives(json!(1)), ["s success", "s > a", "a waits"]);
    let asked = |play: &mut Play| {
        let messages = std::mem::take(&mut play.sent).into_iter();
        let asks = messages.filter_map(|message| match serde_json::from_value(message.command) {
            Ok(SlotsCommand::Ask { ask }) => {
                assert_eq!(message.priority, ask.priority, "the message goes as its request does");
                Some((ask.holder, ask.priority))
            }
            _ => None,
        });
        asks.collect::<Vec<_>>()
    };
    let first = asked(&mut play);
    assert_eq!(play.command(TaskCommand::Prioritize { priority: 9 }), ["priority 9"]);
    assert_eq!(asked(&mut play), [(first[0].0.clone(), 9)], "the same request, at another place");
    assert!(play.command(TaskCommand::Prioritize { priority: 9 }).is_empty());

    // A command that waits for its place.
    let mut play = Play::chain(json!([node("a", "linear", json!({ "op": { "command": ["true"] } }))]));
    play.machine.places = Some(Places { at_once: 32, shared: true });
    play.start();
    play.gives(json!(1));
    let first = asked(&mut play);
    play.command(TaskCommand::Prioritize { priority: 9 });
    assert_eq!(asked(&mut play), [(first[0].0.clone(), 9)]);

    // An agent that is asked.
    let mut play = Play::chain(json!([node("a", "linear", json!({ "kind": "agent", "agent_id": "writer" }))]));
    play.start();
    play.gives(json!(1));
    play.agent_ready();
    play.sent.clear();
    play.command(TaskCommand::Prioritize { priority: 9 });
    let told = play.sent.pop().unwrap();
    assert_eq!(serde_json::from_value::<ChatCommand>(told.command).unwrap(), ChatCommand::Prioritize { priority: 9 });
    assert_eq!((told.to.as_str().starts_with("chat/"), told.priority), (true, ports::URGENT));

    let mut play = split();
    play.messages();
    assert_eq!(play.command(TaskCommand::Prioritize { priority: -3 }), ["priority -3"]);
    assert_eq!(play.messages(), [TaskCommand::Prioritize { priority: -3 }, TaskCommand::Prioritize { priority: -3 }]);
    play.check_fold();
}

#[test]
fn a_task_whose_very_beginning_failed_is_seen_and_can_be_tried_again_or_given_up() {
    for drop in [false, true] {
        let mut play = Play::chain(json!([node("a", "linear", json!({}))]));
        let command = Some(TaskCommand::Start { config: Box::new(play.config.clone()) });
        play.input(Input::Park { reason: "it panicked".into(), command });
        let view = TaskMachine::view(&play.state).and_then(|view| view.body).expect("it is on the lists");
        let view: TaskView = serde_json::from_str(&view).unwrap();
        assert_eq!((view.phase, view.parked_reason.as_deref()), (TaskPhase::Parked, Some("it panicked")));
        play.input(Input::Unpark { drop });
        match drop {
            false => assert_eq!(play.start(), ["s 1"], "the command that failed comes again"),
            true => assert_eq!(play.end().unwrap().0, Status::Failure),
        }
        play.check_fold();
    }
    // And one that is deleted meanwhile is gone.
    let mut play = Play::chain(json!([node("a", "linear", json!({}))]));
    let command = Some(TaskCommand::Start { config: Box::new(play.config.clone()) });
    play.input(Input::Park { reason: "it panicked".into(), command });
    play.input(Input::Command {
        id: domain::CommandId::from_key("test", "gone"),
        by: Principal::System,
        at: play.at(),
        command: TaskCommand::Delete,
    });
    assert!(!is_listed(&play) && clears(&play).is_empty());
}

#[test]
fn each_child_of_a_split_that_sent_them_off_in_several_steps_is_deleted() {
    let nodes = json!([
        node("s", "start", json!({})),
        node("each", "split", json!({ "split": { "over": "input" } })),
        node("work", "linear", json!({})),
        node("join", "merge", json!({})),
        node("done", "exit", json!({})),
    ]);
    let mut play = Play::new(nodes, &[("s", "each"), ("each", "work"), ("work", "join"), ("join", "done")]);
    play.start();
    play.gives(json!("s"));
    let list: Vec<u32> = (0..250).collect();
    let output =
        buildscale_engine::machine::NodeResult { output: json!(list), elements: Some(250), ..Default::default() };
    play.ends(output);
    assert_eq!(play.command(TaskCommand::SpawnMore { node: "each".into() }), ["spawned 200"]);
    assert_eq!(play.command(TaskCommand::SpawnMore { node: "each".into() }), ["spawned 250"]);
    play.command(TaskCommand::Delete);
    let child = |index: u32| play.config.task.child(&ChildName(format!("each/work[{index}]").into()));
    let wanted: BTreeSet<TaskId> = (0..250).map(child).collect();
    assert_eq!(clears(&play), wanted);
}

#[test]
fn s2_1_labels_change_one_by_one_also_after_the_end_and_not_after_the_deletion() {
    let label = |key: &str, value: Option<&str>| TaskCommand::Label {
        changes: [(key.to_owned(), value.map(str::to_owned))].into(),
    };
    let mut play = Play::chain(json!([node("a", "linear", json!({}))]));
    play.start();
    assert_eq!(play.command(label("customer", Some("c-17"))), [r#"labels {"customer":"c-17"}"#]);
    assert!(play.command(label("ticket", None)).is_empty(), "nothing changes");
    for _ in 0..3 {
        play.gives(json!(1));
    }
    assert!(play.end().is_some());
    assert_eq!(play.command(label("ticket", Some("4"))), [r#"labels {"customer":"c-17","ticket":"4"}"#]);
    let view = TaskMachine::view(&play.state).and_then(|view| view.body).unwrap();
    assert_eq!(serde_json::from_str::<TaskView>(&view).unwrap().labels.pairs().count(), 2);
    play.check_fold();
    play.command(TaskCommand::Delete);
    assert!(play.command(label("customer", None)).is_empty());
}
