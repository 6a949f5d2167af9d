//! From start to exit; retries; stops.

use crate::play::{Play, node};
use actor::{Input, Machine};
use buildscale_engine::{
    FlowCache, TaskMachine,
    machine::{Mode, NodeResult, TaskEffect},
};
use domain::{
    Code, Error, Status, TaskCommand, TaskConfig, TaskEvent, TaskPhase, TaskView,
    task::{Replay, Resources, ToolUse, Wait, is_stop},
};
use serde_json::{Value, json};
use slots::{Places, SlotsCommand};
use std::{sync::Arc, time::Duration};

fn two() -> Play {
    Play::chain(json!([node("a", "linear", json!({ "retries": 2 }))]))
}

#[test]
fn s3_2_a_task_goes_from_start_to_exit_one_node_at_a_time() {
    let mut play = two();
    assert_eq!(play.start(), ["created", "s 1"]);
    assert_eq!(*play.run().input, json!({ "in": 1 }));
    assert_eq!(play.gives(json!("s")), ["s success", "s > a", "a 1"]);
    assert_eq!(*play.run().input, json!("s"));
    assert_eq!(play.gives(json!("a")), ["a success", "a > done", "done 1"]);
    assert_eq!(play.gives(json!("out")), ["done success", "finished success"]);
    assert_eq!(play.end(), Some((Status::Success, json!("out"), None)));
    assert!(play.running.is_empty() && play.sent.is_empty());
    // A later input changes nothing.
    assert!(play.start().is_empty() && play.stop().is_empty() && play.command(TaskCommand::Step).is_empty());
    play.check_fold();
}

#[test]
fn a_node_that_only_computes_is_pure_unless_it_follows_a_record() {
    let is_pure = |play: &Play| play.machine.is_pure(&TaskEffect::Run(Box::new(play.run())));
    for (more, expected) in [
        (json!({}), true),
        (json!({ "op": { "expr": "input" } }), true),
        (json!({ "op": { "command": ["true"] } }), false),
        (json!({ "remember": { "store": "task" } }), false),
        (json!({ "context": "global" }), false),
        (json!({ "ask": { "approve": "Really?" } }), false),
    ] {
        let mut play = Play::chain(json!([node("a", "linear", more.clone())]));
        play.start();
        assert!(!is_pure(&play), "a start binds providers");
        play.gives(json!("s"));
        assert_eq!(is_pure(&play), expected, "{more}");
        let replay = Some(Replay { of: play.config.task, from: None, retry: false });
        let mut run = play.run();
        run.config = Arc::new(TaskConfig { replay, ..play.config.clone() });
        assert!(!play.machine.is_pure(&TaskEffect::Run(Box::new(run))), "{more}");
    }
}

#[test]
fn s2_1_history_keeps_what_was_given_and_what_came_of_it() {
    let mut play = two();
    play.start();
    play.gives(json!({ "b": [1, 2.5, "ü"], "a": null }));
    let Some(TaskEvent::Created { config }) = play.log.first() else { panic!("{:?}", play.log) };
    assert_eq!(config.input, json!({ "in": 1 }));
    let output = play.log.iter().find_map(|event| match event {
        TaskEvent::NodeFinished { output, .. } => Some(output.to_string()),
        _ => None,
    });
    assert_eq!(output.unwrap(), r#"{"b":[1,2.5,"ü"],"a":null}"#, "in the order in which it was written, too");
}

#[test]
fn a_back_off_whose_message_comes_after_the_clock_was_set_back_is_over() {
    let mut play = two();
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.fails(Error::new(Code::RateLimited, "busy")), ["a waits"]);
    let wake = play.messages().into_iter().find(|message| matches!(message, TaskCommand::Wake { .. })).unwrap();
    play.set_back(1_000_000);
    assert_eq!(play.command(wake), ["a 2 retry 1"]);
}

