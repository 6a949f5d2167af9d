//! `cli_profiles.yaml`: how lines of the REPL become tasks (spec 002 §10.9).

use super::input;
use crate::failure::CliError;
use flow::manifest::{CliProfile, CustomCommand};
use serde_json::{Map, Value};

/// Stands for the typed line.
const TEXT: &str = "{{text}}";

/// The request that a line becomes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LineRequest {
    /// The input of the task.
    pub(super) input: Value,
    /// The start node, where it is not the flow's own.
    pub(super) start: Option<String>,
    /// Whether attached files go along.
    pub(super) files: bool,
}

/// A profile in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile(pub(super) CliProfile);

impl Profile {
    /// For a flow that has none.
    pub(super) fn plain() -> Self {
        let mut profile = CliProfile { id: "default".into(), ..CliProfile::default() };
        profile.telemetry_overlays.enabled = true;
        profile.session_policies.persist_history = true;
        Self(profile)
    }

    /// The flow that its lines run, where the command line names this one.
    pub(super) fn flow<'a>(&'a self, named: &'a str) -> &'a str {
        self.0.default_workflow_id.as_deref().unwrap_or(named)
    }

    /// Whether a run is told by its figures alone.
    pub(super) fn is_brief(&self) -> bool {
        self.0.telemetry_overlays.level.as_deref() == Some("summary")
    }

    /// The events of a run that are told; all when there are none.
    pub(super) fn events(&self) -> &[String] {
        &self.0.telemetry_overlays.filters
    }

    /// The description of a command, for people.
    pub(super) fn about(command: &CustomCommand) -> &str {
        command.description.as_deref().or(command.help.as_deref()).unwrap_or_default()
    }

    /// Its name.
    pub(super) fn id(&self) -> &str {
        &self.0.id
    }

    /// The task that a line without a command becomes.
    pub(super) fn line(&self, line: &str) -> Result<LineRequest, CliError> {
        self.mapped("default", line)
    }

    /// The same by the mapping of this name, else by the default one.
    fn mapped(&self, name: &str, line: &str) -> Result<LineRequest, CliError> {
        let mappings = &self.0.input_mappings;
        let mapping = mappings.get(name).or_else(|| mappings.get("default"));
        let given = input::parse(line)?;
        let input = match mapping.and_then(|mapping| mapping.key.clone()) {
            Some(key) => Value::Object(Map::from_iter([(key, given)])),
            None => given,
        };
        let start = mapping.and_then(|mapping| mapping.start.clone()).or_else(|| self.0.start.clone());
        Ok(LineRequest { input, start, files: mapping.is_none_or(|mapping| mapping.attach_files_as_context) })
    }

    /// The task that `/name text` becomes; none when the profile has no such command.
    pub(super) fn command(&self, name: &str, text: &str) -> Option<Result<LineRequest, CliError>> {
        let is_it =
            |command: &&CustomCommand| command.name == name || command.aliases.iter().any(|alias| alias == name);
        let command = self.0.custom_commands.iter().find(is_it)?;
        if command.entrypoint.is_some() {
            let message =
                format!("/{name} is made by a function, which only a program that embeds the engine can have");
            return Some(Err(CliError::Usage(message)));
        }
        let line = match &command.input {
            Some(template) => Ok(LineRequest { input: fill(template, text), start: self.0.start.clone(), files: true }),
            None => self.mapped(&command.name, text),
        };
        Some(line.map(|wanted| LineRequest { start: command.start.clone().or(wanted.start), ..wanted }))
    }
}

fn fill(template: &Value, text: &str) -> Value {
    match template {
        Value::String(template) => Value::String(template.replace("{{ text }}", TEXT).replace(TEXT, text)),
        Value::Array(items) => items.iter().map(|item| fill(item, text)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), fill(value, text))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn profile(fields: Value) -> Result<Profile, serde_json::Error> {
        serde_json::from_value(fields).map(Profile)
    }

    #[test]
    fn s10_9_a_line_is_mapped_as_the_profile_says() -> Result<(), Box<dyn std::error::Error>> {
        let mapped = profile(json!({
            "id": "ask", "start": "begin",
            "input_mappings": { "default": { "key": "topic", "attach_files_as_context": false } },
        }))?;
        let expected = LineRequest { input: json!({ "topic": "two bees" }), start: Some("begin".into()), files: false };
        assert_eq!(mapped.line("two bees")?, expected);
        let by_command = profile(json!({
            "id": "ask", "input_mappings": { "default": { "key": "topic" }, "draft": { "key": "about", "start": "write" } },
            "custom_commands": [{ "name": "draft" }, { "name": "other" }],
        }))?;
        let wanted = by_command.command("draft", "bees").ok_or("no command")??;
        assert_eq!((wanted.input, wanted.start), (json!({ "about": "bees" }), Some("write".into())));
        assert_eq!(by_command.command("other", "bees").ok_or("no command")??.input, json!({ "topic": "bees" }));
        let plain = Profile::plain().line(r#"{"a": 1}"#)?;
        assert_eq!(plain, LineRequest { input: json!({ "a": 1 }), start: None, files: true });
        Ok(())
    }

    #[test]
    fn s10_9_a_profile_chooses_the_events_shown_and_the_commands() -> Result<(), Box<dyn std::error::Error>> {
        let told = profile(json!({ "id": "p",
            "telemetry_overlays": { "enabled": true, "level": "summary", "filters": ["node_*"] },
            "custom_commands": [
                { "name": "a", "help": "Helps." },
                { "name": "b", "help": "Helps.", "description": "Says more." },
            ],
        }))?;
        assert!(told.is_brief() && !Profile::plain().is_brief());
        assert_eq!((told.events(), Profile::plain().events()), (["node_*".to_owned()].as_slice(), [].as_slice()));
        let about: Vec<&str> = told.0.custom_commands.iter().map(Profile::about).collect();
        assert_eq!(about, ["Helps.", "Says more."]);
        Ok(())
    }

    #[test]
    fn s10_9_a_profile_says_which_flow_it_runs() -> Result<(), Box<dyn std::error::Error>> {
        assert_eq!(profile(json!({ "id": "p", "default_workflow_id": "review" }))?.flow("plan"), "review");
        assert_eq!(Profile::plain().flow("plan"), "plan");
        Ok(())
    }

    #[test]
    fn s10_9_a_profile_has_commands_of_its_own() -> Result<(), Box<dyn std::error::Error>> {
        let profile = profile(json!({ "id": "p", "custom_commands": [
            { "name": "draft", "aliases": ["d"], "start": "write", "input": { "about": "{{text}}", "n": 3 } },
            { "name": "odd", "entrypoint": "a:b" },
        ] }))?;
        let wanted = profile.command("d", "bees").ok_or("no command")??;
        assert_eq!((wanted.input, wanted.start), (json!({ "about": "bees", "n": 3 }), Some("write".into())));
        assert!(profile.command("odd", "x").is_some_and(|wanted| wanted.is_err()));
        assert!(profile.command("other", "x").is_none());
        Ok(())
    }
}
