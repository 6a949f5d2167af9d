//! Commands: permission to run them, and how they are ended.

use crate::play::{Play, ls};
use actor::{Input, Machine};
use buildscale_chat::{ChatEffect, ChatMachine};
use domain::{
    AgentTool, AgentToolRuns, ChatCommand, ChatConfig, ChatEvent, Code, Error, Mode, Principal,
    event::PermissionOutcome,
};
use serde_json::json;
use slots::{Places, SlotsCommand};
use std::sync::Arc;
use tools::{Commands, Registry};

fn with(change: impl FnOnce(&mut ChatConfig)) -> Play {
    let mut play = Play::with(change);
    play.machine.tools = Arc::new(Registry::builtin().with_commands(Commands::default()));
    play
}

fn cargo_test() -> (&'static str, serde_json::Value) {
    ("exec", json!({ "command": "cargo test" }))
}

#[test]
fn a_person_is_asked_before_a_command_runs() {
    let mut play = with(|_| {});
    play.say("test it");
    assert_eq!(play.answer("", &[cargo_test()]), ["assistant:  -> exec", "used", "permission_required"]);
    let asked = play.log.iter().find_map(|event| match event {
        ChatEvent::PermissionRequired { category, reason, .. } => Some((category.as_str(), reason.as_str())),
        _ => None,
    });
    assert_eq!(asked, Some(("command", "it wants to run a command: cargo test")));
    let decide = ChatCommand::Decide {
        permission_id: play.permission(),
        outcome: PermissionOutcome::Approved,
        always: false,
        reason: None,
        option_id: None,
    };
    let by = Principal::local();
    assert_eq!(play.command(decide), [format!("Approved by {by}"), "call exec 1".to_owned()]);
    play.tool("all passed");
    play.answer("", &[("exec", json!({ "words": ["rm", "-rf", "/"] }))]);
    let decide = ChatCommand::Decide {
        permission_id: play.permission(),
        outcome: PermissionOutcome::Declined,
        always: false,
        reason: None,
        option_id: None,
    };
    assert!(play.command(decide).contains(&"observed false: not permitted: a person declined".to_owned()));
}

fn keeps(command: &str, to: &str) -> (&'static str, serde_json::Value) {
    ("exec", json!({ "command": command, "keep": [{ "from": "out", "to": to }] }))
}

fn reason_of(play: &Play) -> Option<String> {
    play.log.iter().rev().find_map(|event| match event {
        ChatEvent::PermissionRequired { reason, .. } => Some(reason.clone()),
        _ => None,
    })
}

#[test]
fn a_command_that_keeps_files_is_asked_about_with_their_places_also_under_a_plan() {
    let mut play = with(|_| {});
    play.say("test it");
    play.answer("", &[keeps("cargo test", "/projects/app")]);
    let reason = reason_of(&play).unwrap_or_default();
    assert_eq!(reason, "it wants to run a command: cargo test, and to keep files of it at /projects/app");
    let mut play = with(|_| {});
    play.approve(1);
    play.answer("", &[keeps("cargo test", "/projects/app")]);
    assert_eq!(play.plan_is(None), ["call exec 1"], "the plan permits it");
    for to in ["/system/skills/a/SKILL.md", "/system", "/"] {
        let mut play = with(|_| {});
        play.approve(1);
        let happened = play.answer("", &[keeps("cargo test", to)]);
        assert_eq!(happened.last().map(String::as_str), Some("permission_required"), "{to}: no plan sets up agents");
        let told = format!("; {to} is part of how agents in this workspace are set up");
        assert!(reason_of(&play).is_some_and(|reason| reason.ends_with(&told)), "{to}");
    }
}

