//! An answer while it comes: parts that can be passed on at once, and parts that only its end completes.

use super::{
    MOST_PARTS, WireFault,
    history::{ProviderData, Thought},
};
use domain::event::StopReason;
use ports::Delta;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};

/// The tokens that a provider counts. Those read include those that came from the cache and went into it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    pub written_to_cache: u64,
    /// The cost, of a provider that tells it.
    pub cost_usd: Option<f64>,
}

/// A call while it is written.
#[derive(Default)]
pub(super) struct Call {
    /// Its key on the wire: its index or the index of its block.
    pub key: Option<u64>,
    pub id: String,
    pub name: String,
    /// As the model wrote them, spaces and all.
    pub args: String,
    pub signature: Option<String>,
}

/// A block of reasoning that the provider wants back.
#[derive(Default)]
pub(super) struct Block {
    pub key: Option<u64>,
    pub text: String,
    pub signature: String,
    /// The block as it came, if it comes whole.
    pub whole: Option<Value>,
}

/// The sum of an answer's events.
#[derive(Default)]
pub(super) struct Draft {
    /// Deltas that can be passed on.
    pub ready: VecDeque<Delta>,
    pub calls: Vec<Call>,
    pub blocks: Vec<Block>,
    pub tokens: Tokens,
    /// The provider said why it ended: the answer is whole, though its tokens may still come.
    pub finished: Option<StopReason>,
    /// The model that answers, as the provider names it.
    pub model: Option<String>,
    /// The provider's word for why it does not go on.
    pub refused_for: Option<String>,
    /// Nothing more comes.
    pub over: bool,
    has_text: bool,
    has_reasoning: bool,
}

/// The end of an answer: its calls, and the contents of its last delta.
pub(crate) struct Ending {
    pub calls: Vec<Delta>,
    pub reason: StopReason,
    pub tokens: Tokens,
    pub kept: Value,
    pub model: Option<String>,
}

impl Draft {
    pub fn text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.has_text = true;
            self.ready.push_back(Delta::Text(piece.to_owned()));
        }
    }

    pub fn reasoning(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.has_reasoning = true;
            self.ready.push_back(Delta::Reasoning(piece.to_owned()));
        }
    }

    /// Notes the model that answers, if this says it.
    pub fn answered_by(&mut self, model: &Value) {
        if let Some(name) = model.as_str().filter(|name| !name.is_empty()) {
            self.model = Some(name.chars().take(128).collect());
        }
    }

    /// Checks that it has no more parts than an answer may have.
    ///
    /// # Errors
    /// [`WireFault::TooLarge`].
    pub fn check(&self) -> Result<(), WireFault> {
        let most = self.calls.len().max(self.blocks.len());
        if most > MOST_PARTS { Err(WireFault::TooLarge) } else { Ok(()) }
    }

    pub fn has_text(&self) -> bool {
        self.has_text
    }

    pub fn has_reasoning(&self) -> bool {
        self.has_reasoning
    }

    /// The provider does not go on, for this reason.
    pub fn refuse(&mut self, why: &str) {
        self.finished = Some(StopReason::Refusal);
        self.refused_for.get_or_insert_with(|| why.to_owned());
    }

    /// The call of a block, begun if it is not there yet. Without an index the last one is meant.
    pub fn call(&mut self, key: Option<u64>) -> &mut Call {
        let found = match key {
            Some(_) => self.calls.iter().position(|call| call.key == key),
            None => self.calls.len().checked_sub(1),
        };
        let index = found.unwrap_or_else(|| {
            self.calls.push(Call { key, ..Call::default() });
            self.calls.len() - 1
        });
        &mut self.calls[index]
    }

    /// The block of reasoning, begun if it is not there yet.
    pub fn block(&mut self, key: Option<u64>) -> &mut Block {
        let found = match key {
            Some(_) => self.blocks.iter().position(|block| block.key == key),
            None => self.blocks.len().checked_sub(1),
        };
        let index = found.unwrap_or_else(|| {
            self.blocks.push(Block { key, ..Block::default() });
            self.blocks.len() - 1
        });
        &mut self.blocks[index]
    }

    /// The last deltas, for messages that are kept under the name of `provider`.
    pub fn end(&mut self, provider: &str) -> Ending {
        let reason = self.finished.unwrap_or(StopReason::EndTurn);
        let refused = self.refused_for.take().filter(|_| reason == StopReason::Refusal && !self.has_text);
        let mut ready = Vec::new();
        if let Some(why) = refused {
            // In brackets, because it is not the model that says it.
            ready.push(Delta::Text(format!("[The provider refused to answer: {why}]")));
        }
        let mut kept = ProviderData { provider: provider.to_owned(), ..ProviderData::default() };
        for block in self.blocks.drain(..) {
            if let Some(whole) = block.whole {
                kept.thoughts.push(Thought::Block(whole));
            } else if !block.signature.is_empty() {
                kept.thoughts.push(Thought::Signature(block.signature));
                kept.thoughts.extend((!block.text.is_empty()).then_some(Thought::Reasoning(block.text)));
            }
        }
        // The provider takes back what it refuses in the middle, and its calls with it.
        if reason == StopReason::Refusal {
            self.calls.clear();
        }
        let mut ids = BTreeSet::new();
        let last = self.calls.len().saturating_sub(1);
        for (at, call) in self.calls.drain(..).enumerate() {
            // A call that was cut off in the middle of its arguments, or before them, is no call.
            let is_cut =
                |args: &str| serde_json::from_str::<IgnoredAny>(args).is_err() && (at == last || !args.is_empty());
            if reason != StopReason::EndTurn && is_cut(call.args.trim()) {
                continue;
            }
            let args = match call.args.trim() {
                "" | "null" => "{}".to_owned(),
                _ => call.args,
            };
            let is_own = ids.insert(call.id.clone());
            kept.ids.push(if is_own { call.id } else { String::new() });
            kept.calls.push(call.signature.into_iter().collect());
            ready.push(Delta::Call { tool: call.name, args });
        }
        self.over = true;
        Ending { calls: ready, reason, tokens: self.tokens, kept: kept.into_value(), model: self.model.take() }
    }
}
