//! Turns that a coding agent performs.

use crate::{permissions::prefix, play::Play, standing_rules::rule_id};
use actor::Input;
use buildscale_chat::{AgentDoes, AgentReport, AgentWork, ChatEffect, Report};
use domain::{
    AgentOption, AgentOptions, ChatCommand, ChatEvent, Code, Error, Mode, Principal, StopId, ThreadAgent, TurnRequest,
    event::PermissionOutcome,
};
use ports::{AgentPrompt, AgentRequest};
use serde_json::{Value, json};

const CWD: &str = "/srv/app";

/// Work in words.
pub fn does(work: &AgentWork) -> String {
    match &work.does {
        AgentDoes::Prompt(prompt) => {
            let texts = prompt.content.iter().filter_map(|block| block["text"].as_str());
            let session = prompt.thread.options.session_id.as_deref().unwrap_or("-");
            format!("prompt {session}: {}", texts.collect::<Vec<_>>().join(" + "))
        }
        AgentDoes::Answer { request, option } => format!("answer {request}: {}", option.as_deref().unwrap_or("-")),
        AgentDoes::Follow => "follow".into(),
        AgentDoes::Cancel => "cancel".into(),
        AgentDoes::End => "end".into(),
    }
}

fn thread() -> Play {
    let agent = ThreadAgent { agent: "test".into(), cwd: CWD.into(), options: Default::default() };
    let mut play = Play::with(|config| config.thread = Some(Box::new(agent)));
    play.may_approve = true;
    play
}

impl Play {
    fn leg(&self) -> domain::MessageId {
        let leg = self.running.values().find_map(|effect| match effect {
            ChatEffect::Agent(work) => Some(work.leg),
            _ => None,
        });
        leg.unwrap_or(domain::MessageId(uuid::Uuid::nil()))
    }

    fn wrote(&mut self, text: &str) -> Vec<String> {
        let message_id = self.leg();
        self.input(Input::Report(Report::Wrote { message_id, text: text.into() }))
    }

    fn tells(&mut self, report: AgentReport) -> Vec<String> {
        let leg = self.leg();
        let is_last = !matches!(report, AgentReport::Bound(_) | AgentReport::Denies(_) | AgentReport::Updated(_));
        if is_last {
            self.running.clear();
        }
        self.input(Input::Report(Report::Agent { leg, report }))
    }

    fn updates(&mut self, update: Value) -> Vec<String> {
        self.tells(AgentReport::Updated(vec![update]))
    }

    fn asks(&mut self, request: &str, call: &Value) -> Vec<String> {
        let option = |id: &str, kind: &str| AgentOption { id: id.into(), name: id.into(), kind: kind.into() };
        let options = vec![option("yes", "allow_once"), option("ever", "allow_always"), option("no", "reject_once")];
        let category = if call["kind"] == "edit" { "file" } else { "command" };
        self.tells(AgentReport::Asked(Box::new(AgentRequest {
            request: request.into(),
            category: category.into(),
            title: "Run it".into(),
            call: call.to_string(),
            options,
        })))
    }

    fn decides(&mut self, outcome: PermissionOutcome, always: bool, option_id: Option<&str>) -> Vec<String> {
        let (permission_id, option_id) = (self.permission(), option_id.map(String::from));
        self.command(ChatCommand::Decide { permission_id, outcome, always, reason: None, option_id })
    }
}

fn command(id: &str, line: &str) -> Value {
    json!({ "toolCallId": id, "kind": "execute", "title": line, "rawInput": { "command": line } })
}

fn tool_call(id: &str) -> Value {
    json!({ "sessionUpdate": "tool_call", "toolCallId": id, "kind": "execute", "title": "make" })
}

