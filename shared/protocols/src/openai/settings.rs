//! The settings of the model that a request names.

use crate::fields::given;
use domain::{Error, ModelSettings};
use serde_json::{Map, Value};

/// The names of the longest answer in a request for a completion. The first one is the older name of the second one.
pub(super) const LENGTHS_OF_COMPLETION: &[&str] = &["max_tokens", "max_completion_tokens"];
/// Its name in a request for a response.
pub(super) const LENGTHS_OF_RESPONSE: &[&str] = &["max_output_tokens"];

/// The settings of the model. `lengths` are the names of the longest answer: several may be given if they say the same.
pub(super) fn settings(body: &Map<String, Value>, lengths: &[&str]) -> Result<ModelSettings, Error> {
    let number = |field: &str| {
        let read = |value: &Value| value.as_f64().ok_or_else(|| Error::invalid(field, format!("{field} is a number")));
        given(body, field).map(read).transpose()
    };
    let (temperature, top_p) = (number("temperature")?, number("top_p")?);
    if let Some((field, bounds)) = (ModelSettings { temperature, top_p, max_output_tokens: None }).fault() {
        return Err(Error::invalid(field, format!("{field} is {bounds}")));
    }
    let mut max_output_tokens = None;
    for field in lengths {
        let Some(value) = given(body, field) else { continue };
        let tokens = value.as_u64().and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0);
        let tokens =
            tokens.ok_or_else(|| Error::invalid(field, format!("{field} is a whole number, 1 or more, of 32 bits")))?;
        if max_output_tokens.is_some_and(|other| other != tokens) {
            let message = format!("{} do not say the same", lengths.join(" and "));
            return Err(Error::invalid(field, message).hint("give one of them"));
        }
        max_output_tokens = Some(tokens);
    }
    Ok(ModelSettings { temperature, top_p, max_output_tokens })
}
