//! Compactions: asked for and by themselves, what stays whole, failures, crashes, stops, and taking one back.

use crate::play::{Play, line, ls, tools_tokens};
use actor::Input;
use buildscale_chat::Report;
use domain::{ChatCommand, ChatEvent, Code, Error, Limits, Message, Usage, event::CompactionRecord};
use serde_json::json;
use std::time::Duration;

const SUMMARY: &str = "# Monday\nThe port is 8686.";

/// A chat with so many turns: each a question and an answer of so many bytes; every third one has a call.
fn with_turns(play: &mut Play, turns: usize, bytes: usize) {
    for number in 1..=turns {
        let words = |who: &str| format!("{who} {number} {}", "x".repeat(bytes));
        play.say(&words("question"));
        if number % 3 == 0 {
            play.answer("", &[ls()]);
            play.tool(&format!("files of {number}"));
        }
        play.answer(&words("answer"), &[]);
    }
}

fn compact(play: &mut Play, max_chars: u32) -> Vec<String> {
    play.command(ChatCommand::Compact { max_chars })
}

fn last(play: &Play) -> CompactionRecord {
    let found = play.log.iter().rev().find_map(|event| match event {
        ChatEvent::Compacted { compaction } => Some((**compaction).clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing was compacted"))
}

/// Every compaction keeps pairs of call and result, and the last four messages.
fn kept_whole(before: &[String], after: &[String]) {
    let of_calls = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| line.contains("-> ls") || line.starts_with("tool:")).cloned().collect()
    };
    assert_eq!(of_calls(before), of_calls(after), "calls stay with their results");
    assert_eq!(before[before.len() - 4..], after[after.len() - 4..], "the last four messages stay");
}

#[test]
fn a_compaction_replaces_old_words_by_a_summary_and_keeps_calls_and_the_last_messages() {
    let mut play = Play::new();
    with_turns(&mut play, 7, 400);
    let before = play.texts();
    assert_eq!(compact(&mut play, 400), ["turn_started 1", "compaction_began", "model_started 1"]);
    let request = play.request.clone().unwrap();
    assert!(request.tools.is_empty() && request.system.contains("Group by time"), "{}", request.system);
    let asked = play.asked.last().unwrap()[0].clone();
    assert!(
        asked.contains("question 1 ") && asked.contains("result of ls: files of 3") && !asked.contains("question 6 ")
    );
    assert_eq!(play.streamed("# Mon"), Vec::<String>::new(), "a summary is shown as a whole");
    assert_eq!(play.answer(SUMMARY, &[]), ["used", "compacted", "done EndTurn: "]);
    kept_whole(&before, &play.texts());
    let record = last(&play);
    let original: Vec<String> = play.state.replaced().map(line).collect();
    assert_eq!(original, before[..original.len()], "the messages that gave way are kept");
    assert!(original.len() >= 10 && original.iter().all(|line| !line.starts_with("user: question 6 ")));
    assert_eq!((record.turns, record.summary.as_deref()), (5, Some(SUMMARY)));
    assert!(record.tokens_after * 2 < record.tokens_before && record.ratio() < 0.5, "{record:?}");
    assert_eq!(
        record.tokens_after,
        play.state.history.iter().map(|turn| turn.tokens).sum::<u64>()
            + play.state.summary.as_ref().unwrap().tokens
            + play.config.system.len() as u64 / 4
    );

    play.say("and now?");
    let asked = play.asked.last().unwrap();
    assert!(asked[0].starts_with("[System: A summary of the earlier part of this chat (5 turns"), "{}", asked[0]);
    assert!(asked[0].ends_with(SUMMARY) && asked[0].contains(&format!("lines 1 to {}", record.last_line)));
    assert_eq!(asked[1..3], ["assistant:  -> ls", "tool: files of 3"]);
    assert!(asked.iter().all(|line| !line.contains("question 5 ")) && asked[3].starts_with("user: question 6 "));
    let system = &play.request.as_ref().unwrap().system;
    assert!(system.contains(&format!("/chats/{}.md, lines 1 to {}", play.config.chat, record.last_line)), "{system}");
}

#[test]
fn a_context_that_its_provider_refuses_as_too_long_is_compacted_once_in_a_turn() {
    let refuse = |play: &mut Play| {
        let message_id = play.message_id();
        play.running.clear();
        let error = Error::new(Code::Unprocessable, "prompt is too long").detail("limit", "context");
        play.input(Input::Report(Report::ModelFailed { message_id, error, timed_out: false }))
    };
    let full = |bytes: usize| {
        let mut play = Play::with(|config| config.context_tokens = 100_000);
        with_turns(&mut play, 7, bytes);
        play.say("and now?");
        play
    };
    let mut play = full(800);
    assert_eq!(refuse(&mut play), ["compaction_began", "model_started 1"]);
    assert_eq!(play.answer(SUMMARY, &[]), ["used", "compacted", "model_started 1"]);
    let asked = play.asked.last().unwrap();
    assert!(asked[0].ends_with(SUMMARY) && asked.last().unwrap() == "user: and now?", "{asked:?}");
    assert_eq!(refuse(&mut play), ["failed UNPROCESSABLE", "done Error: "], "once in a turn");

    assert_eq!(refuse(&mut full(100)), ["failed UNPROCESSABLE", "done Error: "], "too little can give way");

    let mut begun = full(800);
    begun.streamed("It is");
    assert_eq!(refuse(&mut begun)[..2], ["assistant: It is", "failed UNPROCESSABLE"], "words that came stay");

    let mut last = Play::with(|config| config.context_tokens = 100_000);
    with_turns(&mut last, 7, 800);
    let mut words = last.words("and now?", false);
    if let ChatCommand::StartTurn(request) = &mut words {
        request.limits = Some(Limits::of_steps(1));
    }
    last.command(words);
    assert_eq!(refuse(&mut last), ["failed UNPROCESSABLE", "done Error: "], "no step is left for the answer");
}

#[test]
fn a_second_compaction_summarises_the_first_one_along_with_the_rest() {
    let mut play = Play::new();
    with_turns(&mut play, 6, 400);
    compact(&mut play, 400);
    play.answer(SUMMARY, &[]);
    with_turns(&mut play, 4, 400);
    let before = play.texts();
    compact(&mut play, 400);
    assert!(play.asked.last().unwrap()[0].contains("The port is 8686."), "the summary before is a part of the words");
    play.answer("Both.", &[]);
    kept_whole(&before, &play.texts());
    play.say("go on");
    let asked = play.asked.last().unwrap();
    assert!(asked[0].contains("8 turns") && asked[0].ends_with("Both."), "{}", asked[0]);
    assert_eq!(play.state.left_out.as_ref().unwrap().turns, 8);
}

#[test]
fn an_undo_restores_the_words() {
    let mut play = Play::new();
    with_turns(&mut play, 6, 400);
    let before = play.texts();
    compact(&mut play, 400);
    play.answer(SUMMARY, &[]);
    assert_ne!(play.texts(), before);
    assert_eq!(play.command(ChatCommand::UndoCompaction), ["compaction_undone"]);
    assert_eq!(play.texts(), before);
    assert!(play.state.summary.is_none() && play.state.left_out.is_none() && play.state.compacted.is_none());
    assert_eq!(play.command(ChatCommand::UndoCompaction), Vec::<String>::new(), "it was taken back already");
    play.say("go on");
    assert_eq!(play.asked.last().unwrap()[..before.len()], before);
}

#[test]
fn a_short_chat_and_one_that_waits_are_not_compacted() {
    let mut play = Play::new();
    with_turns(&mut play, 2, 400);
    assert_eq!(compact(&mut play, 400), ["compaction_skipped"], "all of it is the last four messages");
    with_turns(&mut play, 4, 10);
    assert_eq!(compact(&mut play, 4_000), ["compaction_skipped"], "a summary would not be shorter");
    play.say("which?");
    play.answer("", &[crate::play::ask()]);
    assert_eq!(compact(&mut play, 400), ["compaction_skipped"], "a question is open");
    assert_eq!(play.state.turns, 6);
}

#[test]
fn without_a_summary_the_last_ten_messages_stay_and_it_can_be_taken_back() {
    for fail in [
        |play: &mut Play| play.fail(Code::UpstreamUnavailable),
        |play: &mut Play| {
            let mut happened = play.answer("  ", &[]);
            happened.retain(|word| word != "used");
            happened
        },
    ] {
        let mut play = Play::new();
        with_turns(&mut play, 8, 400);
        let before = play.texts();
        compact(&mut play, 400);
        assert_eq!(fail(&mut play), ["compacted", "done EndTurn: "]);
        let after = play.texts();
        assert!(after.len() >= 10 && before.ends_with(&after) && after.len() < 14, "{}", after.len());
        let record = last(&play);
        assert!(record.summary.is_none() && record.error.is_some());
        play.command(ChatCommand::UndoCompaction);
        assert_eq!(play.texts(), before);
    }
}

#[test]
fn a_context_that_is_nearly_full_is_compacted_before_the_model_is_asked() {
    let mut play = Play::with(|config| config.context_tokens = 10_000 + tools_tokens());
    with_turns(&mut play, 17, 1_000);
    let before = play.texts();
    assert_eq!(play.count(|event| matches!(event, ChatEvent::CompactionBegan { .. })), 0);
    let said = play.say(&format!("question 18 {}", "x".repeat(2_000)));
    assert_eq!(said[0], "turn_started 1");
    assert_eq!(said[2..], ["compaction_began", "model_started 1"]);
    assert_eq!(play.answer(SUMMARY, &[]), ["used", "compacted", "model_started 1"]);
    let asked = play.asked.last().unwrap();
    assert!(asked[0].ends_with(SUMMARY) && asked.last().unwrap().starts_with("user: question 18 "));
    kept_whole(&before, &asked[..asked.len() - 1]);
    assert_eq!(play.answer("Yes.", &[]), ["assistant: Yes.", "used", "done EndTurn: Yes."]);
    assert_eq!(
        play.count(|event| matches!(event, ChatEvent::ContextCut { .. })),
        0,
        "nothing is left out unsummarised"
    );
}

#[test]
fn words_that_stay_too_long_are_left_out_as_whole_turns_and_no_second_summary_is_asked_for() {
    let mut play = Play::with(|config| config.context_tokens = 10_000 + tools_tokens());
    with_turns(&mut play, 17, 1_000);
    play.say(&format!("question 18 {}", "x".repeat(2_000)));
    let happened = play.answer(&"y".repeat(40_000), &[]);
    assert!(happened.iter().all(|word| word != "compaction_began"), "{happened:?}");
    assert!(last(&play).summary.unwrap().len() <= 4_000, "a summary is cut to its length");
}

#[test]
fn a_crash_has_the_summary_asked_for_again_once() {
    let mut play = Play::new();
    with_turns(&mut play, 6, 400);
    compact(&mut play, 400);
    assert_eq!(play.crash(), ["turn_started 2", "model_started 2"]);
    assert_eq!(play.answer(SUMMARY, &[]), ["used", "compacted", "done EndTurn: "]);
    assert_eq!(play.crash(), Vec::<String>::new(), "nothing is in flight");
    assert_eq!(play.count(|event| matches!(event, ChatEvent::Compacted { .. })), 1);
    assert!(play.state.summary.is_some(), "the fold of the log has it");
}

#[test]
fn a_stop_ends_a_compaction_and_leaves_the_conversation_as_it_was() {
    let mut play = Play::new();
    with_turns(&mut play, 6, 400);
    let before = play.texts();
    compact(&mut play, 400);
    assert_eq!(play.stop(), ["stopped user_cancelled: "]);
    assert_eq!(play.texts(), before);
}

#[test]
fn a_provider_that_asks_for_patience_is_asked_again_later() {
    let mut play = Play::new();
    with_turns(&mut play, 6, 400);
    compact(&mut play, 400);
    assert_eq!(play.postpone(1, Duration::from_secs(5)), ["model_postponed"]);
    assert_eq!(play.message(), ["model_started 2"]);
    assert_eq!(play.answer(SUMMARY, &[]), ["used", "compacted", "done EndTurn: "]);
}

#[test]
fn the_agent_of_a_task_is_not_compacted() {
    let mut play = Play::agent(&[("ls", None)]);
    play.config.context_tokens = 4_000;
    for number in 1..=6 {
        play.say(&format!("question {number} {}", "x".repeat(1_600)));
        play.answer(&"y".repeat(1_600), &[]);
    }
    assert_eq!(play.count(|event| matches!(event, ChatEvent::CompactionBegan { .. })), 0);
    assert!(play.count(|event| matches!(event, ChatEvent::ContextCut { .. })) > 0);
    let cut = play.log.iter().find_map(|event| match event {
        ChatEvent::ModelStarted { context: Some(record), .. } => record.cut.first(),
        _ => None,
    });
    assert!(cut.is_some_and(|cut| cut.part == "history" && cut.tokens > cut.kept), "{cut:?}");
}

#[test]
fn each_call_of_the_model_has_a_record_of_its_context() {
    let mut play = Play::new();
    with_turns(&mut play, 6, 400);
    compact(&mut play, 400);
    play.answer(SUMMARY, &[]);
    play.say("and now?");
    let Some(ChatEvent::ModelStarted { context: Some(record), .. }) = play.log.last() else { panic!("no record") };
    let parts: Vec<_> = record.parts.iter().map(|part| serde_json::to_value(part.part).unwrap()).collect();
    assert_eq!(json!(parts), json!(["system", "tools", "summary", "calls", "history", "turn"]));
    let summary = record.parts[2];
    assert_eq!((summary.first_line, summary.last_line, record.left_out_turns), (1, last(&play).last_line, 5));
    assert_eq!((record.parts[4].first_line, record.parts[4].count), (summary.last_line + 1, 4));
    let said: u64 =
        play.state.history.iter().flat_map(|turn| &turn.messages).map(|message| Message::tokens(message)).sum();
    assert_eq!(record.parts[3..].iter().map(|part| part.tokens).sum::<u64>(), said);
}

#[test]
fn the_record_of_a_turn_names_the_model_that_answered() {
    let mut play = Play::new();
    play.say("hello");
    let answer = buildscale_chat::ModelAnswer {
        message_id: play.message_id(),
        text: "Hello.".into(),
        unreported: String::new(),
        reasoning: String::new(),
        calls: Vec::new(),
        reason: domain::StopReason::EndTurn,
        usage: domain::Usage { input_tokens: 3, ..domain::Usage::default() },
        provider: serde_json::Value::Null,
        model: Some("openai/gpt-5-mini-2025-08-07".into()),
    };
    play.running.clear();
    play.input(actor::Input::Report(buildscale_chat::Report::ModelFinished(Box::new(answer))));
    let mut state = buildscale_chat::ChatState::default();
    let records = (1..).zip(&play.log).filter_map(|(number, event)| {
        let record = <buildscale_chat::ChatMachine as actor::Machine>::record(&state, event);
        state.apply(number, event);
        serde_json::from_str::<serde_json::Value>(&record?.body?).ok()
    });
    let models: Vec<_> = records.map(|record| record["model"].clone()).collect();
    assert_eq!(models, [json!("openai/gpt-5-mini-2025-08-07")]);
}

/// The providers of models have their tokenizers: where they count more than our four bytes per token, contexts are smaller from then on.
#[test]
fn a_context_is_compacted_earlier_where_the_provider_counts_more_tokens_than_we_do() {
    let turns_until_compaction = |times: u64| {
        // With few tools, which are a part of each context.
        let mut play = Play::with(|config| config.tools = Some(vec!["ls".into()]));
        for turn in 1..60 {
            play.say(&format!("question {turn} {}", "x".repeat(800)));
            let is_less =
                |event: &ChatEvent| matches!(event, ChatEvent::CompactionBegan { .. } | ChatEvent::ContextCut { .. });
            if play.count(is_less) > 0 {
                return turn;
            }
            let estimated = play.log.iter().rev().find_map(|event| match event {
                ChatEvent::ModelStarted { context, .. } => context.as_ref().map(|record| record.tokens()),
                _ => None,
            });
            let usage = Usage { input_tokens: estimated.unwrap_or(0) * times / 2, ..Usage::default() };
            play.answer_using(&format!("answer {turn} {}", "x".repeat(800)), &[], usage);
        }
        60
    };
    let [less, same, twice, nonsense] = [1, 2, 4, 400].map(turns_until_compaction);
    assert_eq!(less, same, "a count below ours gives no more room");
    assert!(twice < same && twice * 2 + 2 >= same, "{twice} {same}");
    assert!(nonsense > 2 && nonsense <= twice, "{nonsense}");
}

/// Tools are a part of each context, so less room is left for words beside many of them.
#[test]
fn tools_count_in_the_budget_and_end_no_turn() {
    let tools = tools_tokens();
    assert!(tools > 1_000, "{tools}");
    let record = |play: &Play| match play
        .log
        .iter()
        .rev()
        .find(|event| matches!(event, ChatEvent::ModelStarted { context: Some(_), .. }))
    {
        Some(ChatEvent::ModelStarted { context: Some(record), .. }) => record.clone(),
        _ => panic!("no record"),
    };
    let budget = tools + 2_000;
    let mut play = Play::with(|config| config.context_tokens = budget);
    for number in 1..=12 {
        play.say(&format!("question {number} {}", "x".repeat(1_200)));
        assert!(record(&play).tokens() <= budget, "turn {number}: {:?}", record(&play));
        play.answer(&"y".repeat(1_200), &[]);
    }
    // Where the tools alone are more than the budget, words have a quarter of it, and no turn ends because of the tools.
    let mut play = Play::with(|config| config.context_tokens = tools / 2);
    for number in 1..=6 {
        let said = play.say(&format!("question {number} {}", "x".repeat(tools as usize / 4)));
        assert_eq!(said.last().map(String::as_str), Some("model_started 1"), "turn {number}");
        play.answer("ok", &[]);
    }
    assert!((2..10).contains(&play.texts().len()), "{}", play.texts().len());
}
