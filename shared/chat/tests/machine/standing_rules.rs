//! Standing rules that deny: they reach calls that a rule of the chat or an approved plan lets run unasked.

use crate::{
    permissions::{ASKS, RUNS, calls, decide, denied, granted, line, prefix, refusal, with},
    play::{Play, ls},
};
use actor::Input;
use buildscale_chat::{ChatEffect, Report};
use domain::{ChatEvent, FilePath, Mode, PermissionRule, Sha256, event::PermissionOutcome};
use serde_json::json;
use std::sync::Arc;
use tools::{Commands, Registry};

/// The id under which a rule that denies these calls stands, for calls in this folder of a machine.
pub fn rule_id(rule: &PermissionRule, cwd: Option<&str>) -> String {
    let text = json!([rule.clone().denied(), cwd]).to_string();
    Sha256::of(text.as_bytes()).to_string().chars().take(16).collect()
}

/// The effect that asks the model has read that these calls are denied.
fn denies(play: &mut Play, rule: &PermissionRule) -> String {
    let (message_id, id) = (play.message_id(), rule_id(rule, None));
    let rule_ids = vec![id.clone()];
    let files = match rule {
        PermissionRule::File { path } => vec![path.clone()],
        _ => Vec::new(),
    };
    assert_eq!(play.input(Input::Report(Report::Denies { message_id, rule_ids, files })), ["denials_read"]);
    format!("not permitted: a person has denied {rule} in all chats from now on (rule {id}), and is not asked again")
}

/// Whether the effect that runs is to read the rules.
fn reads_rules(play: &Play) -> bool {
    play.running.values().any(|effect| matches!(effect, ChatEffect::CallModel { reads_rules: true, .. }))
}

#[test]
fn a_standing_rule_denies_calls_that_a_rule_of_the_chat_allows_in_the_turns_that_have_read_it() {
    let rule = prefix(&["cargo", "test"]);
    let mut play = granted("exec", &line("cargo test"));
    play.answer("done", &[]);
    play.say("again");
    let why = denies(&mut play, &rule);
    assert_eq!(refusal(&mut play, "exec", &line("cargo test --lib")), Some(why.clone()));
    play.crash();
    assert_eq!(refusal(&mut play, "exec", &line("cargo test")), Some(why), "the log has it");
    assert_eq!(calls(&mut play, "exec", &line("cargo run")), ASKS, "it is for no other call");
    decide(&mut play, PermissionOutcome::Declined, false, None);
    play.answer("done", &[]);
    play.say("and now?");
    assert_eq!(calls(&mut play, "exec", &line("cargo test")), RUNS, "the next turn has read no such rule");
}

#[test]
fn a_rule_for_a_program_that_runs_another_command_names_that_command() {
    for (command, rule) in [
        ("timeout 10 cargo test --lib", &["timeout", "10", "cargo", "test"][..]),
        ("sudo git push origin", &["sudo", "git", "push"]),
        ("env A=b nice git push", &["env", "A=b", "nice", "git", "push"]),
        ("bash deploy now", &["bash", "deploy"]),
    ] {
        assert_eq!(granted("exec", &line(command)).state.permissions, [prefix(rule)], "{command}");
    }
    for command in ["nohup ./run.sh", "sudo -i git push", "eval git push"] {
        let words = command.split(' ').map(str::to_owned).collect();
        let whole = PermissionRule::Command { words, folder: FilePath::root() };
        assert_eq!(granted("exec", &line(command)).state.permissions, [whole], "{command}");
    }
    let mut play = granted("exec", &line("timeout 10 cargo test --lib"));
    assert_eq!(calls(&mut play, "exec", &line("timeout 10 cargo test")), RUNS);
    play.tool("done");
    let asks = |play: &mut Play, command: &str| {
        assert_eq!(calls(play, "exec", &line(command)), ASKS, "{command}");
        decide(play, PermissionOutcome::Declined, false, None);
    };
    asks(&mut play, "timeout 10 rm notes");
    // An earlier version offered the first two words, which any command may follow. Such a rule allows none, and denies as before.
    let first_words = prefix(&["timeout", "10"]);
    play.state.permissions = vec![first_words.clone()];
    asks(&mut play, "timeout 10 cargo test");
    play.state.permissions = vec![first_words.clone().denied()];
    assert!(refusal(&mut play, "exec", &line("timeout 10 cargo test")).is_some());
    let mut play = granted("exec", &line("timeout 10 cargo test"));
    play.answer("done", &[]);
    play.say("again");
    let why = denies(&mut play, &first_words);
    assert_eq!(refusal(&mut play, "exec", &line("timeout 10 cargo test")), Some(why), "also in all chats");
}

#[test]
fn a_standing_rule_denies_calls_that_an_approved_plan_lets_run() {
    let mut play = with(|_| {});
    play.approve(1);
    let why = denies(&mut play, &prefix(&["git", "push"]));
    assert_eq!(refusal(&mut play, "exec", &line("git push origin")), Some(why));
    play.answer("", &[("exec", line("git status"))]);
    assert_eq!(play.plan_is(None), [RUNS], "the plan allows the others");
}

