//! Taking secrets out of decisions, before anything comes of them.

use crate::{Decision, Machine};
use ports::Redactor;
use std::borrow::Cow;

/// Takes secrets out of the events and the letters of a decision.
pub(crate) fn decision<M: Machine>(decision: &mut Decision<M>, redactor: &Redactor) {
    if redactor.is_empty() {
        return;
    }
    for event in &mut decision.events {
        let Ok(text) = serde_json::to_string(event) else { continue };
        let Cow::Owned(clean) = redactor.text(&text) else { continue };
        match serde_json::from_str(&clean) {
            Ok(clean) => *event = clean,
            // Only a secret that is a word of our own does this, such as a password that is the name of a field. Which one is
            // not said.
            Err(_) => {
                tracing::warn!("a secret of this host is too ordinary a word to be taken out: choose another one")
            }
        }
    }
    for letter in &mut decision.send {
        redactor.value(&mut letter.command);
    }
}
