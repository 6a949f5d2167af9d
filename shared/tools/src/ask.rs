//! `ask_user`: questions to people, each with the JSON Schema of its answer.
//!
//! The tool is never run. A chat that sees a call of it reads the questions with [`parse_questions`], suspends, and checks people's answers
//! with [`schema::check_answers`].

use crate::{
    args,
    call::{Answer, Call},
    effects::{Declaration, Declare},
};
use domain::{Code, Error, event::Question};
use schema::Schema;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::LazyLock};

pub(crate) const ASK_USER: &str = "Ask the people you work for, and wait for their answers. Use it when a wrong guess would cost \
    work, and for approvals. Ask all that you need to know at once.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskUser {
    /// The questions.
    #[schemars(length(min = 1, max = 10))]
    questions: Vec<AskedQuestion>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskedQuestion {
    /// A short key for the answer, such as "database"; different for each question.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// The question, in words.
    #[schemars(length(min = 1, max = 4000))]
    question: String,
    /// The JSON Schema of the answer, such as {"type": "boolean"} or {"type": "string", "enum": ["a", "b"]}; any text by
    /// default.
    schema: Option<Map<String, Value>>,
    /// Ready answers to show as buttons; each must fit the schema.
    #[schemars(length(max = 20))]
    buttons: Option<Vec<Value>>,
}

impl Declare for AskUser {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        let _ = into;
        Ok(())
    }
}

pub(crate) async fn ask_user(_: &Call<'_>, _: AskUser) -> Answer {
    Err(Error::new(Code::Unprocessable, "ask_user is answered by people, inside of a chat")
        .hint("start a chat and let its agent ask"))
}

/// The questions of a call of `ask_user`, from its arguments as JSON text.
///
/// # Errors
/// `INVALID_ARGUMENT`, with the field at fault, for arguments of another form, two questions of one name, a schema that cannot be used, and
/// a button that does not fit it.
pub fn parse_questions(args: &str) -> Result<Vec<Question>, Error> {
    static SCHEMA: LazyLock<Value> = LazyLock::new(args::schema::<AskUser>);
    let validator = jsonschema::validator_for(&SCHEMA)
        .map_err(|error| Error::new(Code::Internal, format!("the schema of ask_user is broken: {error}")))?;
    let AskUser { questions } = args::read(args::check(&validator, &SCHEMA, args)?)?;
    let mut names = BTreeSet::new();
    let question = |(position, AskedQuestion { name, question, schema, buttons }): (usize, AskedQuestion)| {
        let field = |name: &str| format!("questions.{position}.{name}");
        if !names.insert(name.clone()) {
            return Err(Error::invalid(&field("name"), format!("two questions are named {name:?}")));
        }
        let schema = schema.map_or_else(|| serde_json::json!({ "type": "string" }), Value::Object);
        let answer = Schema::compile_any_draft(&schema).map_err(|error| {
            Error::invalid(&field("schema"), format!("the schema of {name:?} cannot be used: {error}"))
        })?;
        if let Some(wrong) = buttons.iter().flatten().find(|button| !answer.is_valid(button)) {
            return Err(Error::invalid(&field("buttons"), format!("the button {wrong} does not fit its schema")));
        }
        Ok(Question { name, question, schema, buttons })
    };
    questions.into_iter().enumerate().map(question).collect()
}
