//! The worker dies with a node: another one runs it again, as a new attempt of the same try.

use crate::play::{Play, node};
use actor::{Input, Machine};
use buildscale_engine::TaskMachine;
use domain::{Code, Error, TaskCommand, TaskEvent};
use serde_json::json;

#[test]
fn s2_1_after_a_crash_comes_attempt_two_of_the_same_try() {
    let mut play = Play::chain(json!([node("a", "linear", json!({ "retries": 3 }))]));
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.dies(), ["a 2"]);
    let run = play.run();
    assert_eq!((run.attempt, run.retry, run.input.as_str()), (2, 0, Some("s")));
    assert_eq!(play.fails(Error::new(Code::Timeout, "slow")), ["a waits"]);
    assert_eq!(play.wakes(), ["a 3 retry 1"]);
    assert_eq!(play.dies(), ["a 4"]);
    assert_eq!((play.run().attempt, play.run().retry), (4, 1), "the try counts, the deaths do not");
    assert_eq!(play.gives(json!("a")), ["a success", "a > done", "done 1"]);
    play.check_fold();
}

#[test]
fn a_try_that_a_worker_was_lost_with_may_have_taken_effect() {
    let mut play = Play::chain(json!([node("a", "linear", json!({ "retries": 3 }))]));
    play.start();
    play.gives(json!("s"));
    assert!(!play.run().may_have_run, "it begins");
    for _ in 0..2 {
        play.dies();
        assert!(play.run().may_have_run);
    }
    play.fails(Error::new(Code::Timeout, "slow"));
    play.wakes();
    assert!(!play.run().may_have_run, "a retry was decided on: it is another call");
    play.dies();
    assert!(play.run().may_have_run);
}

fn deaths(play: &Play) -> Option<u32> {
    play.state.execution.as_ref().map(|execution| execution.crashes)
}

#[test]
fn deaths_are_counted_until_the_next_step_forward() {
    let mut play = Play::chain(json!([node("a", "linear", json!({ "retries": 1 }))]));
    play.start();
    assert_eq!(deaths(&play), Some(0));
    play.dies();
    play.dies();
    assert_eq!(deaths(&play), Some(2));
    play.gives(json!("s"));
    assert_eq!(deaths(&play), Some(0));
    play.dies();
    play.fails(Error::new(Code::Timeout, "slow"));
    play.wakes();
    assert_eq!(deaths(&play), Some(0), "a retry was decided on, no death caused it");
}

#[test]
fn nothing_is_run_again_for_a_task_that_only_waits() {
    let mut play = Play::chain(json!([{
        "id": "ask", "kind": "deterministic", "role": "linear", "context": "none", "ask": { "approve": "Really?" },
    }]));
    play.start();
    play.gives(json!("s"));
    crate::human_steps::asks(&mut play, "ask", None);
    assert!(!TaskMachine::in_flight(&play.state));
    assert!(play.dies().is_empty());
}

/// A task that executes a node which calls this tool.
fn calls(tool: &str) -> Play {
    let more = json!({ "tools": [tool], "op": { "tool": tool, "args": {} } });
    let mut play = Play::chain(json!([node("call", "linear", more)]));
    play.start();
    play.gives(json!("s"));
    play
}

fn waits_outside(play: &Play) -> bool {
    play.running.values().all(|effect| play.machine.waits(effect))
}

#[test]
fn a_process_that_dies_while_a_server_runs_a_tool_is_not_the_tasks_fault() {
    assert!(waits_outside(&calls("ticket")), "the server has it");
    assert!(!waits_outside(&calls("look")), "it runs here");
}

#[test]
fn a_stop_ends_the_call_of_a_server_at_once_and_lets_another_tool_complete() {
    let mut play = calls("ticket");
    assert_eq!(play.stop(), ["stop", "call failure", "finished failure"]);
    assert_eq!(play.end().unwrap().2.unwrap().code, Code::Cancelled);
    assert!(play.running.is_empty());
    play.check_fold();

    let mut play = calls("look");
    assert_eq!(play.stop(), ["stop"]);
    assert_eq!(play.gives(json!("x")), ["call success", "finished failure"]);
}

#[test]
fn a_task_that_a_new_process_pauses_after_deaths_has_not_ended_and_holds_no_slot() {
    let mut play = Play::chain(json!([node("a", "linear", json!({ "max_concurrency": 1 }))]));
    play.start();
    play.gives(json!("s"));
    assert_eq!(play.command(TaskCommand::Wake { node: "a".into(), attempt: 1, request: Some(1) }), ["a 1"]);
    play.sent.clear();
    let read = std::mem::take(&mut play.machine.flows);
    play.input(Input::Park { reason: "the process died".into(), command: None });
    assert!(matches!(play.log.last(), Some(TaskEvent::Parked { .. })), "{:?}", play.log.last());
    assert!(matches!(&play.sent[..], [message] if message.command["command"] == "give"), "{:?}", play.sent);

    play.machine.flows = read;
    play.input(Input::Unpark { drop: false });
    assert_eq!(play.dies(), ["a waits"], "for its slot again");
    assert_eq!(play.command(TaskCommand::Wake { node: "a".into(), attempt: 2, request: Some(2) }), ["a 2"]);
    assert!(play.run().may_have_run, "the process died with it");
    play.check_fold();
}
