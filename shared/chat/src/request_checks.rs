//! Checks of people's requests before anything is sent.

use domain::{ChatConfig, Code, Error, Limits, ModelSettings};

/// The longest message of a person, in bytes.
const MAX_CONTENT: usize = 200 * 1024;

pub(crate) fn check_content(field: &str, content: &str) -> Result<(), Error> {
    if content.trim().is_empty() {
        return Err(Error::invalid(field, format!("{field} is empty")).hint("say what the agent is to do"));
    }
    if content.len() > MAX_CONTENT {
        let message = format!("{field} is {} bytes long; the limit is {MAX_CONTENT}", content.len());
        return Err(Error::new(Code::PayloadTooLarge, message).hint("put long texts into a file and attach it"));
    }
    Ok(())
}

pub(crate) fn check_limits(limits: Option<Limits>) -> Result<(), Error> {
    let Some(Limits { max_steps, max_tokens, max_wall_ms, max_cost_usd }) = limits else { return Ok(()) };
    // Answers have them as the 64-bit integers of most languages.
    let is_possible = |number: u64| i64::try_from(number).is_ok_and(|number| number > 0);
    let wrong = if max_steps == 0 {
        "max_steps"
    } else if !is_possible(max_tokens) {
        "max_tokens"
    } else if !is_possible(max_wall_ms) {
        "max_wall_ms"
    } else if max_cost_usd <= 0.0 {
        "max_cost_usd"
    } else {
        return Ok(());
    };
    Err(Error::invalid(&format!("limits.{wrong}"), "a limit is a number above 0 and below 2^63")
        .hint("leave it out to keep the chat's"))
}

/// Checks that each of these settings is within its bounds.
pub(crate) fn check_model_settings(settings: ModelSettings) -> Result<(), Error> {
    let Some((name, bounds)) = settings.fault() else { return Ok(()) };
    Err(Error::invalid(&format!("model_settings.{name}"), format!("{name} is {bounds}"))
        .hint("leave it out for the default of the provider"))
}

/// Checks that the chat of this setup takes settings of a model: a coding agent asks a model of its own.
pub(crate) fn check_asks_model(made: Option<&ChatConfig>) -> Result<(), Error> {
    if made.is_none_or(|config| config.thread.is_none()) {
        return Ok(());
    }
    Err(no_model_settings())
}

/// The refusal of settings of a model for a coding agent.
pub(crate) fn no_model_settings() -> Error {
    Error::invalid("model_settings", "a coding agent asks a model with settings of its own")
        .hint("leave them out, or choose a persona by role")
}
