//! The check of the options that a thread wants against those that its agent offers. The hub does it where an agent has told them, and the adapter
//! when a session begins.

use super::AgentOffers;
use domain::AgentOptions;
use serde_json::Value;
use std::fmt;

/// An option that an agent does not have, or a value that its option does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unoffered {
    /// The option: `mode`, `modelId`, or `configOverrides.` and an id.
    pub option: String,
    /// The value that was wanted.
    pub value: String,
    /// Whether the agent has the option.
    pub is_option: bool,
    /// The values of the option, or the ids of the options that there are.
    pub offered: Vec<String>,
}

impl fmt::Display for Unoffered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { option, value, is_option, .. } = self;
        match is_option {
            true => write!(f, "the agent's option {option} has no value {value:?}"),
            false => write!(f, "the agent has no option {option}"),
        }
    }
}

impl Unoffered {
    /// The choices that there are.
    pub fn hint(&self) -> String {
        match self.offered.is_empty() {
            true => "the agent has none".into(),
            false => format!("one of: {}", self.offered.join(", ")),
        }
    }
}

impl AgentOffers {
    /// Checks the options of a thread. A mode and a model are not checked where the agent tells of none.
    ///
    /// # Errors
    /// The first that it does not offer.
    pub fn check(&self, options: &AgentOptions) -> Result<(), Unoffered> {
        for (name, id, chosen, listed) in
            [("mode", "mode", &options.mode, &self.modes), ("modelId", "model", &options.model_id, &self.models)]
        {
            let Some(value) = chosen else { continue };
            let values = match listed.is_empty() {
                false => listed.iter().map(|one| text(one, "id")).collect(),
                true => self.options.iter().find(|option| option["id"] == id).map(values).unwrap_or_default(),
            };
            if !values.is_empty() && !values.contains(value) {
                let (option, value) = (name.to_owned(), value.clone());
                return Err(Unoffered { option, value, is_option: true, offered: values });
            }
        }
        let mut overrides = options.config_overrides.iter();
        overrides.try_for_each(|(id, value)| offered(&self.options, id, value)).map_err(|unoffered| {
            let option = format!("configOverrides.{}", unoffered.option);
            Unoffered { option, ..unoffered }
        })
    }
}

/// Checks that there is an option with this id and, where it is a selection, this value.
///
/// # Errors
/// The option, if it is not there or has no such value.
pub fn offered(options: &[Value], id: &str, value: &str) -> Result<(), Unoffered> {
    let unoffered =
        |is_option, offered| Err(Unoffered { option: id.to_owned(), value: value.to_owned(), is_option, offered });
    let Some(option) = options.iter().find(|option| option["id"] == id) else {
        return unoffered(false, options.iter().map(|option| text(option, "id")).collect());
    };
    let values = values(option);
    if option["type"] != "select" || values.is_empty() || values.iter().any(|one| one == value) {
        return Ok(());
    }
    unoffered(true, values)
}

/// The values of a selection, which has them by themselves or in groups.
fn values(option: &Value) -> Vec<String> {
    let all = option["options"].as_array().into_iter().flatten();
    let of_one = |one: &Value| match one["options"].as_array() {
        Some(group) => group.iter().map(|one| text(one, "value")).collect(),
        None => vec![text(one, "value")],
    };
    all.flat_map(of_one).collect()
}

fn text(one: &Value, key: &str) -> String {
    one[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_checked_against_what_the_agent_has_told() {
        let effort = json!({ "id": "effort", "type": "select", "options": [
            { "value": "low" }, { "name": "More", "options": [{ "value": "high" }] },
        ] });
        let free = json!({ "id": "note", "type": "text" });
        let offers = AgentOffers {
            modes: vec![json!({ "id": "ask" }), json!({ "id": "code" })],
            options: vec![effort, free],
            ..AgentOffers::default()
        };
        let wants = |mode: Option<&str>, model: Option<&str>, id: &str, value: &str| AgentOptions {
            mode: mode.map(str::to_owned),
            model_id: model.map(str::to_owned),
            config_overrides: [(id.to_owned(), value.to_owned())].into(),
            ..AgentOptions::default()
        };
        assert_eq!(offers.check(&wants(Some("code"), None, "effort", "high")), Ok(()));
        assert_eq!(offers.check(&wants(None, Some("any"), "note", "any")), Ok(()), "it tells of no models");
        for (wanted, words, hint) in [
            (wants(Some("fly"), None, "note", ""), "the agent's option mode has no value \"fly\"", "one of: ask, code"),
            (
                wants(None, None, "effort", "most"),
                "the agent's option configOverrides.effort has no value \"most\"",
                "one of: low, high",
            ),
            (
                wants(None, None, "colour", "red"),
                "the agent has no option configOverrides.colour",
                "one of: effort, note",
            ),
        ] {
            let refused = offers.check(&wanted).err();
            assert_eq!(refused.map(|one| (one.to_string(), one.hint())), Some((words.into(), hint.into())));
        }
        let refused = AgentOffers::default().check(&wants(Some("any"), None, "effort", "low")).err();
        assert_eq!(refused.map(|one| one.hint()), Some("the agent has none".into()));
    }
}