#[test]
fn the_copy_of_an_agent_is_without_the_home_in_a_turn_that_another_person_begins() {
    let mut play = thread();
    let has_home = |play: &Play| {
        play.running.values().find_map(|effect| match effect {
            ChatEffect::Agent(work) => Some(work.has_home),
            _ => None,
        })
    };
    play.say("build it");
    assert_eq!(has_home(&play), Some(true));
    play.tells(AgentReport::Ended("end_turn".into()));
    play.by = Principal::User { id: domain::UserId(uuid::Uuid::from_u128(22)) };
    play.say("build it for me");
    assert_eq!(has_home(&play), Some(false));
}

#[test]
fn an_agent_performs_the_turn_and_its_text_between_calls_becomes_messages() {
    let mut play = thread();
    assert_eq!(play.say("build it"), ["created", "turn_started 1", "user: build it", "agent_began"]);
    assert_eq!(play.worked, ["prompt -: build it"]);
    assert_eq!(play.tells(AgentReport::Bound("s1".into())), ["agent_bound"]);
    assert_eq!(play.tells(AgentReport::Bound("s1".into())), [""; 0], "a known session is no news");
    assert_eq!(play.wrote("I "), ["chunk"]);
    assert_eq!(play.wrote("look."), ["chunk"]);
    assert_eq!(play.updates(tool_call("t1")), ["assistant: I look.", "agent_updated"]);
    assert_eq!(play.wrote("Built."), ["chunk"]);
    assert_eq!(play.tells(AgentReport::Ended("end_turn".into())), ["assistant: Built.", "done EndTurn: Built."]);
    let ids = play.log.iter().filter_map(|event| match event {
        ChatEvent::Chunk { message_id, .. } => Some(*message_id),
        _ => None,
    });
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[1], ids[2], "the text after a call is another message");
    play.say("more");
    assert_eq!(play.worked[1], "prompt s1: more", "the next turn goes on in the session");
    assert!(play.asked.is_empty(), "no model is asked");
}

#[test]
fn a_mode_or_an_option_that_the_agent_chooses_is_that_of_the_thread() {
    let mut play = thread();
    play.say("build it");
    let mode = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" });
    assert_eq!(play.updates(mode), ["agent_updated"]);
    let options = json!([
        { "id": "effort", "currentValue": "high" }, { "id": "model", "currentValue": "large" },
    ]);
    play.updates(json!({ "sessionUpdate": "config_option_update", "configOptions": options, "changed": ["effort"] }));
    play.tells(AgentReport::Ended("end_turn".into()));
    play.crash();
    play.say("more");
    let prompted = play.running.values().find_map(|effect| match effect {
        ChatEffect::Agent(work) => match &work.does {
            AgentDoes::Prompt(prompt) => Some(prompt.thread.options.clone()),
            _ => None,
        },
        _ => None,
    });
    let prompted = prompted.unwrap_or_default();
    assert_eq!(prompted.mode.as_deref(), Some("code"));
    assert_eq!(prompted.config_overrides.into_iter().collect::<Vec<_>>(), [("effort".to_owned(), "high".to_owned())]);
    assert!(play.state.agent_chose_at.is_some());
}

