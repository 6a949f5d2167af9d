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
    match limits {
        Some(Limits { max_steps: 0, .. } | Limits { max_tokens: 0, .. } | Limits { max_wall_ms: 0, .. }) => {
            Err(Error::invalid("limits", "a limit of 0 leaves nothing to do")
                .hint("leave a limit out to keep the chat's"))
        }
        Some(limits) if limits.max_cost_usd <= 0.0 => {
            Err(Error::invalid("limits", "max_cost_usd has to be above 0").hint("leave it out to keep the chat's"))
        }
        _ => Ok(()),
    }
}
