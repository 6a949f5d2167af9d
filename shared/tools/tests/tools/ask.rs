//! `ask_user`.

use crate::common::{Hands, has};
use buildscale_tools::{check_answers, parse_questions};
use domain::Code;
use serde_json::{Value, json};

#[tokio::test]
async fn it_is_never_run() {
    let args = r#"{"questions": [{"name": "a", "question": "b?"}]}"#;
    assert_eq!(Hands::agent().await.refused("ask_user", args).await.0, Code::Unprocessable);
}

#[test]
fn questions_are_checked_and_answers_have_to_fit_them() {
    let asked = json!({ "questions": [
        { "name": "db", "question": "Which?", "schema": { "type": "string", "enum": ["pg", "my"] }, "buttons": ["pg", "my"] },
        { "name": "why", "question": "Why?" },
    ] });
    let questions = parse_questions(&asked.to_string()).unwrap();
    assert_eq!(questions[1].schema, json!({ "type": "string" }));
    let answers = |value: Value| value.as_object().unwrap().clone();
    assert_eq!(check_answers(&questions, &answers(json!({ "db": "pg", "why": "so" }))), Ok(()));
    for (given, part) in [
        (json!({ "db": "pg" }), "\"why\" has no answer"),
        (json!({ "db": "oracle", "why": "so" }), "\"db\" does not fit"),
        (json!({ "db": "pg", "why": 1 }), "\"why\" does not fit"),
        (json!({ "db": "pg", "why": "so", "more": 1 }), "no question \"more\""),
    ] {
        let error = check_answers(&questions, &answers(given)).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        has(&error.message, &[part]);
    }
    for (wrong, part) in [
        (json!({ "questions": [] }), "\"questions\" is wrong"),
        (json!({ "questions": [{ "name": "a" }] }), "\"question\" is missing in questions.0"),
        (json!({ "questions": [{ "name": "a", "question": "?", "kind": 1 }] }), "no argument \"kind\""),
        (json!({ "questions": [{ "name": "a", "question": "?" }, { "name": "a", "question": "?" }] }), "two questions"),
        (json!({ "questions": [{ "name": "a", "question": "?", "schema": { "type": "text" } }] }), "no JSON Schema"),
        (json!({ "questions": [{ "name": "a", "question": "?", "buttons": [1] }] }), "button 1 does not fit"),
    ] {
        let error = parse_questions(&wrong.to_string()).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{wrong}");
        has(&error.message, &[part]);
    }
}
