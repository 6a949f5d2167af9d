//! Human steps: the task is only rows until a person answers; an answer that comes early is kept.

use crate::play::{Play, node};
use buildscale_engine::machine::TaskReport;
use domain::{Code, QuestionId, Status, TaskCommand, TaskEvent, Timestamp, event::Question};
use serde_json::{Value, json};

fn asking(ask: Value) -> Play {
    let mut play = Play::chain(json!([node("ask", "linear", json!({ "ask": ask }))]));
    play.start();
    play
}

fn approval() -> Play {
    asking(json!({ "approve": "Really?" }))
}

fn colour() -> Play {
    asking(json!({ "questions": [{ "name": "colour", "question": "Which?" }] }))
}

/// The node that runs asks.
pub fn asks(play: &mut Play, node: &str, expires_at: Option<Timestamp>) -> Vec<String> {
    let question = match node {
        "ask" => Question {
            name: "approved".into(),
            question: "?".into(),
            schema: json!({ "type": "boolean" }),
            buttons: None,
        },
        _ => {
            Question { name: "colour".into(), question: "?".into(), schema: json!({ "type": "string" }), buttons: None }
        }
    };
    let node = play.run().node;
    play.reports(TaskReport::Questions { node, questions: vec![question], expires_at })
}

fn question_id(play: &Play) -> QuestionId {
    let asked = play.log.iter().rev().find_map(|event| match event {
        TaskEvent::Asked { question_id, .. } => Some(*question_id),
        _ => None,
    });
    asked.unwrap()
}

#[test]
fn an_approval_lets_the_input_pass() {
    let mut play = approval();
    play.gives(json!("s"));
    assert_eq!(asks(&mut play, "ask", None), ["asks"]);
    assert!(play.running.is_empty() && play.sent.is_empty(), "it is only rows");
    let answers = json!({ "approved": true, "comment": "go" });
    assert_eq!(play.answer("ask", answers), ["answered", "ask success", "ask > done", "done 1"]);
    assert_eq!(play.run().input.as_str(), Some("s"));
    play.check_fold();
}

#[test]
fn a_refusal_fails_the_node_with_the_comment() {
    let mut play = approval();
    play.gives(json!("s"));
    asks(&mut play, "ask", None);
    assert_eq!(
        play.answer("ask", json!({ "approved": false, "comment": "too dear" })),
        ["answered", "ask failure", "finished failure"]
    );
    let error = play.end().unwrap().2.unwrap();
    assert_eq!((error.code, error.message.contains("too dear")), (Code::Forbidden, true));
}

#[test]
fn an_answer_that_comes_early_is_kept() {
    // Before the node began, and after it began but before the question was recorded.
    for before in [true, false] {
        let mut play = colour();
        if before {
            assert_eq!(play.answer("ask", json!({ "colour": "red" })), ["answered"]);
        }
        play.gives(json!("s"));
        if !before {
            assert_eq!(play.answer("ask", json!({ "colour": "red" })), ["answered"]);
        }
        assert_eq!(asks(&mut play, "colour", None), ["asks", "answered", "ask success", "ask > done", "done 1"]);
        assert_eq!(*play.run().input, json!({ "colour": "red" }));
        play.check_fold();
    }
}

#[test]
fn a_later_early_answer_takes_the_place_of_the_one_before() {
    let mut play = colour();
    assert_eq!(play.answer("ask", json!({ "colour": "red" })), ["answered"]);
    assert_eq!(play.answer("ask", json!({ "colour": "blue" })), ["answered"]);
    play.gives(json!("s"));
    assert_eq!(asks(&mut play, "colour", None), ["asks", "answered", "ask success", "ask > done", "done 1"]);
    assert_eq!(*play.run().input, json!({ "colour": "blue" }));
    play.check_fold();
}

