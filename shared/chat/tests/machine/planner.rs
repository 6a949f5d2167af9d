//! The contexts of sessions and executors: their tools within a budget, their size, and the title that the model gives a session.

use crate::play::Play;
use domain::{
    CallId, ChatCommand, ChatEvent, ChatId, ExecutorOf, Session, SessionContext, StopReason, chat::SessionConfig,
    event::ContextRecord,
};
use serde_json::json;
use tools::organizer::{READING, WRITING};
use uuid::Uuid;

/// A session with these tools that found its message to be a matter of few calls.
fn session_with(tools: &[&str], says: &str) -> Play {
    let mut play = Play::with(|config| {
        config.session = Some(Box::new(Session::default()));
        config.tools = Some(tools.iter().map(|tool| (*tool).to_owned()).collect());
    });
    play.say(says);
    if !play.running.is_empty() {
        play.answer(r#"{"strategy": "tool"}"#, &[]);
    }
    play
}

/// The record of the context that the model was given last.
fn given(play: &Play) -> ContextRecord {
    let last = play.log.iter().rev().find_map(|event| match event {
        ChatEvent::ModelStarted { context: Some(record), .. } => Some((**record).clone()),
        _ => None,
    });
    last.unwrap_or_default()
}

#[test]
fn tools_of_a_session_have_a_budget_and_the_rest_is_shown_on_demand() {
    let files = ["ls", "glob", "grep", "read", "edit", "write", "mkdir"];
    let tools: Vec<&str> = files.into_iter().chain(READING).chain(WRITING).collect();
    let mut play = session_with(&tools, "do the hard thing");
    let record = given(&play);
    assert!(record.tools() <= 1_500, "{}", record.tools());
    assert!(record.cut.iter().any(|cut| cut.part == "tools" && cut.tokens > 3_000), "{:?}", record.cut);
    let offered = play.offered();
    assert_eq!(offered.last().map(String::as_str), Some("tool_info"));
    let is_missing = |tool: &&&str| !offered.contains(&(**tool).to_owned());
    let withheld = *tools.iter().find(is_missing).unwrap();

    let told = play.answer("", &[("tool_info", json!({ "tools": [withheld] }))]);
    assert!(told.iter().any(|word| word.starts_with("observed true")), "{told:?}");
    assert!(play.asked.last().is_some_and(|asked| asked.iter().any(|said| said.contains(&format!("\n{withheld}\n")))));
    assert_eq!(play.offered().last().map(String::as_str), Some(withheld), "it is declared from then on");
    let told = play.answer("", &[("tool_info", json!({ "tools": ["nothing"] }))]);
    assert!(told.iter().any(|word| word.starts_with("observed false: none of these is a tool")), "{told:?}");
    assert!(given(&play).tools() <= 3_000, "those that are shown have as much room again");
}

#[test]
fn a_session_stays_within_its_context_with_its_tools() {
    const TOOLS: [&str; 4] = ["ls", "read", "grep", "write"];
    assert!(given(&session_with(&TOOLS, "do the hard thing")).cut.is_empty(), "tools that fit are whole");
    let is_over =
        |play: &Play| matches!(play.log.last(), Some(ChatEvent::Done { stop_reason: StopReason::ContextLimit, .. }));
    let sizes = [8_000, 20_000, 34_000, 36_000, 38_000, 39_500];
    let fits = |size: usize| {
        let play = session_with(&TOOLS, &"x".repeat(size));
        let within = given(&play).tokens() <= 10_000;
        assert!(within || is_over(&play), "{size}: {:?}", given(&play));
        !is_over(&play)
    };
    assert_eq!(sizes.map(fits), [true, true, true, true, false, false], "a message beside tools of some 700 tokens");
}

#[test]
fn tools_of_an_executor_have_a_budget() {
    let mut play = Play::agent(&[("read", None), ("grep", None), ("search_notes", None), ("create_task", None)]);
    let agent = play.config.agent.as_mut().unwrap();
    agent.executor = Some(Box::new(ExecutorOf {
        session: ChatId(Uuid::from_u128(9)),
        plan: CallId(Uuid::from_u128(10)),
        step: 1,
        max_calls: 10,
        max_retries: 2,
        tools_tokens: 400,
    }));
    play.say("do a part");
    let record = given(&play);
    assert!((1..=400).contains(&record.tools()), "{record:?}");
    assert!(record.cut.iter().any(|cut| cut.part == "tools" && cut.tokens > 700), "{:?}", record.cut);
    assert!(play.offered().contains(&"create_task".to_owned()), "a tool that changes something comes first");
}

/// Answers an analysis with a title, and says whether the request asked for one.
fn analyse(play: &mut Play, title: &str) -> bool {
    let request = play.request.clone().unwrap_or_else(|| panic!("nothing was asked"));
    let asks = request.system.contains("\"title\"");
    assert_eq!(request.schema.is_some_and(|schema| schema["properties"]["title"].is_object()), asks);
    play.answer(&json!({ "strategy": "tool", "title": title }).to_string(), &[]);
    play.answer("ok", &[]);
    asks
}

#[test]
fn a_session_is_named_by_the_model_from_its_first_three_to_five_messages_and_then_keeps_its_title() {
    let title = |play: &Play| play.state.config.as_ref().map(|config| config.title.clone()).unwrap_or_default();
    const WORDS: &str = "do the hard thing";
    let mut play = Play::with(|config| {
        config.session = Some(Box::new(Session::default()));
        config.title = WORDS.into();
    });
    let named = "Drafts of the atlas";
    for (asks, after) in [(false, WORDS), (false, WORDS), (true, named), (false, named)] {
        play.say(WORDS);
        assert_eq!(analyse(&mut play, named), asks);
        assert_eq!(title(&play), after);
    }
    // A model that gives none is asked with the next messages, up to the fifth.
    let mut play = Play::with(|config| {
        config.session = Some(Box::new(Session::default()));
        config.title = WORDS.into();
    });
    for asks in [false, false, true, true, true, false] {
        play.say(WORDS);
        assert_eq!(analyse(&mut play, " "), asks);
    }
    // A title that a person gave stays.
    let mut play = Play::with(|config| config.session = Some(Box::new(Session::default())));
    for _ in 0..6 {
        play.say(WORDS);
        assert!(!analyse(&mut play, named));
    }
    assert_eq!(title(&play), "test");
}

/// A change of a session's context.
fn change(session: Session, system: &str, refreshes: bool) -> ChatCommand {
    let setup = SessionConfig { session, system: system.into(), tools: vec!["ls".into()], refreshes };
    ChatCommand::Configure {
        title: None,
        model: None,
        model_settings: None,
        mode: None,
        may_approve: false,
        session: Some(Box::new(setup)),
        options: None,
        labels: domain::LabelChanges::default(),
    }
}

#[test]
fn a_context_changes_for_sessions_alone() {
    let mut play = session_with(&["ls", "read"], "Hello!");
    play.command(change(Session::default(), "other", false));
    assert_eq!(play.state.config.as_ref().map(|config| config.system.clone()), Some("other".into()));
    let mut chat = Play::new();
    chat.say("Hello!");
    chat.answer("Hello.", &[]);
    chat.command(change(Session::default(), "other", false));
    assert_eq!(
        chat.state.config.as_ref().map(|config| (config.system.clone(), config.session.is_some())),
        Some(("You are a test.".into(), false))
    );
}

#[test]
fn a_location_that_is_read_again_takes_back_no_change_of_the_context() {
    let system = |play: &Play| play.state.config.as_ref().map(|config| config.system.clone()).unwrap_or_default();
    let mut play = session_with(&["ls"], "Hello!");
    let before = Session::default();
    play.command(change(before.clone(), "read again", true));
    assert_eq!(system(&play), "read again");
    let calendar = Session { context: SessionContext::Calendar, approve_plans: true, ..Session::default() };
    play.command(change(calendar.clone(), "the calendar", false));
    // Another message has seen the session before that.
    assert_eq!(play.command(change(before, "of before", true)), Vec::<String>::new());
    assert_eq!(system(&play), "the calendar");
    play.command(change(Session { approve_plans: false, ..calendar }, "the calendar later", true));
    let now = play.state.config.clone().unwrap_or_else(|| panic!("no chat"));
    let asks = now.session.as_ref().is_some_and(|session| session.approve_plans);
    assert_eq!((now.system.as_str(), asks), ("the calendar later", true));
}

#[test]
fn a_session_of_the_daily_brief_changes_its_settings_and_nothing_else_that_sets_up_agents() {
    let writes = |context, name: &str| {
        let mut play = Play::with(|config| {
            config.session = Some(Box::new(Session { context, ..Session::default() }));
            config.tools = Some(vec!["write".into()]);
        });
        play.say("do the hard thing");
        play.answer(r#"{"strategy": "tool"}"#, &[]);
        let path = format!("/users/{}/{name}", play.config.user);
        let happened = play.answer("", &[("write", json!({ "path": path, "content": "Ten lines." }))]);
        happened.last().is_some_and(|word| word == "call write 1")
    };
    assert!(writes(SessionContext::DailyBriefUpdate, "daily-brief.md"));
    assert!(!writes(SessionContext::DailyBriefUpdate, "profile.md"));
    assert!(!writes(SessionContext::Global, "daily-brief.md"));
}
