//! Known prices and context sizes of models.

use domain::Usage;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The highest price, in US dollars per million tokens.
const MOST: f64 = 1e6;

/// A model's prices, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// US dollars per million tokens read, from 0 to 1,000,000.
    #[serde(deserialize_with = "price_of_tokens")]
    pub input: f64,
    /// US dollars per million tokens written, from 0 to 1,000,000.
    #[serde(deserialize_with = "price_of_tokens")]
    pub output: f64,
    /// US dollars per million tokens read from the provider's cache; the price of `input` if it is not set.
    #[serde(default, deserialize_with = "price_of_some_tokens")]
    pub cached: Option<f64>,
    /// US dollars per million tokens that were put into the provider's cache; the price of `input` if it is not set.
    #[serde(default, deserialize_with = "price_of_some_tokens")]
    pub cache_write: Option<f64>,
}

/// TOML knows numbers that are none and infinite ones. A cost that is no number cannot be read from a log, and one below 0 reaches no limit.
fn checked<E: serde::de::Error>(price: f64) -> Result<f64, E> {
    let is_price = (0.0..=MOST).contains(&price);
    is_price.then_some(price).ok_or_else(|| E::custom(format!("a price is a number from 0 to {MOST}, not {price}")))
}

fn price_of_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer).and_then(checked)
}

fn price_of_some_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Option::<f64>::deserialize(deserializer)?.map(checked).transpose()
}

impl Price {
    /// The cost of this usage, in US dollars; `written_to_cache` of the tokens read went into the cache.
    pub(crate) fn cost(&self, usage: &Usage, written_to_cache: u64) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let written = written_to_cache.min(usage.input_tokens - cached);
        let plain = usage.input_tokens - cached - written;
        (plain as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + written as f64 * self.cache_write.unwrap_or(self.input)
            + usage.output_tokens as f64 * self.output)
            / 1e6
    }
}

/// Name, context in tokens, then input, output and cached price. From the providers' public price lists of
/// October 2025: a help for people who did not configure prices, never an invoice.
#[rustfmt::skip]
const KNOWN: &[(&str, u64, f64, f64, f64)] = &[
    ("gpt-4o",                  128_000,  2.5,  10.0, 1.25),
    ("gpt-4o-mini",             128_000,  0.15,  0.6, 0.075),
    ("gpt-4.1",               1_047_576,  2.0,   8.0, 0.5),
    ("gpt-4.1-mini",          1_047_576,  0.4,   1.6, 0.1),
    ("gpt-4.1-nano",          1_047_576,  0.1,   0.4, 0.025),
    ("gpt-5",                   400_000,  1.25, 10.0, 0.125),
    ("gpt-5-mini",              400_000,  0.25,  2.0, 0.025),
    ("gpt-5-nano",              400_000,  0.05,  0.4, 0.005),
    ("o3",                      200_000,  2.0,   8.0, 0.5),
    ("o4-mini",                 200_000,  1.1,   4.4, 0.275),
    ("claude-haiku-4-5",        200_000,  1.0,   5.0, 0.1),
    ("claude-sonnet-4",         200_000,  3.0,  15.0, 0.3),
    ("claude-sonnet-4-5",       200_000,  3.0,  15.0, 0.3),
    ("claude-opus-4-1",         200_000, 15.0,  75.0, 1.5),
    ("gemini-2.5-pro",        1_048_576,  1.25, 10.0, 0.125),
    ("gemini-2.5-flash",      1_048_576,  0.3,   2.5, 0.03),
    ("gemini-2.5-flash-lite", 1_048_576,  0.1,   0.4, 0.01),
    ("text-embedding-3-small",    8_192,  0.02,  0.0, 0.02),
    ("text-embedding-3-large",    8_192,  0.13,  0.0, 0.13),
    ("gemini-embedding-001",      2_048,  0.15,  0.0, 0.15),
    ("amazon.titan-embed-text-v2:0", 8_192, 0.02, 0.0, 0.02),
    ("cohere.embed-english-v3",     512,  0.1,   0.0, 0.1),
    ("cohere.embed-multilingual-v3", 512, 0.1,   0.0, 0.1),
];