#[test]
fn an_answer_that_does_not_fit_is_not_taken_and_the_question_stays() {
    let mut play = colour();
    assert_eq!(play.answer("ask", json!({ "colour": 7 })), ["answered"]);
    play.gives(json!("s"));
    assert_eq!(asks(&mut play, "colour", None), ["asks"]);
    assert!(play.answer("ask", json!({})).is_empty());
    assert!(play.answer("s", json!({ "colour": "red" })).is_empty(), "that node asks no people");
    assert_eq!(play.answer("ask", json!({ "colour": "red" }))[..2], ["answered", "ask success"]);
    assert!(play.answer("ask", json!({ "colour": "red" })).iter().all(|word| word == "answered"), "and no second time");
}

#[test]
fn a_question_expires_once() {
    let mut play = colour();
    play.gives(json!("s"));
    asks(&mut play, "colour", Some(Timestamp::from_millis(99_000)));
    let id = question_id(&play);
    let message = play.sent.pop().unwrap();
    assert_eq!(message.deliver_at, Some(Timestamp::from_millis(99_000)));
    let command: TaskCommand = serde_json::from_value(message.command).unwrap();
    assert_eq!(command, TaskCommand::Expire { question_id: id });
    assert_eq!(play.command(command.clone()), ["ask failure", "finished failure"]);
    assert_eq!(play.end().unwrap().2.unwrap().code, Code::Timeout);
    assert!(play.command(command).is_empty());
}

#[test]
fn an_answered_question_does_not_expire() {
    let mut play = colour();
    play.gives(json!("s"));
    asks(&mut play, "colour", Some(Timestamp::from_millis(99_000)));
    let question_id = question_id(&play);
    play.answer("ask", json!({ "colour": "red" }));
    assert!(play.command(TaskCommand::Expire { question_id }).is_empty());
    play.gives(json!("out"));
    assert_eq!(play.end().unwrap().0, Status::Success);
}

#[test]
fn a_task_that_waits_for_people_can_be_stopped() {
    let mut play = approval();
    play.gives(json!("s"));
    asks(&mut play, "ask", None);
    assert_eq!(play.stop(), ["stop", "ask failure", "finished failure"]);
    assert!(play.answer("ask", json!({ "approved": true })).is_empty());
}

#[test]
fn s3_3_a_decision_takes_a_refusal_as_one_of_its_ways() {
    let nodes = json!([
        node("s", "start", json!({})),
        node("ask", "decision", json!({ "ask": { "approve": "Really?" } })),
        node("approved", "exit", json!({})),
        node("declined", "exit", json!({})),
    ]);
    let mut play = Play::new(nodes, &[("s", "ask"), ("ask", "approved"), ("ask", "declined")]);
    play.start();
    play.gives(json!("s"));
    asks(&mut play, "ask", None);
    let words = play.answer("ask", json!({ "approved": false }));
    assert_eq!(words, ["answered", "ask success", "ask > declined", "declined 1"]);
}

#[test]
fn an_exit_that_always_fails_tells_who_declined_and_why() {
    let nodes = json!([
        node("s", "start", json!({})),
        node("ask", "decision", json!({ "ask": { "approve": "Really?" } })),
        node("approved", "exit", json!({})),
        node("rejected", "exit", json!({ "always_fail": true })),
    ]);
    let edges = json!([
        { "from": "s", "to": "ask" }, { "from": "ask", "to": "approved", "label": "approved" },
        { "from": "ask", "to": "rejected", "label": "declined" },
    ]);
    let mut play = Play::with_edges(nodes, edges);
    play.start();
    play.gives(json!("s"));
    asks(&mut play, "ask", None);
    play.answer("ask", json!({ "approved": false, "comment": "too dear" }));
    let input = play.run().input;
    assert_eq!(play.gives((*input).clone()), ["rejected success", "finished failure"]);
    let error = play.end().unwrap().2.unwrap();
    let why = "the exit rejected always fails: ask chose declined (approved: no; comment: too dear)";
    assert_eq!((error.message.as_str(), error.hint.as_deref()), (why, Some("a re-run from ask decides again")));
    play.check_fold();
}

