//! The inspector (spec 002 §10.7): it changes when a task goes on, never where.

use crate::play::{Play, node};
use actor::{HoldRequest, Input};
use buildscale_engine::{TaskMachine, machine::NodeResult};
use domain::{Code, Error, Status, TaskCommand, TaskConfig, TaskId, TaskPhase, Timestamp, task::ChildName};
use serde_json::json;
use slots::SlotsCommand;
use uuid::Uuid;

fn chain() -> Play {
    Play::chain(json!([node("a", "linear", json!({})), node("b", "linear", json!({}))]))
}

#[test]
fn s10_7_a_task_pauses_before_the_next_node_steps_and_goes_on() {
    let mut play = chain();
    play.start();
    assert_eq!(play.command(TaskCommand::Pause { before: vec![], hold: None }), ["pause"]);
    assert_eq!(play.gives(json!("s")), ["s success", "s > a", "paused before a"]);
    assert!(play.running.is_empty());
    assert_eq!(play.command(TaskCommand::Step), ["steps", "a 1"]);
    assert_eq!(play.run().input.as_str(), Some("s"), "a pause loses nothing");
    assert_eq!(play.gives(json!("a")), ["a success", "a > b", "paused before b"]);
    assert_eq!(play.command(TaskCommand::Resume), ["continues", "b 1"]);
    assert_eq!(play.gives(json!("b")), ["b success", "b > done", "done 1"]);
    play.gives(json!("out"));
    assert_eq!(play.end().unwrap().0, Status::Success);
    play.check_fold();
}

#[test]
fn s10_7_a_task_pauses_before_named_nodes() {
    let mut play = chain();
    play.config.breakpoints = vec!["b".into()];
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.gives(json!("a")), ["a success", "a > b", "paused before b"]);
    // More can be named while it is paused.
    assert_eq!(play.command(TaskCommand::Pause { before: vec!["done".into()], hold: None }), ["pause"]);
    assert_eq!(play.command(TaskCommand::Resume), ["continues", "b 1"]);
    assert_eq!(play.gives(json!("b")), ["b success", "b > done", "paused before done"]);
}

#[test]
fn s10_7_a_task_can_begin_paused_and_be_stopped_there() {
    let mut play = chain();
    play.config.stepping = true;
    assert_eq!(play.start(), ["created", "paused before s"]);
    assert!(play.command(TaskCommand::Pause { before: vec![], hold: None }).is_empty(), "it is");
    assert_eq!(play.stop(), ["stop", "finished failure"]);
    play.check_fold();
}

#[test]
fn s10_7_a_pause_that_was_not_reached_is_taken_back() {
    let mut play = chain();
    play.start();
    play.command(TaskCommand::Pause { before: vec![], hold: None });
    assert_eq!(play.command(TaskCommand::Resume), ["continues"]);
    assert_eq!(play.gives(json!("s")), ["s success", "s > a", "a 1"]);
}

#[test]
fn s10_7_a_task_pauses_before_a_merge_with_what_came() {
    let nodes = json!([
        node("s", "start", json!({})),
        node("both", "branch", json!({})),
        node("a", "linear", json!({})),
        node("b", "linear", json!({})),
        node("gather", "merge", json!({})),
        node("done", "exit", json!({})),
    ]);
    let edges = [("s", "both"), ("both", "a"), ("both", "b"), ("a", "gather"), ("b", "gather"), ("gather", "done")];
    let mut play = Play::new(nodes, &edges);
    play.config.breakpoints = vec!["gather".into()];
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.gives(json!("x")), ["both success", "both forks 2", "spawned 2"]);
    let arrives = |child: &str, index: u32| TaskCommand::Arrived {
        arrival: Box::new(domain::task::Arrival {
            merge: "gather".into(),
            from: child.rsplit('/').next().unwrap().into(),
            child: child.into(),
            place: vec![index],
            status: Status::Success,
            output: json!(index),
        }),
    };
    assert_eq!(play.command(arrives("both/b", 1)), ["both/b arrives"]);
    assert!(play.command(arrives("both/b", 1)).is_empty(), "twice is once");
    assert_eq!(play.command(arrives("both/a", 0)), ["both/a arrives", "gather merges", "paused before gather"]);
    play.command(TaskCommand::Resume);
    let list = play.run().input;
    assert_eq!((&list[0]["output"], &list[1]["output"]), (&json!(0), &json!(1)));
    play.check_fold();
}

/// A task that waits for two hundred and fifty subtasks, of which a hundred are on their way.
fn waiting() -> Play {
    let nodes = json!([
        node("s", "start", json!({})),
        node("each", "split", json!({ "split": { "over": "input" } })),
        node("work", "linear", json!({})),
        node("gather", "merge", json!({ "merge": { "on_failure": "include" } })),
        node("done", "exit", json!({})),
    ]);
    let edges = [("s", "each"), ("each", "work"), ("work", "gather"), ("gather", "done")];
    let mut play = Play::new(nodes, &edges);
    play.start();
    play.gives(json!("s"));
    let list: Vec<u32> = (0..250).collect();
    play.ends(NodeResult { output: json!(list), elements: Some(250), ..NodeResult::default() });
    play.sent.clear();
    play
}

