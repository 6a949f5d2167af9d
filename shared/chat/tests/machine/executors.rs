//! The chats of executors, as the machine of their session makes them.

use crate::play::Play;
use domain::{ChatCommand, Session};
use serde_json::json;

#[test]
fn an_executor_knows_the_day_of_its_session_and_nothing_else_of_its_system_text() {
    let mut play = Play::with(|config| {
        config.session = Some(Box::new(Session::default()));
        config.tools = Some(vec!["read".into()]);
        config.system = "You plan.\n\nToday is Thursday, 2026-01-01 (UTC).\n\n# Location\nThe projects: atlas.".into();
    });
    play.say("do the hard thing");
    play.answer(r#"{"strategy": "complex", "reasoning": "it is hard"}"#, &[]);
    play.answer("", &[("run_plan", json!({ "steps": [{ "step": 1, "description": "part 1" }] }))]);
    let made = play.scheduled.iter().find_map(|sent| match serde_json::from_value(sent.clone()) {
        Ok(ChatCommand::StartTurn(request)) => request.create,
        _ => None,
    });
    let system = made.unwrap().system;
    assert!(system.starts_with("You are an executor"), "{system}");
    assert!(system.ends_with("\n\nToday is Thursday, 2026-01-01 (UTC).") && !system.contains("atlas"), "{system}");
}
