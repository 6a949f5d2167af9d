//! Tools of servers (spec 004 §11): their names alone say that a server runs them, and a person is asked before each call.

use crate::play::Play;
use async_trait::async_trait;
use buildscale_chat::{ChatEffect, Gate, GateDecision, GateRequest, SimpleGate};
use domain::{ChatCommand, ChatConfig, Error, Mode, PermissionRule, event::PermissionOutcome};
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
        tool.starts_with(ports::SERVED_PREFIX)
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