#[test]
fn files_of_a_command_are_kept_only_where_the_persona_may_write() {
    let refused = |tools: &[&str], to: &str| {
        let mut play = with(|config| config.tools = Some(tools.iter().map(|tool| (*tool).to_owned()).collect()));
        play.say("test it");
        let happened = play.answer("", &[keeps("cargo test", to)]);
        happened.iter().any(|what| what.contains("a command's files are kept as by write"))
    };
    assert!(refused(&["exec"], "/projects/app"));
    assert!(!refused(&["exec", "write"], "/projects/app"));
    assert!(!refused(&["exec", "write(/projects/**)"], "/projects/app"));
    assert!(refused(&["exec", "write(/projects/**)"], "/data"));
    for name in ["file", "????"] {
        let tool = format!("write(/projects/**/{name})");
        assert!(refused(&["exec", &tool], "/projects/file"), "{name}: it may be a folder");
    }
    assert!(refused(&["exec", "write(/projects/**/review.md)"], "/projects/review.md"), "it may be a folder");
}

#[test]
fn in_plan_mode_no_command_runs_and_an_approved_plan_runs_them() {
    let mut play = with(|config| config.mode = Mode::Plan);
    play.say("test it");
    let refused = "observed false: not permitted: in plan mode no command runs";
    assert!(play.answer("", &[cargo_test()]).contains(&refused.to_owned()));
    let begun = play.approve(3);
    assert_eq!(begun, ["plan_approved", "mode_changed", "turn_queued"], "the turn that plans ends first");
    let mut play = with(|config| config.mode = Mode::Plan);
    play.say("plan it");
    play.answer("planned", &[]);
    assert_eq!(
        play.approve(3),
        ["plan_approved", "mode_changed", "turn_started 1", "user: Carry it out", "model_started 1"]
    );
    play.answer("", &[cargo_test()]);
    assert_eq!(play.plan_is(None), ["call exec 1"]);
}

#[test]
fn a_stop_ends_a_command_at_once_and_lets_another_tool_complete() {
    let mut play = with(|_| {});
    play.approve(1);
    play.answer("", &[cargo_test(), ls()]);
    play.plan_is(None);
    let happened = play.stop();
    let interrupted = "[System: Response was interrupted by user (user_cancelled)]";
    assert_eq!(
        happened,
        [
            "observed false: given up: it may have taken effect or not",
            "call ls 1",
            "observed false: not run: the turn was stopped",
            interrupted,
            "stopped user_cancelled: "
        ]
    );
    assert_eq!(play.killed.len(), 1);
    play.say("again");
    play.answer("", &[ls()]);
    assert_eq!(play.stop(), ["stop_requested"]);
    assert_eq!(play.killed.len(), 1);
}

#[test]
fn after_a_crash_a_command_goes_on_under_its_call() {
    let mut play = with(|_| {});
    play.approve(1);
    play.answer("", &[cargo_test()]);
    play.plan_is(None);
    let call = |play: &Play| {
        let started = play.log.iter().rev().find_map(|event| match event {
            ChatEvent::CallStarted { call_id, attempt, .. } => Some((*call_id, *attempt)),
            _ => None,
        });
        started.map_or((None, 0), |(call, attempt)| (Some(call), attempt))
    };
    let (first, _) = call(&play);
    assert_eq!(play.crash(), ["turn_started 2", "call exec 2"]);
    assert_eq!(call(&play), (first, 2));
    // Another worker ends the command when the chat is stopped.
    play.stop();
    assert_eq!(play.killed, Vec::from_iter(first));
}

#[test]
fn commands_that_a_flow_allows_its_agent_ask_no_person() {
    let parameters = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let runs = AgentToolRuns::Command { words: vec!["wc".into(), "{{input.name}}".into()], network: false, parameters };
    let count = AgentTool { name: "count".into(), description: Some("Counts.".into()), runs, root: None };
    let mut play = Play::agent_with(vec![count]);
    play.machine.tools = Arc::new(Registry::builtin().with_commands(Commands::default()));
    play.say("count it");
    let told = play.request.as_ref().map(|request| {
        request.tools.iter().map(|tool| (tool.name.clone(), tool.description.clone())).collect::<Vec<_>>()
    });
    let described = "Counts. Runs a command in the sandbox.".to_owned();
    assert_eq!(told, Some(vec![("count".to_owned(), described)]));
    assert_eq!(play.answer("", &[("count", json!({ "name": "a" }))])[2..], ["call count 1"]);
    play.tool("1");
    assert!(play.answer("", &[("exec", json!({ "command": "ls" }))]).iter().any(|word| word.contains("no tool")));
}

