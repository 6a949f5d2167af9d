//! The settings with which the model of a chat is asked.

use serde::{Deserialize, Serialize};

/// The settings with which the model of a chat is asked. A setting that is none is left to the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// The temperature of sampling, from 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The share of the likeliest tokens to sample from, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens of one answer of the model, 1 or more. The configuration of the provider may have a lower limit, which holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
}

impl ModelSettings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These settings, with those of `other` in the place of each that is none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            max_output_tokens: self.max_output_tokens.or(other.max_output_tokens),
        }
    }

    /// The name of the first setting outside of its bounds, and the bounds in words; none when all are within.
    pub fn fault(self) -> Option<(&'static str, &'static str)> {
        if self.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            Some(("temperature", "a number from 0 to 2"))
        } else if self.top_p.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            Some(("top_p", "a number from 0 to 1"))
        } else if self.max_output_tokens == Some(0) {
            Some(("max_output_tokens", "a whole number, 1 or more"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ModelSettings = ModelSettings { temperature: None, top_p: None, max_output_tokens: None };

    #[test]
    fn a_setting_outside_of_its_bounds_is_named() {
        let fault = |settings: ModelSettings| settings.fault().map(|(name, _)| name);
        for temperature in [0.0, 0.7, 2.0] {
            assert_eq!(fault(ModelSettings { temperature: Some(temperature), ..NONE }), None, "{temperature}");
        }
        for temperature in [-0.1, 2.1, f64::NAN, f64::INFINITY] {
            let settings = ModelSettings { temperature: Some(temperature), ..NONE };
            assert_eq!(fault(settings), Some("temperature"), "{temperature}");
        }
        assert_eq!(fault(ModelSettings { top_p: Some(1.5), ..NONE }), Some("top_p"));
        assert_eq!(fault(ModelSettings { max_output_tokens: Some(0), ..NONE }), Some("max_output_tokens"));
        assert_eq!(fault(ModelSettings { top_p: Some(1.0), max_output_tokens: Some(u32::MAX), ..NONE }), None);
    }

    #[test]
    fn the_first_settings_go_first_each_by_itself() {
        let first = ModelSettings { temperature: Some(0.0), ..NONE };
        let second = ModelSettings { temperature: Some(1.0), max_output_tokens: Some(9), ..NONE };
        assert_eq!(first.or(second), ModelSettings { temperature: Some(0.0), max_output_tokens: Some(9), ..NONE });
        assert!(NONE.or(NONE).is_empty() && !first.is_empty());
    }
}
