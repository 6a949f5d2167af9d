//! The inspector (seed 002 §10.7): it changes when a task goes on, never where.

use crate::play::{Play, node};
use domain::{Status, TaskCommand};
use serde_json::json;

fn chain() -> Play {
    Play::chain(json!([node("a", "linear", json!({})), node("b", "linear", json!({}))]))
}

#[test]
fn s10_7_a_task_pauses_before_the_next_node_steps_and_goes_on() {
    let mut play = chain();
    play.start();
    assert_eq!(play.command(TaskCommand::Pause { before: vec![] }), ["pause"]);
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
    assert_eq!(play.command(TaskCommand::Pause { before: vec!["done".into()] }), ["pause"]);
    assert_eq!(play.command(TaskCommand::Resume), ["continues", "b 1"]);
    assert_eq!(play.gives(json!("b")), ["b success", "b > done", "paused before done"]);
}

#[test]
fn s10_7_a_task_can_begin_paused_and_be_stopped_there() {
    let mut play = chain();
    play.config.stepping = true;
    assert_eq!(play.start(), ["created", "paused before s"]);
    assert!(play.command(TaskCommand::Pause { before: vec![] }).is_empty(), "it is");
    assert_eq!(play.stop(), ["stop", "finished failure"]);
    play.check_fold();
}

#[test]
fn s10_7_a_pause_that_was_not_reached_is_taken_back() {
    let mut play = chain();
    play.start();
    play.command(TaskCommand::Pause { before: vec![] });
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
