//! The limits of a model's answer, and why one was not read to its end.

use crate::size::{MAX_ANSWER, MAX_CALLS, beginning, in_json};
use domain::{Code, Error, text};
use ports::ModelError;

/// The most words of a provider about its failure, in bytes: the report of an agent has them, too, and has to fit into a message of the queue.
const MAX_WORDS: usize = 4 * 1024;

/// The detail that names the limit which a request was over, and the limit of the model's context.
const LIMIT: &str = "limit";
const CONTEXT: &str = "context";

/// Why an answer was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IncompleteAnswer {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model's answer is longer than {} MiB, and was cut there", MAX_ANSWER >> 20)]
    TooLong,
    #[error("the model's answer has more than {} calls, and was cut there", MAX_CALLS)]
    TooManyCalls,
}

/// The room that is left in an answer.
pub(crate) struct AnswerCapacity {
    bytes: usize,
    calls: usize,
}

impl Default for AnswerCapacity {
    fn default() -> Self {
        Self { bytes: MAX_ANSWER, calls: MAX_CALLS }
    }
}

impl AnswerCapacity {
    /// As much of the beginning of a text as there is room for.
    pub(crate) fn beginning<'t>(&self, text: &'t str) -> &'t str {
        beginning(text, self.bytes)
    }

    /// Takes the room of a text, if it fits.
    pub(crate) fn take(&mut self, text: &str) -> Result<(), IncompleteAnswer> {
        self.bytes = self.bytes.checked_sub(in_json(text)).ok_or(IncompleteAnswer::TooLong)?;
        Ok(())
    }

    /// Takes the room of a call, if it fits.
    pub(crate) fn take_call(&mut self, tool: &str, args: &str) -> Result<(), IncompleteAnswer> {
        self.calls = self.calls.checked_sub(1).ok_or(IncompleteAnswer::TooManyCalls)?;
        self.take(tool)?;
        self.take(args)
    }
}

/// The error for people when a model did not answer.
pub(crate) fn for_people(error: &IncompleteAnswer) -> Error {
    match error {
        IncompleteAnswer::Model(error) => provider_failed(error),
        IncompleteAnswer::TooLong | IncompleteAnswer::TooManyCalls => Error::new(Code::LimitReached, error.to_string())
            .hint("the text before the cut is kept; ask for long results in files, or in parts"),
    }
}

/// Whether a provider refused a request as longer than the context of its model.
pub(crate) fn is_too_long(error: &Error) -> bool {
    error.details.get(LIMIT).is_some_and(|limit| limit == CONTEXT)
}

/// The error for people when a provider failed. The provider's own words are in it, redacted by the adapter.
/// The code says whether the same request may be served later: `RATE_LIMITED` and `UPSTREAM_UNAVAILABLE` may,
/// `UPSTREAM_REFUSED` and `UNPROCESSABLE` may not.
pub(crate) fn provider_failed(error: &ModelError) -> Error {
    let (code, hint) = match error {
        ModelError::RateLimited { .. } => (Code::RateLimited, "wait a little, then send the message again"),
        ModelError::Unavailable(_) => (Code::UpstreamUnavailable, "nothing is lost: send the message again"),
        ModelError::Broken(_) => (Code::UpstreamUnavailable, "the text that arrived is kept: send the message again"),
        ModelError::Unauthorized(_) => {
            (Code::UpstreamRefused, "check the provider's key and credit in the hub's configuration")
        }
        ModelError::Postponed { why, .. } => return provider_failed(why),
        ModelError::Rejected(_) => {
            (Code::Unprocessable, "check the chat's model, its limits and the provider's address")
        }
        ModelError::TooLong(_) => {
            (Code::Unprocessable, "have ai.context_tokens fit the model, or choose one with a longer context")
        }
    };
    let told = Error::new(code, text::beginning(&error.to_string(), MAX_WORDS)).hint(hint);
    match error {
        ModelError::RateLimited { retry_after: Some(after) } => {
            told.detail("retry_after_ms", u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
        }
        ModelError::TooLong(_) => told.detail(LIMIT, CONTEXT),
        _ => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_provider_about_its_failure_are_bounded() {
        let told = provider_failed(&ModelError::Rejected("x".repeat(1 << 20)));
        assert!(told.message.len() < 5_000 && told.message.ends_with('…'), "{} bytes", told.message.len());
    }
}
