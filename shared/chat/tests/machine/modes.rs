//! Modes: the agent's rights in them, its text about them, and the people who may widen them (spec 000 §4).

use crate::play::{Play, ask};
use domain::{
    AnswerFormat, ChatCommand, ChatConfig, ChatEvent, LabelChanges, Mode, ModelSettings, Principal, TurnWishes,
    event::PermissionOutcome,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tools::{Commands, Registry};

fn with(change: impl FnOnce(&mut ChatConfig)) -> Play {
    let mut play = Play::with(change);
    play.machine.tools = Arc::new(Registry::builtin().with_commands(Commands::default()));
    play
}

fn exec() -> (&'static str, Value) {
    ("exec", json!({ "command": "make" }))
}

fn configure(mode: Mode, may_approve: bool) -> ChatCommand {
    let (title, model, model_settings, mode, labels) = (None, None, None, Some(mode), LabelChanges::default());
    ChatCommand::Configure { title, model, model_settings, mode, may_approve, session: None, options: None, labels }
}

#[test]
fn in_plan_mode_every_tool_that_writes_writes_plan_files_only() {
    let chat = Play::new().config.chat;
    let (own, source) = (format!("/chats/{chat}/notes.md"), "/projects/main.rs");
    let plan = |path: Value| json!({ "title": "t", "steps": ["one"], "path": path });
    let refused = [
        ("plan_write", plan(json!(source))),
        ("plan_write", plan(json!("/system/skills/x/plan.md"))),
        ("plan_write", plan(json!("/chats/00000000-0000-0000-0000-000000000009/plan.md"))),
        ("plan_update_step", json!({ "step": 1, "status": "done", "path": source })),
        ("write", json!({ "path": source, "content": "x" })),
        ("write", json!({ "path": format!("/chats/{chat}.md"), "content": "x" })),
        ("edit", json!({ "path": source, "edits": [{ "old": "a", "new": "b" }] })),
        ("mkdir", json!({ "path": "/projects/new" })),
        ("mv", json!({ "from": own, "to": source })),
        ("mv", json!({ "from": source, "to": own })),
        ("rm", json!({ "path": source })),
        ("rm", json!({ "path": own })),
    ];
    for (tool, args) in refused {
        let mut play = with(|config| config.mode = Mode::Plan);
        play.say("plan");
        let happened = play.answer("", &[(tool, args.clone())]);
        assert!(happened[3].starts_with("observed false: not permitted:"), "{tool} {args}: {happened:?}");
    }
    // The effects of a call with arguments that its tool does not take are unknown; it does not run in any mode.
    let not_understood = [
        ("plan_write", plan(json!(["/projects/plan.md", source]))),
        ("write", json!({ "content": "x" })),
        ("write", json!({ "path": own, "content": "x", "also": source })),
        ("write", json!({ "path": "../main.rs", "content": "x" })),
        ("read", json!({ "file": own })),
    ];
    for mode in [Mode::Plan, Mode::Chat] {
        for (tool, args) in &not_understood {
            let mut play = with(|config| config.mode = mode);
            play.say("plan");
            let happened = play.answer("", &[(*tool, args.clone())]);
            assert!(happened[3].starts_with("observed false: Error (INVALID_ARGUMENT)"), "{tool} {args}: {happened:?}");
        }
    }
    let permitted = [
        ("plan_write", plan(Value::Null)),
        ("plan_write", plan(json!("/content/campaign-plan.md"))),
        ("plan_update_step", json!({ "step": 1, "status": "done", "path": "/projects/app/plan.md" })),
        ("write", json!({ "path": own, "content": "x" })),
        ("edit", json!({ "path": own, "edits": [{ "old": "a", "new": "b" }] })),
        ("read", json!({ "path": source })),
    ];
    for (tool, args) in permitted {
        let mut play = with(|config| config.mode = Mode::Plan);
        play.say("plan");
        assert_eq!(play.answer("", &[(tool, args.clone())])[2..], [format!("call {tool} 1")], "{args}");
    }
}

#[test]
fn a_plan_that_was_made_of_a_source_file_is_not_written_in_plan_mode() {
    let mut play = with(|config| config.mode = Mode::Plan);
    play.say("plan");
    play.answer("", &[("read", json!({ "path": "/a" }))]);
    let step = ChatEvent::PlanStep {
        step: 1,
        status: "done".into(),
        title: "t".into(),
        plan_path: "/projects/main.rs".parse().unwrap_or_else(|_| domain::FilePath::root()),
        plan_id: None,
        done: 0,
        total: 1,
    };
    play.tool_ends(tools::CallOutcome {
        output: "read".into(),
        success: true,
        truncated: false,
        result: Value::Null,
        error: None,
        resources: None,
        seen: vec![],
        events: vec![step],
    });
    let happened = play.answer("", &[("plan_write", json!({ "title": "t", "steps": ["one"] }))]);
    assert!(happened[3].starts_with("observed false: not permitted:"), "{happened:?}");
}

#[test]
fn the_model_is_told_its_mode_and_offered_what_it_may_do() {
    let told = |play: &Play| play.request.as_ref().map(|request| request.system.to_string()).unwrap_or_default();
    let mut play = with(|config| config.mode = Mode::Plan);
    play.say("plan");
    let first = told(&play);
    assert!(first.starts_with("You are a test.\n\n# Your mode: plan\n"), "{first}");
    let offered = play.offered();
    for tool in ["exec", "mkdir", "mv", "rm"] {
        assert!(!offered.contains(&tool.to_owned()), "{tool} is denied in plan mode");
    }
    for tool in ["read", "grep", "ask_user", "write", "edit", "plan_write", "plan_update_step"] {
        assert!(offered.contains(&tool.to_owned()), "{tool} may be called in plan mode");
    }
    play.answer("planned", &[]);
    play.say("more");
    assert!(first.ends_with("\n\nToday is 1970-01-01 (UTC)."), "{first}");
    assert_eq!((told(&play), play.offered()), (first, offered), "the same bytes as long as mode and day are the same");
    play.answer("planned", &[]);
    play.now += 24 * 3_600_000;
    play.approve(1);
    assert!(told(&play).contains("# Your mode: build") && told(&play).ends_with("Today is 1970-01-02 (UTC)."));
    assert!(play.offered().contains(&"exec".to_owned()));
}

#[test]
fn a_mode_in_which_an_agent_may_do_more_needs_the_right_to_approve() {
    for (now, wanted, may_approve, happens) in [
        (Mode::Plan, Mode::Chat, false, "failed FORBIDDEN"),
        (Mode::Plan, Mode::Build, false, "failed FORBIDDEN"),
        (Mode::Chat, Mode::Build, false, "failed FORBIDDEN"),
        (Mode::Chat, Mode::Build, true, "failed INVALID_ARGUMENT"),
        (Mode::Plan, Mode::Chat, true, "mode_changed"),
        (Mode::Chat, Mode::Plan, false, "mode_changed"),
        (Mode::Build, Mode::Chat, false, "mode_changed"),
        (Mode::Build, Mode::Plan, false, "mode_changed"),
    ] {
        let mut play = with(|config| config.mode = now);
        play.say("go");
        assert_eq!(play.command(configure(wanted, may_approve)), [happens], "{now:?} {wanted:?} {may_approve}");
        let by = play.log.iter().find_map(|event| match event {
            ChatEvent::ModeChanged { by, at, .. } => Some((by.clone(), at.is_some())),
            _ => None,
        });
        let known = (happens == "mode_changed").then(|| (Some(Principal::local().to_string()), true));
        assert_eq!(by, known, "the person and the time are kept");
    }
}

#[test]
fn build_mode_without_an_approved_plan_asks_before_each_command() {
    let mut play = with(|config| config.mode = Mode::Build);
    play.say("go");
    assert_eq!(play.answer("", &[exec()])[2..], ["permission_required"]);
}

#[test]
fn an_approval_is_kept_and_holds_until_the_mode_changes() {
    let mut play = with(|_| {});
    play.approve(3);
    let approval = play.state.approval.clone().map(|approval| (approval.v, approval.by.clone()));
    assert_eq!(approval, Some((3, Principal::local().to_string())));
    play.answer("", &[exec()]);
    play.plan_is(None);
    play.crash();
    play.tool("made");
    assert_eq!(play.state.approval.as_ref().map(|approval| approval.v), Some(3), "it outlives a crash");
    play.command(configure(Mode::Chat, false));
    assert_eq!(play.state.approval, None);
    assert_eq!(play.answer("", &[exec()])[2..], ["permission_required"]);
}

#[test]
fn a_plan_that_changed_is_asked_about_again() {
    let mut play = with(|_| {});
    play.approve(3);
    assert_eq!(play.answer("", &[exec()]), ["assistant:  -> exec", "used"], "first the plan is looked at");
    assert_eq!(play.plan_is(Some("the plan has changed")), ["permission_required"]);
    let reason = play.log.iter().find_map(|event| match event {
        ChatEvent::PermissionRequired { reason, category, .. } => Some((category.clone(), reason.clone())),
        _ => None,
    });
    let wanted = "the plan has changed; it wants to run a command: make";
    assert_eq!(reason, Some(("command".to_owned(), wanted.to_owned())));
    let decide = ChatCommand::Decide {
        permission_id: play.permission(),
        outcome: PermissionOutcome::Approved,
        always: false,
        reason: None,
        option_id: None,
    };
    assert_eq!(play.command(decide)[1..], ["call exec 1"]);
    play.tool("made");
    play.answer("", &[exec()]);
    assert_eq!(play.plan_is(Some("the plan has changed")), ["permission_required"], "the answer was for one command");
}

#[test]
fn people_without_the_right_to_approve_have_no_command_run_in_a_chat_whose_plan_is_approved() {
    let mut play = with(|_| {});
    play.approve(3);
    // It waits for the turn of the approval to end, and is still a message of somebody who may not approve.
    play.say("and run what I say");
    play.answer("", &[exec()]);
    assert_eq!(play.plan_is(None), ["call exec 1"]);
    play.tool("made");
    play.answer("done", &[]);
    assert_eq!(play.answer("", &[exec()])[2..], ["permission_required"]);
    play.crash();
    assert_eq!(play.state.turn.as_ref().map(|turn| turn.may_approve), Some(false));
}

#[test]
fn an_answer_of_somebody_who_may_not_approve_has_no_command_run_unasked() {
    for may_approve in [true, false] {
        let mut play = with(|_| {});
        play.approve(3);
        play.answer("", &[ask(), exec()]);
        let (question_id, answers) = (play.question(), Map::from_iter([("colour".to_owned(), json!("red"))]));
        let told = play.command(ChatCommand::Answer { question_id, answers, may_approve, may_not_run: false });
        let asks = told.iter().any(|word| word == "permission_required");
        assert_eq!(asks, !may_approve, "the command that was called along with the question: {told:?}");
        let right = play.state.turn.as_ref().map(|turn| turn.may_approve);
        assert_eq!(right, Some(may_approve), "and those that follow");
        if may_approve {
            assert_eq!(play.plan_is(None), ["call exec 1"]);
        }
    }
}

#[test]
fn a_look_at_the_plan_survives_a_crash_and_gives_way_to_a_stop() {
    let mut play = with(|_| {});
    play.approve(3);
    play.answer("", &[exec()]);
    assert_eq!(play.crash(), ["turn_started 2"]);
    assert_eq!(play.plan_is(None), ["call exec 1"]);
    play.tool("made");
    play.answer("", &[exec()]);
    let stopped = play.stop();
    assert_eq!(stopped[..2], ["call exec 1", "observed false: not run: the turn was stopped"]);
    assert_eq!(stopped.last().map(String::as_str), Some("stopped user_cancelled: "));
}

#[test]
fn a_persona_has_the_tools_that_it_lists_and_no_others() {
    let mut play = with(|config| config.tools = Some(vec!["read".into(), "exec".into()]));
    play.say("go");
    assert_eq!(play.offered(), ["read", "exec"]);
    let happened =
        play.answer("", &[("write", json!({ "path": "/a", "content": "x" })), ("read", json!({ "path": "/a" }))]);
    assert!(happened[3].contains("there is no tool \"write\""), "{happened:?}");
    assert_eq!(happened[4], "call read 1");
}

#[test]
fn a_tool_with_globs_touches_no_path_that_none_of_them_means() {
    let tools = ["read", "write(/**/{review.md,*-review.md})", "write(/content/**)", "mv(/projects/**)"];
    let mut play = with(|config| config.tools = Some(tools.map(str::to_owned).to_vec()));
    play.say("go");
    assert_eq!(play.offered(), ["read", "write", "mv"], "one entry for each, however many globs it has");
    let specs = play.request.as_ref().map(|request| request.tools.clone()).unwrap_or_default();
    let known = play.machine.tools.spec("read").cloned();
    assert!(known.is_some_and(|known| Arc::ptr_eq(&known, &specs[0])), "one that is told of as it is, is not copied");
    let write = specs.iter().find(|spec| spec.name == "write").map(|spec| spec.description.clone()).unwrap_or_default();
    assert!(write.ends_with(" Here it works at /**/{review.md,*-review.md}, /content/** only."), "{write}");
    let write = |path: &str| ("write", json!({ "path": path, "content": "x" }));
    let mv = |from: &str, to: &str| ("mv", json!({ "from": from, "to": to }));
    for (call, runs) in [
        (write("/review.md"), true),
        (write("/projects/app/login-review.md"), true),
        (write("/content/a/b.md"), true),
        (write("/projects/app/main.rs"), false),
        (write("/projects/app/xreview.md"), false),
        (mv("/projects/a", "/projects/b"), true),
        (mv("/projects/a", "/data/a"), false),
        (mv("/data/a", "/projects/a"), false),
        (("read", json!({ "path": "/data/a" })), true),
    ] {
        let mut play = with(|config| config.tools = Some(tools.map(str::to_owned).to_vec()));
        play.say("go");
        let happened = play.answer("", std::slice::from_ref(&call));
        let (last, refused) =
            (happened.last().cloned().unwrap_or_default(), happened.iter().any(|word| word.contains("may not use")));
        assert_eq!((last.starts_with("call "), refused), (runs, !runs), "{call:?}: {happened:?}");
    }
}

#[test]
fn another_model_is_asked_from_its_choice_on_and_nothing_else_changes() {
    let mut play = Play::new();
    play.say("go");
    play.answer("Well:", &[ask()]);
    let before = play.request.clone().unwrap();
    let fast = Some("other/fast".to_owned());
    // An actor takes a command in while none of its work runs: the turn waits for a person here.
    let question_id = play.question();
    let (title, session, options) = (None, None, None);
    play.command(ChatCommand::Configure {
        title,
        model: fast.clone(),
        model_settings: None,
        mode: None,
        may_approve: false,
        session,
        options,
        labels: LabelChanges::default(),
    });
    let answers = Map::from_iter([("colour".to_owned(), json!("red"))]);
    play.command(ChatCommand::Answer { question_id, answers, may_approve: false, may_not_run: false });
    let after = play.request.clone().unwrap();
    assert_eq!((before.model, after.model), (None, fast));
    assert_eq!((&after.system, &after.tools), (&before.system, &before.tools));
    assert!(after.messages.starts_with(&before.messages), "{:?}", after.messages);
    assert_eq!(play.answer("Red.", &[])[2..], ["done EndTurn: Red."]);
}

#[test]
fn the_model_is_asked_with_the_settings_of_the_chat_until_others_are_chosen() {
    let settings = |temperature, max_output_tokens| ModelSettings { temperature, top_p: None, max_output_tokens };
    let asked = |play: &Play| {
        let request = play.request.clone().unwrap();
        (request.temperature, request.top_p, request.max_tokens)
    };
    let mut play = Play::with(|config| config.model_settings = settings(Some(0.2), Some(500)));
    play.say("go");
    assert_eq!(asked(&play), (Some(0.2), None, Some(500)));
    play.answer("Done.", &[]);
    let (title, model, mode, session, options) = (None, None, None, None, None);
    let model_settings = Some(settings(None, Some(9)));
    let (may_approve, labels) = (false, LabelChanges::default());
    let configure =
        ChatCommand::Configure { title, model, model_settings, mode, may_approve, session, options, labels };
    assert_eq!(play.command(configure), ["configured"]);
    play.say("again");
    assert_eq!(asked(&play), (None, None, Some(9)), "in the place of all that it had");

    let mut agent = Play::agent(&[("ls", None)]);
    agent.config.model_settings = settings(Some(0.2), Some(500));
    agent.say("go");
    assert_eq!(asked(&agent), (Some(0.25), Some(0.5), Some(77)), "the agent of a flow has those of its node alone");
}

/// A message with wishes.
fn wish(play: &mut Play, content: &str, wished: TurnWishes) {
    let mut words = play.words(content, false);
    if let ChatCommand::StartTurn(request) = &mut words {
        request.wishes = Some(Box::new(wished));
    }
    play.command(words);
}

#[test]
fn the_settings_of_a_message_count_from_its_own_turn_on() {
    let settings = |temperature, max_output_tokens| ModelSettings { temperature, top_p: None, max_output_tokens };
    let asked = |play: &Play| {
        let request = play.request.clone().unwrap();
        (request.temperature, request.max_tokens)
    };
    let mut play = Play::with(|config| config.model_settings = settings(Some(0.2), Some(500)));
    play.say("go");
    for settings in [settings(Some(0.9), None), settings(None, Some(9))] {
        wish(&mut play, "more", TurnWishes { settings, format: None });
    }
    assert_eq!(asked(&play), (Some(0.2), Some(500)));
    play.answer("Done.", &[]);
    assert_eq!(asked(&play), (Some(0.9), Some(500)), "the second message has not begun");
    play.answer("Done.", &[]);
    assert_eq!(asked(&play), (Some(0.9), Some(9)), "a setting that it leaves out stays");
}

#[test]
fn an_answer_fits_the_format_of_its_message_or_the_turn_fails() {
    let schema = Arc::new(json!({ "type": "object", "required": ["a"] }));
    let format = |strict| Some(AnswerFormat { name: Some("n".into()), schema: schema.clone(), strict });
    for (strict, answer, end) in [
        (true, r#"{"a": 1}"#, "done EndTurn"),
        (false, "```json\n{\"a\": 1}\n```", "done EndTurn"),
        (false, r#"{"b": 1}"#, "done Error"),
        (true, "I cannot.", "done Error"),
    ] {
        let mut play = Play::new();
        wish(&mut play, "go", TurnWishes { format: format(strict), ..TurnWishes::default() });
        let asked = play.request.clone().unwrap().schema;
        assert_eq!(asked, strict.then(|| schema.clone()), "{answer}");
        let said = play.answer(answer, &[]);
        assert!(said.last().unwrap().starts_with(end), "{said:?}");
        play.say("go on");
        assert_eq!(play.request.clone().unwrap().schema, None, "the next message has none");
    }
    let mut play = Play::new();
    wish(&mut play, "go", TurnWishes { format: format(true), ..TurnWishes::default() });
    play.answer("I look.", &[("ls", json!({ "path": "/" }))]);
    play.tool("x");
    play.answer("", &[]);
    assert_eq!(play.answer("", &[])[1..], ["failed UNPROCESSABLE", "done Error: I look."], "no earlier words answer");
}