#[test]
fn s3_5_a_passing_failure_is_tried_again_as_often_as_the_node_says() {
    let mut play = two();
    play.start();
    play.gives(json!("s"));
    let busy = || Error::new(Code::RateLimited, "busy");
    assert_eq!(play.fails(busy()), ["a waits"]);
    assert_eq!(play.wakes(), ["a 2 retry 1"]);
    assert_eq!((play.run().attempt, play.run().retry, play.run().input.as_str()), (2, 1, Some("s")));
    assert_eq!(play.fails(busy()), ["a waits"]);
    assert_eq!(play.wakes(), ["a 3 retry 2"]);
    assert_eq!(play.fails(busy()), ["a failure", "finished failure"]);
    assert_eq!(play.end().unwrap().2, Some(busy()));
    play.check_fold();
}

#[test]
fn s3_5_a_failure_that_does_not_pass_is_not_tried_again() {
    let mut play = two();
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.fails(Error::new(Code::Unprocessable, "no")), ["a failure", "finished failure"]);
}

#[test]
fn s3_5_a_node_that_backs_off_is_rows_and_a_message_that_is_due_then() {
    let mut play = two();
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.fails(Error::new(Code::Timeout, "slow")), ["a waits"]);
    assert!(!TaskMachine::in_flight(&play.state), "no worker is held");
    let Some(Mode::Waiting { wait: Wait::Backoff { until, retry } }) = play.state.execution.clone().map(|it| it.mode)
    else {
        panic!("{:?}", play.state.execution)
    };
    let waited = until.since(play.at()).as_millis();
    assert!((500..=1_000).contains(&waited), "half of the first second is drawn: {waited}");
    assert_eq!((retry.number, retry.error.code), (1, Code::Timeout));
    let view = TaskMachine::view(&play.state).and_then(|view| view.body).unwrap();
    let view: TaskView = serde_json::from_str(&view).unwrap();
    assert_eq!((view.phase, view.wait), (TaskPhase::Suspended, Some(Wait::Backoff { until, retry })));
    let message = play.sent.last().cloned().unwrap();
    assert_eq!(message.deliver_at, Some(until));
    // A worker that finds it so has nothing to run.
    assert!(play.dies().is_empty());
    assert_eq!(play.wakes(), ["a 2 retry 1"]);
    let again: TaskCommand = serde_json::from_value(message.command).unwrap();
    assert!(play.command(again).is_empty(), "a message that comes twice wakes once");
    play.check_fold();
}

#[test]
fn a_stop_ends_a_node_that_backs_off_at_once() {
    let mut play = two();
    play.start();
    play.gives(json!("s"));
    play.fails(Error::new(Code::Timeout, "slow"));
    assert_eq!(play.stop(), ["stop", "a failure", "finished failure"]);
    assert!(play.wakes().is_empty());
    assert_eq!(play.end().unwrap().2.unwrap().code, Code::Cancelled);
    play.check_fold();
}

#[test]
fn s3_5_a_node_says_which_failures_are_tried_again_and_for_how_long() {
    let retries = json!({ "times": 9, "on": ["exit:22", "OUTCOME_UNKNOWN"], "within_seconds": 10, "backoff_seconds": 4, "jitter": 0 });
    let play = || {
        let mut play = Play::chain(json!([node("a", "linear", json!({ "retries": retries }))]));
        play.start();
        play.gives(json!("s"));
        play
    };
    let exit = |code: i64| Error::new(Code::Unprocessable, "it failed").detail("exit_code", code);
    for error in [Error::new(Code::Timeout, "slow"), exit(1)] {
        assert_eq!(play().fails(error), ["a failure", "finished failure"]);
    }
    let mut one = play();
    assert_eq!(one.fails(exit(22)), ["a waits"]);
    assert_eq!(one.wakes(), ["a 2 retry 1"]);
    // The second pause would be 8 s, and end after the 10 s.
    assert_eq!(one.fails(Error::new(Code::OutcomeUnknown, "lost")), ["a failure", "finished failure"]);
}

