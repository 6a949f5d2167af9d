//! Pieces of an answer of a model, joined before they are told, and what the answer used if it is not read to its end.

use crate::{
    machine::{ChatMachine, Report},
    step::estimate,
};
use actor::EffectContext;
use domain::{MessageId, Usage};
use ports::ModelRequest;
use std::time::Duration;
use tokio::time::Instant;

/// How long pieces of a message are joined before they are made durable and shown (docs/architecture/events.md).
const JOINED_FOR: Duration = Duration::from_millis(50);
/// How long a piece gets at most, in bytes.
const JOINED_TO: usize = 2 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Text,
    Reasoning,
}

/// Pieces of a message: those that have come already go out together, the first as soon as no further one is there, those after it when they are due.
pub(crate) struct Pieces {
    message_id: MessageId,
    kind: PieceKind,
    joined: String,
    pub due: Instant,
    /// The length of the answer so far, its calls included, in bytes.
    pub came: u64,
    /// The usage and the model that its provider told at its end.
    pub told: Option<(Usage, Option<String>)>,
}

impl Pieces {
    pub fn new(message_id: MessageId) -> Self {
        let (kind, joined, due) = (PieceKind::Text, String::new(), Instant::now());
        Self { message_id, kind, joined, due, came: 0, told: None }
    }

    pub fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    pub async fn add(&mut self, kind: PieceKind, piece: &str, context: &EffectContext<ChatMachine>) {
        if kind != self.kind {
            self.report(context).await;
            self.kind = kind;
        }
        self.joined.push_str(piece);
        if self.joined.len() >= JOINED_TO {
            self.report(context).await;
        }
    }

    pub async fn report(&mut self, context: &EffectContext<ChatMachine>) {
        if self.joined.is_empty() {
            return;
        }
        let (message_id, text) = (self.message_id, self.joined.clone());
        let report = match self.kind {
            PieceKind::Text => Report::Wrote { message_id, text },
            PieceKind::Reasoning => Report::Reasoned { message_id, text },
        };
        context.report(report).await;
        // After the report: the turn's time may end while it waits for its place, and then it is made again.
        self.joined.clear();
        self.due = Instant::now() + JOINED_FOR;
    }

    /// The text that was not reported; it goes out with the whole message.
    pub async fn rest(&mut self, context: &EffectContext<ChatMachine>) -> String {
        if self.kind == PieceKind::Reasoning {
            self.report(context).await;
        }
        std::mem::take(&mut self.joined)
    }

    /// The usage of a call that read so many tokens and whose answer is of no use: as its provider told it, else an estimate by what came. None of a call
    /// of which nothing came.
    pub fn spent(&self, read: impl FnOnce() -> u64, cost: impl Fn(&Usage) -> f64) -> Option<Report> {
        let message_id = self.message_id;
        match &self.told {
            Some((usage, model)) => {
                Some(Report::Spent { message_id, usage: *usage, model: model.clone(), estimated: false })
            }
            None if self.came == 0 => None,
            None => {
                let usage = estimate(read(), self.came, cost);
                Some(Report::Spent { message_id, usage, model: None, estimated: true })
            }
        }
    }
}

/// The size of a request, in tokens, estimated. It looks at each message, so it is asked for only where no provider told it.
pub(crate) fn tokens_of(request: &ModelRequest) -> impl FnOnce() -> u64 + use<> {
    let (system, messages, tools) = (request.system.clone(), request.messages.clone(), request.tools.clone());
    move || {
        let messages: u64 = messages.iter().map(|message| message.tokens()).sum();
        let tools: usize = tools.iter().map(|tool| tool.name.len() + tool.description.len()).sum();
        messages + (system.len() + tools) as u64 / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[tokio::test]
    async fn the_usage_that_a_provider_told_counts_also_of_an_answer_that_is_too_long() {
        let mut pieces = Pieces::new(MessageId(Uuid::nil()));
        let cost = |usage: &Usage| usage.output_tokens as f64;
        let spent = |pieces: &Pieces| match pieces.spent(|| 100, cost) {
            Some(Report::Spent { usage, estimated, .. }) => Some((usage, estimated)),
            _ => None,
        };
        assert_eq!(spent(&pieces), None, "nothing came");
        pieces.came = 9;
        let estimate = Usage { input_tokens: 100, output_tokens: 3, cached_tokens: 0, cost_usd: 3.0 };
        assert_eq!(spent(&pieces), Some((estimate, true)));
        let told = Usage { input_tokens: 7, output_tokens: 8, cached_tokens: 1, cost_usd: 0.5 };
        pieces.told = Some((told, None));
        assert_eq!(spent(&pieces), Some((told, false)));
    }
}
