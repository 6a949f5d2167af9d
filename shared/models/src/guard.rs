//! A decorator for tests: checks that messages that were sent to a provider do not change.

use async_trait::async_trait;
use domain::Message;
use parking_lot::Mutex;
use ports::{Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use std::{collections::HashMap, sync::Arc};

/// Refuses a request that does not begin with the previous request of its conversation, so that tests notice when the
/// caches of providers would be lost. Leaving out the oldest whole turns is allowed: that is how a context is cut.
pub struct PrefixGuard {
    inner: Arc<dyn Model>,
    last: Mutex<HashMap<String, ModelRequest>>,
}

impl PrefixGuard {
    /// `inner`, guarded.
    pub fn new(inner: Arc<dyn Model>) -> Self {
        Self { inner, last: Mutex::default() }
    }
}

/// The forbidden change between two requests of one conversation, if any.
fn change(before: &ModelRequest, now: &ModelRequest) -> Option<String> {
    if before.system != now.system {
        return Some("the system text changed".into());
    }
    if before.tools != now.tools {
        return Some("the tools changed".into());
    }
    let starts_turn =
        |index: &usize| matches!(before.messages.get(*index).map(AsRef::as_ref), Some(Message::User { .. }));
    let cuts = std::iter::once(0).chain((1..before.messages.len()).filter(starts_turn));
    let kept = |cut: usize| before.messages.get(cut..).is_some_and(|rest| now.messages.starts_with(rest));
    if before.messages.is_empty() || cuts.into_iter().any(kept) {
        return None;
    }
    let first = before.messages.iter().zip(now.messages.iter()).position(|(before, now)| before != now);
    Some(match first {
        Some(index) => format!("message {index} changed: {:?} was {:?}", now.messages[index], before.messages[index]),
        None => format!("{} messages became {}", before.messages.len(), now.messages.len()),
    })
}

#[async_trait]
impl Model for PrefixGuard {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let changed = {
            let mut last = self.last.lock();
            let before = last.insert(request.conversation.clone(), request.clone());
            before.and_then(|before| change(&before, &request))
        };
        match changed {
            Some(reason) => Err(ModelError::Rejected(format!("the provider's cache is lost: {reason}"))),
            None => self.inner.stream(request).await,
        }
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        self.inner.catalog()
    }

    fn default_model(&self) -> Option<String> {
        self.inner.default_model()
    }
}