#[test]
fn a_failure_of_a_linear_node_goes_along_the_edge_that_names_it_once_no_retry_is_left() {
    let play = |error: Error| {
        let nodes = json!([
            node("s", "start", json!({})),
            node(
                "a",
                "linear",
                json!({ "retries": { "times": 1, "on": ["exit"] }, "on_error": [{ "on": ["exit:3"], "to": "mend" }] })
            ),
            node("mend", "linear", json!({})),
            node("done", "exit", json!({})),
        ]);
        let mut play = Play::new(nodes, &[("s", "a"), ("a", "done"), ("a", "mend"), ("mend", "done")]);
        play.start();
        play.gives(json!("s"));
        assert_eq!(play.fails(error.clone()), ["a waits"]);
        play.wakes();
        let words = play.fails(error);
        (play, words)
    };
    let exit = |code: i64| Error::new(Code::Unprocessable, "it failed").detail("exit_code", code);
    let (mut caught, words) = play(exit(3));
    assert_eq!(words, ["a failure", "a caught UNPROCESSABLE", "a > mend", "mend 1"]);
    caught.gives(json!("mended"));
    caught.gives(json!("mended"));
    assert_eq!(caught.end(), Some((Status::Success, json!("mended"), None)));
    caught.check_fold();
    assert_eq!(play(exit(4)).1, ["a failure", "finished failure"]);
}

#[test]
fn s3_3_an_exit_that_fails_on_failure_takes_no_task_that_is_partial() {
    let nodes = json!([node("s", "start", json!({})), node("done", "exit", json!({ "fail_on_failure": true }))]);
    for (partial, status) in [(true, Status::Failure), (false, Status::Success)] {
        let mut play = Play::new(nodes.clone(), &[("s", "done")]);
        play.start();
        play.ends(NodeResult { output: json!("s"), partial, ..NodeResult::default() });
        play.gives(json!("s"));
        assert_eq!(play.end().map(|end| (end.0, end.1)), Some((status, json!("s"))));
    }
}

#[test]
fn s3_4_a_tolerated_failure_keeps_its_status_unless_it_is_tried_again() {
    let failed = || Error::new(Code::Unprocessable, "it failed").detail("exit_code", 22);
    let done = || NodeResult {
        output: json!(22),
        error: Some(failed()),
        tolerated: Some(Status::Partial),
        ..NodeResult::default()
    };
    let mut play = two();
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.ends(done()), ["a partial", "a > done", "done 1"]);
    let mut play = Play::chain(json!([node("a", "linear", json!({ "retries": { "times": 1, "on": ["exit"] } }))]));
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.ends(done()), ["a waits"]);
    play.wakes();
    assert_eq!(play.ends(done()), ["a partial", "a > done", "done 1"]);
}

#[test]
fn s3_4_a_partial_node_makes_the_task_partial() {
    let mut play = two();
    play.start();
    play.ends(NodeResult { output: json!("s"), partial: true, ..NodeResult::default() });
    play.gives(json!("a"));
    play.gives(json!("out"));
    assert_eq!(play.end(), Some((Status::Partial, json!("out"), None)));
}

#[test]
fn a_stop_waits_for_the_node_that_runs() {
    let mut play = two();
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.stop(), ["stop"]);
    assert!(play.stop().is_empty(), "once is enough");
    // It is not tried again, and it does not go on.
    assert_eq!(play.fails(Error::new(Code::RateLimited, "busy")), ["a failure", "finished failure"]);
    assert_eq!(play.end().unwrap().2.unwrap().code, Code::Cancelled);
    play.check_fold();
}

#[test]
fn a_stop_between_two_deaths_is_the_end() {
    let mut play = two();
    play.start();
    assert_eq!(play.stop(), ["stop"]);
    assert_eq!(play.dies(), ["s failure", "finished failure"], "a stopped task runs nothing again");
    assert_eq!(play.end().unwrap().2.unwrap().code, Code::Cancelled);
}

