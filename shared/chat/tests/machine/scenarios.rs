//! The turns of scenarios: nobody is asked, a chat is handed over, and a turn is its team's (spec 000 §4).

use crate::play::{Play, ask};
use actor::{Input, StopRequest, StopTarget};
use buildscale_chat::{ChatEffect, PlanPoll, PlanPollResult, Report};
use domain::{
    ChatCommand, ChatConfig, ChatEvent, ChatId, FileId, FilePath, Limits, MemberEnd, MemberOf, Mode, ModelSettings,
    NextPersona, PlanFile, Scenario, ScenarioSetup, StopId, ToldStep, TurnId, Usage,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tools::{Commands, PlanItem, PlanState, Registry};
use uuid::Uuid;

fn plan() -> PlanFile {
    PlanFile { path: FilePath::parse("/projects/a/plan.md").unwrap(), id: FileId(Uuid::from_u128(12)) }
}

fn with(scenario: Scenario, change: impl FnOnce(&mut ChatConfig)) -> Play {
    let mut play = Play::with(|config| {
        config.scenario = Some(Box::new(ScenarioSetup { name: scenario, ..ScenarioSetup::default() }));
        change(config);
    });
    play.machine.tools = Arc::new(Registry::builtin().with_commands(Commands::default()));
    play
}

/// A chat whose team of two is to carry a plan out.
fn parallel() -> Play {
    with(Scenario::ParallelAgents, |config| {
        config.plan = Some(plan());
        config.limits = Limits { max_tokens: 1_000, max_cost_usd: 3.0, ..Limits::default() };
        if let Some(setup) = &mut config.scenario {
            setup.agents = vec!["builder".into(), "reviewer".into()];
        }
    })
}

fn look(play: &mut Play) -> PlanPoll {
    let looks: Vec<PlanPoll> = play
        .running
        .values()
        .filter_map(|effect| match effect {
            ChatEffect::PollPlan(look) => Some((**look).clone()),
            _ => None,
        })
        .collect();
    assert_eq!(looks.len(), 1, "one look at a time");
    play.running.clear();
    looks[0].clone()
}

/// The plan is looked at, and has steps with these statuses.
fn looked(play: &mut Play, statuses: &[&'static str]) -> Vec<String> {
    let look = look(play);
    let item = |(step, status): (u32, &&'static str)| PlanItem {
        step,
        title: format!("part {step}"),
        status,
        is_free: *status == "pending",
        waits_for: None,
    };
    let items = (1..).zip(statuses).map(item).collect();
    let plan = PlanState { path: plan().path, items, events: Vec::new() };
    let persona = |role: &String| NextPersona {
        role: role.clone(),
        system: format!("You are a {role}."),
        tools: Some(vec!["plan_write(/**)".into(), "plan_update_step(/content/**)".into(), "read".into()]),
        model: None,
        model_settings: ModelSettings::default(),
        cut: Vec::new(),
    };
    let personas = look.personas.iter().map(persona).collect();
    let result = Box::new(Ok(PlanPollResult { plan, personas }));
    play.input(Input::Report(Report::PlanPolled { turn: look.turn, result }))
}

/// The turns that were begun at agents: the setup of those that are new, and the words.
fn begun(play: &Play) -> Vec<(Option<ChatConfig>, String)> {
    let command = |sent: &Value| serde_json::from_value(sent.clone()).ok();
    let started = play.scheduled.iter().filter_map(command).filter_map(|command| match command {
        ChatCommand::StartTurn(request) => Some((request.create.map(|config| *config), request.content)),
        _ => None,
    });
    started.collect()
}

fn ended(play: &mut Play, chat_id: ChatId, stop_reason: &str) -> Vec<String> {
    let usage = Usage { input_tokens: 200, cost_usd: 0.5, ..Usage::default() };
    let end = Box::new(MemberEnd { chat_id, stop_reason: stop_reason.into(), error: None, usage });
    play.command(ChatCommand::MemberEnded { end })
}

#[test]
fn an_autonomous_agent_is_told_that_nobody_is_there_and_waits_for_nobody() {
    let mut play = with(Scenario::Autonomous, |_| {});
    play.say("go");
    let request = play.request.clone().unwrap();
    assert!(request.system.contains("# You work alone"), "{}", request.system);
    assert!(request.tools.iter().all(|tool| tool.name != "ask_user"), "it is not offered a way to ask");
    let told = play.answer("", &[ask(), ("exec", json!({ "command": "make" }))]);
    let observed: Vec<_> = told.iter().filter(|word| word.starts_with("observed")).collect();
    assert!(observed[0].starts_with("observed false: nobody is there to answer"), "{observed:?}");
    assert!(observed[1].starts_with("observed false: not permitted: nobody is there"), "{observed:?}");
    assert_eq!(told.last().map(String::as_str), Some("model_started 1"), "it goes on by itself");
    play.answer("Done.", &[]);
    assert!(matches!(play.log.last(), Some(ChatEvent::Done { .. })));
}

#[test]
fn the_limit_that_ends_an_autonomous_turn_is_its_stop_reason() {
    let mut play = with(Scenario::Autonomous, |config| config.limits = Limits { max_steps: 1, ..Limits::default() });
    play.say("go");
    play.answer("Working.", &[("ls", json!({ "path": "/" }))]);
    assert_eq!(play.tool("x").last().map(String::as_str), Some("done StepLimit: Working."));
}

#[test]
fn an_approval_hands_the_chat_over_to_the_persona_that_carries_the_plan_out() {
    let mut play = with(Scenario::PlanThenExecute, |config| {
        config.mode = Mode::Plan;
        config.role = "planner".into();
        config.tools = Some(vec!["plan_write".into()]);
        config.model_settings.max_output_tokens = Some(7);
    });
    play.say("plan it");
    play.answer("There it is.", &[]);
    let mut approve = play.words("Carry it out", false);
    let approved = Play::new().approval(3);
    if let ChatCommand::StartTurn(request) = &mut approve {
        request.approval = Some(Box::new(approved));
        request.may_approve = true;
        request.persona = Some(Box::new(NextPersona {
            role: "builder".into(),
            system: "You are a builder.".into(),
            tools: Some(vec!["write(/projects/**)".into()]),
            model: Some("a/b".into()),
            model_settings: ModelSettings {
                temperature: Some(0.1),
                max_output_tokens: Some(9),
                ..ModelSettings::default()
            },
            cut: Vec::new(),
        }));
    }
    let told = play.command(approve);
    assert_eq!(told[..3], ["plan_approved", "mode_changed", "configured"], "one entry of the log");
    let config = play.state.config.clone().unwrap();
    assert_eq!((config.role.as_str(), config.mode, config.model.as_deref()), ("builder", Mode::Build, Some("a/b")));
    let request = play.request.clone().unwrap();
    assert!(request.system.starts_with("You are a builder."), "{}", request.system);
    assert_eq!((request.temperature, request.max_tokens), (Some(0.1), Some(7)), "its own, behind those of the chat");
    assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["write"]);
}

#[test]
fn a_team_is_begun_told_of_and_its_turn_says_what_is_left() {
    let mut play = parallel();
    assert_eq!(play.say("build it").last().map(String::as_str), Some("team"));
    assert_eq!(play.asked.len(), 0, "the chat itself asks no model");
    assert_eq!(looked(&mut play, &["pending", "pending", "pending"]), ["team", "team"]);
    let members = begun(&play);
    assert_eq!(members.len(), 2);
    for (config, words) in &members {
        let config = config.as_ref().unwrap();
        let member = config.member.unwrap();
        assert_eq!((member.chat, member.turn), (play.config.chat, play.state.turn.as_ref().unwrap().id));
        assert_eq!(config.tools.clone().unwrap(), ["read", "plan_update_step"], "steps are changed, the plan is not");
        assert_eq!(config.plan, Some(plan()));
        assert!(words.starts_with("build it\n\nYou work on the plan /projects/a/plan.md together with"), "{words}");
    }
    let chats: Vec<ChatId> = members.iter().map(|(config, _)| config.as_ref().unwrap().chat).collect();

    let told = |step, done| {
        let (status, title) = ("done".to_owned(), format!("part {step}"));
        ChatCommand::StepTold { told: Box::new(ToldStep { step, status, title, plan: plan(), done, total: 3 }) }
    };
    assert_eq!(play.command(told(2, 2)), ["plan_step"]);
    play.command(told(1, 1));
    let Some(ChatEvent::PlanStep { done, .. }) = play.log.last() else { panic!("{:?}", play.log.last()) };
    assert_eq!(*done, 2, "messages of two agents may pass each other, and progress does not go back");

    assert_eq!(budgets(&play), [(500, 1.5), (500, 1.5)], "they share what is free");

    // One is out; the other goes on with the step that it had claimed, and says what is left when it gets no further.
    assert_eq!(ended(&mut play, chats[0], "step_limit"), ["team"]);
    assert_eq!(look(&mut play).free, [chats[0]]);
    let looked_again = play.input(Input::Resume);
    assert_eq!(looked_again, ["turn_started 2"], "a look that was lost is made again");
    assert_eq!(looked(&mut play, &["done", "done", "pending"]), ["team"]);
    ended(&mut play, chats[1], "end_turn");
    assert_eq!(looked(&mut play, &["done", "done", "pending"]), ["team", "team"], "another round");
    let again = begun(&play);
    assert!(again.len() == 3 && again[2].0.is_none() && again[2].1.contains("free again"), "{again:?}");
    ended(&mut play, chats[1], "end_turn");
    let end = looked(&mut play, &["done", "done", "pending"]);
    let text = "2 of 3 steps of the plan are done. Left:\n- step 3 (pending): part 3";
    assert_eq!(end[1..], [format!("assistant: {text}"), format!("done EndTurn: {text}")]);
    assert_eq!(budgets(&play)[2..], [(600, 2.0)], "it has all that is left");
    assert_eq!(ended(&mut play, chats[0], "end_turn"), ["team"], "of one that comes late the usage counts");
    assert_eq!(play.state.agents_usage.input_tokens, 800);
    assert_eq!(play.freed, 1, "and has its steps freed");
}

/// The tokens and the money of each turn that was begun at an agent.
fn budgets(play: &Play) -> Vec<(u64, f64)> {
    let command = |sent: &Value| serde_json::from_value(sent.clone()).ok();
    let started = play.scheduled.iter().filter_map(command).filter_map(|command| match command {
        ChatCommand::StartTurn(request) => request.limits.map(|limits| (limits.max_tokens, limits.max_cost_usd)),
        _ => None,
    });
    started.collect()
}

#[test]
fn an_agent_at_the_end_of_its_budget_gets_more_while_there_is_some_and_then_the_turn_asks_for_more() {
    let mut play = parallel();
    play.say("build it");
    looked(&mut play, &["pending", "pending", "pending", "pending"]);
    let chats: Vec<ChatId> = begun(&play).iter().map(|(config, _)| config.as_ref().unwrap().chat).collect();
    let statuses = ["done", "pending", "pending", "pending"];
    ended(&mut play, chats[0], "token_limit");
    looked(&mut play, &statuses);
    ended(&mut play, chats[1], "cost_limit");
    looked(&mut play, &statuses);
    assert_eq!(budgets(&play)[2..], [(300, 1.0), (300, 1.0)], "both go on with what is left");
    let statuses = ["done", "done", "pending", "pending"];
    ended(&mut play, chats[0], "token_limit");
    looked(&mut play, &statuses);
    ended(&mut play, chats[1], "token_limit");
    looked(&mut play, &statuses);
    let Some(ChatEvent::Done { message, stop_reason, .. }) = play.log.last() else { panic!("{:?}", play.log.last()) };
    assert_eq!(*stop_reason, domain::StopReason::TokenLimit);
    assert!(message.contains("2 of 4 steps") && message.contains("Send a message to go on"), "{message}");
    assert_eq!(play.say("go on").last().map(String::as_str), Some("team"), "the next turn has a budget of its own");
    looked(&mut play, &statuses);
    assert_eq!(budgets(&play).last(), Some(&(500, 1.5)));
}

#[test]
fn a_step_that_made_others_free_wakes_agents_that_rest() {
    let mut play = parallel();
    play.say("build it");
    looked(&mut play, &["pending", "in_progress", "in_progress"]);
    let chats: Vec<ChatId> = begun(&play).iter().map(|(config, _)| config.as_ref().unwrap().chat).collect();
    ended(&mut play, chats[1], "end_turn");
    assert_eq!(looked(&mut play, &["in_progress", "in_progress", "in_progress"]), ["team"], "nothing is free");
    let (status, title) = ("done".to_owned(), "part 1".to_owned());
    let told = Box::new(ToldStep { step: 1, status, title, plan: plan(), done: 1, total: 3 });
    assert_eq!(play.command(ChatCommand::StepTold { told }), ["plan_step", "team"], "the plan is read again");
    assert_eq!(looked(&mut play, &["done", "pending", "pending"]), ["team", "team"]);
    let woken = begun(&play).pop().unwrap();
    assert!(woken.0.is_none() && woken.1.contains("free again"), "{woken:?}");
}

#[test]
fn words_for_a_turn_whose_team_works_begin_a_turn_of_their_own() {
    let mut play = parallel();
    play.say("build it");
    looked(&mut play, &["pending"]);
    let turn = play.state.turn.as_ref().unwrap().id;
    let (id, target) = (play.id(), StopTarget::This(turn.0));
    let request = StopRequest { stop_id: StopId(id), target, at: play.at(), reason: "steered".into() };
    assert_eq!(play.input(Input::Stop(request)), Vec::<String>::new(), "no model is asked any more in the turn");
    let (content, context) = ("in blue".to_owned(), String::new());
    let words =
        ChatCommand::Steer { turn_id: turn, content, files: vec![], context, may_approve: true, may_not_run: false };
    assert_eq!(play.command(words), ["turn_queued"]);
    let chats: Vec<ChatId> = begun(&play).iter().map(|(config, _)| config.as_ref().unwrap().chat).collect();
    ended(&mut play, chats[0], "end_turn");
    looked(&mut play, &["pending"]);
    ended(&mut play, chats[1], "end_turn");
    let told = looked(&mut play, &["pending"]);
    assert_eq!(told[told.len() - 3..], ["turn_started 1", "user: in blue", "team"], "{told:?}");
    looked(&mut play, &["pending"]);
    let (_, words) = begun(&play).pop().unwrap();
    assert!(words.starts_with("in blue\n\nYou work on the plan"), "its agents read them: {words}");
}

#[test]
fn a_plan_without_a_free_step_begins_nobody() {
    let mut play = parallel();
    play.say("build it");
    let told = looked(&mut play, &["done", "done"]);
    assert_eq!(told.last().map(String::as_str), Some("done EndTurn: All 2 steps of the plan are done."));
    assert_eq!(begun(&play), []);
}

#[test]
fn an_agent_whose_words_no_message_takes_ends_the_turn_with_the_reason() {
    let mut play = parallel();
    play.say(&"x".repeat(ports::validate::MAX_MESSAGE));
    looked(&mut play, &["pending"]);
    assert_eq!(begun(&play), []);
    let Some(ChatEvent::Done { stop_reason, .. }) = play.log.last() else { panic!("{:?}", play.log.last()) };
    assert_eq!(*stop_reason, domain::StopReason::Error);
    let why = play.log.iter().find_map(|event| match event {
        ChatEvent::Failed { error } => Some(error.clone()),
        _ => None,
    });
    let why = why.unwrap();
    assert_eq!(why.code, domain::Code::PayloadTooLarge);
    assert!(why.message.contains("the agent builder"), "{why:?}");
}

#[test]
fn a_stop_reaches_the_agents_that_work() {
    let mut play = parallel();
    play.say("build it");
    looked(&mut play, &["pending", "pending"]);
    let members = begun(&play).len();
    play.command(ChatCommand::Stop { stop_id: StopId(Uuid::from_u128(9)), turn_id: None });
    let is_stop = |sent: &&Value| {
        serde_json::from_value(Value::clone(sent)).is_ok_and(|command| matches!(command, ChatCommand::Stop { .. }))
    };
    let stops = play.scheduled.iter().filter(is_stop).count();
    assert_eq!((stops, play.stopped_plans), (members, 1));
    assert!(matches!(play.log.last(), Some(ChatEvent::Stopped { .. })));
}

#[test]
fn a_message_that_interrupts_stops_the_agents_that_work() {
    let mut play = parallel();
    play.say("build it");
    looked(&mut play, &["pending", "pending"]);
    let members = begun(&play).len();
    play.say_with("rather so", true);
    let is_stop = |sent: &&Value| {
        serde_json::from_value(Value::clone(sent)).is_ok_and(|command| matches!(command, ChatCommand::Stop { .. }))
    };
    assert_eq!((play.scheduled.iter().filter(is_stop).count(), play.stopped_plans), (members, 1));
}

/// A pause is of the chat that has the team: its agents are chats of their own, and work on.
#[test]
fn a_deletion_of_a_paused_chat_reaches_the_agents_that_work() {
    let mut play = parallel();
    play.say("build it");
    looked(&mut play, &["pending", "pending"]);
    let members = begun(&play).len();
    let more = play.words("more", false);
    play.park_before(more, "it panics");
    assert!(play.state.paused.is_some());
    play.command(ChatCommand::Delete);
    let is_stop = |sent: &&Value| {
        serde_json::from_value(Value::clone(sent)).is_ok_and(|command| matches!(command, ChatCommand::Stop { .. }))
    };
    assert_eq!((play.scheduled.iter().filter(is_stop).count(), play.stopped_plans), (members, 1));
    assert!(members > 0 && matches!(play.log.last(), Some(ChatEvent::Stopped { .. })));
}

#[test]
fn an_agent_of_a_team_tells_its_steps_and_its_end_and_takes_no_words_of_people() {
    let team = MemberOf { chat: ChatId(Uuid::from_u128(7)), turn: TurnId(Uuid::from_u128(8)) };
    let mut play = Play::with(|config| config.member = Some(team));
    play.by = domain::Principal::System;
    play.say("work");
    play.by = domain::Principal::local();
    let told = ChatCommand::Configure {
        title: None,
        model: None,
        model_settings: None,
        mode: None,
        may_approve: true,
        session: None,
        options: None,
        labels: domain::LabelChanges::default(),
    };
    assert_eq!(play.command(told), ["failed CONFLICT"]);
    let told = play.words("do this", false);
    assert_eq!(play.command(told), ["failed CONFLICT"]);
    play.answer("", &[("plan_update_step", json!({ "status": "done", "step": 1 }))]);
    play.tool_ends(tools::CallOutcome {
        output: "step 1 is done".into(),
        success: true,
        truncated: false,
        result: Value::Null,
        error: None,
        resources: None,
        seen: vec![],
        events: vec![ChatEvent::PlanStep {
            step: 1,
            status: "done".into(),
            title: "é".repeat(ports::validate::MAX_MESSAGE),
            plan_path: plan().path,
            plan_id: Some(plan().id),
            done: 1,
            total: 2,
        }],
    });
    play.answer("Done.", &[]);
    let told: Vec<ChatCommand> =
        play.scheduled.iter().map(|sent| serde_json::from_value(sent.clone()).unwrap()).collect();
    let [ChatCommand::StepTold { told }, ChatCommand::MemberEnded { end }] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!((told.step, told.done, &told.plan), (1, 1, &plan()));
    assert!(told.title.len() < 5_000 && told.title.ends_with('…'), "a message of the queue takes it");
    assert_eq!((end.chat_id, end.stop_reason.as_str()), (play.config.chat, "end_turn"));
}

#[test]
fn an_agent_of_a_team_writes_no_plan_also_where_its_persona_lists_no_tools() {
    let team = MemberOf { chat: ChatId(Uuid::from_u128(7)), turn: TurnId(Uuid::from_u128(8)) };
    let mut play = Play::with(|config| config.member = Some(team));
    play.by = domain::Principal::System;
    play.say("work");
    let tools = play.request.clone().unwrap().tools;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"plan_update_step") && !names.contains(&"plan_write"), "{names:?}");
    let told = play.answer("", &[("plan_write", json!({ "title": "Mine", "steps": ["one"] }))]);
    assert!(told.iter().any(|word| word.starts_with("observed false")), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("model_started 1"), "no tool has run: {told:?}");
}