#[test]
fn a_prompt_says_whether_the_agent_chose_its_mode_by_itself() {
    let own_mode = |play: &Play| match play.running.values().next() {
        Some(ChatEffect::Agent(work)) => match &work.does {
            AgentDoes::Prompt(prompt) => Some(prompt.own_mode),
            _ => None,
        },
        _ => None,
    };
    let mut play = thread();
    play.say("build it");
    assert_eq!(own_mode(&play), Some(false));
    play.updates(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" }));
    play.tells(AgentReport::Ended("end_turn".into()));
    play.crash();
    play.say("more");
    assert_eq!(own_mode(&play), Some(true));
    play.tells(AgentReport::Ended("end_turn".into()));
    let options = AgentOptions { mode: Some("ask".into()), ..AgentOptions::default() };
    play.command(ChatCommand::Configure {
        title: None,
        model: None,
        model_settings: None,
        mode: None,
        may_approve: true,
        session: None,
        options: Some(Box::new(options)),
        labels: domain::LabelChanges::default(),
    });
    play.say("again");
    assert_eq!(own_mode(&play), Some(false), "a person chose this one");
}

#[test]
fn attached_files_are_parts_of_the_prompt_and_their_words_come_before_the_request() {
    let mut play = thread();
    let files = ["/data/a.png", "/data/b.mp3", "/data/c.md"]
        .map(|path| domain::FilePath::parse(path).unwrap_or_else(|_| domain::FilePath::root()));
    play.command(ChatCommand::StartTurn(TurnRequest {
        content: "look".into(),
        files: files.to_vec(),
        context: "<file path=\"/data/c.md\" role=\"attached\">…</file>".into(),
        create: Some(play.config.clone()),
        may_approve: true,
        ..TurnRequest::default()
    }));
    let Some(ChatEffect::Agent(work)) = play.running.values().next() else { panic!("nothing runs") };
    let AgentDoes::Prompt(prompt) = &work.does else { panic!("no prompt") };
    let kinds: Vec<_> = prompt.content.iter().filter_map(|block| block["type"].as_str()).collect();
    assert_eq!(kinds, ["image", "audio", "resource", "text", "text"]);
    assert_eq!(prompt.content[3][AgentPrompt::REPEATS], true);
    assert_eq!(prompt.content[4], json!({ "type": "text", "text": "look" }));
}

#[test]
fn a_request_suspends_the_turn_and_the_decision_answers_that_request() {
    for (outcome, option, chosen, who) in [
        (PermissionOutcome::Approved, None, "yes", "Approved"),
        (PermissionOutcome::Approved, Some("ever"), "ever", "Approved"),
        (PermissionOutcome::Declined, None, "no", "Declined"),
        (PermissionOutcome::Declined, Some("no"), "no", "Declined"),
    ] {
        let mut play = thread();
        play.say("build it");
        play.wrote("May I?");
        assert_eq!(play.asks("r1", &command("t1", "rm -r x")), ["assistant: May I?", "permission_required"]);
        let Some(ChatEvent::PermissionRequired { agent: Some(asked), .. }) = play.log.last() else {
            panic!("{:?}", play.log.last())
        };
        assert_eq!((asked.request.as_str(), asked.options.len()), ("r1", 3));
        let resolved = format!("{who} by {}", Principal::local());
        assert_eq!(play.decides(outcome, false, option), [resolved.as_str(), "agent_began"]);
        assert_eq!(play.worked[1], format!("answer r1: {chosen}"));
        let second = play.decides(outcome, false, option);
        assert_eq!(second, ["decision_refused"], "a second answer is kept and changes nothing");
        assert_eq!(play.tells(AgentReport::Ended("end_turn".into())), ["done EndTurn: May I?"]);
    }
}

#[test]
fn a_decision_whose_option_does_not_fit_answers_nothing() {
    let mut play = thread();
    play.say("build it");
    play.asks("r1", &command("t1", "make"));
    for (outcome, option) in [
        (PermissionOutcome::Approved, "no"),
        (PermissionOutcome::Declined, "yes"),
        (PermissionOutcome::Approved, "unknown"),
    ] {
        assert_eq!(play.decides(outcome, false, Some(option)), ["failed INVALID_ARGUMENT"]);
    }
    assert_eq!(play.worked.len(), 1, "the agent still waits");
}

#[test]
fn silence_is_a_no_and_the_agent_is_told_so() {
    let mut play = thread();
    play.say("build it");
    play.asks("r1", &command("t1", "make"));
    assert_eq!(play.message(), ["Cancelled by timeout", "agent_began"]);
    assert_eq!(play.worked[1], "answer r1: no");
    assert_eq!(play.message(), [""; 0], "the time is up once");
    let late = play.decides(PermissionOutcome::Approved, false, None);
    assert_eq!(late, ["decision_refused"], "a late answer is kept and changes nothing");
    let note = ChatCommand::NoteRefused { permission_id: play.permission(), outcome: PermissionOutcome::Approved };
    assert_eq!(play.command(note), ["decision_refused"]);
    assert_eq!(play.worked.len(), 2, "the agent hears of one answer");
}

#[test]
fn a_granted_rule_answers_the_next_request_that_it_covers_and_no_other() {
    let mut play = thread();
    play.say("build it");
    play.asks("r1", &command("t1", "cargo test"));
    play.decides(PermissionOutcome::Approved, true, None);
    assert_eq!(play.worked[1], "answer r1: yes", "the rule is ours: the agent is allowed this once");
    assert_eq!(play.asks("r2", &command("t2", "cargo test --all")), ["agent_began"]);
    assert_eq!(play.worked[2], "answer r2: yes");
    assert_eq!(play.asks("r3", &command("t3", "cargo test; rm -r x")), ["permission_required"]);
    play.decides(PermissionOutcome::Declined, false, None);
    let elsewhere = json!({
        "toolCallId": "t4", "kind": "execute", "rawInput": { "command": "cargo test", "cwd": "/elsewhere" },
    });
    assert_eq!(play.asks("r4", &elsewhere), ["permission_required"]);
    play.decides(PermissionOutcome::Declined, false, None);
    play.command(ChatCommand::ForgetPermissions { rule_id: None });
    assert_eq!(play.asks("r5", &command("t5", "cargo test")), ["permission_required"], "rules are taken back");
}

#[test]
fn a_rule_that_denies_answers_before_one_that_allows_and_in_the_turns_of_all_people() {
    let mut play = thread();
    play.say("build it");
    play.asks("r1", &command("t1", "cargo publish"));
    play.decides(PermissionOutcome::Declined, true, None);
    assert_eq!(play.worked[1], "answer r1: no");
    let own = domain::PermissionRule::Command { words: vec!["cargo".into()], folder: domain::FilePath::root() };
    play.state.permissions.push(own);
    assert_eq!(play.asks("r2", &command("t2", "cargo publish --dry-run")), ["agent_began"]);
    assert_eq!(play.worked[2], "answer r2: no");
    let Some(ChatEvent::AgentBegan { answer: Some(answer), .. }) = play.log.last() else { panic!("no answer") };
    assert_eq!(answer.by, "rule: denied: commands that begin with `cargo publish`");
    play.tells(AgentReport::Ended("end_turn".into()));
    play.may_approve = false;
    play.say("publish it");
    assert_eq!(play.asks("r3", &command("t3", "cargo publish")), ["agent_began"]);
    assert_eq!(play.worked.last().map(String::as_str), Some("answer r3: no"));
    for (request, line) in
        [("r4", json!("cargo build; cargo publish")), ("r5", json!(["bash", "-lc", "cargo publish"]))]
    {
        let call = json!({ "toolCallId": request, "kind": "execute", "rawInput": { "command": line, "env": {} } });
        assert_eq!(play.asks(request, &call), ["agent_began"], "{line}");
        assert_eq!(play.worked.last(), Some(&format!("answer {request}: no")));
    }
    assert_eq!(play.asks("r6", &command("t6", "cargo build")), ["permission_required"]);
}

#[test]
fn a_standing_rule_that_denies_answers_before_a_rule_of_the_chat_that_allows() {
    let mut play = thread();
    play.say("build it");
    play.asks("r1", &command("t1", "cargo test"));
    play.decides(PermissionOutcome::Approved, true, None);
    play.tells(AgentReport::Ended("end_turn".into()));
    play.say("again");
    let denied = rule_id(&prefix(&["cargo", "test"]), Some(CWD));
    assert_eq!(play.tells(AgentReport::Denies(vec![denied])), ["denials_read"]);
    assert_eq!(play.asks("r2", &command("t2", "cargo test --all")), ["agent_began"]);
    assert_eq!(play.worked.last().map(String::as_str), Some("answer r2: no"));
    let Some(ChatEvent::AgentBegan { answer: Some(answer), .. }) = play.log.last() else { panic!("no answer") };
    assert_eq!(answer.by, "rule: denied: commands that begin with `cargo test`");
    play.tells(AgentReport::Ended("end_turn".into()));
    play.say("more");
    play.asks("r3", &command("t3", "cargo test"));
    assert_eq!(play.worked.last().map(String::as_str), Some("answer r3: yes"), "this turn has read no such rule");
}

#[test]
fn a_rule_for_a_file_covers_that_file_under_the_folder_alone() {
    let edit =
        |path: &str| json!({ "toolCallId": path, "kind": "edit", "content": [{ "type": "diff", "path": path }] });
    let mut play = thread();
    play.say("write it");
    play.asks("r1", &edit("/srv/app/src/a.rs"));
    play.decides(PermissionOutcome::Approved, true, None);
    assert_eq!(play.asks("r2", &edit("/srv/app/src/a.rs")), ["agent_began"]);
    assert_eq!(play.asks("r3", &edit("/srv/app/src/b.rs")), ["permission_required"]);
    play.decides(PermissionOutcome::Declined, false, None);
    for outside in ["/srv/apple/src/a.rs", "/srv/app/../b/src/a.rs", "src/a.rs"] {
        play.asks("r4", &edit(outside));
        let Some(ChatEvent::PermissionRequired { always, .. }) = play.log.last() else { panic!("{outside}") };
        assert_eq!(*always, None, "{outside}");
        play.decides(PermissionOutcome::Declined, false, None);
    }
}

#[test]
fn a_call_that_is_too_long_to_be_shown_is_refused() {
    let mut play = thread();
    play.say("build it");
    assert_eq!(play.asks("r1", &command("t1", &"x".repeat(300_000))), ["agent_began"]);
    assert_eq!(play.worked[1], "answer r1: no");
}

#[test]
fn a_stop_cancels_the_agent_wherever_the_turn_is() {
    let mut play = thread();
    play.say("build it");
    play.wrote("Half");
    let stopped = play.stop();
    assert_eq!(stopped.last().map(String::as_str), Some("stopped user_cancelled: Half"));
    assert!(stopped.contains(&"assistant: Half".to_owned()), "{stopped:?}");
    assert_eq!(play.worked[1], "cancel");
    play.say("again");
    play.asks("r1", &command("t1", "make"));
    assert_eq!(play.stop()[0], "Cancelled by stop");
    assert_eq!(play.worked[3], "cancel");
    play.say("again");
    let stop_id = StopId(play.id());
    play.stop_again(stop_id, actor::StopTarget::Everything);
    assert_eq!(play.worked[5..], ["cancel", "end"], "the process of a deleted chat ends");
}

#[test]
fn a_crash_of_the_worker_follows_the_agent_and_gives_no_prompt_twice() {
    let mut play = thread();
    play.say("build it");
    play.wrote("Half");
    assert_eq!(play.crash(), ["assistant: Half", "turn_started 2", "agent_began"]);
    assert_eq!(play.worked[1], "follow");
    assert_eq!(play.wrote(" done"), ["chunk"]);
    assert_eq!(play.tells(AgentReport::Ended("end_turn".into())), ["assistant:  done", "done EndTurn:  done"]);
}

#[test]
fn a_turn_whose_process_is_gone_ends_with_an_error_and_the_answer_reaches_nobody() {
    let mut play = thread();
    play.say("build it");
    play.asks("r1", &command("t1", "make"));
    assert_eq!(play.crash(), [""; 0], "a request outlives the worker");
    play.decides(PermissionOutcome::Approved, false, None);
    assert_eq!(play.tells(AgentReport::Lost), ["failed UPSTREAM_UNAVAILABLE", "done Error: "]);
    assert_eq!(play.say("again"), ["turn_started 1", "user: again", "agent_began"]);
}

#[test]
fn the_end_of_an_agent_has_its_reason() {
    for (reason, told) in [
        ("max_tokens", "done MaxOutputTokens: "),
        ("max_turn_requests", "done StepLimit: "),
        ("refusal", "done Refusal: "),
        ("cancelled", "stopped agent_cancelled: "),
        ("whatever", "done Error: "),
    ] {
        let mut play = thread();
        play.say("build it");
        assert_eq!(play.tells(AgentReport::Ended(reason.into())).last().map(String::as_str), Some(told), "{reason}");
    }
    let mut play = thread();
    play.say("build it");
    let error = Error::new(Code::UpstreamUnavailable, "exit code 7");
    let failed = AgentReport::Failed { error, timed_out: false };
    assert_eq!(play.tells(failed), ["failed UPSTREAM_UNAVAILABLE", "done Error: "]);
}

#[test]
fn a_new_process_reads_the_end_of_the_conversation_within_a_budget() {
    let mut play = thread();
    for turn in 0..4 {
        play.say(&format!("question {turn}"));
        play.wrote(&"x".repeat(10_000));
        play.tells(AgentReport::Ended("end_turn".into()));
    }
    play.say("last");
    let context = play.running.values().find_map(|effect| match effect {
        ChatEffect::Agent(work) => match &work.does {
            AgentDoes::Prompt(prompt) => Some(prompt.context.clone()),
            _ => None,
        },
        _ => None,
    });
    let context = context.unwrap_or_default();
    assert!(context.len() <= 24 * 1024, "{}", context.len());
    assert!(context.contains("User: question 3") && !context.contains("question 0") && !context.contains("last"));
}

#[test]
fn in_plan_mode_no_rule_is_granted() {
    let mut play = thread();
    play.config.mode = Mode::Plan;
    play.say("build it");
    play.asks("r1", &command("t1", "cargo test"));
    assert_eq!(play.decides(PermissionOutcome::Approved, true, None), ["failed INVALID_ARGUMENT"]);
}

#[test]
fn a_coding_agent_summarises_its_session_for_a_process_that_cannot_load_it() {
    let mut play = thread();
    for number in 1..=4 {
        play.say(&format!("question {number}"));
        play.wrote(&format!("answer {number}"));
        play.tells(AgentReport::Ended("end_turn".into()));
    }
    let before = play.texts();
    assert_eq!(
        play.command(ChatCommand::Compact { max_chars: 400 }),
        ["turn_started 1", "compaction_began", "agent_began"]
    );
    assert!(play.worked.last().is_some_and(|work| work.contains("Summarise our conversation so far in at most 400")));
    assert_eq!(play.wrote("They talked "), ["chunk"]);
    assert_eq!(play.crash(), ["turn_started 2", "agent_began"], "what it has said is kept");
    assert_eq!(play.wrote("about it."), ["chunk"]);
    let done = play.asks("r1", &command("t1", "rm -rf /"));
    assert_eq!(
        (done.len(), play.worked.last().map(String::as_str)),
        (1, Some("answer r1: no")),
        "nothing is done for it"
    );
    assert_eq!(play.tells(AgentReport::Ended("end_turn".into())), ["compacted", "done EndTurn: "]);
    assert_eq!(play.texts(), before[4..], "the summary is no message");
    play.command(ChatCommand::UndoCompaction);
    play.command(ChatCommand::Compact { max_chars: 400 });
    assert_eq!(
        play.tells(AgentReport::Ended("end_turn".into())),
        ["failed UPSTREAM_UNAVAILABLE", "done Error: "],
        "an agent that says nothing"
    );
    assert_eq!(play.texts(), before, "loses nothing");
    play.command(ChatCommand::Compact { max_chars: 400 });
    play.wrote("They talked about it.");
    play.tells(AgentReport::Ended("end_turn".into()));
    play.say("go on");
    let Some(ChatEffect::Agent(work)) = play.running.values().next() else { panic!("nothing runs") };
    let AgentDoes::Prompt(prompt) = &work.does else { panic!("no prompt") };
    assert!(prompt.context.contains("They talked about it.") && prompt.context.ends_with("Assistant: answer 4"));
    assert!(!prompt.context.contains("question 2"), "{}", prompt.context);
}