#[test]
fn a_node_that_was_started_has_an_end_however_its_task_ends() {
    let ended = |play: &Play| {
        let of_a = play.log.iter().rev().find_map(|event| match event {
            TaskEvent::NodeFinished { node, attempt, error, .. } if node.as_str() == "a" => {
                Some((*attempt, error.as_ref().map(|error| error.code)))
            }
            _ => None,
        });
        play.check_fold();
        of_a
    };
    let at = |more| {
        let mut play = Play::chain(json!([node("a", "linear", more)]));
        play.start();
        play.gives(json!("s"));
        play
    };
    let limited = || json!({ "max_concurrency": 1, "retries": 1 });
    let mut play = at(limited());
    play.stop();
    assert_eq!(ended(&play), None, "it only waited");

    let mut play = at(limited());
    play.command(TaskCommand::Wake { node: "a".into(), attempt: 1, request: Some(1) });
    play.fails(Error::new(Code::Timeout, "slow"));
    assert_eq!(play.wakes(), ["a waits"], "for its slots again");
    play.stop();
    assert_eq!(ended(&play), Some((1, Some(Code::Cancelled))));

    let mut play = at(json!({}));
    play.input(Input::Park { reason: "it panics".into(), command: None });
    play.running.clear();
    play.input(Input::Unpark { drop: true });
    assert_eq!(ended(&play), Some((1, Some(Code::Paused))));

    let mut play = at(json!({}));
    play.machine.flows = FlowCache::default();
    assert_eq!(play.dies(), ["a failure", "finished failure"]);
    assert_eq!(ended(&play), Some((1, Some(Code::Internal))));
}

#[test]
fn s5_a_stop_ends_the_command_that_runs() {
    let mut play = Play::chain(json!([node("make", "linear", json!({ "op": { "command": ["make", "all"] } }))]));
    play.start();
    play.gives(json!("s"));
    let of_node = play.run();
    assert_eq!(of_node.node.as_str(), "make");
    assert_eq!((play.stop(), play.killed.len()), (vec!["stop".to_owned()], 1));
    // It has ended, and so has the task. What it gave until then is no output.
    let (output, error) =
        (json!({ "exit_code": null, "signal": 9 }), Some(Error::new(Code::Unprocessable, "a signal")));
    let done = NodeResult { output, error, tolerated: Some(Status::Partial), ..NodeResult::default() };
    assert_eq!(play.ends(done), ["make failure", "finished failure"]);
    let ended = play.log.iter().find_map(|event| match event {
        TaskEvent::NodeFinished { node, output, error, .. } if node.as_str() == "make" => Some((output, error)),
        _ => None,
    });
    assert!(matches!(ended, Some((Value::Null, Some(error))) if is_stop(error)), "{ended:?}");
    play.check_fold();
    // The worker dies before it has heard of that: then the next one ends the command.
    let mut play = Play::chain(json!([node("make", "linear", json!({ "op": { "command": ["make", "all"] } }))]));
    play.start();
    play.gives(json!("s"));
    play.stop();
    assert_eq!(play.dies().last().map(String::as_str), Some("finished failure"));
    assert_eq!(play.killed.len(), 2);
    assert_eq!(play.killed.first(), play.killed.last());
}

fn decision() -> Play {
    let nodes = json!([
        node("s", "start", json!({})),
        node("which", "decision", json!({})),
        node("a", "exit", json!({})),
        node("b", "exit", json!({})),
    ]);
    let mut play = Play::new(nodes, &[("s", "which"), ("which", "a"), ("which", "b")]);
    play.start();
    play.gives(json!(1));
    play
}

