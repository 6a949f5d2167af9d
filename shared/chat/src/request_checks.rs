//! Checks of people's requests before anything is sent.

use domain::{Code, Error, Limits};

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
