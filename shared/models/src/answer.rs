//! An answer of a provider, from its bytes to deltas.

use crate::{
    failure,
    kind::ProviderKind,
    price::Price,
    retry::SIGN_OF_LIFE,
    secret::Redactor,
    wire::{ANSWER, Decoding, Ending, Tokens},
};
use domain::Usage;
use futures::{Stream, StreamExt, stream};
use ports::{Delta, ModelError, ModelStream};
use serde_json::Value;
use std::{collections::VecDeque, pin::Pin, time::Duration};
use tokio::time::timeout;

/// How long the tokens and the end mark may take after the provider said why the answer ended. Some servers keep the
/// connection open and send neither.
const REST: Duration = Duration::from_secs(5);

/// The highest cost of an answer that a provider is believed, in US dollars.
const MOST_TOLD: f64 = 1e6;

/// The bytes as they come.
pub(crate) type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Vec<u8>>> + Send>>;

/// The answer that is coming.
pub(crate) struct Answer {
    pub body: Body,
    pub decoding: Decoding,
    /// Whether its text is in the arguments of a call that the request forced.
    pub answers_by_call: bool,
    /// The name under which messages keep the provider's own data.
    pub provider: String,
    /// The provider's name, and the model that was asked: it answers, unless the answer names another.
    pub model: (&'static str, String),
    pub price: Option<Price>,
    pub redactor: Redactor,
}

struct Reading {
    answer: Answer,
    ready: VecDeque<Result<Delta, ModelError>>,
    over: bool,
}

impl Answer {
    pub fn into_stream(self) -> ModelStream {
        let reading = Reading { answer: self, ready: VecDeque::new(), over: false };
        stream::unfold(reading, |mut reading| async move { Some((reading.next().await?, reading)) }).boxed()
    }

    fn usage(&self, tokens: Tokens) -> Usage {
        let Tokens { input, output, cached, written_to_cache, cost_usd } = tokens;
        let mut used = Usage { input_tokens: input, output_tokens: output, cached_tokens: cached, cost_usd: 0.0 };
        // Other servers may mean another currency.
        let told = cost_usd.filter(|_| self.model.0 == ProviderKind::OpenRouter.name());
        used.cost_usd = match (self.price, told) {
            (Some(price), _) => price.cost(&used, written_to_cache),
            (None, Some(told)) if (0.0..MOST_TOLD).contains(&told) => told,
            (None, _) => 0.0,
        };
        used
    }
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(delta);
            }
            if self.over {
                return None;
            }
            self.read().await;
        }
    }

    /// Reads the next packet.
    async fn read(&mut self) {
        let answer = &mut self.answer;
        let next = answer.body.next();
        let packet =
            if answer.decoding.has_finished() { timeout(REST, next).await.unwrap_or(None) } else { next.await };
        let taken = match packet {
            Some(Ok(bytes)) => answer.decoding.push(&bytes).map_err(|fault| failure::fault(fault, &answer.redactor)),
            // The answer is complete without the lost bytes.
            Some(Err(_)) if answer.decoding.has_finished() => {
                answer.decoding.end().map_err(|fault| failure::fault(fault, &answer.redactor))
            }
            Some(Err(error)) => Err(failure::transport(error, &answer.redactor)),
            None => answer.decoding.end().map_err(|fault| failure::fault(fault, &answer.redactor)),
        };
        while let Some(delta) = answer.decoding.next() {
            self.ready.push_back(Ok(delta));
        }
        match taken {
            // The first word is the last: nothing that a provider says after an error counts.
            Err(error) => {
                self.over = true;
                self.ready.push_back(Err(failure::of_chat(error)));
            }
            Ok(()) if answer.decoding.is_over() => {
                self.over = true;
                let Ending { calls, reason, tokens, kept, model } = answer.decoding.finish(&answer.provider);
                let usage = answer.usage(tokens);
                let answers_by_call = answer.answers_by_call;
                let said = |delta| match delta {
                    Delta::Call { tool, args } if answers_by_call && tool == ANSWER => Delta::Text(args),
                    delta => delta,
                };
                // Nothing of such a call goes into a history.
                let kept = if answers_by_call { Value::Null } else { kept };
                self.ready.extend(calls.into_iter().map(said).map(Ok));
                let (provider, asked) = &answer.model;
                let model = Some(format!("{provider}/{}", model.as_ref().unwrap_or(asked)));
                self.ready.push_back(Ok(Delta::End { reason, usage, provider: kept, model }));
            }
            Ok(()) if self.ready.is_empty() => self.ready.push_back(Ok(SIGN_OF_LIFE)),
            Ok(()) => {}
        }
    }
}
