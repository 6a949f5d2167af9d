//! Decisions of the chat machine: turns, limits, stops, questions, permissions, crashes, and random sequences of inputs.

#![expect(clippy::unwrap_used, reason = "tests")]

mod agent;
mod authors;
mod backoff;
mod budgets;
mod commands;
mod compact;
mod executors;
mod handed_out_calls;
mod long_turns;
mod modes;
mod permissions;
mod planner;
mod play;
mod properties;
mod rights;
mod rollback;
mod scenarios;
mod session;
mod standing_rules;
mod steer;
mod thread;
mod tool_servers;

use actor::{Input, Machine, StopRequest, StopTarget};
use buildscale_chat::{ChatMachine, Report};
use domain::{
    ChatCommand, ChatEvent, Limits, Mode, Principal, StopId, Timestamp, TurnRequest, Usage, event::PermissionOutcome,
};
use play::{Play, ask, ls, tools_tokens};
use serde_json::{Map, json};

const MARKER: &str = "[System: Response was interrupted by user (user_cancelled)]";

#[test]
fn a_turn_runs_its_tools_one_after_the_other_until_the_model_ends() {
    let mut play = Play::new();
    assert_eq!(play.say("list it"), ["created", "turn_started 1", "user: list it", "model_started 1"]);
    assert_eq!(play.streamed("I will"), ["chunk"]);
    assert_eq!(play.answer("I will look.", &[ls(), ls()]), ["assistant: I will look. -> ls, ls", "used", "call ls 1"]);
    assert_eq!(play.tool("a"), ["observed true: a", "call ls 1"]);
    assert_eq!(play.tool("b"), ["observed true: b", "model_started 1"]);
    assert_eq!(play.answer("Two.", &[]), ["assistant: Two.", "used", "done EndTurn: Two."]);
    assert_eq!(play.asked[1], ["user: list it", "assistant: I will look. -> ls, ls", "tool: a", "tool: b"]);
    assert_eq!((play.state.turns, play.state.usage.input_tokens), (1, 20));
}

#[test]
fn a_step_of_a_turn_changes_nothing_of_the_view() {
    let mut play = Play::new();
    let view = |play: &Play| ChatMachine::view(&play.state).and_then(|view| view.body).unwrap_or_default();
    play.say("list it");
    let begun = view(&play);
    play.answer("I will look.", &[ls(), ls()]);
    play.tool("a");
    play.tool("b");
    assert_eq!(view(&play), begun, "it is written when the turn begins and when it ends");
    play.answer("Two.", &[]);
    assert!(view(&play).contains("\"message_count\":5"), "{}", view(&play));
}

#[test]
fn messages_that_a_model_got_once_do_not_change() {
    let mut play = Play::new();
    play.say("one");
    play.answer("1", &[ls()]);
    play.tool("x");
    play.answer("done", &[]);
    play.say("two");
    play.answer("2", &[]);
    play.say("three");
    for pair in play.asked.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "{:?} does not go on from {:?}", pair[1], pair[0]);
    }
}

#[test]
fn each_limit_ends_the_turn_with_its_reason_and_keeps_what_was_made() {
    let limits = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    let costly = Usage { input_tokens: 60, output_tokens: 40, cached_tokens: 0, cost_usd: 0.5 };
    for (limits, reason) in [
        (limits(|limits| limits.max_steps = 1), "StepLimit"),
        (limits(|limits| limits.max_tokens = 100), "TokenLimit"),
        (limits(|limits| limits.max_cost_usd = 0.5), "CostLimit"),
        (limits(|limits| limits.max_wall_ms = 15), "TimeLimit"),
    ] {
        let mut play = Play::with(|config| config.limits = limits);
        play.say("go");
        play.answer_using("Working.", &[ls()], costly);
        assert_eq!(play.tool("x"), ["observed true: x".to_owned(), format!("done {reason}: Working.")]);
        assert_eq!(play.texts(), ["user: go", "assistant: Working. -> ls", "tool: x"]);
    }
}

#[test]
fn a_stop_while_the_model_writes_keeps_the_text_and_tells_the_model() {
    let mut play = Play::new();
    play.say("go");
    play.streamed("Half a ");
    play.streamed("sentence");
    let marker = MARKER;
    assert_eq!(play.stop(), ["used", "assistant: Half a sentence", marker, "stopped user_cancelled: Half a sentence"]);
    assert!(play.running.is_empty());
    assert_eq!(play.stop(), Vec::<String>::new(), "a second stop is harmless");
    play.say("go on");
    assert_eq!(play.asked[1], ["user: go", "assistant: Half a sentence", marker, "user: go on"]);
}

