//! The turns of sessions: the analysis, plans with their executors, and the limits of executors.

use crate::play::Play;
use actor::{Input, Machine as _, StopRequest, StopTarget};
use buildscale_chat::ChatMachine;
use domain::{
    AgentTool, AgentToolRuns, ChatCommand, ChatConfig, ChatEvent, Code, Error, ExecutorLimits, Message, Session,
    SessionContext, Status, StopId, StopReason, Strategy, Usage,
    session::{AnalysisOrigin, Cut, SessionBudget},
    task::{AgentAnswer, ToolUse},
};
use serde_json::{Value, json};
use uuid::Uuid;

fn session() -> Play {
    Play::with(|config| {
        config.session = Some(Box::new(Session::default()));
        config.tools = Some(["ls", "read", "write"].map(str::to_owned).to_vec());
    })
}

#[test]
fn a_session_waits_for_no_permission_whether_the_gate_or_a_policy_wants_one() {
    let mut play = session();
    play.say("put it where it belongs");
    play.answer(r#"{"strategy": "tool", "reasoning": "one write"}"#, &[]);
    let write = |path: &str| [("write", json!({ "path": path, "content": "x" }))];
    let told = play.answer("", &write("/system/skills/x/SKILL.md"));
    assert!(told.iter().any(|word| word.starts_with("observed false: not permitted: nobody is there")), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("model_started 1"), "the model reads it, and goes on");
    play.answer("", &write("/data/a.md"));
    let told = play.tool_ends(Error::new(Code::Forbidden, "a policy asks").detail("access", "ask").into());
    assert_eq!(told.last().map(String::as_str), Some("model_started 1"), "{told:?}");
    assert_eq!(play.count(|event| matches!(event, ChatEvent::PermissionRequired { .. })), 0);
}

/// A session in which the model found a message hard.
fn complex() -> Play {
    let mut play = session();
    play.say("do the hard thing");
    play.answer(r#"{"strategy": "complex", "reasoning": "it is hard"}"#, &[]);
    play
}

fn step(number: u32, needs: &[u32]) -> Value {
    json!({ "step": number, "description": format!("part {number}"), "tools": ["read"], "depends_on": needs })
}

fn plan(steps: &[Value]) -> (&'static str, Value) {
    ("run_plan", json!({ "steps": steps }))
}

/// The executors that were sent a task, in order.
fn executors(play: &Play) -> Vec<ChatConfig> {
    let command = |sent: &Value| serde_json::from_value(sent.clone()).ok();
    let started = play.scheduled.iter().filter_map(command).filter_map(|command| match command {
        ChatCommand::StartTurn(request) => request.create.map(|config| *config),
        _ => None,
    });
    started.collect()
}

fn report(play: &mut Play, executor: usize, text: &str, stop_reason: &str) -> Vec<String> {
    let chat = executors(play)[executor].chat;
    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let (tools, error) = (Vec::new(), None);
    let answer = AgentAnswer {
        chat,
        round: 1,
        text: text.into(),
        stop_reason: stop_reason.into(),
        usage,
        model: None,
        steps: 1,
        tools,
        error,
    };
    play.command(ChatCommand::ExecutorEnded { answer: Box::new(answer) })
}

fn ends(play: &Play) -> Vec<(u32, bool)> {
    let end = |event: &ChatEvent| match event {
        ChatEvent::StepEnded { step, result, .. } => Some((*step, result.success)),
        _ => None,
    };
    play.log.iter().filter_map(end).collect()
}

fn analysed(play: &Play) -> (Strategy, AnalysisOrigin) {
    let found = play.log.iter().find_map(|event| match event {
        ChatEvent::Analysed { analysis, by, .. } => Some((analysis.strategy, *by)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{:?}", play.log))
}

fn offered(play: &Play) -> Vec<String> {
    play.request
        .as_ref()
        .map(|request| request.tools.iter().map(|tool| tool.name.clone()).collect())
        .unwrap_or_default()
}

#[test]
fn a_rule_that_is_certain_asks_no_model_and_an_answer_at_once_has_no_tools() {
    let mut play = session();
    play.say("Hello!");
    assert_eq!(analysed(&play), (Strategy::Simple, AnalysisOrigin::Rule));
    assert_eq!((play.asked.len(), offered(&play)), (1, vec![]), "one request: the answer");
    play.answer("Hello.", &[]);
    assert!(matches!(play.log.last(), Some(ChatEvent::Done { stop_reason: StopReason::EndTurn, .. })));
}

#[test]
fn a_question_that_names_a_project_is_none_about_the_world() {
    for (location, rules) in [("\n\n# Location\nThe projects: atlas.", 0), ("", 1)] {
        let mut play = session();
        play.config.system = format!("You plan.{location}");
        play.say("What does Atlas cost so far?");
        assert_eq!(play.count(|event| matches!(event, ChatEvent::Analysed { .. })), rules, "{location}");
    }
}

#[test]
fn the_model_analyses_where_no_rule_is_certain_and_nothing_of_it_is_said() {
    let mut play = session();
    play.say("do the hard thing");
    assert_eq!(offered(&play), Vec::<String>::new());
    let given = play.request.as_ref().map(|request| (request.max_tokens, request.temperature));
    assert_eq!(
        given,
        Some((Some(4_000), Some(0.0))),
        "a model that reasons counts that as output; the same words are judged alike"
    );
    let strategies = |play: &Play| {
        let schema = play.request.as_ref().and_then(|request| request.schema.clone());
        schema.map(|schema| schema["properties"]["strategy"]["enum"].clone())
    };
    assert_eq!(strategies(&play), Some(json!(["simple", "tool", "complex"])), "a provider may hold the model to it");
    assert_eq!(play.streamed("{\"strat"), Vec::<String>::new());
    play.answer(r#"{"strategy": "tool", "reasoning": "one look"}"#, &[]);
    assert_eq!(analysed(&play), (Strategy::Tool, AnalysisOrigin::Model));
    assert_eq!((offered(&play), strategies(&play)), (["ls", "read", "write"].map(str::to_owned).to_vec(), None));
    let said = |event: &ChatEvent| matches!(event, ChatEvent::MessageAdded { message: Message::Assistant { .. } });
    assert!(!play.log.iter().any(said), "the analysis is no message of the conversation");
}

#[test]
fn the_record_of_a_context_has_the_subject_of_the_session_and_all_that_was_cut() {
    let cut = |part: &str, tokens, kept| Cut { part: part.into(), tokens, kept };
    let mut play = Play::with(|config| {
        config.session = Some(Box::new(Session {
            context: SessionContext::ProjectAudit,
            entity: Some("atlas".into()),
            budgets: SessionBudget { conversation: 50, ..SessionBudget::default() },
            cut: vec![cut("location", 1_500, 1_000)],
            ..Session::default()
        }));
        config.tools = Some(vec!["ls".into()]);
    });
    const TOOL: &str = r#"{"strategy": "tool", "reasoning": "one look"}"#;
    const WORDS: &str = "do the hard thing";
    play.say(WORDS);
    play.answer(TOOL, &[]);
    play.answer(&"y".repeat(2_000), &[]);
    play.say(WORDS);
    play.answer(TOOL, &[]);
    let records: Vec<_> = play
        .log
        .iter()
        .filter_map(|event| match event {
            ChatEvent::ModelStarted { context: Some(record), .. } => Some(record),
            _ => None,
        })
        .collect();
    assert_eq!(records.iter().map(|record| record.analysis).collect::<Vec<_>>(), [true, false, true, false]);
    for record in &records {
        let subject = (record.context_type, record.entity.as_deref());
        assert_eq!(subject, (Some(SessionContext::ProjectAudit), Some("atlas")));
    }
    assert!(records[0].cut.is_empty(), "the first message fits");
    // The answer of 2,000 bytes is longer than the room for the conversation, and so all before it is left out.
    let all = (2 * WORDS.len() + 2_000) as u64 / 4;
    assert_eq!(records[2].cut, [cut("conversation", all, WORDS.len() as u64 / 4)]);
    assert_eq!(records[3].cut, [cut("location", 1_500, 1_000)]);
}

#[test]
fn a_wrong_or_missing_analysis_falls_back_to_tools() {
    let mut play = session();
    play.say("do the hard thing");
    play.answer("I would say it is hard.", &[]);
    assert_eq!(analysed(&play), (Strategy::Tool, AnalysisOrigin::Fallback));
    let mut play = session();
    play.say("do the hard thing");
    play.fail(Code::UpstreamUnavailable);
    assert_eq!(analysed(&play), (Strategy::Tool, AnalysisOrigin::Fallback));
    play.answer("Done.", &[]);
    assert!(matches!(play.log.last(), Some(ChatEvent::Done { .. })));
}

#[test]
fn steps_begin_when_those_that_they_depend_on_are_completed_and_the_results_answer_the_call() {
    let mut play = complex();
    assert_eq!(offered(&play), ["ls", "read", "write", "run_plan"]);
    play.answer("I plan.", &[plan(&[step(1, &[]), step(2, &[]), step(3, &[1, 2])])]);
    assert_eq!(executors(&play).len(), 2, "two depend on nothing");
    assert!(!ChatMachine::in_flight(&play.state), "the session rests while executors work");
    report(&mut play, 0, "found one", "end_turn");
    assert_eq!(executors(&play).len(), 2);
    report(&mut play, 1, "found two", "end_turn");
    let third = executors(&play).len();
    assert_eq!(third, 3);
    let words = play.scheduled.last().map(|sent| sent["content"].to_string()).unwrap_or_default();
    assert!(words.contains("part 3") && words.contains("found one") && words.contains("found two"), "{words}");
    report(&mut play, 2, "all of it", "end_turn");
    assert_eq!(ends(&play), [(1, true), (2, true), (3, true)]);
    let read = play.asked.last().cloned().unwrap_or_default().join("\n");
    assert!(read.contains("Step 3 is completed: all of it") && read.contains("3 of 3"), "{read}");
    play.answer("Here it is.", &[]);
    assert!(matches!(play.log.last(), Some(ChatEvent::Done { stop_reason: StopReason::EndTurn, .. })));
}

#[test]
fn an_executor_has_the_tools_of_its_step_its_limits_and_nothing_of_the_chat() {
    let mut play = complex();
    play.answer("", &[plan(&[step(1, &[])])]);
    let config = executors(&play).remove(0);
    let agent = config.agent.as_deref().cloned().unwrap();
    assert_eq!(agent.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["read"]);
    assert_eq!((config.limits.max_wall_ms, config.limits.max_steps), (60_000, 12));
    let executor = agent.executor.unwrap();
    assert_eq!((executor.session, executor.max_calls, executor.max_retries), (play.config.chat, 10, 2));
    assert!(config.system.starts_with("You are an executor") && config.session.is_none());
}

#[test]
fn results_and_executors_have_the_budgets_of_their_session() {
    let mut play = Play::with(|config| {
        config.session = Some(Box::new(Session {
            executors: ExecutorLimits { max_tokens: 5_000, ..ExecutorLimits::default() },
            budgets: SessionBudget { results: 50, ..SessionBudget::default() },
            ..Session::default()
        }));
        config.tools = Some(vec!["read".into()]);
    });
    play.say("do the hard thing");
    play.answer(r#"{"strategy": "complex", "reasoning": "it is hard"}"#, &[]);
    play.answer("", &[plan(&[step(1, &[])])]);
    assert_eq!(executors(&play)[0].limits.max_tokens, 5_000);
    report(&mut play, 0, &"r".repeat(4_000), "end_turn");
    let kept = play.log.iter().find_map(|event| match event {
        ChatEvent::StepEnded { result, .. } => Some(result.data.len()),
        _ => None,
    });
    assert!(kept.is_some_and(|kept| kept < 400), "{kept:?} bytes of 50 tokens");
}

#[test]
fn no_more_executors_run_than_the_bound() {
    let mut play = complex();
    let steps: Vec<Value> = (1..=5).map(|number| step(number, &[])).collect();
    play.answer("", &[plan(&steps)]);
    assert_eq!(executors(&play).len(), 3);
    report(&mut play, 1, "ok", "end_turn");
    assert_eq!(executors(&play).len(), 4);
}

#[test]
fn a_failed_step_fails_what_depends_on_it_and_the_rest_goes_on() {
    let mut play = complex();
    play.answer("", &[plan(&[step(1, &[]), step(2, &[1]), step(3, &[])])]);
    report(&mut play, 0, "", "step_limit");
    assert_eq!(ends(&play), [(1, false), (2, false)]);
    report(&mut play, 1, "ok", "end_turn");
    let read = play.asked.last().cloned().unwrap_or_default().join("\n");
    assert!(read.contains("1 of 3 steps are completed") && read.contains("say what is left"), "{read}");
    // The planner plans the rest in another way, and that is a new version.
    play.answer("", &[plan(&[step(1, &[])])]);
    let versions: Vec<u32> = play
        .log
        .iter()
        .filter_map(|event| match event {
            ChatEvent::Planned { version, .. } => Some(*version),
            _ => None,
        })
        .collect();
    assert_eq!(versions, [1, 2]);
}

#[test]
fn the_planner_reads_that_an_executor_ended_without_a_word() {
    let mut play = complex();
    play.answer("", &[plan(&[step(1, &[])])]);
    report(&mut play, 0, " ", "end_turn");
    let read = play.asked.last().cloned().unwrap_or_default().join("\n");
    assert!(ends(&play) == [(1, false)] && read.contains("its calls stand"), "{read}");
}

#[test]
fn a_plan_that_cannot_be_carried_out_is_planned_again_twice() {
    let mut play = complex();
    let circle = [step(1, &[2]), step(2, &[1])];
    play.answer("", &[plan(&circle)]);
    let read = play.asked.last().cloned().unwrap_or_default().join("\n");
    assert!(read.contains("in a circle: 1 -> 2 -> 1"), "{read}");
    play.answer("", &[plan(&[step(1, &[9])])]);
    assert!(play.asked.last().is_some_and(|read| read.join("\n").contains("which is not in the plan")));
    let asked = play.asked.len();
    play.answer("", &[plan(&circle)]);
    assert_eq!(play.asked.len(), asked, "it is not asked a fourth time");
    let failed =
        play.log.iter().any(|event| matches!(event, ChatEvent::Failed { error } if error.code == Code::Unprocessable));
    assert!(failed && matches!(play.log.last(), Some(ChatEvent::Done { stop_reason: StopReason::Error, .. })));
}

#[test]
fn a_stop_reaches_every_executor_and_late_reports_count_alone() {
    let mut play = complex();
    play.answer("", &[plan(&[step(1, &[]), step(2, &[]), step(3, &[1])])]);
    let at = play.at();
    let request = StopRequest {
        stop_id: StopId(Uuid::from_u128(9)),
        target: StopTarget::First,
        at,
        reason: "user_cancelled".into(),
    };
    play.input(Input::Stop(request));
    assert!(matches!(play.log.last(), Some(ChatEvent::Stopped { .. })));
    assert_eq!(ends(&play), [(1, false), (2, false)]);
    let stops = play.scheduled.iter().filter(|sent| sent["command"] == "stop").count();
    assert_eq!((stops, play.stopped_plans), (2, 1));
    let log = play.log.len();
    let used = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
    assert_eq!(play.state.agents_usage, Usage::default());
    report(&mut play, 0, "late", "end_turn");
    assert_eq!((play.log.len(), play.state.agents_usage), (log + 1, used(10, 5)), "its usage counts, and nothing else");
    play.say("Hello!");
    assert_eq!(analysed(&play).1, AnalysisOrigin::Model, "the first analysis is that of the first turn");
}

#[test]
fn a_crash_repeats_the_analysis_and_forgets_no_executor() {
    let mut play = session();
    play.say("do the hard thing");
    play.crash();
    assert_eq!(play.request.as_ref().and_then(|request| request.max_tokens), Some(4_000), "it is still the analysis");
    play.answer(r#"{"strategy": "complex"}"#, &[]);
    play.answer("", &[plan(&[step(1, &[])])]);
    let log = play.log.len();
    play.crash();
    assert_eq!(play.log.len(), log, "its executor reports, whoever drives the session");
    report(&mut play, 0, "ok", "end_turn");
    assert_eq!(ends(&play), [(1, true)]);
}

#[test]
fn a_session_that_began_with_a_greeting_is_named_after_the_first_message_that_says_more() {
    let mut play = session();
    play.config.title = "Hello!".into();
    play.say("Hello!");
    play.answer("Hello.", &[]);
    play.say("Find the note about pricing, please, and keep in mind that it is older than this summer");
    let title = play.state.config.as_ref().map(|config| config.title.clone()).unwrap_or_default();
    assert!(title.starts_with("Find the note about pricing") && title.chars().count() == 50, "{title}");
}

/// The chat of an executor with a narrow limit.
fn executor() -> Play {
    let mut parent = complex();
    parent.answer("", &[plan(&[step(1, &[])])]);
    let mut config = executors(&parent).remove(0);
    if let Some(executor) = config.agent.as_mut().and_then(|agent| agent.executor.as_mut()) {
        executor.max_calls = 4;
    }
    let mut play = Play::with(|own| *own = config);
    play.by = domain::Principal::System;
    play
}

fn told(play: &Play) -> AgentAnswer {
    match play.scheduled.last().map(|sent| serde_json::from_value(sent.clone())) {
        Some(Ok(ChatCommand::ExecutorEnded { answer })) => *answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_executor_reports_to_its_session_and_its_calls_are_counted() {
    let mut play = executor();
    play.say("part 1");
    play.answer("", &[("read", json!({ "path": "/projects/a.md" }))]);
    play.tool("text");
    play.answer("found", &[]);
    let answer = told(&play);
    assert_eq!((answer.text.as_str(), answer.stop_reason.as_str(), answer.tools.len()), ("found", "end_turn", 1));
    let statuses: Vec<Status> = answer.tools.iter().map(|used: &ToolUse| used.status).collect();
    assert_eq!(statuses, [Status::Success]);
}

#[test]
fn an_executor_at_its_limit_of_calls_ends_with_a_failure() {
    let mut play = executor();
    play.say("part 1");
    let call = |number: u32| ("read", json!({ "path": format!("/projects/{number}.md") }));
    play.answer("", &[call(1), call(2), call(3), call(4), call(5)]);
    (0..4).for_each(|_| _ = play.tool("text"));
    let answer = told(&play);
    assert_eq!(answer.stop_reason, "step_limit");
    assert_eq!(answer.error.map(|error: Error| error.code), Some(Code::LimitReached));
}

#[test]
fn the_same_call_is_made_three_times_at_most() {
    let mut play = executor();
    play.say("part 1");
    let call = || ("read", json!({ "path": "/projects/none.md" }));
    for _ in 0..3 {
        play.answer("", &[call()]);
        play.tool_ends(Error::new(Code::NotFound, "there is no such file").into());
    }
    let words = play.answer("", &[call()]);
    assert!(words.iter().any(|word| word.contains("observed")), "{words:?}");
    let refused = play.log.iter().rev().find_map(|event| match event {
        ChatEvent::Observed { output, .. } => Some(output.clone()),
        _ => None,
    });
    assert!(refused.is_some_and(|why| why.contains("failed 3 times")));
}

#[test]
fn an_executor_asks_no_person_and_belongs_to_the_plan_that_a_stop_names() {
    let mut play = executor();
    let tool = AgentTool { name: "write".into(), description: None, runs: AgentToolRuns::Named, root: None };
    play.config.agent.as_mut().unwrap().tools.push(tool);
    play.say("part 1");
    play.answer("", &[("write", json!({ "path": "/system/skills/x/SKILL.md", "content": "x" }))]);
    assert_eq!(play.count(|event| matches!(event, ChatEvent::PermissionRequired { .. })), 0);
    let executor = play.config.agent.as_ref().and_then(|agent| agent.executor.as_deref().copied()).unwrap();
    let tree = ChatMachine::tree(&play.state, None).unwrap();
    assert_eq!(tree.members, [executor.plan.0]);
    assert_eq!(tree.root.to_string(), format!("chat/{}/{}", play.config.workspace, executor.session));
}

/// Holds a log to its recording, which the tests of the protocol render; `BLESS=1` records it.
fn recorded(name: &str, play: &Play) {
    let path = format!("{}/../protocols/tests/planner/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let log = serde_json::to_string_pretty(&play.log).unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &log).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), log, "{name}: BLESS=1 records it anew");
}

#[test]
fn the_logs_that_the_protocol_is_tested_with_are_those_of_this_machine() {
    let mut play = session();
    play.say("Hello!");
    play.streamed("Hel");
    play.streamed("lo.");
    play.answer("Hello.", &[]);
    recorded("simple", &play);

    let mut play = session();
    play.say("List my projects");
    play.answer("I look.", &[("ls", json!({ "path": "/projects" }))]);
    play.tool(r#"{"entries": []}"#);
    play.answer("", &[("read", json!({ "path": "/projects/none.md" }))]);
    play.tool_ends(Error::new(Code::NotFound, "there is no such file").into());
    play.answer("There are none.", &[]);
    recorded("tool", &play);

    let mut play = complex();
    play.answer("I plan.", &[plan(&[step(1, &[2]), step(2, &[1])])]);
    play.answer("", &[plan(&[step(1, &[]), step(2, &[]), step(3, &[1, 2])])]);
    report(&mut play, 0, "found one", "end_turn");
    report(&mut play, 1, "", "step_limit");
    play.answer("I plan the rest anew.", &[plan(&[step(1, &[])])]);
    report(&mut play, 2, "found it", "end_turn");
    play.answer("Here it is.", &[]);
    recorded("complex", &play);

    let mut play = session();
    play.say("Hello!");
    play.streamed("Hello, my");
    play.crash();
    play.streamed("Hello, ");
    play.streamed("dear");
    play.fail(Code::UpstreamUnavailable);
    recorded("failed", &play);

    let mut play = complex();
    play.answer("", &[plan(&[step(1, &[])])]);
    let (at, reason) = (play.at(), "user_cancelled".to_owned());
    play.input(Input::Stop(StopRequest { stop_id: StopId(Uuid::from_u128(9)), target: StopTarget::First, at, reason }));
    recorded("stopped", &play);
}