#[test]
fn a_standing_rule_for_a_file_denies_commands_that_keep_it_or_a_folder_around_it() {
    let mut play = with(|_| {});
    play.approve(1);
    let why = denies(&mut play, &PermissionRule::File { path: "/projects/app/plan.md".parse().unwrap() });
    let keep = |to: &str| json!({ "command": "make", "keep": [{ "from": "out", "to": to }] });
    for to in ["/projects/app/plan.md", "/projects/app", "/projects"] {
        assert_eq!(refusal(&mut play, "exec", &keep(to)), Some(why.clone()), "{to}");
    }
    play.answer("", &[("exec", keep("/projects/app/src"))]);
    assert_eq!(play.plan_is(None), [RUNS], "the plan allows the others");

    let rule = PermissionRule::File { path: "/projects/app/plan.md".parse().unwrap() };
    let mut older = with(|_| {});
    older.approve(1);
    let (message_id, rule_ids) = (older.message_id(), vec![rule_id(&rule, None)]);
    older.input(Input::Report(Report::Denies { message_id, rule_ids, files: Vec::new() }));
    assert_eq!(refusal(&mut older, "exec", &keep("/projects/app/plan.md")), Some(why), "a log without the files");
}

#[test]
fn a_rule_that_denies_refuses_each_line_with_its_command_and_no_other_line() {
    let with_it = [
        line("cargo test && git push"),
        line("git push 2>&1 | tail -3"),
        line("A=b git push $REMOTE"),
        json!({ "words": ["bash", "-lc", "ls; git push"] }),
        json!({ "command": "git push", "stdin": "x" }),
        line("cd /workspace && git push"),
        line("echo \"$(git push)\""),
        line("(ls; git push) | tail"),
        line("sudo -n env A=b git push"),
        line("git remote | xargs git push"),
    ];
    let without = [
        line("echo 'git push'"),
        line("git pull; git pushd"),
        line("cd app && git push"),
        line("cat <<END\ngit push\nEND"),
        line("command -v git push"),
        json!({ "command": "ls; git push", "folder": "/projects/app" }),
    ];
    let mut play = denied("exec", &line("git push"));
    for args in &with_it {
        let why = refusal(&mut play, "exec", args).unwrap_or_default();
        assert!(why.contains("has denied commands that begin with `git push`"), "{args}: {why}");
    }
    for args in &without {
        assert_eq!(calls(&mut play, "exec", args), ASKS, "{args}");
        decide(&mut play, PermissionOutcome::Declined, false, None);
    }
    let mut play = with(|_| {});
    play.approve(1);
    let why = denies(&mut play, &prefix(&["git", "push"]));
    for args in &with_it {
        assert_eq!(refusal(&mut play, "exec", args), Some(why.clone()), "{args}");
    }
    for args in &without {
        play.answer("", &[("exec", args.clone())]);
        assert_eq!(play.plan_is(None), [RUNS], "{args}");
        play.tool("done");
    }
}

#[test]
fn a_standing_rule_denies_commands_that_a_flow_lets_run() {
    let mut play = Play::agent(&[("exec", None)]);
    play.machine.tools = Arc::new(Registry::builtin().with_commands(Commands::default()));
    play.say("go");
    let why = denies(&mut play, &prefix(&["git", "push"]));
    assert_eq!(refusal(&mut play, "exec", &line("git push")), Some(why));
    assert_eq!(calls(&mut play, "exec", &line("git status")), RUNS);
}

#[test]
fn a_call_that_is_asked_about_is_left_to_the_standing_rule_itself() {
    let mut play = with(|_| {});
    play.say("go");
    denies(&mut play, &prefix(&["cargo", "test"]));
    assert_eq!(calls(&mut play, "exec", &line("cargo test")), ASKS, "it may have been revoked by now");
}

#[test]
fn standing_rules_are_read_once_per_turn_with_the_first_calls_that_they_can_cover() {
    let mut play = with(|_| {});
    play.say("go");
    assert!(reads_rules(&play));
    play.answer("", &[ls()]);
    play.tool("a.md");
    assert!(reads_rules(&play), "no rule is for a call that looks");
    calls(&mut play, "exec", &line("make"));
    decide(&mut play, PermissionOutcome::Approved, false, None);
    play.tool("made");
    assert!(!reads_rules(&play));
    play.answer("done", &[]);
    play.say("again");
    assert!(reads_rules(&play));
}

#[test]
fn a_request_whose_rule_would_be_too_long_says_that_it_cannot_be_answered_for_good() {
    let note = "can be neither always allowed nor always denied";
    let asked = |play: &Play| match play.log.last() {
        Some(ChatEvent::PermissionRequired { reason, always, .. }) => (reason.ends_with(note), always.is_some()),
        other => panic!("{other:?}"),
    };
    let mut play = with(|_| {});
    play.say("go");
    assert_eq!(calls(&mut play, "exec", &json!({ "words": ["echo", "x".repeat(2_000)] })), ASKS);
    assert_eq!(asked(&play), (true, false));
    assert_eq!(decide(&mut play, PermissionOutcome::Declined, true, None), ["failed INVALID_ARGUMENT"]);
    decide(&mut play, PermissionOutcome::Declined, false, None);
    for (args, has_rule) in [(line("echo x"), true), (line("echo x; ls"), false)] {
        assert_eq!(calls(&mut play, "exec", &args), ASKS);
        assert_eq!(asked(&play), (false, has_rule), "{args}");
        decide(&mut play, PermissionOutcome::Declined, false, None);
    }
}

#[test]
fn plan_mode_refuses_as_before_whatever_is_denied_elsewhere() {
    let mut play = with(|config| config.mode = Mode::Plan);
    play.say("plan it");
    denies(&mut play, &prefix(&["cargo", "test"]));
    let refused = refusal(&mut play, "exec", &line("cargo test"));
    assert_eq!(refused.as_deref(), Some("not permitted: in plan mode no command runs"));
}