#[test]
fn a_stop_without_text_adds_no_message() {
    let mut play = Play::new();
    play.say("go");
    assert_eq!(play.stop(), [MARKER, "stopped user_cancelled: "]);
}

#[test]
fn a_stop_while_a_tool_runs_lets_it_complete() {
    let mut play = Play::new();
    play.say("go");
    play.answer("Look:", &[ls(), ls()]);
    assert_eq!(play.stop(), ["stop_requested"]);
    assert_eq!(play.stop(), Vec::<String>::new());
    assert_eq!(
        play.tool("x"),
        [
            "observed true: x",
            "call ls 1",
            "observed false: not run: the turn was stopped",
            MARKER,
            "stopped user_cancelled: Look:"
        ]
    );
}

#[test]
fn a_stop_applies_to_the_turn_that_was_seen() {
    let mut play = Play::new();
    play.say("one");
    let Some(first) = play.state.turn.as_ref().map(|turn| turn.id.0) else { panic!("no turn") };
    play.answer("1", &[]);
    play.say("two");
    let stop_id = StopId(play.id());
    assert_eq!(play.stop_again(stop_id, StopTarget::This(first)), Vec::<String>::new(), "that turn has ended");
    let stop_id = StopId(play.id());
    let early =
        StopRequest { stop_id, target: StopTarget::First, at: Timestamp::default(), reason: "user_cancelled".into() };
    assert_eq!(play.input(Input::Stop(early)), Vec::<String>::new(), "it was asked for before this turn");
}