/// A chat whose command waits for its place.
fn waits() -> Play {
    let mut play = with(|_| {});
    play.machine.places = Some(Places { at_once: 32, shared: true });
    play.approve(1);
    play.answer("", &[cargo_test(), ls()]);
    assert_eq!(play.plan_is(None), ["place_awaited"]);
    assert!(play.running.is_empty() && !ChatMachine::in_flight(&play.state));
    play
}

/// The messages to the machine's semaphore, in order.
fn told(play: &Play) -> Vec<SlotsCommand> {
    play.scheduled.iter().filter_map(|message| serde_json::from_value(message.clone()).ok()).collect()
}

/// The message that grants the last request.
fn last_grant(play: &Play) -> ChatCommand {
    let grant = told(play).into_iter().rev().find_map(|told| match told {
        SlotsCommand::Ask { ask } => Some(command(&ask.grant)),
        SlotsCommand::Give { .. } | SlotsCommand::Release { .. } => None,
    });
    grant.unwrap_or(ChatCommand::Delete)
}

fn command(message: &serde_json::Value) -> ChatCommand {
    serde_json::from_value(message.clone()).unwrap_or(ChatCommand::Delete)
}

#[test]
fn a_command_that_waits_for_a_place_is_a_row_and_gives_it_back_when_it_ends() {
    let mut play = waits();
    let [SlotsCommand::Ask { ask }] = &told(&play)[..] else { panic!("{:?}", play.scheduled) };
    let (holder, grant, party) = (ask.holder.clone(), command(&ask.grant), ask.party.clone());
    assert_eq!(party, play.config.workspace.to_string());
    assert_eq!(play.crash(), [""; 0], "a resting chat needs no worker");
    play.now += 3_600_000;
    assert_eq!(play.command(grant.clone()), ["call exec 1"]);
    assert_eq!(play.command(grant), [""; 0], "a message that comes twice");
    assert_eq!(play.crash(), ["turn_started 2", "call exec 2"], "it has its place still");
    assert_eq!(play.tool("passed"), ["observed true: passed", "call ls 1"], "its place is another's");
    assert_eq!(play.tool("x"), ["observed true: x", "model_started 1"], "the hour is not the turn's");
    assert_eq!(told(&play).get(1..), Some(&[SlotsCommand::Give { holder }][..]));
}

#[test]
fn a_command_whose_machine_is_not_ready_is_a_row_that_comes_again_and_keeps_its_place() {
    let mut play = waits();
    let [SlotsCommand::Ask { ask }] = &told(&play)[..] else { panic!("{:?}", play.scheduled) };
    let (holder, grant) = (ask.holder.clone(), command(&ask.grant));
    play.command(grant);
    let unready = || Error::new(Code::NotBegun, "a machine is looked for").detail("retry_after_ms", 2000);
    for attempt in 2..5 {
        assert_eq!(play.tool_ends(unready().into()), ["place_awaited"]);
        assert!(play.running.is_empty() && !ChatMachine::in_flight(&play.state), "no worker is held");
        play.now += 3_600_000;
        assert_eq!(play.message(), [format!("call exec {attempt}")]);
    }
    let waited = play.running.values().find_map(|effect| match effect {
        ChatEffect::CallTool { waited, .. } => Some(waited.as_secs() / 3_600),
        _ => None,
    });
    assert_eq!(waited, Some(3), "the machine has to come within a time in all");
    assert_eq!(told(&play).len(), 1, "its place is its own all the time");
    assert_eq!(play.tool("passed"), ["observed true: passed", "call ls 1"]);
    assert_eq!(play.tool("x"), ["observed true: x", "model_started 1"], "the hours are not the turn's");
    assert_eq!(told(&play).get(1..), Some(&[SlotsCommand::Give { holder }][..]));
}