#[test]
fn s3_3_a_decision_selects_by_its_key_or_as_a_bare_text_with_white_space_around_it() {
    for output in [json!({ "selected_edge": "b", "why": "because" }), json!("b"), json!(" b\n")] {
        assert_eq!(decision().gives(output.clone()), ["which success", "which > b", "b 1"], "{output}");
    }
    let nothing = [json!({ "selected_edge": " b" }), json!({ "edge": "b" }), json!({ "selected_edge": 1 }), json!("")];
    for output in nothing.into_iter().chain([json!("B"), json!(null), json!(["b"]), json!("a b")]) {
        assert_eq!(decision().gives(output.clone()), ["which failure", "finished failure"], "{output}");
    }
}

#[test]
fn s3_3_a_decision_that_selects_no_edge_is_a_node_failure() {
    let mut play = decision();
    assert_eq!(play.gives(json!({ "selected_edge": "c" })), ["which failure", "finished failure"]);
    let error = play.end().unwrap().2.unwrap();
    assert!(error.hint.unwrap().contains("a, b"));
}

/// A task whose second node is a command that waits for its place, with the messages that tell it of the place or of none.
fn command_that_waits() -> (Play, TaskCommand, TaskCommand) {
    let mut play = Play::chain(json!([node("a", "linear", json!({ "op": { "command": ["true"] }, "retries": 1 }))]));
    play.machine.places = Some(Places { at_once: 32, shared: true });
    play.start();
    assert_eq!(play.gives(json!("s")), ["s success", "s > a", "a waits"]);
    assert!(!TaskMachine::in_flight(&play.state), "no worker is held");
    let Some(SlotsCommand::Ask { ask }) = to_semaphore(&mut play).pop() else { panic!("nothing was asked for") };
    let told = |command: &Value| serde_json::from_value(command.clone()).unwrap();
    let refusal = told(&ask.bound.as_ref().unwrap().refusal);
    (play, told(&ask.grant), refusal)
}

/// The messages to the machine's semaphore since the last look.
fn to_semaphore(play: &mut Play) -> Vec<SlotsCommand> {
    std::mem::take(&mut play.sent)
        .into_iter()
        .filter_map(|message| serde_json::from_value(message.command).ok())
        .collect()
}

#[test]
fn a_command_that_waits_for_a_place_is_rows_and_gives_it_back_when_its_node_ends() {
    let (mut play, begin, refuse) = command_that_waits();
    let view = TaskMachine::view(&play.state).and_then(|view| view.body).unwrap();
    let view: TaskView = serde_json::from_str(&view).unwrap();
    assert!(matches!(view.wait, Some(Wait::Place { .. })), "{:?}", view.wait);
    assert!(play.dies().is_empty(), "a worker that finds it so has nothing to run");
    assert_eq!(play.command(begin.clone()), ["a 1"]);
    assert!(play.command(begin).is_empty() && play.command(refuse).is_empty(), "messages that come too late");
    assert_eq!(play.dies(), ["a 2"], "it has its place still");
    assert!(to_semaphore(&mut play).is_empty());
    play.gives(json!("done"));
    assert!(matches!(to_semaphore(&mut play)[..], [SlotsCommand::Give { .. }]));
    play.check_fold();
}

#[test]
fn a_command_without_a_place_is_not_begun_and_is_tried_again_later() {
    let (mut play, _, refuse) = command_that_waits();
    assert_eq!(play.command(refuse), ["a waits"]);
    let Some(Mode::Waiting { wait: Wait::Backoff { retry, .. } }) = play.state.execution.clone().map(|it| it.mode)
    else {
        panic!("{:?}", play.state.execution)
    };
    assert_eq!(retry.error.code, Code::NotBegun);
    assert_eq!(play.wakes(), ["a waits"], "for a place, again");
    assert!(matches!(to_semaphore(&mut play)[..], [SlotsCommand::Give { .. }, SlotsCommand::Ask { .. }]));
    play.check_fold();
}

#[test]
fn a_stop_takes_a_command_out_of_the_line() {
    let (mut play, begin, _) = command_that_waits();
    assert_eq!(play.stop(), ["stop", "finished failure"]);
    assert!(matches!(to_semaphore(&mut play)[..], [SlotsCommand::Give { .. }]));
    assert!(play.command(begin).is_empty() && play.killed.is_empty());
}