#[test]
fn questions_suspend_the_turn_until_they_are_answered() {
    let mut play = Play::new();
    play.say("ask me");
    assert_eq!(play.answer("", &[ask(), ls()]), ["assistant:  -> ask_user, ls", "used", "call ask_user 1", "asked"]);
    let question_id = play.question();
    let wrong = Map::from_iter([("colour".to_owned(), json!(7))]);
    assert_eq!(
        play.command(ChatCommand::Answer { question_id, answers: wrong, may_approve: false, may_not_run: false }),
        ["failed INVALID_ARGUMENT"]
    );
    let answers = Map::from_iter([("colour".to_owned(), json!("red"))]);
    let answer = ChatCommand::Answer { question_id, answers, may_approve: false, may_not_run: false };
    assert_eq!(play.command(answer.clone()), [r#"observed true: {"colour":"red"}"#, "call ls 1"]);
    assert_eq!(play.command(answer), Vec::<String>::new(), "the question is closed");
    play.tool("x");
    play.answer("Red.", &[]);
    assert_eq!(play.count(ChatEvent::is_terminal), 1);
}

#[test]
fn a_missing_answer_is_a_no() {
    let mut play = Play::new();
    play.say("ask me");
    play.answer("", &[ask()]);
    let Some(expire) = play.scheduled.pop() else { panic!("nothing was scheduled") };
    let Ok(expire) = serde_json::from_value::<ChatCommand>(expire) else { panic!("no command") };
    assert_eq!(play.command(expire.clone()), ["observed false: no answer came in time", "model_started 1"]);
    assert_eq!(play.command(expire), Vec::<String>::new());
}

#[test]
fn writes_to_system_need_a_permission() {
    let write = ("write", json!({ "path": "/system/skills/x/SKILL.md", "content": "x" }));
    let mut play = Play::new();
    play.say("learn");
    assert_eq!(play.answer("", std::slice::from_ref(&write)), ["assistant:  -> write", "used", "permission_required"]);
    let permission_id = play.permission();
    let decide = |outcome| ChatCommand::Decide { permission_id, outcome, always: false, reason: None, option_id: None };
    let by = Principal::local();
    assert_eq!(
        play.command(decide(PermissionOutcome::Approved)),
        [format!("Approved by {by}"), "call write 1".to_owned()]
    );
    assert_eq!(play.command(decide(PermissionOutcome::Declined)), ["decision_refused"]);
    play.tool("written");
    play.answer("", &[write]);
    let permission_id = play.permission();
    let decline = ChatCommand::Decide {
        permission_id,
        outcome: PermissionOutcome::Declined,
        always: false,
        reason: None,
        option_id: None,
    };
    let declined = play.command(decline);
    assert_eq!(declined[1..], ["observed false: not permitted: a person declined", "model_started 1"]);
    assert_eq!(play.stop().last().map(String::as_str), Some("stopped user_cancelled: "));
}

#[test]
fn plan_mode_writes_plans_only() {
    let mut play = Play::with(|config| config.mode = Mode::Plan);
    let own = format!("/chats/{}/notes.md", play.config.chat);
    play.say("plan");
    let elsewhere = ("write", json!({ "path": "/projects/a.md", "content": "x" }));
    let happened = play.answer("", &[elsewhere, ("write", json!({ "path": own, "content": "x" }))]);
    assert!(happened[3].starts_with("observed false: not permitted: in plan mode"), "{happened:?}");
    assert_eq!(happened[4], "call write 1");
}

#[test]
fn a_message_while_a_turn_waits_begins_when_it_ends_or_ends_it() {
    let mut play = Play::new();
    play.say("ask me");
    play.answer("", &[ask()]);
    assert_eq!(play.say("later"), ["turn_queued"]);
    let happened = play.say_with("now", true);
    assert_eq!(
        happened,
        [
            "turn_queued",
            "observed false: not run: the turn was stopped",
            "[System: Response was interrupted (interrupted)]",
            "stopped interrupted: ",
            "turn_started 1",
            "user: now",
            "model_started 1"
        ]
    );
    assert_eq!(play.answer("ok", &[])[2..], ["done EndTurn: ok", "turn_started 1", "user: later", "model_started 1"]);
    play.answer("ok", &[]);
    assert_eq!(play.count(ChatEvent::is_terminal), 3);
}

/// Logs and snapshots have been written so since the first version.
#[test]
fn an_event_names_the_message_alone_that_goes_first_and_a_snapshot_says_of_each_whether_it_does() {
    let mut play = Play::new();
    play.say("go");
    play.say("later");
    play.say_with("now", true);
    let queued = play.log.iter().filter(|event| matches!(event, ChatEvent::TurnQueued(_)));
    let queued: Vec<_> = queued.map(|event| json!(event).get("next").cloned()).collect();
    assert_eq!(queued, [None, Some(json!(true))]);
    let snapshot = json!(play.state);
    let waits = [0_usize, 1].map(|place| [&snapshot["queued"][place]["content"], &snapshot["queued"][place]["next"]]);
    assert_eq!(waits, [[&json!("now"), &json!(true)], [&json!("later"), &json!(false)]]);
}

#[test]
fn a_crash_runs_what_was_in_flight_again_as_a_new_attempt() {
    let mut play = Play::new();
    play.say("go");
    play.streamed("half");
    assert_eq!(play.crash(), ["used", "turn_started 2", "model_started 2"], "what came before was paid for");
    play.answer("whole", &[ls()]);
    assert_eq!(play.crash(), ["turn_started 3", "call ls 2"]);
    play.tool("x");
    play.answer("end", &[]);
    assert_eq!(play.texts(), ["user: go", "assistant: whole -> ls", "tool: x", "assistant: end"]);
    assert_eq!(play.crash(), Vec::<String>::new());
    play.say("ask");
    play.answer("", &[ask()]);
    assert_eq!(play.crash(), Vec::<String>::new(), "a suspended turn waits on");
}

#[test]
fn the_part_of_an_answer_that_came_before_a_crash_or_a_stop_counts_by_an_estimate() {
    let mut play = Play::new();
    play.machine.cost =
        std::sync::Arc::new(|model, usage| if model.is_none() { usage.output_tokens as f64 } else { 0.0 });
    play.say("go");
    let estimated = play.state.turn.as_ref().map_or(0, |turn| turn.estimated);
    let message_id = play.message_id();
    play.input(Input::Report(Report::Reasoned { message_id, text: "hm. ".into() }));
    play.streamed("half");
    play.crash();
    let once = Usage { input_tokens: estimated, output_tokens: 2, cached_tokens: 0, cost_usd: 2.0 };
    assert_eq!(play.state.turn.as_ref().map(|turn| turn.usage), Some(once));
    assert_eq!(play.crash(), ["turn_started 3", "model_started 3"], "of which nothing came");
    play.streamed("half");
    play.stop();
    let both = Usage { input_tokens: 2 * estimated, output_tokens: 3, cached_tokens: 0, cost_usd: 3.0 };
    assert_eq!(play.state.usage, both);
    assert_eq!(play.count(|event| matches!(event, ChatEvent::Used { estimated: true, .. })), 2);
    let log = serde_json::to_string(&play.log).unwrap_or_default();
    assert_eq!(serde_json::from_str::<Vec<ChatEvent>>(&log).ok(), Some(play.log.clone()));

    // A usage that an effect has reported counts once.
    play.say("go on");
    play.streamed("half");
    let (message_id, usage) = (play.message_id(), Usage { output_tokens: 4, ..Usage::default() });
    play.input(Input::Report(Report::Spent { message_id, usage, model: None, estimated: true }));
    play.fail(domain::Code::UpstreamUnavailable);
    assert_eq!(play.state.usage.output_tokens, 3 + 4);
}

#[test]
fn a_failed_model_ends_the_turn_and_the_chat_goes_on() {
    let mut play = Play::new();
    play.say("go");
    play.streamed("half");
    let error = domain::Error::new(domain::Code::UpstreamUnavailable, "gone");
    let message_id = play.message_id();
    play.running.clear();
    let failed = Report::ModelFailed { message_id, error, timed_out: false };
    assert_eq!(
        play.input(Input::Report(failed)),
        ["assistant: half", "failed UPSTREAM_UNAVAILABLE", "done Error: half"]
    );
    assert_eq!(play.say("again").last().map(String::as_str), Some("model_started 1"));
}

#[test]
fn the_oldest_whole_turns_are_left_out_and_seldom() {
    let tools = tools_tokens();
    let mut play = Play::with(|config| config.context_tokens = 1_000 + tools);
    let long = "x".repeat(400);
    let mut cuts = 0;
    for turn in 0..40 {
        let happened = play.say(&format!("{turn} {long}"));
        cuts += happened.iter().filter(|word| word.starts_with("cut")).count();
        let Some(asked) = play.asked.last() else { panic!("nothing was asked") };
        assert!(asked.iter().map(String::len).sum::<usize>() < 4_400);
        assert!(asked[0].starts_with("user: "), "a turn is left out as a whole: {}", asked[0]);
        play.answer("ok", &[]);
    }
    assert!((5..=12).contains(&cuts), "{cuts} cuts in 40 turns");
    let too_long = "x".repeat(5_000 + 4 * tools as usize);
    let happened = play.say(&too_long);
    assert_eq!(happened[2..], ["failed LIMIT_REACHED".to_owned(), "done ContextLimit: ".to_owned()], "{happened:?}");
    assert_eq!(play.say("short").last().map(String::as_str), Some("model_started 1"));
}

#[test]
fn a_paused_chat_goes_on_or_gives_up() {
    let mut play = Play::new();
    play.say("go");
    play.streamed("half");
    play.park("it panics");
    assert_eq!(play.state.paused.as_deref(), Some("it panics"));
    let happened = play.input(Input::Unpark { drop: true });
    assert_eq!(
        happened,
        [
            "unpaused",
            "used",
            "assistant: half",
            "failed PAUSED",
            "[System: Response was interrupted (dropped)]",
            "stopped dropped: half"
        ]
    );
    assert_eq!(play.state.paused, None);
}

#[test]
fn turns_that_cannot_begin_end_one_after_the_other() {
    let mut play = Play::with(|config| config.context_tokens = 200);
    play.say("go");
    let long = "x".repeat(2_000);
    play.say(&long);
    play.say(&long);
    play.say("short");
    let happened = play.answer("ok", &[]);
    let ends: Vec<&str> = happened.iter().filter(|word| word.starts_with("done")).map(String::as_str).collect();
    assert_eq!(ends, ["done EndTurn: ok", "done ContextLimit: ", "done ContextLimit: "]);
    assert_eq!(happened.last().map(String::as_str), Some("model_started 1"));
    assert!(play.state.queued.is_empty());
}

#[test]
fn a_turns_limits_only_narrow_the_chats() {
    let mut play = Play::with(|config| config.limits.max_steps = 1);
    let (content, create) = ("go".into(), Some(play.config.clone()));
    let limits = Some(Limits { max_tokens: 1_000, ..Limits::default() });
    play.command(ChatCommand::StartTurn(TurnRequest { content, create, limits, ..TurnRequest::default() }));
    let limits = play.state.turn.as_ref().map(|turn| turn.limits);
    assert_eq!(limits.map(|limits| (limits.max_steps, limits.max_tokens)), Some((1, 1_000)));
}

#[test]
fn a_deleted_chat_stops_and_takes_no_more() {
    let mut play = Play::new();
    play.say("go");
    play.streamed("half");
    play.say("later");
    let happened = play.command(ChatCommand::Delete);
    assert_eq!(
        happened,
        ["deleted", "used", "assistant: half", "[System: Response was interrupted (deleted)]", "stopped deleted: half"]
    );
    assert!(play.running.is_empty() && play.state.queued.is_empty());
    assert_eq!(play.say("hello?"), Vec::<String>::new());
    assert_eq!(ChatMachine::view(&play.state).map(|view| view.body), Some(None));
}

#[test]
fn a_deletion_that_overtakes_its_command_ends_all_that_was_asked_for() {
    let mut play = Play::new();
    play.say("go");
    play.answer("Look:", &[ls(), ls()]);
    play.say("later");
    let stop_id = StopId(play.id());
    assert_eq!(play.stop_again(stop_id, StopTarget::Everything), ["deleted", "stop_requested"], "the tool completes");
    assert_eq!(play.stop_again(stop_id, StopTarget::Everything), Vec::<String>::new());
    assert_eq!(play.say("still in the mailbox"), Vec::<String>::new());
    assert_eq!(play.command(ChatCommand::Delete), Vec::<String>::new());
    assert_eq!(play.tool("x").last().map(String::as_str), Some("stopped deleted: Look:"));
    assert_eq!(play.count(|event| matches!(event, ChatEvent::TurnStarted { .. })), 1);
}

#[test]
fn a_paused_chat_can_be_deleted_whatever_it_was_at() {
    let mut play = Play::new();
    play.say("go");
    play.streamed("half");
    play.park("it panics");
    let marker = "[System: Response was interrupted (deleted)]";
    let deleted = play.command(ChatCommand::Delete);
    assert_eq!(deleted, ["unpaused", "deleted", "used", "assistant: half", marker, "stopped deleted: half"]);

    let mut play = Play::new();
    play.say("go");
    play.answer("Look:", &[ls(), ls()]);
    play.say("later");
    play.park("it panics");
    let given_up = "observed false: given up: it may have taken effect or not";
    let not_run = ["call ls 1", "observed false: not run: the turn was stopped", marker, "stopped deleted: Look:"];
    assert_eq!(play.command(ChatCommand::Delete)[..3], ["unpaused", "deleted", given_up]);
    assert_eq!(play.log.iter().rev().take(4).rev().map(play::word).collect::<Vec<_>>(), not_run);
    assert!(play.state.turn.is_none() && play.state.queued.is_empty() && play.state.paused.is_none());
}

#[test]
fn a_chat_whose_answer_grew_too_long_can_be_freed_and_deleted() {
    let logged = |play: &Play, from: usize| serde_json::to_string(&play.log[from..]).map_or(0, |text| text.len());
    for how in ["drop", "delete", "stop"] {
        let mut play = Play::new();
        play.say("go");
        let piece = "a \"word\" and more\n".repeat(50_000);
        for _ in 0..20 {
            play.streamed(&piece);
        }
        play.say("later");
        if how == "drop" {
            play.park("a body has at most 33554432 bytes");
        }
        let from = play.log.len();
        match how {
            "drop" => drop(play.input(Input::Unpark { drop: true })),
            "delete" => drop(play.command(ChatCommand::Delete)),
            _ => drop(play.stop()),
        }
        // It fits into an entry of the log, twice over.
        let bytes = logged(&play, from);
        assert!((8 << 20..24 << 20).contains(&bytes), "{how}: {bytes}");
        assert_eq!(play.count(ChatEvent::is_terminal), 1, "{how}");
        assert_eq!(play.state.turn.is_some(), how != "delete", "{how}: the queued turn begins");
    }
}

#[test]
fn a_deleted_chat_does_not_wait_for_a_tool_that_fails_again_and_again() {
    let mut play = Play::new();
    play.say("go");
    play.answer("Look:", &[ls()]);
    assert_eq!(play.command(ChatCommand::Delete), ["deleted", "stop_requested"]);
    assert_eq!(play.park("it panics").last().map(String::as_str), Some("stopped deleted: Look:"));
    assert_eq!((play.state.paused.as_deref(), play.count(ChatEvent::is_terminal)), (None, 1));
}

#[test]
fn a_message_that_interrupts_does_not_stop_itself() {
    let mut play = Play::new();
    play.say("go");
    let turn = play.state.turn.as_ref().map(|turn| turn.id.0);
    let Some(id) = turn else { panic!("no turn") };
    assert_eq!(play.stop_again(StopId(id), StopTarget::First), Vec::<String>::new());
}
