//! Tools of servers (spec 004 §11): their names alone say that a server runs them, and a person is asked before each call.

use crate::{play::Play, standing_rules::rule_id};
use actor::Input;
use async_trait::async_trait;
use buildscale_chat::{ChatEffect, Gate, GateDecision, GateRequest, Report, SimpleGate};
use domain::{
    AgentTool, AgentToolRuns, ChatCommand, ChatConfig, ChatEvent, Error, Mode, PermissionRule, Usage,
    event::{PermissionOutcome, Question},
};
use ports::{Served, ServedAnswer, ServersOf, ToolServers};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use tools::{Effects, Registry, ToolKind};

const TOOL: &str = "mcp__git__git_log";

/// The machine never asks it: it knows the form of names alone.
struct Unasked;

#[async_trait]
impl ToolServers for Unasked {
    fn may_have(&self, tool: &str) -> bool {
        tool.starts_with(domain::served::SERVED_PREFIX)
    }

    async fn tools(&self, _: &ServersOf, _: Duration) -> Served {
        unreachable!("a machine asks nobody")
    }

    async fn call(&self, _: &ServersOf, _: &str, _: Map<String, Value>) -> Result<ServedAnswer, Error> {
        unreachable!("a machine asks nobody")
    }
}

fn with(change: impl FnOnce(&mut ChatConfig)) -> Play {
    let mut play = Play::with(change);
    play.machine.tools = Arc::new(Registry::builtin().with_servers(Arc::new(Unasked)));
    play.may_approve = true;
    play
}

fn calls(play: &mut Play, tool: &str) -> Vec<String> {
    play.answer("", &[(tool, json!({ "repo_path": "/" }))])
}

#[test]
fn a_person_is_asked_before_a_tool_of_a_server_and_may_always_allow_it() {
    let mut play = with(|_| {});
    play.say("go");
    assert_eq!(calls(&mut play, TOOL).last().map(String::as_str), Some("permission_required"));
    let (permission_id, outcome) = (play.permission(), PermissionOutcome::Approved);
    let happened =
        play.command(ChatCommand::Decide { permission_id, outcome, always: true, reason: None, option_id: None });
    assert_eq!(happened[1..], [format!("call {TOOL} 1")]);
    play.tool("done");
    assert_eq!(play.state.permissions, [PermissionRule::Tool { tool: TOOL.into() }]);
    assert_eq!(calls(&mut play, TOOL).last(), Some(&format!("call {TOOL} 1")), "the rule covers it");
    play.tool("done");
    let other = calls(&mut play, "mcp__git__git_push");
    assert_eq!(other.last().map(String::as_str), Some("permission_required"), "a rule is for one tool");
}

