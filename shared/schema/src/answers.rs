//! Answers of people, checked against the schemas of the questions.

use crate::Schema;
use domain::{Code, Error, event::Question};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Checks that there is one answer to each question, and that each fits its schema.
///
/// # Errors
/// `INVALID_ARGUMENT`, with the field `answers.<name>`, for the first answer that is missing, does not fit, or has no question.
/// `UNPROCESSABLE` when the schema of a question cannot be used.
pub fn check_answers(questions: &[Question], answers: &Map<String, Value>) -> Result<(), Error> {
    for question in questions {
        let field = format!("answers.{}", question.name);
        let answer = answers.get(&question.name).ok_or_else(|| {
            Error::invalid(&field, format!("the question {:?} has no answer", question.name)).hint(&question.question)
        })?;
        let schema = Schema::compile_any_draft(&question.schema).map_err(|error| {
            Error::new(Code::Unprocessable, format!("the schema of {:?} cannot be used: {error}", question.name))
                .hint("stop the turn, and have the question asked with another schema")
        })?;
        if let Some(error) = schema.errors(answer, 1).pop() {
            let message = format!("the answer to {:?} does not fit: {error}", question.name);
            return Err(Error::invalid(&field, message).detail("schema", question.schema.clone()));
        }
    }
    let known: BTreeSet<&str> = questions.iter().map(|question| question.name.as_str()).collect();
    match answers.keys().find(|name| !known.contains(name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let names = known.into_iter().collect::<Vec<_>>().join(", ");
            Err(Error::invalid(&format!("answers.{unknown}"), format!("there is no question {unknown:?}"))
                .hint(format!("the questions are: {names}")))
        }
    }
}
