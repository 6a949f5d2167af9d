//! Work that takes a second, and knows how much of it there was at once.

use async_trait::async_trait;
use domain::{Error, Message, StopReason, Usage, WorkspaceId};
use engine::memory::Ranker;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A model that says one word after a second, or never when it is asked to `hang`; and a ranker that takes a second. Both count by the
/// first word of their prompt, and all together: how many run, and how many ran at most.
#[derive(Clone, Default)]
pub struct Slow(Arc<Mutex<BTreeMap<String, Count>>>);

/// How many are at something, were at most, and ever began it.
#[derive(Clone, Copy, Default)]
struct Count {
    now: usize,
    most: usize,
    begun: usize,
}

impl Slow {
    /// How many were at this at once, at most; at anything when it is empty.
    pub fn most(&self, what: &str) -> usize {
        self.0.lock().get(what).map_or(0, |count| count.most)
    }

    /// How many ever began this; anything when it is empty.
    pub fn begun(&self, what: &str) -> usize {
        self.0.lock().get(what).map_or(0, |count| count.begun)
    }

    fn enter(&self, asked: &str) -> Inside {
        let what = asked.split_whitespace().next().unwrap_or_default().to_owned();
        let mut all = self.0.lock();
        for what in [&*what, ""] {
            let count = all.entry(what.to_owned()).or_default();
            count.now += 1;
            count.begun += 1;
            count.most = count.most.max(count.now);
        }
        Inside(self.clone(), what)
    }
}

/// Somebody is at it, until this is dropped.
struct Inside(Slow, String);

impl Drop for Inside {
    fn drop(&mut self) {
        let mut all = self.0.0.lock();
        for what in [&*self.1, ""] {
            all.entry(what.to_owned()).or_default().now -= 1;
        }
    }
}

#[async_trait]
impl Model for Slow {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let asked = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { content, .. }) => content.clone(),
            _ => String::new(),
        };
        let inside = self.enter(&asked);
        let answer = async move {
            if inside.1 == "hang" {
                std::future::pending::<()>().await;
            }
            // poll: time is under test here, and it jumps
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(inside);
            let end =
                Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
            stream::iter([Ok(Delta::Text("done".into())), Ok(end)])
        };
        Ok(stream::once(answer).flatten().boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        let info = |provider: &str| ModelInfo {
            id: format!("{provider}/*"),
            provider: provider.to_owned(),
            available: true,
            note: None,
            default: false,
            context_tokens: None,
        };
        let usual = ModelInfo { id: "one/usual".to_owned(), default: true, ..info("one") };
        vec![info("one"), info("two"), usual]
    }
}

#[async_trait]
impl Ranker for Slow {
    async fn rank(&self, _: WorkspaceId, query: &str, texts: &[&str]) -> Result<Vec<f64>, Error> {
        let _inside = self.enter(query);
        // poll: time is under test here, and it jumps
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(texts.iter().map(|_| 1.0).collect())
    }
}