#[test]
fn the_gate_says_what_would_be_called() {
    let decide_on = |tool: &str, mode: Mode| {
        let config = &ChatConfig { mode, ..*Play::new().config };
        let (effects, args) = (&Effects::none(ToolKind::Served), r#"{"repo_path":"/"}"#);
        let request = GateRequest { config, effects, tool, args, approved: true, permissions: &[] };
        SimpleGate::default().decide(&request)
    };
    for tool in ["http__open_ticket", "web_fetch", "web_search"] {
        let GateDecision::Ask { category, always, .. } = decide_on(tool, Mode::Chat) else { panic!("{tool}") };
        assert_eq!((category.as_str(), always), ("network", Some(PermissionRule::Tool { tool: tool.into() })));
    }
    let decide = |mode| decide_on(TOOL, mode);
    for mode in [Mode::Chat, Mode::Build] {
        let GateDecision::Ask { category, reason, always, .. } = decide(mode) else { panic!("{mode:?}") };
        assert_eq!((category.as_str(), always), ("mcp", Some(PermissionRule::Tool { tool: TOOL.into() })));
        assert_eq!(reason, r#"it wants to call mcp__git__git_log with {"repo_path":"/"}"#);
    }
    assert!(matches!(decide(Mode::Plan), GateDecision::Deny { .. }));
}

/// Whether the model is asked with tools of servers beside the built-in ones.
fn offers(play: &mut Play) -> bool {
    play.say("go");
    play.running.values().any(|effect| matches!(effect, ChatEffect::CallModel { served: true, .. }))
}

#[test]
fn tools_of_servers_are_offered_where_they_may_be_called() {
    assert!(offers(&mut with(|_| {})));
    assert!(!offers(&mut with(|config| config.mode = Mode::Plan)));
    assert!(!offers(&mut Play::with(|_| {})), "there are no servers");
    let persona = |tools: &[&str]| {
        let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        with(move |config| config.tools = Some(tools))
    };
    assert!(!offers(&mut persona(&["read"])));
    let mut git = persona(&["read", "mcp__git__*"]);
    assert!(offers(&mut git));
    assert_eq!(calls(&mut git, TOOL).last().map(String::as_str), Some("permission_required"));
    let mut other = persona(&["mcp__time__*"]);
    other.say("go");
    assert!(calls(&mut other, TOOL).iter().all(|it| it != "permission_required"), "it is not within its reach");
}

#[test]
fn arguments_that_are_no_object_are_refused() {
    let mut play = with(|_| {});
    play.say("go");
    let happened = play.answer("", &[(TOOL, json!(["x"]))]);
    assert!(happened.iter().all(|it| it != "permission_required"), "{happened:?}");
}

#[test]
fn an_agent_of_a_flow_calls_the_tools_of_servers_that_the_flow_lists_under_its_ids() {
    let tool = |runs| AgentTool { name: "log".into(), description: None, runs, root: None };
    let agent = |runs| {
        let mut play = Play::agent_with(vec![tool(runs)]);
        play.machine.tools = Arc::new(Registry::builtin().with_servers(Arc::new(Unasked)));
        play
    };
    let mut play = agent(AgentToolRuns::Builtin(TOOL.into()));
    assert!(offers(&mut play));
    let called = calls(&mut play, "log");
    assert_eq!(called.last().map(String::as_str), Some("call log 1"), "its manifests list it: nobody is asked");
    assert_eq!(asks(&mut play), ["asked"]);
    let answers = json!({ "reply": { "action": "accept" } }).as_object().cloned().unwrap_or_default();
    let question_id = play.question();
    play.command(ChatCommand::Answer { question_id, answers, may_approve: false, may_not_run: false });
    assert_eq!(reply(&play), Some(json!({ "action": "accept" })), "its question is one of its server");
    assert!(!offers(&mut agent(AgentToolRuns::Builtin("read".into()))));
    // One that the flow brings is one of a server, too.
    let (name, declaration) = ("http__log".to_owned(), "{}".to_owned());
    let mut play = agent(AgentToolRuns::Http { name, declaration });
    assert!(offers(&mut play));
    assert_eq!(calls(&mut play, "log").last().map(String::as_str), Some("call log 1"));
}

#[test]
fn a_standing_rule_denies_a_tool_of_a_server_under_the_name_that_a_flow_gives_it() {
    let runs = AgentToolRuns::Builtin(TOOL.into());
    let mut play = Play::agent_with(vec![AgentTool { name: "log".into(), description: None, runs, root: None }]);
    play.machine.tools = Arc::new(Registry::builtin().with_servers(Arc::new(Unasked)));
    play.say("go");
    let (message_id, id) = (play.message_id(), rule_id(&PermissionRule::Tool { tool: TOOL.into() }, None));
    play.input(Input::Report(Report::Denies { message_id, rule_ids: vec![id.clone()], files: Vec::new() }));
    let happened = calls(&mut play, "log");
    let is_refusal = |what: &String| what.starts_with("observed false: not permitted") && what.contains(&id);
    assert!(happened.iter().any(is_refusal), "{happened:?}");
}

/// The server of the running call asks a person.
fn asks(play: &mut Play) -> Vec<String> {
    let call_id = play.running.values().find_map(|effect| match effect {
        ChatEffect::CallTool { call, .. } => Some(call.call_id),
        _ => None,
    });
    play.running.clear();
    let schema = json!({ "type": "object", "properties": { "action": { "enum": ["accept", "decline"] } } });
    let question = Question { name: "reply".into(), question: "Which branch?".into(), schema, buttons: None };
    let call_id = call_id.unwrap_or_else(|| panic!("no call runs"));
    play.input(Input::Report(Report::ToolAsks { call_id, question: Box::new(question) }))
}

/// The server of the running call asks the model.
fn samples(play: &mut Play) -> Vec<String> {
    let call_id = play.running.values().find_map(|effect| match effect {
        ChatEffect::CallTool { call, .. } => Some(call.call_id),
        _ => None,
    });
    play.running.clear();
    let call_id = call_id.unwrap_or_else(|| panic!("no call runs"));
    play.input(Input::Report(Report::ToolSamples { call_id, request: request() }))
}

fn request() -> Value {
    json!({ "system": "", "messages": [{ "role": "user", "text": "Summarise this." }], "max_tokens": 100 })
}

/// The answer that the running call was handed.
fn reply(play: &Play) -> Option<Value> {
    play.running.values().find_map(|effect| match effect {
        ChatEffect::CallTool { reply, .. } => reply.clone(),
        _ => None,
    })
}

fn running(change: impl FnOnce(&mut ChatConfig)) -> Play {
    let mut play = with(change);
    play.say("go");
    calls(&mut play, TOOL);
    let (permission_id, outcome) = (play.permission(), PermissionOutcome::Approved);
    play.command(ChatCommand::Decide { permission_id, outcome, always: false, reason: None, option_id: None });
    play
}

#[test]
fn the_question_of_a_server_suspends_the_turn_and_the_call_goes_on_with_the_answer() {
    let mut play = running(|_| {});
    assert_eq!(asks(&mut play), ["asked"]);
    assert!(play.running.is_empty(), "no worker waits");
    assert!(play.crash().is_empty(), "the question outlives its worker");
    let wrong = json!({ "reply": { "action": "maybe" } }).as_object().cloned().unwrap_or_default();
    let question_id = play.question();
    play.command(ChatCommand::Answer { question_id, answers: wrong, may_approve: true, may_not_run: false });
    assert!(play.running.is_empty(), "an answer that does not fit answers nothing");
    let answers = json!({ "reply": { "action": "accept" } }).as_object().cloned().unwrap_or_default();
    let happened = play.command(ChatCommand::Answer { question_id, answers, may_approve: true, may_not_run: false });
    assert_eq!(happened, [format!("call {TOOL} 2")]);
    assert_eq!(reply(&play), Some(json!({ "action": "accept" })));
    // It may ask again, and its answer is the answer of the call.
    assert_eq!(asks(&mut play), ["asked"]);
    let answers = json!({ "reply": { "action": "decline" } }).as_object().cloned().unwrap_or_default();
    let question_id = play.question();
    assert_eq!(
        play.command(ChatCommand::Answer { question_id, answers, may_approve: true, may_not_run: false }),
        [format!("call {TOOL} 3")]
    );
    assert_eq!(play.tool("done").first().map(String::as_str), Some("observed true: done"));
}

#[test]
fn a_server_asks_the_model_after_a_permission_and_its_usage_is_the_turns() {
    let mut play = running(|_| {});
    assert_eq!(samples(&mut play), ["permission_required"]);
    let asked = play.log.last().cloned();
    let Some(ChatEvent::PermissionRequired { tool, category, args, .. }) = asked else { panic!("{asked:?}") };
    assert_eq!((tool.as_str(), category.as_str(), args), ("sample mcp__git", "mcp", request().to_string()));
    let (permission_id, outcome) = (play.permission(), PermissionOutcome::Approved);
    let decide = ChatCommand::Decide { permission_id, outcome, always: true, reason: None, option_id: None };
    assert_eq!(play.command(decide).last(), Some(&format!("call {TOOL} 2")));
    assert_eq!(reply(&play), Some(json!({ "sample": request() })), "what was shown is what is asked");
    let call_id = play.running.values().find_map(|effect| match effect {
        ChatEffect::CallTool { call, .. } => Some(call.call_id),
        _ => None,
    });
    let before = play.state.turn.as_ref().map(|turn| turn.usage.output_tokens);
    let usage = Usage { output_tokens: 70, ..Usage::default() };
    let call_id = call_id.unwrap_or_else(|| panic!("no call runs"));
    play.input(Input::Report(Report::Sampled { call_id, usage, model: None, estimated: false }));
    let after = play.state.turn.as_ref().map(|turn| turn.usage.output_tokens);
    assert_eq!(after, before.map(|before| before + 70));
    // The rule covers the requests of this server, and no other question of it.
    assert_eq!(samples(&mut play), [format!("call {TOOL} 3")]);
    assert_eq!(reply(&play), Some(json!({ "sample": request() })));
}

#[test]
fn a_request_to_the_model_that_the_chat_allows_is_left_to_a_standing_rule_that_denies() {
    let mut play = running(|_| {});
    samples(&mut play);
    let (permission_id, outcome) = (play.permission(), PermissionOutcome::Approved);
    play.command(ChatCommand::Decide { permission_id, outcome, always: true, reason: None, option_id: None });
    let denied = rule_id(&PermissionRule::Tool { tool: "sample mcp__git".into() }, None);
    if let Some(turn) = &mut play.state.turn {
        turn.denied = vec![denied];
    }
    assert_eq!(samples(&mut play), ["permission_required"]);
}

#[test]
fn a_request_to_the_model_that_nobody_permits_is_refused_and_the_call_goes_on() {
    let mut play = running(|_| {});
    samples(&mut play);
    let (permission_id, outcome) = (play.permission(), PermissionOutcome::Declined);
    let decide = ChatCommand::Decide { permission_id, outcome, always: false, reason: None, option_id: None };
    assert_eq!(play.command(decide).last(), Some(&format!("call {TOOL} 2")));
    assert_eq!(reply(&play), Some(Value::Null));
    samples(&mut play);
    assert_eq!(play.message().last(), Some(&format!("call {TOOL} 3")), "silence is a no");
    assert_eq!(reply(&play), Some(Value::Null));
}

#[test]
fn silence_cancels_the_question_of_a_server() {
    let mut play = running(|_| {});
    asks(&mut play);
    assert_eq!(play.message(), [format!("call {TOOL} 2")]);
    assert_eq!(reply(&play), Some(Value::Null));
}

#[test]
fn a_stop_ends_a_turn_whose_server_asks() {
    let mut play = running(|_| {});
    asks(&mut play);
    assert!(play.stop().iter().any(|event| event.starts_with("stopped")));
    assert!(play.running.is_empty());
}

/// Otherwise the call would wait at its server, whose program is kept for it.
#[test]
fn the_server_of_a_call_that_waits_for_a_person_is_left_when_the_turn_ends() {
    fn deleted(play: &mut Play) -> Vec<String> {
        play.command(ChatCommand::Delete)
    }
    let ways: [fn(&mut Play) -> Vec<String>; 2] = [Play::stop, deleted];
    for waits in [asks, samples] {
        for ends in ways {
            let mut play = running(|_| {});
            waits(&mut play);
            let call = play.state.turn.as_ref().and_then(|turn| turn.calls.front()).map(|call| call.call_id);
            ends(&mut play);
            assert!(call.is_some() && play.left == call.into_iter().collect::<Vec<_>>());
        }
    }
    // Neither a question of the agent nor a call that was not asked about waits there.
    let mut play = with(|_| {});
    play.say("go");
    let question = json!({ "name": "name", "question": "Who?", "schema": { "type": "string" } });
    assert_eq!(play.answer("", &[("ask_user", json!({ "questions": [question] }))]).last(), Some(&"asked".to_owned()));
    play.stop();
    let mut asked = with(|_| {});
    asked.say("go");
    calls(&mut asked, TOOL);
    asked.stop();
    let mut answered = running(|_| {});
    answered.tool("done");
    answered.stop();
    assert!([play, asked, answered].iter().all(|play| play.left.is_empty()));
}

#[test]
fn a_call_that_its_server_has_begun_is_given_up_by_a_stop_and_not_told_of_again() {
    for waits in [asks, samples] {
        let mut play = running(|_| {});
        waits(&mut play);
        let happened = play.stop();
        let given_up = "observed false: given up: it may have taken effect or not";
        assert!(happened.iter().any(|event| event == given_up), "{happened:?}");
        assert!(happened.iter().all(|event| !event.starts_with("call ")), "{happened:?}");
    }
}

#[test]
fn files_of_servers_are_read_after_a_permission_for_that_server() {
    let mut play = with(|_| {});
    play.say("go");
    let read = |path: &str| ("read", json!({ "path": path }));
    play.answer("", &[read("/system/mcp/notes/resources/demo/a.md")]);
    let (permission_id, outcome) = (play.permission(), PermissionOutcome::Approved);
    play.command(ChatCommand::Decide { permission_id, outcome, always: true, reason: None, option_id: None });
    play.tool("words");
    assert_eq!(play.state.permissions, [PermissionRule::Tool { tool: "read /system/mcp/notes".into() }]);
    let covered = play.answer("", &[read("/system/mcp/notes/resources/demo/b.md")]);
    assert_eq!(covered.last().map(String::as_str), Some("call read 1"), "the rule covers the files of that server");
    play.tool("words");
    let other = play.answer("", &[read("/system/mcp/other/prompts/p.md")]);
    assert_eq!(other.last().map(String::as_str), Some("permission_required"));
}

#[test]
fn the_request_of_a_server_says_nothing_about_the_size_of_the_chats_context() {
    let mut play = with(|_| {});
    play.say(&"word ".repeat(2_400));
    calls(&mut play, TOOL);
    let (permission_id, outcome) = (play.permission(), PermissionOutcome::Approved);
    play.command(ChatCommand::Decide { permission_id, outcome, always: false, reason: None, option_id: None });
    let call_id = play.state.turn.as_ref().and_then(|turn| turn.calls.front()).map(|call| call.call_id);
    let call_id = call_id.unwrap_or_else(|| panic!("no call runs"));
    let usage = Usage { input_tokens: 60_000, ..Usage::default() };
    play.input(Input::Report(Report::Sampled { call_id, usage, model: None, estimated: false }));
    assert!(play.state.counted.is_none(), "{:?}", play.state.counted);
}
