//! Turns that are longer than the context, and turns whose model makes the same failing call again and again.

use crate::play::Play;
use domain::{ChatEvent, Code, Error, Mode};
use serde_json::json;
use std::sync::Arc;
use tools::{Commands, Registry};

#[test]
fn a_turn_that_is_longer_than_the_context_goes_on_without_the_results_of_earlier_calls() {
    let mut play = Play::new();
    play.say("look at everything");
    for number in 0..40 {
        play.answer("", &[("read", json!({ "path": format!("/data/{number}.md") }))]);
        play.tool(&format!("{number} {}", "x".repeat(4_000)));
        let asked = play.asked.last().unwrap();
        assert!(asked.iter().map(String::len).sum::<usize>() < 40_000);
        assert!(asked.last().unwrap().starts_with(&format!("tool: {number} xxx")), "the newest result is whole");
        assert_eq!(asked.len(), 3 + 2 * number, "each call keeps a result");
    }
    let anew = play.asked.windows(2).filter(|pair| !pair[1].starts_with(&pair[0])).count();
    assert!((5..=14).contains(&anew), "the provider's cache ends {anew} times in 40 calls");
    let record = play.log.iter().rev().find_map(|event| match event {
        ChatEvent::ModelStarted { context: Some(record), .. } => Some((**record).clone()),
        _ => None,
    });
    let record = record.unwrap();
    assert!(record.tokens() - record.tools() <= 10_200, "{record:?}");
    assert!(record.cut.iter().any(|cut| cut.part == "results" && cut.tokens > 40_000 && cut.kept < 10_000));
    assert!(play.texts().iter().all(|text| !text.contains("is left out")), "the log has each result whole");

    let before = play.asked.last().cloned();
    play.crash();
    assert_eq!(play.asked.last().cloned(), before);
    assert_eq!(play.answer("Seen.", &[]).last().map(String::as_str), Some("done EndTurn: Seen."));
}

#[test]
fn a_call_that_fails_again_and_again_is_told_of_and_then_ends_the_turn() {
    let mut play = Play::new();
    play.say("read it");
    let fails = |play: &mut Play, path: &str| {
        play.answer("", &[("read", json!({ "path": path }))]);
        play.tool_ends(Error::new(Code::NotFound, "there is no such file").into())
    };
    let is_told = |happened: &[String]| happened.iter().any(|word| word.contains("times in a row"));
    assert!(!is_told(&fails(&mut play, "/a")) && !is_told(&fails(&mut play, "/a")));
    assert!(is_told(&fails(&mut play, "/a")), "the third time");
    assert!(!is_told(&fails(&mut play, "/b")) && !is_told(&fails(&mut play, "/a")), "another call was between");
    for _ in 0..4 {
        fails(&mut play, "/a");
    }
    assert_eq!(fails(&mut play, "/a")[1..], ["failed LIMIT_REACHED", "done Error: "]);

    play.say("try again");
    let wrong = |play: &mut Play| play.answer("", &[("read", json!({ "pth": "/a" }))]);
    assert!(!is_told(&wrong(&mut play)) && !is_told(&wrong(&mut play)) && is_told(&wrong(&mut play)));
    play.answer("", &[("read", json!({ "path": "/c" }))]);
    assert_eq!(play.tool("c"), ["observed true: c", "model_started 1"]);
}

#[test]
fn a_command_that_waits_for_something_elsewhere_may_fail_more_often() {
    let mut play = Play::with(|config| config.mode = Mode::Plan);
    play.machine.tools = Arc::new(Registry::builtin().with_commands(Commands::default()));
    play.say("plan it");
    play.answer("planned", &[]);
    play.approve(3);
    let goes_on = (0..40).take_while(|_| {
        play.answer("", &[("exec", json!({ "command": "curl -f http://ready.test" }))]);
        play.plan_is(None);
        let happened = play.tool_ends(Error::new(Code::Unprocessable, "exit code 7").into());
        happened.last().is_some_and(|word| word == "model_started 1")
    });
    assert_eq!(goes_on.count(), 29, "the thirtieth failure ends the turn");
}
