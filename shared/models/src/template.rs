//! `{{…}}` in scripts: references to the request that a script answers.

use crate::request_view::RequestView;
use serde_json::Value;
use std::str::FromStr;

/// How much is filled into one answer, in bytes: more than anybody reads of one. A text that is looked through counts whole.
const MOST: usize = 16 << 20;
/// The least size that a `{{…}}` counts with, in bytes.
const LEAST: usize = 32;

/// The room that is left in an answer, in bytes.
pub(crate) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST)
    }
}

impl Room {
    /// Whether so many bytes still fit. Once something did not, nothing does.
    fn has(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes.max(LEAST));
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// One `{{…}}`.
enum Variable {
    /// `user`: the last words of a person.
    User,
    /// `result`: the output of the last tool.
    Result,
    /// `counter`: how many answers the model has given in this turn.
    Counter,
    /// `turn`: which turn this is, from 1.
    Turn,
    /// `messages`: how many messages the request holds.
    Messages,
    /// `call.N.output`, with a JSON pointer after it when the output is JSON (`call.0.output/answers/format`): the output of the turn's
    /// N-th call, from 0.
    Output { call: usize, pointer: String },
    /// `call.N.success`: whether it succeeded.
    Success { call: usize },
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of_call = || {
            let (number, field) = text.strip_prefix("call.")?.split_once('.')?;
            let call = number.parse().ok()?;
            match field.strip_prefix("output") {
                Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                    Some(Self::Output { call, pointer: pointer.to_owned() })
                }
                _ => (field == "success").then_some(Self::Success { call }),
            }
        };
        Ok(match text {
            "user" => Self::User,
            "result" => Self::Result,
            "counter" => Self::Counter,
            "turn" => Self::Turn,
            "messages" => Self::Messages,
            _ => of_call().ok_or_else(|| format!("there is no {{{{{text}}}}}"))?,
        })
    }
}

impl Variable {
    /// How much it looks at, in bytes; its value is hardly longer.
    fn length(&self, scene: &RequestView<'_>) -> usize {
        match self {
            Self::User => scene.user.len(),
            Self::Result => scene.results.last().map_or(0, |result| result.output.len()),
            Self::Output { call, .. } => scene.results.get(*call).map_or(0, |result| result.output.len()),
            Self::Counter | Self::Turn | Self::Messages | Self::Success { .. } => 0,
        }
    }

    fn value(&self, scene: &RequestView<'_>) -> String {
        match self {
            Self::User => scene.user.to_owned(),
            Self::Result => scene.results.last().map(|result| result.output.to_owned()).unwrap_or_default(),
            Self::Counter => scene.position.to_string(),
            Self::Turn => scene.turn.to_string(),
            Self::Messages => scene.messages.to_string(),
            Self::Success { call } => scene.results.get(*call).is_some_and(|result| result.success).to_string(),
            Self::Output { call, pointer } => {
                let output = scene.results.get(*call).map(|result| result.output).unwrap_or_default();
                let json: Option<Value> = serde_json::from_str(output).ok();
                match json.as_ref().and_then(|json| json.pointer(pointer)) {
                    Some(Value::String(text)) => text.clone(),
                    Some(value) if !pointer.is_empty() => value.to_string(),
                    _ => output.to_owned(),
                }
            }
        }
    }
}

/// The pieces of a text: the texts between the `{{…}}`, and each of these.
fn pieces(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let found = text.split_once("{{").and_then(|(plain, after)| Some((plain, after.split_once("}}")?)));
        match found {
            Some((plain, (variable, after))) => {
                rest = Some(after);
                Some((plain, Some(variable.trim())))
            }
            None => {
                rest = None;
                Some((text, None))
            }
        }
    })
}

/// Whether a script may say this; else why not.
pub(crate) fn check(text: &str) -> Result<(), String> {
    pieces(text).filter_map(|(_, variable)| variable).try_for_each(|variable| Variable::from_str(variable).map(drop))
}

/// The text with every `{{…}}` filled in, as far as there is room. One that was never checked stays as it is.
pub(crate) fn fill(text: &str, scene: &RequestView<'_>, room: &mut Room) -> String {
    pieces(text).fold(String::with_capacity(text.len()), |mut filled, (plain, variable)| {
        filled.push_str(plain);
        if let Some(variable) = variable {
            match Variable::from_str(variable) {
                Ok(known) if room.has(known.length(scene)) => filled.push_str(&known.value(scene)),
                Ok(_) => {}
                Err(_) => filled.push_str(&format!("{{{{{variable}}}}}")),
            }
        }
        filled
    })
}

/// The same for every text inside a value.
pub(crate) fn fill_value(value: &Value, scene: &RequestView<'_>, room: &mut Room) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, scene, room)),
        Value::Array(items) => items.iter().map(|item| fill_value(item, scene, room)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), fill_value(value, scene, room))).collect()
        }
        other => other.clone(),
    }
}

/// The same check for every text inside a value.
pub(crate) fn check_value(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => check(text),
        Value::Array(items) => items.iter().try_for_each(check_value),
        Value::Object(fields) => fields.values().try_for_each(check_value),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_view::ResultView;
    use serde_json::json;

    #[test]
    fn an_answer_is_filled_as_far_as_there_is_room() {
        let results = vec![ResultView { output: r#"{"a": "0123456789", "b": 1}"#, success: true }];
        let user = "x".repeat(100);
        let scene = RequestView { system: "", user: &user, turn: 1, position: 0, results, messages: 2 };
        let mut room = Room(100 + 32 + 32);
        assert_eq!(
            fill("{{user}} {{turn}}, {{call.0.output/a}}.", &scene, &mut room),
            format!("{user} 1, 0123456789.")
        );
        assert_eq!(fill_value(&json!(["<{{turn}}>"]), &scene, &mut room), json!(["<>"]));
        // A value that does not fit takes what is left: no later one stands in its place.
        assert_eq!(fill("{{user}}{{turn}}", &scene, &mut Room(99)), "");
        let many = "{{user}}".repeat(200_000);
        assert_eq!(fill(&many, &scene, &mut Room::default()).len(), MOST - MOST % 100);
    }
}