#[test]
fn a_default_answer_counts_when_nobody_answers_in_time() {
    let ask =
        json!({ "approve": "Really?", "timeout_seconds": 60, "default": { "approved": true, "comment": "in time" } });
    let mut play = Play::chain(json!([node("ask", "linear", json!({ "ask": ask }))]));
    play.start();
    play.gives(json!("s"));
    asks(&mut play, "ask", Some(Timestamp::from_millis(99_000)));
    let question_id = question_id(&play);
    assert_eq!(play.command(TaskCommand::Expire { question_id })[..2], ["answered", "ask success"]);
    let by = play.log.iter().find_map(|event| match event {
        TaskEvent::Answered { by, .. } => Some(by.as_str()),
        _ => None,
    });
    assert_eq!(by, Some("default"), "history says that no person did");
}

#[test]
fn a_missing_answer_takes_the_edge_for_it() {
    let nodes = json!([
        node("s", "start", json!({})),
        node(
            "ask",
            "decision",
            json!({
                "ask": { "approve": "Really?", "timeout_seconds": 60 }, "on_error": [{ "on": ["TIMEOUT"], "to": "late" }],
            })
        ),
        node("yes", "exit", json!({})),
        node("no", "exit", json!({})),
        node("remind", "exit", json!({})),
    ]);
    let edges = json!([
        { "from": "s", "to": "ask" }, { "from": "ask", "to": "yes", "label": "approved" },
        { "from": "ask", "to": "no", "label": "declined" }, { "from": "ask", "to": "remind", "label": "late" },
    ]);
    let mut play = Play::with_edges(nodes, edges);
    play.start();
    play.gives(json!("s"));
    asks(&mut play, "ask", Some(Timestamp::from_millis(99_000)));
    let question_id = question_id(&play);
    let words = play.command(TaskCommand::Expire { question_id });
    assert_eq!(words, ["ask failure", "ask caught TIMEOUT", "ask > remind", "remind 1"]);
    let input = play.run().input;
    assert_eq!((&input["error"]["code"], &input["input"]), (&json!("TIMEOUT"), &json!("s")));
    play.gives((*input).clone());
    assert_eq!(play.end().unwrap().0, Status::Success, "a failure with an edge of its own is no failure of the task");
    play.check_fold();
}

#[test]
fn an_answer_that_is_to_be_remembered_is_not_asked_for_again() {
    let ask = json!({ "questions": [{ "name": "colour", "question": "Which?" }] });
    let mut play =
        Play::chain(json!([node("which", "linear", json!({ "ask": ask, "remember": { "store": "task" } }))]));
    play.start();
    play.gives(json!("s"));
    asks(&mut play, "which", None);
    assert_eq!(play.answer("which", json!({ "colour": "red" })), ["answered"]);
    assert!(play.answer("which", json!({ "colour": "blue" })).len() <= 1);
    assert_eq!(play.dies(), ["which 2"]);
    assert_eq!(play.run().given, Some(json!({ "colour": "red" })));
    assert_eq!(play.gives(json!({ "colour": "red" })), ["which success", "which > done", "done 1"]);
    play.check_fold();
}

#[test]
fn an_answer_that_does_not_fit_the_schema_of_its_node_fails_it() {
    let asking =
        |ask: Value| Play::chain(json!([node("ask", "linear", json!({ "ask": ask, "schema_out": "number" }))]));
    let mut play = asking(json!({ "questions": [{ "name": "colour", "question": "Which?" }] }));
    play.start();
    play.gives(json!("s"));
    asks(&mut play, "colour", None);
    let words = play.answer("ask", json!({ "colour": "red" }));
    assert_eq!(words, ["answered", "rejected 1", "ask failure", "finished failure"]);
    let error = play.end().unwrap().2.unwrap();
    assert_eq!((error.code, error.message.contains("required property")), (Code::Unprocessable, true), "{error}");
    play.check_fold();

    // An approval passes on its input, which fits or does not.
    for (input, word) in [(json!({ "n": 7 }), "ask success"), (json!("s"), "rejected 1")] {
        let mut play = asking(json!({ "approve": "Really?" }));
        play.start();
        play.gives(input);
        asks(&mut play, "ask", None);
        assert_eq!(play.answer("ask", json!({ "approved": true }))[..2], ["answered", word]);
    }
}
