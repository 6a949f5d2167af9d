//! The chat of a task's agent: each turn is reported once, however it ends, and the agent has the tools of its node only.

use crate::play::{Play, ask, ls};
use actor::{Input, Machine, StopRequest, StopTarget};
use buildscale_chat::{ChatEffect, ChatMachine};
use domain::{
    AgentTool, AgentToolRuns, ChatCommand, ChatEvent, Code, Error, Mode, Principal, Status, StopId, TaskId, Timestamp,
    event::PermissionOutcome, task::AgentAnswer,
};
use serde_json::{Map, Value, json};
use std::time::Duration;
use uuid::Uuid;

fn agent() -> Play {
    Play::agent(&[("ls", None), ("ask_user", None), ("write", None)])
}

/// The one report that there is, and why its turn ended.
#[track_caller]
fn only(play: &Play, reason: &str) -> AgentAnswer {
    let [report] = play.reports.as_slice() else { panic!("{:?}", play.reports) };
    assert_eq!(report.stop_reason, reason);
    report.clone()
}

fn failed(error: Error) -> tools::CallOutcome {
    error.into()
}

#[test]
fn s3_2_a_turn_of_an_agent_is_reported_when_it_ends() {
    let mut play = agent();
    play.say("look");
    play.answer("I look.", &[ls(), ls(), ls()]);
    play.now += 500;
    play.tool("a.md");
    play.tool_ends(failed(Error::not_found("file", "/x")));
    play.tool_ends(failed(Error::invalid("path", "no")));
    assert_eq!(play.reports, []);
    play.answer("A file.", &[]);
    let report = only(&play, "end_turn");
    assert_eq!((report.round, report.text.as_str(), report.steps, report.error), (1, "A file.", 2, None));
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (20, 10));
    let told: Vec<_> = report.tools.iter().map(|used| (used.status, used.duration_ms)).collect();
    assert_eq!(told, [(Status::Success, 510), (Status::Partial, 10), (Status::Failure, 10)], "§3.4");
    assert_eq!((report.tools[0].tool.as_str(), report.tools[0].args.as_str()), ("ls", r#"{"path":"/"}"#));
    assert_eq!(report.tools[0].output, "a.md");

    play.say("again");
    play.answer("Yes.", &[]);
    let Some(second) = play.reports.get(1) else { panic!("no second report") };
    assert_eq!((second.round, second.steps, second.tools.len()), (2, 1, 0), "each turn by itself");
}

#[test]
fn limits_and_failures_are_reported_with_their_reason() {
    let mut play = agent();
    play.config.limits.max_steps = 1;
    play.say("go");
    play.answer("Working.", &[ls()]);
    play.tool("x");
    let report = only(&play, "step_limit");
    assert_eq!((report.text.as_str(), report.error, report.tools.len()), ("Working.", None, 1));

    let mut play = agent();
    play.say("go");
    play.streamed("half");
    play.fail(Code::UpstreamUnavailable);
    let report = only(&play, "error");
    assert_eq!((report.text.as_str(), report.error.map(|error| error.code)), ("half", Some(Code::UpstreamUnavailable)));

    let mut play = agent();
    play.config.limits.max_steps = 0;
    play.say("go");
    assert_eq!(only(&play, "step_limit").steps, 0, "it ends in the step that makes the chat");

    let mut play = agent();
    play.config.context_tokens = 50;
    play.say("go");
    play.answer("ok", &[]);
    play.say(&"x".repeat(1_000));
    assert_eq!(play.reports.len(), 2);
    let error = play.reports[1].error.as_ref().map(|error| error.code);
    assert_eq!((play.reports[1].stop_reason.as_str(), error), ("context_limit", Some(Code::LimitReached)));
}

#[test]
fn a_stop_is_reported_wherever_it_meets_the_turn() {
    let stop = |play: &mut Play| {
        // As a task does it: around the mailbox, and through it. Both are one stop.
        let stop_id = StopId(play.id());
        play.stop_again(stop_id, StopTarget::First);
        play.command(ChatCommand::Stop { stop_id, turn_id: None });
    };
    let mut play = agent();
    play.say("go");
    play.streamed("half");
    stop(&mut play);
    assert_eq!(only(&play, "stopped").text, "half");

    let mut play = agent();
    play.say("go");
    play.answer("", &[ls(), ls()]);
    stop(&mut play);
    assert_eq!(play.reports, [], "the tool completes");
    play.tool("x");
    let told: Vec<_> = only(&play, "stopped").tools.iter().map(|used| used.status).collect();
    assert_eq!(told, [Status::Success, Status::Partial]);

    let mut play = agent();
    play.say("go");
    play.answer("", &[ask()]);
    assert_eq!(play.reports, [], "it waits for a person, and the task waits for it");
    stop(&mut play);
    only(&play, "stopped");
    stop(&mut play);
    assert_eq!(play.reports.len(), 1);
}

#[test]
fn a_task_stops_its_agent_also_where_the_clock_was_set_back_meanwhile() {
    let mut play = agent();
    play.say("go");
    play.streamed("half");
    let (stop_id, target, at) = (StopId(play.id()), StopTarget::First, Timestamp::default());
    play.input(Input::Stop(StopRequest { stop_id, target, at, reason: "the task was stopped".into() }));
    assert_eq!(only(&play, "stopped").text, "half");
}

#[test]
fn a_task_is_told_that_its_agent_waits_for_people_and_goes_on() {
    // The newest first: whether something is asked, and in which round.
    let told = |play: &Play| -> Vec<(bool, u64)> {
        let commands = play.scheduled.iter().filter(|message| message["command"] == "agent_waits");
        commands.map(|told| (told.get("asked").is_some(), told["round"].as_u64().unwrap_or(0))).collect()
    };
    let mut play = agent();
    play.say("go");
    play.answer("", &[ask()]);
    assert_eq!(told(&play), [(true, 1)]);
    assert_eq!(play.scheduled[0]["asked"]["question_id"], json!(play.question()));
    let question_id = play.question();
    let answers = Map::from_iter([("colour".to_owned(), json!("red"))]);
    play.command(ChatCommand::Answer { question_id, answers, may_approve: false, may_not_run: false });
    assert_eq!(told(&play), [(false, 1), (true, 1)]);
    play.answer("ok", &[]);
    assert_eq!((play.reports.len(), told(&play).len()), (1, 2), "its report says that the turn is over");

    let mut play = Play::new();
    play.say("go");
    play.answer("", &[ask()]);
    assert!(told(&play).is_empty(), "a chat of people tells nobody");
}

#[test]
fn a_task_is_told_that_the_request_of_its_agent_was_declined() {
    for (outcome, declined) in [(PermissionOutcome::Approved, Value::Null), (PermissionOutcome::Declined, json!(true))]
    {
        let mut play = agent();
        play.say("go");
        play.answer("", &[("write", json!({ "path": "/system/x", "content": "x" }))]);
        assert_eq!(play.scheduled[0]["asked"]["permission_id"], json!(play.permission()));
        let permission_id = play.permission();
        play.command(ChatCommand::Decide { permission_id, outcome, always: false, reason: None, option_id: None });
        let told = &play.scheduled[0];
        assert_eq!(
            (&told["command"], &told["asked"], &told["declined"]),
            (&json!("agent_waits"), &Value::Null, &declined)
        );
    }
}

#[test]
fn a_given_up_turn_is_reported() {
    let mut play = agent();
    play.say("go");
    play.answer("Look:", &[ls()]);
    assert_eq!(play.park("it panics").last().map(String::as_str), Some("stopped dropped: Look:"));
    let report = only(&play, "stopped");
    assert_eq!(report.error.map(|error| error.code), Some(Code::Paused), "no person would resume it");
    assert_eq!(play.state.paused, None);

    let mut play = agent();
    play.say("go");
    play.streamed("half");
    play.command(ChatCommand::Delete);
    assert_eq!(only(&play, "stopped").text, "half");
    play.say("and now?");
    let Some(gone) = play.reports.get(1) else { panic!("the task would wait for ever") };
    assert_eq!((gone.round, gone.error.as_ref().map(|error| error.code)), (2, Some(Code::Cancelled)));

    // One with a turn that waits can be paused; with the turn dropped, both are reported.
    let mut play = agent();
    play.say("go");
    play.say("next");
    play.park("it panics");
    assert_eq!(play.reports, []);
    play.input(Input::Unpark { drop: true });
    only(&play, "stopped");
    play.answer("ok", &[]);
    let rounds: Vec<_> = play.reports.iter().map(|report| (report.round, report.stop_reason.as_str())).collect();
    assert_eq!(rounds, [(1, "stopped"), (2, "end_turn")]);
}

#[test]
fn words_of_a_task_that_fail_before_they_are_taken_in_are_answered() {
    let mut play = agent();
    let words = play.words("go", false);
    assert_eq!(play.park_before(words, "it panicked"), [] as [&str; 0], "a chat that never began is not paused");
    let error = only(&play, "error").error.unwrap_or_else(|| panic!("no error"));
    assert_eq!((error.code, error.message.as_str()), (Code::Paused, "the turn was given up: it panicked"));
    assert!(error.hint.is_some_and(|hint| hint.contains("log of the server")));

    let mut play = agent();
    play.say("go");
    play.answer("ok", &[]);
    let words = play.words("once more", false);
    play.park_before(words, "it panicked");
    let rounds: Vec<_> = play.reports.iter().map(|report| (report.round, report.stop_reason.as_str())).collect();
    assert_eq!(rounds, [(1, "end_turn"), (2, "error")]);
    assert_eq!(play.state.paused, None);

    // A person's own chat is paused for them to see and to resume, also before it began.
    let mut play = Play::new();
    let words = play.words("go", false);
    play.park_before(words, "it panicked");
    assert_eq!((play.reports.len(), play.state.paused.as_deref()), (0, Some("it panicked")));
    let view = ChatMachine::view(&play.state).and_then(|view| view.body).unwrap_or_default();
    assert!(view.contains(r#""status":"paused""#), "{view}");
    play.input(Input::Unpark { drop: false });
    play.say("go");
    assert!(play.state.turn.is_some() && play.state.paused.is_none());
}

#[test]
fn a_crash_changes_nothing_about_what_is_reported() {
    let mut play = agent();
    play.say("go");
    play.crash();
    play.answer("Look:", &[ls()]);
    play.crash();
    play.tool("x");
    play.crash();
    play.answer("Done.", &[]);
    let report = only(&play, "end_turn");
    assert_eq!((report.steps, report.tools.len(), report.round), (2, 1, 1));
    play.crash();
    assert_eq!(play.reports.len(), 1);
}

#[test]
fn an_answer_fits_into_a_message_whatever_was_said_and_done() {
    let mut play = agent();
    play.config.context_tokens = 10_000_000;
    play.say("go");
    for _ in 0..100 {
        let long = json!({ "path": "/", "cursor": "\u{1}".repeat(5_000) });
        play.answer("", &[("ls", long), (&"tool".repeat(9_000), json!({}))]);
        play.tool(&"é\u{1}".repeat(20_000));
    }
    play.answer(&"x".repeat(100_000), &[]);
    let report = only(&play, "end_turn");
    assert_eq!((report.text.len(), report.tools.len()), (100_000, 200));
    assert!(serde_json::to_string(&report).is_ok_and(|text| text.len() < 200 * 1024));

    play.say("more");
    play.answer(&"\"".repeat(100_000), &[]);
    let report = &play.reports[1];
    assert_eq!(
        (report.stop_reason.as_str(), report.error.as_ref().map(|e| e.code)),
        ("error", Some(Code::PayloadTooLarge))
    );
    assert!(report.text.len() < 5_000);
}

fn tool(name: &str, runs: AgentToolRuns) -> AgentTool {
    AgentTool { name: name.into(), description: None, runs, root: None }
}

fn builtin(name: &str, builtin: &str, root: &str) -> AgentTool {
    AgentTool { root: root.parse().ok(), ..tool(name, AgentToolRuns::Builtin(builtin.into())) }
}

#[test]
fn s5_an_agent_has_the_tools_that_its_node_lists_and_no_others() {
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let lines = AgentToolRuns::Function {
        entrypoint: "text:lines".into(),
        description: "The lines of a text.".into(),
        parameters: parameters.clone(),
    };
    let mut play = Play::agent_with(vec![
        AgentTool { description: Some("Keeps what you found.".into()), ..builtin("keep", "write", "/") },
        builtin("read_notes", "read", "/projects/a"),
        builtin("read_data", "read", "/data"),
        tool("lines", lines),
        builtin("look", "ls", ""),
    ]);
    play.say("go");
    let Some(request) = play.request.clone() else { panic!("nothing was asked") };
    let shown: Vec<_> = request.tools.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(shown, ["keep", "read_notes", "read_data", "lines", "look"], "by its ids, in the order of the node");
    assert!(request.tools[0].description.starts_with("Keeps what you found. "));
    assert!(request.tools[1].description.ends_with("Here it works within /projects/a only."));
    assert!(request.tools[2].description.ends_with("Here it works within /data only."));
    assert_eq!(
        (request.tools[3].description.as_str(), &request.tools[3].parameters),
        ("The lines of a text.", &parameters)
    );
    assert_eq!((request.temperature, request.top_p, request.max_tokens), (Some(0.25), Some(0.5), Some(77)));

    let look = ("look", json!({ "path": "/" }));
    let happened = play.answer("", &[ls(), ask(), ("nonsense", json!({})), look]);
    assert!(happened[3].contains(r#"there is no tool "ls""#) && happened[3].contains("look"), "{happened:?}");
    assert!(!happened[3].contains("mkdir"), "it is told of its own tools: {happened:?}");
    assert!(happened[5].contains(r#"there is no tool "ask_user""#), "{happened:?}");
    assert_eq!(happened.last().map(String::as_str), Some("call look 1"));
    play.tool("x");
    play.answer("ok", &[]);
    let told: Vec<_> = only(&play, "end_turn").tools.iter().map(|used| used.status).collect();
    assert_eq!(told, [Status::Failure, Status::Failure, Status::Failure, Status::Success]);

    let mut play = Play::agent(&[]);
    play.say("go");
    assert_eq!(play.request.as_ref().map(|request| request.tools.len()), Some(0));
}

#[test]
fn tools_of_older_logs_are_built_in_ones_by_their_own_names() {
    let kept: AgentTool =
        serde_json::from_value(json!({ "name": "ls", "root": "/data" })).unwrap_or_else(|error| panic!("{error}"));
    let mut play = Play::agent_with(vec![kept]);
    play.say("go");
    let happened = play.answer("", &[("ls", json!({ "path": "/" })), ("ls", json!({}))]);
    assert!(happened[3].contains("FORBIDDEN"), "{happened:?}");
    assert_eq!(happened.last().map(String::as_str), Some("call ls 1"));
}

#[test]
fn s5_a_tool_asks_people_and_is_gated_under_whatever_name() {
    let mut play = Play::agent_with(vec![builtin("consult", "ask_user", ""), builtin("keep", "write", "")]);
    play.say("go");
    let (_, questions) = ask();
    let happened = play.answer("", &[("consult", questions), ("keep", json!({ "path": "/system/x", "content": "x" }))]);
    assert!(play.running.is_empty(), "it waits for a person: {happened:?}");
    play.by = Principal::local();
    let answers = Map::from_iter([("colour".to_owned(), json!("red"))]);
    play.command(ChatCommand::Answer { question_id: play.question(), answers, may_approve: false, may_not_run: false });
    play.command(ChatCommand::Decide {
        permission_id: play.permission(),
        outcome: PermissionOutcome::Declined,
        always: false,
        reason: None,
        option_id: None,
    });
    play.answer("ok", &[]);
    let told: Vec<_> = only(&play, "end_turn").tools.iter().map(|used| (used.tool.clone(), used.status)).collect();
    assert_eq!(told, [("consult".into(), Status::Success), ("keep".into(), Status::Partial)]);
}

#[test]
fn s10_5_a_denied_tool_is_not_shown_and_a_call_of_it_is_no_misuse() {
    let denied = AgentToolRuns::Denied { rule: "no_writes".into(), reason: Some("the week is frozen".into()) };
    let mut play = Play::agent_with(vec![tool("keep", denied), builtin("look", "ls", "")]);
    play.say("go");
    let shown = play.request.as_ref().map(|request| request.tools.len());
    assert_eq!(shown, Some(1));
    let happened = play.answer("", &[("keep", json!({})), ("look", json!({})), ls()]);
    assert!(happened[3].contains("no_writes") && happened[3].contains("frozen"), "{happened:?}");
    play.tool("x");
    play.answer("ok", &[]);
    let used = only(&play, "end_turn").tools;
    let told: Vec<_> = used.iter().map(|used| used.status).collect();
    assert_eq!(told, [Status::Partial, Status::Success, Status::Failure]);
    assert!(!used[2].output.contains("keep"), "it is not offered: {}", used[2].output);
}

#[test]
fn s5_a_confined_tool_is_refused_before_anybody_is_asked() {
    let mut play = Play::agent_with(vec![
        builtin("keep", "write", "/projects/a"),
        builtin("read", "read", "/projects/a"),
        builtin("read_data", "read", "/data"),
    ]);
    play.say("go");
    let keep = |path: &str| ("keep", json!({ "path": path, "content": "x" }));
    let read = |tool: &'static str, path: &str| (tool, json!({ "path": path }));
    let calls = [
        keep("/system/skills/x/SKILL.md"),
        read("read", "/data/c"),
        keep("/projects/a/b"),
        read("read_data", "/data/c"),
    ];
    let happened = play.answer("", &calls);
    assert!(happened[3].contains("FORBIDDEN") && happened[3].contains("/projects/a"), "{happened:?}");
    assert!(happened[5].contains("FORBIDDEN"), "the root of another tool is not its own: {happened:?}");
    assert_eq!(happened.last().map(String::as_str), Some("call keep 1"));
    play.tool("x");
    let runs = |effect: &ChatEffect| matches!(effect, ChatEffect::CallTool { call, .. } if call.tool == "read_data");
    assert!(play.running.values().any(runs));
    play.tool("x");
    play.answer("ok", &[]);
    let told: Vec<_> = only(&play, "end_turn").tools.iter().map(|used| used.status).collect();
    assert_eq!(told, [Status::Failure, Status::Failure, Status::Success, Status::Success]);
}

#[test]
fn people_are_asked_as_in_other_chats() {
    let mut play = agent();
    play.say("go");
    play.answer("", &[ask(), ("write", json!({ "path": "/system/x", "content": "x" }))]);
    play.by = Principal::local();
    play.now += 1_000;
    let answers = Map::from_iter([("colour".to_owned(), json!("red"))]);
    play.command(ChatCommand::Answer { question_id: play.question(), answers, may_approve: false, may_not_run: false });
    let decline = ChatCommand::Decide {
        permission_id: play.permission(),
        outcome: PermissionOutcome::Declined,
        always: false,
        reason: None,
        option_id: None,
    };
    play.command(decline);
    play.answer("ok", &[]);
    let report = only(&play, "end_turn");
    let told: Vec<_> = report.tools.iter().map(|used| (used.tool.as_str(), used.status, used.duration_ms)).collect();
    assert_eq!(told, [("ask_user", Status::Success, 1_010), ("write", Status::Partial, 0)]);
    assert!(report.tools[1].args.contains("/system/x"), "also of a call that never began");
}

#[test]
fn people_do_not_post_into_it_nor_change_it() {
    let mut play = agent();
    play.say("go");
    play.by = Principal::local();
    assert_eq!(play.say_with("me, too", true), ["failed CONFLICT"]);
    let configure = ChatCommand::Configure {
        title: None,
        model: Some("other".into()),
        model_settings: None,
        mode: Some(Mode::Plan),
        may_approve: true,
        session: None,
        options: None,
        labels: domain::LabelChanges::default(),
    };
    assert_eq!(play.command(configure), ["failed CONFLICT"]);
    play.answer("ok", &[]);
    assert_eq!(only(&play, "end_turn").error, None, "a person's refused command is not the agent's failure");
}

#[test]
fn it_is_on_no_list_and_its_usage_counts_for_the_workspace() {
    let mut play = agent();
    play.say("go");
    let task = TaskId(Uuid::from_u128(3));
    let view = ChatMachine::view(&play.state).unwrap_or_else(|| panic!("no view"));
    assert_eq!(view.key.pk, format!("{}/chats", play.config.workspace), "it is read like any other");
    assert_eq!(view.index.map(|index| index.pk), Some(format!("{task}/chats")));
    let body: Value = view.body.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default();
    assert_eq!(body["task_id"], json!(task));

    let done = ChatEvent::Done {
        turn_id: domain::TurnId(Uuid::nil()),
        message: String::new(),
        stop_reason: domain::StopReason::EndTurn,
        at: play.at(),
    };
    let record = ChatMachine::record(&play.state, &done).unwrap_or_else(|| panic!("no record"));
    assert_eq!(record.key.pk, format!("{}/usage", play.config.workspace));
    assert!(record.body.is_some_and(|body| body.contains(&format!(r#""task_id":"{task}""#))));

    let mut play = Play::new();
    play.say("go");
    play.now += Duration::from_secs(1).as_millis() as u64;
    play.answer("ok", &[]);
    assert_eq!(play.reports, [], "other chats report to nobody");
    let view = ChatMachine::view(&play.state).and_then(|view| view.body).unwrap_or_default();
    assert!(!view.contains("task_id"));
}