#[test]
fn a_command_that_is_stopped_while_it_waits_for_its_machine_has_not_begun() {
    let mut play = waits();
    let [SlotsCommand::Ask { ask }] = &told(&play)[..] else { panic!("{:?}", play.scheduled) };
    let grant = command(&ask.grant);
    play.command(grant);
    let unready = Error::new(Code::NotBegun, "a machine is looked for").detail("retry_after_ms", 2000);
    assert_eq!(play.tool_ends(unready.into()), ["place_awaited"]);
    let happened = play.stop();
    assert_eq!(happened[0], "observed false: not run: the turn was stopped", "{happened:?}");
    assert!(!happened.iter().any(|word| word.contains("may have taken effect")), "{happened:?}");
}

#[test]
fn a_command_without_a_place_is_not_begun_and_the_turn_goes_on() {
    let mut play = waits();
    let [SlotsCommand::Ask { ask }] = &told(&play)[..] else { panic!("{:?}", play.scheduled) };
    let refusal = ask.bound.as_ref().map(|bound| command(&bound.refusal)).unwrap_or(ChatCommand::Delete);
    let happened = play.command(refusal);
    assert!(happened.len() == 3 && happened[0] == "call exec 1" && happened[2] == "call ls 1", "{happened:?}");
    let code = play.log.iter().rev().find_map(|event| match event {
        ChatEvent::Observed { code, .. } => Some(*code),
        _ => None,
    });
    assert_eq!(code, Some(Some(Code::NotBegun)));
}

#[test]
fn a_stop_takes_a_command_out_of_the_line() {
    let mut play = waits();
    let happened = play.stop();
    assert!(happened.contains(&"observed false: not run: the turn was stopped".to_owned()), "{happened:?}");
    assert!(matches!(told(&play)[..], [_, SlotsCommand::Give { .. }]), "{:?}", play.scheduled);
    assert_eq!(play.killed, [], "nothing of it had begun");
}

#[test]
fn a_pause_gives_the_place_away_and_what_was_begun_is_ended_all_the_same() {
    let mut play = waits();
    let [SlotsCommand::Ask { ask }] = &told(&play)[..] else { panic!("{:?}", play.scheduled) };
    let (grant, call) = (command(&ask.grant), play.state.turn.as_ref().and_then(|turn| turn.place));
    play.command(grant.clone());
    play.park("it fails");
    assert!(matches!(told(&play)[..], [_, SlotsCommand::Give { .. }]));
    assert_eq!(play.crash(), ["turn_started 2", "place_awaited"]);
    let happened = play.stop();
    assert!(happened.iter().any(|word| word.contains("may have taken effect")), "{happened:?}");
    assert_eq!(play.killed, Vec::from_iter(call));
}

#[test]
fn a_command_that_a_policy_asks_about_lends_its_place_until_a_person_has_answered() {
    let asked = || {
        let mut play = waits();
        let [SlotsCommand::Ask { ask }] = &told(&play)[..] else { panic!("{:?}", play.scheduled) };
        let (holder, grant) = (ask.holder.clone(), command(&ask.grant));
        assert_eq!(play.command(grant.clone()), ["call exec 1"]);
        let question = Error::new(Code::Forbidden, "a policy asks").detail("access", "ask");
        assert_eq!(play.tool_ends(question.into()), ["permission_required"]);
        let given = SlotsCommand::Give { holder };
        assert_eq!(told(&play).get(1..), Some(&[given.clone()][..]), "a person may take a day");
        (play, grant, given)
    };
    let decide = |play: &Play, outcome| {
        let (permission_id, always, reason, option_id) = (play.permission(), false, None, None);
        ChatCommand::Decide { permission_id, outcome, always, reason, option_id }
    };

    let (mut play, grant, given) = asked();
    let approved = decide(&play, PermissionOutcome::Approved);
    let happened = play.command(approved);
    assert_eq!(happened[1..], ["place_awaited"]);
    assert!(matches!(told(&play)[..], [_, _, SlotsCommand::Ask { .. }]), "{:?}", play.scheduled);
    assert_eq!(play.command(grant), [""; 0], "that place was given back");
    let grant = last_grant(&play);
    assert_eq!(play.command(grant), ["call exec 2"]);
    assert_eq!(play.crash(), ["turn_started 2", "call exec 3"], "it has its place still");
    assert_eq!(play.tool("passed"), ["observed true: passed", "call ls 1"]);
    assert_eq!(told(&play).get(3..), Some(&[given][..]));

    let (mut play, ..) = asked();
    let declined = decide(&play, PermissionOutcome::Declined);
    play.command(declined);
    assert!(!told(&play).iter().skip(1).any(|told| matches!(told, SlotsCommand::Ask { .. })), "{:?}", play.scheduled);
}

