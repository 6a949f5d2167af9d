//! The format that a message asks of the answer of its turn: its check, the words that tell the model, and the look at the answer.

use crate::{chats::internal, step::Step};
use domain::{AnswerFormat, Code, Error, answer_json, json_length};
use workspace::blocking;

/// The longest schema of a format, in bytes: it waits with its message.
const MOST: usize = 32 * 1024;

/// The beginning of the words that tell the model of a format.
pub const FORMAT_WORDS: &str = "Answer with nothing but JSON that fits this schema:";

/// Checks that the format of an answer has a schema that answers can be checked against.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a value that is no JSON Schema, and for one that is too long or takes too much to check.
pub async fn check_answer_format(field: &str, format: &AnswerFormat) -> Result<(), Error> {
    let length = json_length(&format.schema);
    if length > MOST {
        return Err(Error::invalid(field, format!("the schema is {length} bytes long; the limit is {MOST}")));
    }
    let schema = format.schema.clone();
    let compiled =
        blocking::run(move || tools::Schema::compile_any_draft(&schema).map(drop)).await.map_err(internal)?;
    compiled.map_err(|error| Error::invalid(field, error.to_string()))
}

/// The words after a message that tell the model of the format.
pub(crate) fn words(format: Option<&AnswerFormat>) -> String {
    format.map(|format| format!("{FORMAT_WORDS}\n{}\n", format.schema)).unwrap_or_default()
}

impl Step<'_> {
    /// Why an answer does not fit the format of the turn; none where it fits, and where any answer does.
    pub(crate) fn misfit(&self, answer: &str) -> Option<Error> {
        let format = self.turn()?.format.as_ref()?;
        let why = match answer_json(answer) {
            None => "it is no JSON".to_owned(),
            Some((value, _)) => match tools::Schema::compile_any_draft(&format.schema) {
                Ok(schema) => schema.errors(&value, 1).pop()?,
                Err(error) => error.to_string(),
            },
        };
        Some(
            Error::new(Code::Unprocessable, format!("the answer does not fit its format: {why}"))
                .hint("send the message again, or ask for a format that is easier to meet"),
        )
    }
}
