//! Plays the recorded answers of `tests/corpus`, whole and cut at every byte, with every line ending, damaged at every place.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../tests/it/support/eventstream.rs"]
mod eventstream;
#[path = "../../tests/it/support/recorded.rs"]
mod recorded;

use super::{Decoding, Wire, WireFault};
use crate::{
    answer::{Answer, Body},
    secret::Redactor,
};
use futures::{StreamExt, stream};
use ports::{Delta, ModelError};
use recorded::Recorded;
use std::{sync::LazyLock, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

type Said = Vec<Result<Delta, ModelError>>;

fn wire(recorded: &Recorded) -> Wire {
    match recorded.wire.as_str() {
        "chat_completions" => Wire::ChatCompletions,
        "responses" => Wire::Responses,
        "messages" => Wire::Messages,
        "generate_content" => Wire::GenerateContent,
        "converse" => Wire::Converse,
        other => panic!("{other} is no format"),
    }
}

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap());

fn answer(recorded: &Recorded, body: Body) -> Answer {
    let (decoding, provider) = (Decoding::new(wire(recorded)), recorded.wire.clone());
    let (model, redactor) = (("test", "model".into()), Redactor::default());
    Answer { body, decoding, answers_by_call: false, provider, model, price: None, redactor }
}

/// The result of these packets.
fn play(recorded: &Recorded, packets: &[&[u8]]) -> Said {
    let packets: Vec<_> = packets.iter().map(|packet| Ok(packet.to_vec())).collect();
    let answer = answer(recorded, stream::iter(packets).boxed());
    RUNTIME.block_on(answer.into_stream().collect())
}

#[test]
fn recorded_answers_mean_the_same_however_they_are_cut() {
    for recorded in recorded::all() {
        let bytes = recorded.events().concat();
        recorded.check(recorded::AS_IT_CAME, &play(&recorded, &[&bytes]));
        for cut in 1..bytes.len() {
            recorded.check(&format!("cut at {cut}"), &play(&recorded, &[&bytes[..cut], &bytes[cut..]]));
        }
        recorded.check("byte by byte", &play(&recorded, &bytes.chunks(1).collect::<Vec<_>>()));
    }
}

#[test]
fn recorded_answers_mean_the_same_with_every_line_ending_with_a_byte_order_mark_and_with_comments() {
    for recorded in recorded::all().into_iter().filter(|recorded| recorded.wire != "converse") {
        let text = String::from_utf8(recorded.events().concat()).unwrap();
        for (name, ending) in [("CRLF", "\r\n"), ("CR", "\r")] {
            let bytes = text.replace('\n', ending).into_bytes();
            recorded.check(name, &play(&recorded, &[&bytes]));
            for cut in 1..bytes.len() {
                recorded.check(&format!("{name} cut at {cut}"), &play(&recorded, &[&bytes[..cut], &bytes[cut..]]));
            }
        }
        let marked = [b"\xEF\xBB\xBF".as_slice(), text.as_bytes()].concat();
        recorded.check("with a byte order mark", &play(&recorded, &marked.chunks(1).collect::<Vec<_>>()));
        if text.starts_with(['d', 'e', ':']) {
            let commented = text.replace("\n\n", "\n: a comment\n\n: ping\n\n");
            recorded.check("with comments", &play(&recorded, &[commented.as_bytes()]));
            recorded.check("without its last line feeds", &play(&recorded, &[text.trim_end().as_bytes()]));
        }
    }
}

fn text(said: &Said) -> String {
    said.iter()
        .filter_map(|delta| if let Ok(Delta::Text(piece)) = delta { Some(piece.as_str()) } else { None })
        .collect()
}

/// Everything but the tokens.
fn says(said: &Said) -> Vec<String> {
    let line = |line: &str| line.split(" (in ").next().unwrap_or_default().to_owned();
    recorded::rendered(said).lines().map(line).collect()
}