#[test]
fn a_chat_that_is_paused_while_its_command_waits_lends_the_place_until_it_goes_on() {
    let mut play = waits();
    let [SlotsCommand::Ask { ask }] = &told(&play)[..] else { panic!("{:?}", play.scheduled) };
    let (holder, grant) = (ask.holder.clone(), command(&ask.grant));
    let given = SlotsCommand::Give { holder: holder.clone() };
    play.park("another message fails again and again");
    assert_eq!(told(&play).get(1..), Some(&[given.clone()][..]), "a person may take a day");
    play.now += 3_600_000;
    assert_eq!(play.input(Input::Unpark { drop: false }), ["unpaused", "place_awaited"]);
    assert!(matches!(&told(&play)[2..], [SlotsCommand::Ask { ask }] if ask.holder == holder), "{:?}", play.scheduled);
    assert_eq!(play.command(grant), [""; 0], "a grant of before the pause is for a place that was given back");
    let grant = last_grant(&play);
    play.now += 3_600_000;
    assert_eq!(play.command(grant), ["call exec 1"]);
    assert_eq!(play.tool("passed"), ["observed true: passed", "call ls 1"]);
    assert_eq!(told(&play).get(3..), Some(&[given][..]));
    assert_eq!(play.tool("x"), ["observed true: x", "model_started 1"], "the hours are not the turn's");
}

#[test]
fn a_command_that_a_pause_has_put_out_of_its_line_begins_where_nothing_grants_places_any_more() {
    let mut play = waits();
    play.park("another message fails again and again");
    play.machine.places = None;
    assert_eq!(play.input(Input::Unpark { drop: false }), ["unpaused", "place_awaited"]);
    assert_eq!(play.message(), ["call exec 1"]);
}

#[test]
fn a_chat_that_is_paused_while_its_machine_starts_asks_for_a_place_again_and_gives_the_machine_its_whole_time() {
    let mut play = waits();
    let grant = last_grant(&play);
    play.command(grant);
    let unready = || Error::new(Code::NotBegun, "a machine is looked for").detail("retry_after_ms", 2000);
    assert_eq!(play.tool_ends(unready().into()), ["place_awaited"]);
    let Some(due) = play.scheduled.last().map(command) else { panic!("no message") };
    play.park("another message fails again and again");
    assert!(matches!(told(&play)[..], [_, SlotsCommand::Give { .. }]), "{:?}", play.scheduled);
    play.now += 3_600_000;
    assert_eq!(play.input(Input::Unpark { drop: false }), ["unpaused", "place_awaited"]);
    assert_eq!(play.command(due), [""; 0], "its time has come, and its place is another's");
    let grant = last_grant(&play);
    assert_eq!(play.command(grant), ["call exec 2"]);
    let waited = play.running.values().find_map(|effect| match effect {
        ChatEffect::CallTool { waited, .. } => Some(waited.as_millis()),
        _ => None,
    });
    assert_eq!(waited, Some(0));
}
