//! Children are sent off a hundred at a time.

use crate::play::{Play, node};
use buildscale_engine::machine::NodeResult;
use domain::{Code, Error, Status, TaskCommand, TaskConfig};
use serde_json::{Value, json};
use std::sync::Arc;

fn play(each: Value, merge: Value) -> Play {
    let nodes = json!([
        node("s", "start", json!({})),
        node("each", "split", each),
        node("work", "linear", json!({})),
        node("gather", "merge", json!({ "merge": merge })),
        node("done", "exit", json!({})),
    ]);
    let edges = [("s", "each"), ("each", "work"), ("work", "gather"), ("gather", "done")];
    let mut play = Play::new(nodes, &edges);
    play.start();
    play
}

fn split(of: usize, merge: Value) -> Play {
    let mut play = play(json!({ "split": { "over": "input", "as": "item" } }), merge);
    play.gives(json!("s"));
    let list: Vec<usize> = (0..of).collect();
    let words = play.ends(NodeResult { output: json!(list), elements: Some(of as u32), ..NodeResult::default() });
    assert_eq!(words[..2], ["each success".to_owned(), format!("each forks {of}")]);
    play
}

fn started(play: &mut Play) -> (Vec<TaskConfig>, Vec<TaskCommand>) {
    let (mut configs, mut others) = (Vec::new(), Vec::new());
    for command in play.messages() {
        match command {
            TaskCommand::Start { config } => configs.push(*config),
            other => others.push(other),
        }
    }
    (configs, others)
}

fn more() -> TaskCommand {
    TaskCommand::SpawnMore { node: "each".into() }
}

#[test]
fn s3_3_a_large_split_is_sent_off_a_hundred_at_a_time() {
    let mut play = split(250, json!({}));
    let (first, others) = started(&mut play);
    assert_eq!((first.len(), others), (100, vec![more()]));
    let origin = first[7].origin.clone().unwrap();
    assert_eq!((origin.name().as_str(), first[7].start.as_str()), ("each/work[7]", "work"));
    assert_eq!((&first[7].input, origin.parent), (&json!({ "item": 7 }), play.config.task));
    assert_eq!(first[7].task, play.config.task.child(&origin.name()));
    assert_eq!(play.command(more()), ["spawned 200"]);
    assert_eq!(play.command(more()), ["spawned 250"]);
    let (rest, others) = started(&mut play);
    assert_eq!((rest.len(), others.len()), (150, 1));
    assert_eq!(rest[149].input, json!({ "item": 249 }));
    assert!(play.command(more()).is_empty());
    play.check_fold();
}

#[test]
fn s3_3_children_that_were_not_sent_off_are_not_when_the_merge_has_begun() {
    let mut play = split(250, json!({ "strategy": "first_success" }));
    let arrival = domain::task::Arrival {
        merge: "gather".into(),
        from: "work".into(),
        child: "each/work[3]".into(),
        place: vec![3],
        status: Status::Success,
        output: json!("three"),
    };
    started(&mut play);
    let arrived = TaskCommand::Arrived { arrival: Box::new(arrival) };
    assert_eq!(play.command(arrived), ["each/work[3] arrives", "gather merges", "gather 1"]);
    let stops = play.messages().into_iter().filter(|command| matches!(command, TaskCommand::Stop { .. })).count();
    assert_eq!(stops, 99, "the others that were sent off");
    assert!(play.command(more()).is_empty());
    play.gives(json!("gathered"));
    play.gives(json!("out"));
    assert_eq!(play.end().unwrap().0, Status::Success);
    play.check_fold();
}

#[test]
fn s3_3_a_stop_is_heard_while_children_are_sent_off() {
    let mut play = split(250, json!({}));
    started(&mut play);
    assert_eq!(play.stop(), ["stop", "finished failure"]);
    let stops = play.messages().into_iter().filter(|command| matches!(command, TaskCommand::Stop { .. })).count();
    assert_eq!(stops, 100);
    assert!(play.command(more()).is_empty());
}

#[test]
fn s3_3_a_child_is_a_task_with_the_flow_the_user_and_the_priority_of_its_parent() {
    let mut play = split(1, json!({}));
    let (children, _) = started(&mut play);
    let (child, parent) = (&children[0], &play.config);
    assert_eq!((&child.flow, child.user, child.priority), (&parent.flow, parent.user, parent.priority));
    assert_eq!(child.workspace, parent.workspace);
    let words = play.child_ends("each/work[0]", Status::Failure, Value::Null);
    assert_eq!(words[1..], ["gather merges", "gather 1", "gather failure", "finished failure"].map(str::to_owned));
}

/// The split fails with this input, and its node says that the task goes on.
fn goes_past(input: Value) -> (Play, Vec<String>) {
    let mut play = play(json!({ "split": { "over": "input" }, "continue_on_failure": true }), json!({}));
    play.gives(input);
    let words = play.fails(Error::new(Code::Unprocessable, "as told"));
    (play, words)
}

#[test]
fn s3_5_a_split_that_is_gone_past_gives_each_child_its_whole_input() {
    for input in [json!(["one"]), json!([1, 2, 3]), json!([]), json!({ "in": 1 })] {
        let (mut play, words) = goes_past(input.clone());
        assert_eq!(words, ["each failure", "each forks 1", "spawned 1"]);
        let (children, _) = started(&mut play);
        assert_eq!((children.len(), &children[0].input), (1, &input));
        play.check_fold();
    }
}

#[test]
fn s3_5_a_split_whose_input_no_message_takes_is_not_gone_past() {
    let (mut play, words) = goes_past(json!(["x".repeat(100_000), "y".repeat(100_000)]));
    assert_eq!(words, ["each failure", "finished failure"]);
    let (status, _, error) = play.end().unwrap();
    assert_eq!((status, error.unwrap().message.as_str()), (Status::Failure, "as told"));
    let (children, others) = started(&mut play);
    assert_eq!((children.len(), others.len()), (0, 0), "no message that could never be sent");
    play.check_fold();
}

#[test]
fn s2_1_children_have_no_labels_of_the_task_above() {
    let mut play = split(250, json!({}));
    play.command(TaskCommand::Label { changes: [("customer".to_owned(), Some("c-17".to_owned()))].into() });
    started(&mut play);
    play.command(more());
    let (children, _) = started(&mut play);
    assert!(play.state.config.as_ref().is_some_and(|config| !config.labels.is_empty()));
    assert!(children.len() == 100 && children.iter().all(|child| child.labels.is_empty()));
}

#[test]
fn s10_10_children_keep_no_memory_where_the_task_above_does() {
    let mut play = split(250, json!({}));
    started(&mut play);
    Arc::make_mut(play.state.config.as_mut().unwrap()).keep_artifacts = true;
    play.command(more());
    let (children, _) = started(&mut play);
    assert!(children.len() == 100 && children.iter().all(|child| !child.keep_artifacts));
}