/// The known model that this name means: itself, or a dated edition of it such as `gpt-4o-2024-08-06`.
fn known(model: &str) -> Option<&'static (&'static str, u64, f64, f64, f64)> {
    let model = model.rsplit('/').next().unwrap_or(model);
    // On Bedrock, as in `eu.anthropic.claude-sonnet-4-5-20250929-v1:0`.
    let model = model.split_once("anthropic.").map_or(model, |(_, name)| name);
    KNOWN
        .iter()
        .find(|(name, ..)| model.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("-20")))
}

/// The price of a model: the configured one by its full or bare name, else a known one.
pub(crate) fn price(model: &str, bare: &str, configured: &BTreeMap<String, Price>) -> Option<Price> {
    configured.get(model).or_else(|| configured.get(bare)).copied().or_else(|| {
        let &(name, _, input, output, cached) = known(bare)?;
        let cache_write = name.starts_with("claude").then_some(input * 1.25);
        Some(Price { input, output, cached: Some(cached), cache_write })
    })
}

/// The tokens that fit a model's context, if known.
pub(crate) fn context_tokens(bare: &str) -> Option<u64> {
    known(bare).map(|&(_, context, ..)| context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_counts_cached_and_cache_written_tokens_at_their_own_price() {
        let usage = Usage { input_tokens: 1_000_000, output_tokens: 100_000, cached_tokens: 600_000, cost_usd: 0.0 };
        let price = Price { input: 3.0, output: 15.0, cached: Some(0.3), cache_write: Some(3.75) };
        assert!((price.cost(&usage, 100_000) - (0.9 + 0.18 + 0.375 + 1.5)).abs() < 1e-9);
        let plain = Price { cached: None, cache_write: None, ..price };
        assert!((plain.cost(&usage, 0) - 4.5).abs() < 1e-9);
    }

    #[test]
    fn editions_are_known_but_other_models_are_not_mistaken_for_them() {
        assert_eq!(context_tokens("gpt-4o-2024-08-06"), Some(128_000));
        assert_eq!(price("", "claude-sonnet-4-20250514", &BTreeMap::new()).map(|p| p.input), Some(3.0));
        assert_eq!(context_tokens("openai/gpt-5-mini"), Some(400_000));
        assert_eq!(context_tokens("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"), Some(200_000));
        assert_eq!(context_tokens("gpt-4o-audio-preview"), None);
        assert_eq!(price("", "qwen3:8b", &BTreeMap::new()), None);
    }

    #[test]
    fn a_price_is_a_number_that_limits_can_count_with() {
        let read = |text: &str| serde_json::from_str::<Price>(text);
        for text in [
            r#"{"input": -1, "output": 1}"#,
            r#"{"input": 1, "output": 1e300}"#,
            r#"{"input": 1, "output": 1, "cached": -0.5}"#,
            r#"{"input": 1, "output": 1, "cache_write": 1000001}"#,
        ] {
            assert!(read(text).is_err_and(|error| error.to_string().contains("from 0 to 1000000")), "{text}");
        }
        for price in [f64::NAN, f64::INFINITY] {
            assert!(checked::<serde_json::Error>(price).is_err(), "{price}: as TOML has it");
        }
        let free = Price { input: 0.0, output: 0.0, cached: Some(0.0), cache_write: None };
        assert!(read(r#"{"input": 0, "output": 0, "cached": 0}"#).is_ok_and(|price| price == free));
    }

    #[test]
    fn configured_prices_win() {
        let own = Price { input: 9.0, output: 9.0, cached: None, cache_write: None };
        let configured = BTreeMap::from([("openrouter/gpt-4o".to_owned(), own)]);
        assert_eq!(price("openrouter/gpt-4o", "gpt-4o", &configured), Some(own));
        assert_eq!(price("openai/gpt-4o", "gpt-4o", &configured).map(|p| p.input), Some(2.5));
    }
}