/// The messages since the last look, each with its task.
fn told(play: &mut Play) -> Vec<(TaskId, TaskCommand)> {
    let messages = std::mem::take(&mut play.sent).into_iter();
    let task = |to: &actor::ActorId| to.as_str().rsplit('/').next().unwrap().parse().unwrap();
    messages.map(|message| (task(&message.to), serde_json::from_value(message.command).unwrap())).collect()
}

fn child(play: &Play, index: u32) -> TaskId {
    play.config.task.child(&ChildName(format!("each/work[{index}]").into()))
}

fn phase(play: &Play) -> TaskPhase {
    let view = <TaskMachine as actor::Machine>::view(&play.state).unwrap();
    serde_json::from_str::<domain::TaskView>(&view.body.unwrap()).unwrap().phase
}

/// The children that are made next, as they begin.
fn made_next(play: &mut Play) -> Vec<TaskConfig> {
    assert_eq!(play.command(TaskCommand::SpawnMore { node: "each".into() }).len(), 1);
    let started = |(_, command)| match command {
        TaskCommand::Start { config } => Some(*config),
        _ => None,
    };
    told(play).into_iter().filter_map(started).collect()
}

#[test]
fn s10_7_a_pause_reaches_children_that_are_on_their_way_and_those_made_later() {
    let mut play = waiting();
    play.child_ends("each/work[7]", Status::Failure, json!(null));
    assert_eq!(phase(&play), TaskPhase::Running);
    let pause = TaskCommand::Pause { before: vec![], hold: None };
    assert_eq!(play.command(pause.clone()), ["pause"]);
    let heard = told(&mut play);
    assert_eq!(heard.len(), 99, "all that were sent off and have not ended");
    assert!(heard.iter().all(|(task, command)| *command == pause && *task != child(&play, 7)));
    assert_eq!(phase(&play), TaskPhase::Paused, "a task that waits for paused ones is paused");
    let later = made_next(&mut play);
    assert!(later.len() == 100 && later.iter().all(|config| config.stepping));

    // It goes on, and so do they; those made from now on do not pause.
    assert_eq!(play.command(TaskCommand::Resume), ["continues"]);
    let heard = told(&mut play);
    assert!(heard.len() == 199 && heard.iter().all(|(_, command)| *command == TaskCommand::Resume));
    assert_eq!(phase(&play), TaskPhase::Running);
    assert!(made_next(&mut play).iter().all(|config| !config.stepping));
    play.check_fold();
}

#[test]
fn s10_7_a_step_is_one_node_of_each_task_that_is_paused_below() {
    let mut play = waiting();
    play.command(TaskCommand::Pause { before: vec![], hold: None });
    told(&mut play);
    assert!(play.command(TaskCommand::Step).is_empty(), "it executes nothing itself");
    let heard = told(&mut play);
    assert!(heard.len() == 100 && heard.iter().all(|(_, command)| *command == TaskCommand::Step));
    assert_eq!(phase(&play), TaskPhase::Paused, "and stays as it was told to be");
    play.check_fold();
}

#[test]
fn s10_7_named_nodes_are_paused_before_wherever_they_are_executed() {
    let mut play = waiting();
    let pause = TaskCommand::Pause { before: vec!["work".into()], hold: None };
    assert_eq!(play.command(pause.clone()), ["pause"]);
    let heard = told(&mut play);
    assert!(heard.len() == 100 && heard.iter().all(|(_, command)| *command == pause));
    assert_eq!(phase(&play), TaskPhase::Running, "it pauses where it was told to");
    let later = made_next(&mut play);
    assert!(later.iter().all(|config| !config.stepping && config.breakpoints == ["work".into()]));
}

#[test]
fn s10_7_stepping_over_a_fork_leaves_its_children_paused() {
    let nodes = json!([
        node("s", "start", json!({})),
        node("both", "branch", json!({})),
        node("a", "exit", json!({})),
        node("b", "exit", json!({})),
    ]);
    let mut play = Play::new(nodes, &[("s", "both"), ("both", "a"), ("both", "b")]);
    play.config.stepping = true;
    play.start();
    play.command(TaskCommand::Step);
    play.gives(json!("s"));
    play.command(TaskCommand::Step);
    assert_eq!(play.gives(json!("both")), ["both success", "both forks 2", "spawned 2"]);
    let configs = told(&mut play).into_iter().map(|(_, command)| match command {
        TaskCommand::Start { config } => *config,
        other => panic!("{other:?}"),
    });
    assert!(configs.into_iter().all(|config| config.stepping));
    assert_eq!(phase(&play), TaskPhase::Paused);
}