#[test]
fn a_task_whose_manifests_are_gone_gives_back_what_it_had() {
    let (mut play, begin, _) = command_that_waits();
    play.machine.flows = FlowCache::default();
    assert_eq!(play.command(begin), ["finished failure"]);
    assert!(matches!(to_semaphore(&mut play)[..], [SlotsCommand::Give { .. }]));
}

#[test]
fn a_command_whose_machine_is_not_ready_is_rows_that_come_again_and_keeps_its_place() {
    let (mut play, begin, _) = command_that_waits();
    assert_eq!(play.command(begin.clone()), ["a 1"]);
    assert_eq!(play.run().waited, Duration::ZERO);
    let unready = || Error::new(Code::NotBegun, "a machine is looked for").detail("retry_after_ms", 2000);
    assert_eq!(play.fails(unready()), ["a waits"]);
    assert!(!TaskMachine::in_flight(&play.state), "no worker is held");
    let message = play.sent.pop().unwrap();
    assert_eq!(message.deliver_at, Some(play.at() + Duration::from_secs(2)));
    assert!(play.command(begin).is_empty(), "of the first attempt");
    let again: TaskCommand = serde_json::from_value(message.command).unwrap();
    assert_eq!(play.command(again.clone()), ["a 2"], "no retry: nothing of it has begun");
    assert!(play.run().waited > Duration::ZERO && play.run().retry == 0);
    assert!(to_semaphore(&mut play).is_empty(), "its place is its own all the time");
    // The same call again, and its end.
    assert!(play.command(again).is_empty());
    play.gives(json!("done"));
    assert!(matches!(to_semaphore(&mut play)[..], [SlotsCommand::Give { .. }]));
    play.check_fold();
}

#[test]
fn the_time_of_all_retries_is_over_however_often_the_machine_was_not_ready() {
    let policy = json!({ "times": 99, "backoff_seconds": 1, "backoff_rate": 1, "jitter": 0, "within_seconds": 5 });
    let command = json!({ "op": { "command": ["true"] }, "retries": policy });
    let mut play = Play::chain(json!([node("a", "linear", command)]));
    play.machine.places = Some(Places { at_once: 32, shared: true });
    play.start();
    play.gives(json!("s"));
    let not_begun = Error::new(Code::NotBegun, "a machine is looked for");
    let mut tries = 0;
    while play.end().is_none() && tries < 9 {
        tries += 1;
        let attempt = play.state.execution.as_ref().unwrap().attempt;
        play.command(TaskCommand::BeginCommand { node: "a".into(), attempt, request: None });
        play.fails(not_begun.clone().detail("retry_after_ms", 2000));
        play.comes("begin_command");
        if play.fails(not_begun.clone()) == ["a waits"] {
            play.wakes();
        }
    }
    assert_eq!(tries, 3, "each takes three seconds with its pause, and the last begins within five");
    play.check_fold();
}

#[test]
fn s10_4_the_command_of_a_node_says_how_long_it_waited() {
    let (mut play, begin, _) = command_that_waits();
    for _ in 0..5 {
        // Ten milliseconds each.
        play.command(TaskCommand::Step);
    }
    play.command(begin);
    let resources = Some(Resources { cpu_ms: 4, peak_memory_bytes: 5, bytes_in: 6, bytes_out: 7 });
    let (args, output, code) = (String::new(), String::new(), None);
    let (tool, status) = ("command".into(), Status::Success);
    let used = ToolUse { tool, args, status, output, code, duration_ms: 1, queue_ms: 0, resources };
    play.ends(NodeResult { output: json!("done"), tools: vec![used], ..NodeResult::default() });
    let told = play.log.iter().find_map(|event| match event {
        TaskEvent::ToolUsed { used, .. } => Some((used.queue_ms, used.resources)),
        _ => None,
    });
    assert_eq!(told, Some((60, resources)));
}
