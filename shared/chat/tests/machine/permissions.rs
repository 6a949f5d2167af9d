//! Rules that people grant with "always here" and "never here", and the reasons with which they decline.

use crate::play::{Play, ask};
use buildscale_chat::{ChatState, Gate, GateDecision, GateRequest, SimpleGate};
use domain::{ChatCommand, ChatConfig, ChatEvent, FilePath, Mode, PermissionRule, event::PermissionOutcome};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tools::{Commands, Effects, Registry, ToolKind};

pub const RUNS: &str = "call exec 1";
pub const ASKS: &str = "permission_required";

/// A chat of a person who may approve.
pub fn with(change: impl FnOnce(&mut ChatConfig)) -> Play {
    let mut play = Play::with(change);
    play.machine.tools = Arc::new(Registry::builtin().with_commands(Commands::default()));
    play.may_approve = true;
    play
}

pub fn line(line: &str) -> Value {
    json!({ "command": line })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub fn prefix(of: &[&str]) -> PermissionRule {
    PermissionRule::CommandPrefix { words: words(of), folder: FilePath::root() }
}

fn one(of: &[&str]) -> PermissionRule {
    PermissionRule::Command { words: words(of), folder: FilePath::root() }
}

/// The model calls a tool; the word for the last thing that happens.
pub fn calls(play: &mut Play, tool: &str, args: &Value) -> String {
    play.answer("", &[(tool, args.clone())]).pop().unwrap_or_default()
}

pub fn decide(play: &mut Play, outcome: PermissionOutcome, always: bool, reason: Option<&str>) -> Vec<String> {
    let (permission_id, reason) = (play.permission(), reason.map(String::from));
    play.command(ChatCommand::Decide { permission_id, outcome, always, reason, option_id: None })
}

/// A chat in a turn whose person has always allowed this call; its tool has run.
pub fn granted(tool: &str, args: &Value) -> Play {
    let mut play = with(|_| {});
    play.say("go");
    assert_eq!(calls(&mut play, tool, args), ASKS);
    let happened = decide(&mut play, PermissionOutcome::Approved, true, None);
    assert_eq!(happened[1..], [format!("call {tool} 1")]);
    play.tool("done");
    play
}

/// The fate of a call in that chat; the chat is then as before.
fn becomes(play: &mut Play, tool: &str, args: &Value) -> String {
    let happened = calls(play, tool, args);
    match happened.as_str() {
        ASKS => drop(decide(play, PermissionOutcome::Declined, false, None)),
        _ => drop(play.tool("done")),
    }
    happened
}

/// The decision of the gate on a command in `mode`, where these rules were granted.
fn gate(mode: Mode, args: &Value, permissions: &[PermissionRule]) -> GateDecision {
    let config = &ChatConfig { mode, ..*Play::new().config };
    let (effects, args) = (&Effects::none(ToolKind::Exec), &*args.to_string());
    SimpleGate::default().decide(&GateRequest { config, effects, tool: "exec", args, approved: false, permissions })
}

fn offered(args: &Value) -> Option<PermissionRule> {
    match gate(Mode::Chat, args, &[]) {
        GateDecision::Ask { always, .. } => always,
        other => panic!("{args} is not asked about: {other:?}"),
    }
}

#[test]
fn a_request_offers_the_rule_for_the_subcommand_or_for_the_whole_command() {
    for (args, rule) in [
        (line("cargo test --workspace"), prefix(&["cargo", "test"])),
        (line("  git\tstatus  "), prefix(&["git", "status"])),
        (json!({ "words": ["npm", "run", "a; b"] }), prefix(&["npm", "run"])),
        (json!({ "command": "make all", "timeout_s": 9 }), prefix(&["make", "all"])),
        (line("make"), one(&["make"])),
        (line("cargo --version"), one(&["cargo", "--version"])),
        (line("cat notes.md"), one(&["cat", "notes.md"])),
        (line("git Status"), one(&["git", "Status"])),
        (json!({ "words": ["sh", "-c", "rm -rf *"] }), one(&["sh", "-c", "rm -rf *"])),
        (json!({ "words": ["a b", "test"] }), one(&["a b", "test"])),
    ] {
        assert_eq!(offered(&args), Some(rule), "{args}");
    }
    let folder = FilePath::parse("/projects/app").unwrap_or_else(|_| FilePath::root());
    let there = PermissionRule::CommandPrefix { words: words(&["cargo", "test"]), folder };
    assert_eq!(offered(&json!({ "command": "cargo test", "folder": "/projects/app/" })), Some(there));
    for args in [
        line("cargo test && rm -rf x"),
        line("cargo test\nrm x"),
        line("cargo test \u{a0}x"),
        line("echo $HOME"),
        line("PATH=/tmp cargo test"),
        line("ls *.rs"),
        line("cat ~/x"),
        line(""),
        json!({ "words": [] }),
        json!({ "words": ["cargo", "test"], "command": "cargo test" }),
        json!({ "command": "sh script", "stdin": "rm -rf x" }),
        json!({ "command": "cargo test", "environment": { "A": "b" } }),
        json!({ "command": "cargo test", "folder": "../x" }),
        json!({ "words": ["echo", "x".repeat(2_000)] }),
    ] {
        assert_eq!(offered(&args), None, "{args}");
    }
}

#[test]
fn a_rule_covers_whole_words_of_plain_commands_in_its_folder() {
    let mut play = granted("exec", &line("cargo test --lib"));
    assert_eq!(play.state.permissions, [prefix(&["cargo", "test"])]);
    for (args, wanted) in [
        (line("cargo test"), RUNS),
        (line("cargo  test -p a"), RUNS),
        (json!({ "words": ["cargo", "test", "--", "a b; c"] }), RUNS),
        (json!({ "command": "cargo test", "timeout_s": 60 }), RUNS),
        (json!({ "command": "cargo test", "folder": "/" }), RUNS),
        (line("cargo testx"), ASKS),
        (line("cargo"), ASKS),
        (line("cargo run"), ASKS),
        (line("xcargo test"), ASKS),
        (line("cargo test; rm -rf x"), ASKS),
        (line("cargo test | sh"), ASKS),
        (line("cargo test $(rm x)"), ASKS),
        (line("cargo test > /dev/null"), ASKS),
        (line("cargo test\nrm x"), ASKS),
        (line("A=b cargo test"), ASKS),
        (line("'cargo' test"), ASKS),
        (json!({ "words": ["cargo test"] }), ASKS),
        (json!({ "command": "cargo test", "folder": "/projects/app" }), ASKS),
        (json!({ "command": "cargo test", "stdin": "x" }), ASKS),
        (json!({ "command": "cargo test", "keep": [{ "from": "a", "to": "/projects/a" }] }), ASKS),
    ] {
        assert_eq!(becomes(&mut play, "exec", &args), wanted, "{args}");
    }
    let mut play = granted("exec", &line("make"));
    assert_eq!(becomes(&mut play, "exec", &line("make")), RUNS);
    assert_eq!(becomes(&mut play, "exec", &line("make clean")), ASKS, "exactly this command");
}

#[test]
fn a_rule_for_a_file_covers_its_contents_and_nothing_beside_it() {
    let write = |path: &str| json!({ "path": path, "content": "x" });
    let mut play = granted("write", &write("/system/skills/x/SKILL.md"));
    assert_eq!(becomes(&mut play, "write", &write("/system/skills/x/SKILL.md")), "call write 1");
    let edit = json!({ "path": "/system/skills/x/SKILL.md", "edits": [{ "old": "a", "new": "b" }] });
    assert_eq!(becomes(&mut play, "edit", &edit), "call edit 1");
    for (tool, args) in [
        ("write", write("/system/skills/y/SKILL.md")),
        ("rm", json!({ "path": "/system/skills/x/SKILL.md" })),
        ("mkdir", json!({ "path": "/system/skills/x/SKILL.md" })),
        ("mv", json!({ "from": "/projects/x", "to": "/system/skills/x/SKILL.md" })),
        ("exec", line("make")),
    ] {
        assert_eq!(becomes(&mut play, tool, &args), ASKS, "{tool} {args}");
    }
    // A call that may touch more than it names offers no rule.
    for (tool, args) in [
        ("rm", json!({ "path": "/system/skills/x" })),
        ("mkdir", json!({ "path": "/system/skills/z" })),
        ("mv", json!({ "from": "/system/a", "to": "/system/b" })),
    ] {
        assert_eq!(calls(&mut play, tool, &args), ASKS);
        let happened = decide(&mut play, PermissionOutcome::Approved, true, None);
        assert_eq!(happened, ["failed INVALID_ARGUMENT"], "{tool}");
        decide(&mut play, PermissionOutcome::Declined, false, None);
    }
}

#[test]
fn rules_count_in_turns_of_people_who_may_approve() {
    let mut play = granted("exec", &line("cargo test"));
    play.answer("done", &[]);
    play.may_approve = false;
    play.say("test it");
    assert_eq!(calls(&mut play, "exec", &line("cargo test")), ASKS, "it would do what another person allowed");
    // A rule that is granted in such a turn counts from the next turn of somebody who may approve.
    decide(&mut play, PermissionOutcome::Approved, true, None);
    play.tool("done");
    assert_eq!(becomes(&mut play, "exec", &line("cargo test")), ASKS);
    play.answer("done", &[]);
    play.may_approve = true;
    play.say("test it");
    assert_eq!(becomes(&mut play, "exec", &line("cargo test")), RUNS);
    // An answer leads a turn as a message does.
    play.answer("", &[ask()]);
    let (question_id, answers) = (play.question(), Map::from_iter([("colour".to_owned(), json!("red"))]));
    play.command(ChatCommand::Answer { question_id, answers, may_approve: false, may_not_run: false });
    assert_eq!(becomes(&mut play, "exec", &line("cargo test")), ASKS);
    // The agent of a task works as its flow says, and is offered none.
    let mut play = Play::agent(&[("write", None)]);
    play.say("go");
    assert_eq!(calls(&mut play, "write", &json!({ "path": "/system/x", "content": "x" })), ASKS);
    assert_eq!(decide(&mut play, PermissionOutcome::Approved, true, None), ["failed INVALID_ARGUMENT"]);
}

#[test]
fn rules_do_not_count_in_plan_mode() {
    let mut play = granted("exec", &line("cargo test"));
    play.answer("done", &[]);
    let plan = ChatCommand::Configure {
        title: None,
        model: None,
        model_settings: None,
        mode: Some(Mode::Plan),
        may_approve: true,
        session: None,
        options: None,
        labels: domain::LabelChanges::default(),
    };
    play.command(plan);
    play.say("plan it");
    let happened = play.answer("", &[("exec", line("cargo test"))]);
    assert_eq!(happened[3], "observed false: not permitted: in plan mode no command runs");
    let rules = [prefix(&["cargo", "test"])];
    assert!(matches!(gate(Mode::Plan, &line("cargo test"), &rules), GateDecision::Deny { .. }));
    assert_eq!(gate(Mode::Build, &line("cargo test"), &rules), GateDecision::Permit);
}

#[test]
fn a_rule_also_counts_where_the_approved_plan_has_changed() {
    let mut play = granted("exec", &line("cargo test"));
    play.answer("done", &[]);
    play.approve(1);
    play.answer("", &[("exec", line("cargo test"))]);
    assert_eq!(play.plan_is(Some("the plan has changed")), [RUNS]);
    play.tool("done");
    play.answer("", &[("exec", line("cargo run"))]);
    assert_eq!(play.plan_is(Some("the plan has changed")), [ASKS]);
}

#[test]
fn the_other_calls_of_the_same_message_are_covered_at_once() {
    let mut play = with(|_| {});
    play.say("go");
    let call = ("exec", line("cargo test"));
    assert_eq!(play.answer("", &[call.clone(), call]).last().map(String::as_str), Some(ASKS));
    decide(&mut play, PermissionOutcome::Approved, true, None);
    assert_eq!(play.tool("done"), ["observed true: done", RUNS]);
}

#[test]
fn forgotten_rules_count_no_more() {
    let mut play = granted("exec", &line("cargo test"));
    assert_eq!(play.command(ChatCommand::ForgetPermissions { rule_id: None }), ["permissions_forgotten"]);
    assert_eq!(
        play.command(ChatCommand::ForgetPermissions { rule_id: None }),
        Vec::<String>::new(),
        "again is harmless"
    );
    assert_eq!(becomes(&mut play, "exec", &line("cargo test")), ASKS);
    assert!(play.state.permissions.is_empty());
}

#[test]
fn one_rule_is_revoked_by_its_id_and_the_others_stay() {
    let mut play = granted("exec", &line("cargo test"));
    play.answer("", &[("exec", line("cargo run"))]);
    decide(&mut play, PermissionOutcome::Approved, true, None);
    let ids: Vec<String> = play.state.permissions.iter().map(domain::PermissionRule::id).collect();
    assert_eq!(ids.len(), 2);
    let one = |id: &str| ChatCommand::ForgetPermissions { rule_id: Some(id.into()) };
    play.tool("done");
    play.answer("done", &[]);
    assert_eq!(play.command(one(&ids[0])), ["permissions_forgotten"]);
    assert_eq!(play.command(one(&ids[0])), Vec::<String>::new(), "again is harmless");
    assert_eq!(play.state.permissions.iter().map(domain::PermissionRule::id).collect::<Vec<_>>(), ids[1..]);
    play.say("go");
    assert_eq!(becomes(&mut play, "exec", &line("cargo test")), ASKS);
}

#[test]
fn rules_outlive_a_crash_and_are_in_the_snapshot() -> Result<(), serde_json::Error> {
    let mut play = granted("exec", &line("cargo test"));
    let snapshot: ChatState = serde_json::from_value(serde_json::to_value(&play.state)?)?;
    play.crash();
    assert_eq!(play.state.permissions, [prefix(&["cargo", "test"])]);
    assert_eq!(snapshot.permissions, play.state.permissions);
    assert_eq!(becomes(&mut play, "exec", &line("cargo test")), RUNS);
    Ok(())
}

#[test]
fn a_chat_has_each_rule_once_and_a_hundred_at_most() {
    let mut play = with(|_| {});
    play.say("go");
    for number in 0..101 {
        assert_eq!(calls(&mut play, "exec", &line(&format!("make {number}"))), ASKS);
        decide(&mut play, PermissionOutcome::Approved, true, None);
        play.tool("done");
    }
    assert_eq!(play.state.permissions.len(), 100);
    assert_eq!(play.state.permissions[0], prefix(&["make", "1"]), "the oldest goes");
    // Somebody who may not approve is asked about a call that has its rule already.
    play.answer("done", &[]);
    play.may_approve = false;
    play.say("go");
    assert_eq!(calls(&mut play, "exec", &line("make 1")), ASKS);
    decide(&mut play, PermissionOutcome::Approved, true, None);
    assert_eq!(play.state.permissions.len(), 100);
    assert_eq!(play.state.permissions[99], prefix(&["make", "1"]), "it is the newest now, and there once");
}

#[test]
fn the_model_reads_why_a_person_declined() {
    let mut play = with(|_| {});
    play.say("go");
    calls(&mut play, "exec", &line("cargo test"));
    let happened = decide(&mut play, PermissionOutcome::Declined, false, Some("it takes too long"));
    assert_eq!(happened[1], "observed false: not permitted: a person declined: it takes too long");
    let kept = play.log.iter().find_map(|event| match event {
        ChatEvent::PermissionResolved { reason, always, .. } => Some((reason.as_deref(), always.is_some())),
        _ => None,
    });
    assert_eq!(kept, Some((Some("it takes too long"), false)));
}

/// A chat in a turn whose person has denied this call for good.
pub fn denied(tool: &str, args: &Value) -> Play {
    let mut play = with(|_| {});
    play.say("go");
    assert_eq!(calls(&mut play, tool, args), ASKS);
    let happened = decide(&mut play, PermissionOutcome::Declined, true, None);
    assert!(
        happened[1].starts_with("observed false: not permitted: a person declined; from now on a rule denies "),
        "{happened:?}"
    );
    play
}

/// The answer that the model reads to a call that is not asked about.
pub fn refusal(play: &mut Play, tool: &str, args: &Value) -> Option<String> {
    let happened = play.answer("", &[(tool, args.clone())]);
    happened.into_iter().find_map(|what| Some(what.strip_prefix("observed false: ")?.to_owned()))
}

#[test]
fn a_rule_that_denies_refuses_the_calls_that_were_shown_and_no_others() {
    let mut play = denied("exec", &line("cargo test --lib"));
    let rule = prefix(&["cargo", "test"]).denied();
    assert_eq!(play.state.permissions, std::slice::from_ref(&rule));
    let why = format!(
        "not permitted: a person has denied commands that begin with `cargo test` from now on (rule {}), and is not asked again",
        rule.id()
    );
    for args in [line("cargo test"), line("cargo  test -p a"), json!({ "words": ["cargo", "test", "--", "x"] })] {
        assert_eq!(refusal(&mut play, "exec", &args), Some(why.clone()), "{args}");
    }
    for args in [line("cargo run"), line("cargo testx"), line("cargo run; cargo testx"), line("echo cargo test")] {
        assert_eq!(becomes(&mut play, "exec", &args), ASKS, "{args}");
    }
    let elsewhere = json!({ "command": "cargo test", "folder": "/projects/app" });
    assert_eq!(becomes(&mut play, "exec", &elsewhere), ASKS);
    let write = |path: &str| json!({ "path": path, "content": "x" });
    let mut play = denied("write", &write("/system/skills/x/SKILL.md"));
    assert!(refusal(&mut play, "write", &write("/system/skills/x/SKILL.md")).is_some());
    assert_eq!(becomes(&mut play, "write", &write("/system/skills/y/SKILL.md")), ASKS);
    let keep = |to: &str| json!({ "command": "make", "keep": [{ "from": "out", "to": to }] });
    for to in ["/system/skills/x/SKILL.md", "/system/skills"] {
        assert!(refusal(&mut play, "exec", &keep(to)).is_some(), "{to}");
    }
    assert_eq!(becomes(&mut play, "exec", &keep("/projects")), ASKS);
}

#[test]
fn a_rule_that_denies_wins_over_rules_that_allow_over_plans_and_in_the_turns_of_all_people() {
    let mut play = denied("exec", &line("cargo test"));
    let wider = prefix(&["cargo"]);
    play.state.permissions.push(wider.clone());
    assert_eq!(becomes(&mut play, "exec", &line("cargo run")), RUNS);
    assert!(refusal(&mut play, "exec", &line("cargo test")).is_some());
    play.answer("done", &[]);
    play.may_approve = false;
    play.say("test it");
    assert!(refusal(&mut play, "exec", &line("cargo test")).is_some(), "rights only ever allow more");
    play.answer("done", &[]);
    play.may_approve = true;
    play.approve(1);
    assert!(refusal(&mut play, "exec", &line("cargo test")).is_some(), "an approved plan is a yes, too");
    play.answer("done", &[]);
    // It is revoked as any other, by its id.
    let rule_id = Some(prefix(&["cargo", "test"]).denied().id());
    assert_eq!(play.command(ChatCommand::ForgetPermissions { rule_id }), ["permissions_forgotten"]);
    assert_eq!(play.state.permissions, [wider]);
}

#[test]
fn of_two_rules_for_the_same_calls_the_last_one_is_there() {
    let mut play = granted("exec", &line("cargo test"));
    play.answer("done", &[]);
    play.may_approve = false;
    play.say("go");
    assert_eq!(calls(&mut play, "exec", &line("cargo test")), ASKS);
    decide(&mut play, PermissionOutcome::Declined, true, None);
    assert_eq!(play.state.permissions, [prefix(&["cargo", "test"]).denied()]);
}

#[test]
fn rules_that_deny_stay_where_the_chat_has_too_many() {
    let mut play = denied("exec", &line("cargo test"));
    for number in 0..100 {
        assert_eq!(calls(&mut play, "exec", &line(&format!("make {number}"))), ASKS);
        decide(&mut play, PermissionOutcome::Approved, true, None);
        play.tool("done");
    }
    assert_eq!(play.state.permissions.len(), 100);
    assert_eq!(play.state.permissions[..2], [prefix(&["cargo", "test"]).denied(), prefix(&["make", "1"])]);
}

#[test]
fn a_chat_that_has_only_rules_that_deny_takes_no_further_one() {
    let mut play = with(|_| {});
    play.say("go");
    let rules: Vec<_> = (0..100).map(|number| prefix(&["make", &number.to_string()]).denied()).collect();
    play.state.permissions.clone_from(&rules);
    assert_eq!(calls(&mut play, "exec", &line("cargo test")), ASKS);
    for outcome in [PermissionOutcome::Approved, PermissionOutcome::Declined] {
        assert_eq!(decide(&mut play, outcome, true, None), ["failed CONFLICT"], "{outcome:?}");
    }
    assert_eq!(play.state.permissions, rules, "none is dropped");
    assert_eq!(decide(&mut play, PermissionOutcome::Approved, false, None)[1..], [RUNS], "it is still open");
}

#[test]
fn a_chat_that_has_only_rules_that_deny_takes_the_one_that_allows_the_same() {
    let mut play = with(|_| {});
    play.say("go");
    assert_eq!(calls(&mut play, "exec", &line("make 7")), ASKS);
    // They were granted while it was open.
    play.state.permissions = (0..100).map(|number| prefix(&["make", &number.to_string()]).denied()).collect();
    assert_eq!(decide(&mut play, PermissionOutcome::Approved, true, None)[1..], [RUNS]);
    assert_eq!((play.state.permissions.len(), play.state.permissions.last()), (100, Some(&prefix(&["make", "7"]))));
}

#[test]
fn a_decision_whose_parts_do_not_fit_changes_nothing() {
    let mut play = with(|_| {});
    play.say("go");
    calls(&mut play, "exec", &line("cargo test && cargo run"));
    let long = "x".repeat(1_001);
    use PermissionOutcome::{Approved, Declined};
    for (outcome, always, reason) in [
        (Approved, true, None),
        (Declined, true, None),
        (PermissionOutcome::Cancelled, true, None),
        (Approved, false, Some("why not")),
        (Declined, false, Some("  ")),
        (Declined, false, Some(long.as_str())),
    ] {
        assert_eq!(decide(&mut play, outcome, always, reason), ["failed INVALID_ARGUMENT"], "{outcome:?} {always}");
    }
    assert_eq!(decide(&mut play, Approved, false, None)[1..], [RUNS], "it is still open");
}

proptest! {
    /// A line that a shell may take for more than its words is asked about, under any rule.
    #[test]
    fn a_rule_never_covers_a_line_that_is_not_plain(
        before in "[a-z ./=-]{0,12}",
        sign in prop::sample::select("'\"$`;|&<>(){}[]*?~#!\\\n\r\u{0}\u{a0}\u{202e}".chars().collect::<Vec<_>>()),
        after in "[a-z $;|./=-]{0,12}",
        start in prop::sample::select(vec!["", "cargo test ", "make "]),
    ) {
        let whole = format!("{start}{before}{sign}{after}");
        let exact: Vec<&str> = whole.split_whitespace().collect();
        let begin: Vec<&str> = exact.iter().take(2).copied().collect();
        let granted = [prefix(&["cargo", "test"]), one(&["make"])];
        let made_up = [prefix(&begin), prefix(&[]), one(&exact), one(&[whole.as_str()])];
        let rules = [&granted[..], &made_up].concat();
        let decision = gate(Mode::Chat, &line(&whole), &rules);
        prop_assert!(matches!(decision, GateDecision::Ask { always: None, .. }), "{whole:?}: {decision:?}");
    }

    /// A call is covered by the rule that it offers.
    #[test]
    fn a_rule_covers_the_call_that_it_was_granted_for(
        call in "[a-zA-Z0-9_./:=,+@%^-]{1,8}( [a-zA-Z0-9_./:=,+@%^-]{1,8}){0,3}",
    ) {
        if let Some(rule) = offered(&line(&call)) {
            prop_assert_eq!(gate(Mode::Chat, &line(&call), &[rule]), GateDecision::Permit);
        } else {
            prop_assert!(call.split(' ').next().is_some_and(|program| program.contains('=')), "{}", call);
        }
    }
}