#[test]
fn s10_7_a_task_that_has_ended_is_not_paused_and_tells_nobody() {
    let mut play = waiting();
    play.stop();
    told(&mut play);
    for command in [TaskCommand::Pause { before: vec![], hold: None }, TaskCommand::Step, TaskCommand::Resume] {
        assert!(play.command(command).is_empty() && told(&mut play).is_empty());
    }
}

/// The tree is held: a worker that finds this beside the root's log tells the task before anything else.
fn held(play: &mut Play, hold: u128) -> Vec<String> {
    let path = vec![play.config.task.0];
    play.input(Input::Hold(HoldRequest { hold_id: Uuid::from_u128(hold), path, at: Timestamp::default() }))
}

#[test]
fn s10_7_a_task_follows_a_request_to_hold_its_tree_once_whatever_it_is_at() {
    // Before its beginning.
    let mut play = chain();
    assert_eq!(held(&mut play, 1), ["pause"]);
    assert_eq!(play.start(), ["created", "paused before s"]);
    assert!(held(&mut play, 1).is_empty(), "it has heard of it");
    assert_eq!(play.command(TaskCommand::Resume), ["continues", "s 1"]);
    assert!(held(&mut play, 1).is_empty(), "a command has let it go on since");
    // While a node runs, and before the message that tells the same.
    assert_eq!(held(&mut play, 2), ["pause"]);
    let hold = Some(domain::HoldId(Uuid::from_u128(2)));
    assert!(play.command(TaskCommand::Pause { before: vec![], hold }).is_empty());
    assert_eq!(play.gives(json!("s")), ["s success", "s > a", "paused before a"]);
    // At a pause, and after its end.
    assert_eq!(held(&mut play, 3), ["pause"]);
    assert_eq!(play.command(TaskCommand::Resume), ["continues", "a 1"]);
    assert_eq!(play.gives(json!("a")), ["a success", "a > b", "b 1"]);
    play.gives(json!("b"));
    play.gives(json!("out"));
    assert!(held(&mut play, 4).is_empty());
    play.check_fold();
}

#[test]
fn s10_7_a_node_that_waits_for_its_slot_is_held_back_and_keeps_nothing() {
    let limited = node("a", "linear", json!({ "max_concurrency": 1 }));
    let mut play = Play::chain(json!([limited]));
    let wake = |request| TaskCommand::Wake { node: "a".into(), attempt: 1, request: Some(request) };
    play.start();
    assert_eq!(play.gives(json!("s")), ["s success", "s > a", "a waits"]);
    assert_eq!(play.command(TaskCommand::Pause { before: vec![], hold: None }), ["pause"]);
    play.sent.clear();
    assert_eq!(play.command(wake(1)), ["paused before a"]);
    assert!(matches!(serde_json::from_value(play.sent.remove(0).command), Ok(SlotsCommand::Give { .. })));
    assert_eq!(phase(&play), TaskPhase::Paused);
    assert!(play.command(wake(1)).is_empty(), "a message that comes twice");
    // A step lets this node go on, and pauses before the next one.
    assert_eq!(play.command(TaskCommand::Step), ["steps", "a waits"]);
    assert!(play.command(wake(1)).is_empty(), "those slots are another's by now");
    assert_eq!(play.command(wake(2)), ["a 1"]);
    assert_eq!(play.gives(json!("a")), ["a success", "a > done", "paused before done"]);
    play.check_fold();
}

#[test]
fn s10_7_a_node_that_waits_for_another_try_is_held_back_and_goes_on_with_it() {
    let mut play = Play::chain(json!([node("a", "linear", json!({ "retries": 2 }))]));
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.fails(Error::new(Code::UpstreamUnavailable, "away")), ["a waits"]);
    play.command(TaskCommand::Pause { before: vec![], hold: None });
    assert_eq!(play.wakes(), ["paused before a"]);
    assert_eq!(play.command(TaskCommand::Resume), ["continues", "a 2 retry 1"]);
    assert_eq!(play.gives(json!("a")), ["a success", "a > done", "done 1"]);
    play.check_fold();
}

#[test]
fn s10_7_a_node_that_is_tried_again_at_once_is_held_back_by_a_pause_that_came_while_it_ran() {
    let retries = json!({ "times": 2, "backoff_seconds": 0, "jitter": 0 });
    let mut play = Play::chain(json!([node("a", "linear", json!({ "retries": retries }))]));
    play.start();
    play.gives(json!("s"));
    let away = || Error::new(Code::UpstreamUnavailable, "away");
    play.command(TaskCommand::Pause { before: vec![], hold: None });
    assert_eq!(play.fails(away()), ["a waits", "paused before a"]);
    assert!(play.running.is_empty());
    assert_eq!(phase(&play), TaskPhase::Paused);
    // A step is this node with all of its tries.
    assert_eq!(play.command(TaskCommand::Step), ["steps", "a 2 retry 1"]);
    assert_eq!(play.fails(away()), ["a 3 retry 2"]);
    assert_eq!(play.gives(json!("a")), ["a success", "a > done", "paused before done"]);
    play.check_fold();
}