#[test]
fn an_answer_that_breaks_off_anywhere_is_whole_or_an_error_and_keeps_what_came() {
    for recorded in recorded::all() {
        let (events, whole) = (recorded.events(), play(&recorded, &[&recorded.events().concat()]));
        if whole.iter().any(Result::is_err) {
            continue;
        }
        let bytes = events.concat();
        for cut in 0..bytes.len() {
            let said = play(&recorded, &[&bytes[..cut]]);
            if matches!(said.last(), Some(Err(error)) if error.is_transient()) {
                assert!(text(&whole).starts_with(&text(&said)), "{} ended at {cut}: {said:?}", recorded.name);
            } else {
                assert_eq!(says(&said), says(&whole), "{} ended at {cut}", recorded.name);
            }
        }
        let failure = match recorded.wire.as_str() {
            "converse" => eventstream::exception("serviceUnavailableException", r#"{"message": "down"}"#),
            _ => {
                b"event: error\ndata: {\"error\": {\"type\": \"overloaded_error\", \"message\": \"down\"}}\n\n".to_vec()
            }
        };
        for place in 0..events.len() {
            let before = events[..place].concat();
            let said = play(&recorded, &[&before, &failure, &events[place..].concat()]);
            if said.last() == Some(&Err(ModelError::Unavailable("down".into()))) {
                let came = play(&recorded, &[&before]);
                assert_eq!(text(&said), text(&came), "{} failed at {place}", recorded.name);
            } else {
                assert_eq!(says(&said), says(&whole), "{} failed at {place}", recorded.name);
            }
        }
    }
}

#[test]
fn an_answer_without_end_is_not_asked_for_again() {
    let frame = format!("data: {{\"choices\": [{{\"delta\": {{\"content\": \"{}\"}}}}]}}\n\n", "x".repeat(1 << 20));
    let mut decoding = Decoding::new(Wire::ChatCompletions);
    let mut pushed = 0;
    let fault = loop {
        pushed += frame.len();
        match decoding.push(frame.as_bytes()) {
            Ok(()) => while decoding.next().is_some() {},
            Err(fault) => break fault,
        }
    };
    assert!(pushed > super::LARGEST && pushed < super::LARGEST + 2 * frame.len());
    assert!(!crate::failure::fault(fault, &Redactor::default()).is_transient());
}

#[test]
fn an_answer_whose_end_mark_never_comes_ends_soon_after_its_reason() {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for recorded in recorded::all() {
        let mut bytes = recorded.events().concat();
        if recorded.wire != "converse" {
            // The files end in one line feed; the last event has its empty line here.
            bytes.extend(b"\n\n");
        }
        let answer = answer(&recorded, stream::iter([Ok(bytes.clone())]).chain(stream::pending()).boxed());
        let said = answer.into_stream().collect::<Said>();
        match runtime.block_on(async { timeout(Duration::from_secs(10), said).await }) {
            Ok(said) => recorded.check("on a connection that stays open", &said),
            // No end mark came: the timeout for silence then ends the answer.
            Err(_) => assert!(matches!(play(&recorded, &[&bytes]).last(), Some(Err(_))), "{}", recorded.name),
        }
    }
}

#[test]
fn an_answer_of_very_many_calls_is_refused_before_they_are_compared() {
    let calls: Vec<String> = (0..100_000).map(|index| format!("{{\"index\":{index}}}")).collect();
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{}]}}}}]}}\n\n", calls.join(","));
    let refused = Decoding::new(Wire::ChatCompletions).push(event.as_bytes());
    assert!(matches!(refused, Err(WireFault::TooLarge)), "{refused:?}");
    let mut decoding = Decoding::new(Wire::Messages);
    let block = |index: u32| {
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"thinking\",\"thinking\":\"\"}}}}\n\n"
        )
    };
    let refused = decoding.push((0..10_000).map(block).collect::<String>().as_bytes());
    assert!(matches!(refused, Err(WireFault::TooLarge)), "{refused:?}");
}

#[test]
fn damaged_answers_end_in_an_answer_or_an_error() {
    for recorded in recorded::all() {
        let whole = recorded.events().concat();
        for (at, other) in (0..whole.len()).zip(b"\n\"{9\xFF[\0}:,".iter().cycle()) {
            let mut bytes = whole.clone();
            bytes[at] = *other;
            let said = play(&recorded, &[&bytes]);
            let (last, before) = said.split_last().unwrap();
            assert!(matches!(last, Err(_) | Ok(Delta::End { .. })), "{} damaged at {at}: {said:?}", recorded.name);
            assert!(before.iter().all(|delta| matches!(delta, Ok(delta) if !matches!(delta, Delta::End { .. }))));
        }
    }
}
