//! Observers must be able to take their events: addresses, keys, events (step 7; spec 002 §10.6).

use super::{Loader, report::nearest};
use crate::{
    adapters::wrong_address,
    manifest::{ConfigKey, Plugin, PluginKind},
};
use serde_json::Value;

impl Loader<'_> {
    /// The observers of `plugins.yaml`.
    pub(super) fn check_plugins(&mut self) {
        let plugins = std::mem::take(&mut self.docs.plugins.value.plugins);
        for (place, plugin) in plugins.iter().enumerate() {
            self.check_config(&format!("/plugins/{place}"), plugin);
            if plugin.enabled && plugin.kind == PluginKind::JsonLines && self.known.observer_files == Some(false) {
                let at = self.docs.plugins.at(&format!("/plugins/{place}/type"));
                let message = format!("`{}` is told nothing: this server keeps no files of observers", plugin.id);
                self.faults.note(at, "no_effect", message, "observe by `webhook` or `otlp`");
            }
            for (index, pattern) in plugin.events.iter().enumerate() {
                let told = domain::task_native::NAMES.iter().any(|name| fits(pattern, name));
                if !told {
                    let at = self.docs.plugins.at(&format!("/plugins/{place}/events/{index}"));
                    let hint =
                        nearest(pattern, domain::task_native::NAMES.iter().copied(), "the documentation of events");
                    let message = format!("no event is called `{pattern}`");
                    self.faults.refuse(at, "unknown_event", message, hint.unwrap_or_default());
                }
            }
        }
        self.docs.plugins.value.plugins = plugins;
    }

    fn check_config(&mut self, pointer: &str, plugin: &Plugin) {
        let keys = plugin.kind.keys();
        let names = || keys.iter().map(|(name, ..)| *name);
        for name in plugin.config.keys().filter(|name| !name.starts_with("x-")) {
            if !names().any(|known| known == name) {
                let at = self.docs.plugins.at_key(&format!("{pointer}/config"), name);
                let message = format!("`{}` has no key `{name}`", plugin.id);
                self.faults.refuse(at, "unknown_key", message, nearest(name, names(), "README").unwrap_or_default());
            }
        }
        for (name, key, is_needed) in keys {
            let at = self.docs.plugins.at(&format!("{pointer}/config/{name}"));
            let wrong = match (plugin.config.get(*name), key) {
                (None | Some(Value::Null), _) if *is_needed => {
                    let message = format!("`{}` has no `{name}` to send events to", plugin.id);
                    let hint = format!("write `config: {{{name}: \"https://…\"}}`");
                    self.faults.refuse(at, "missing_key", message, hint);
                    continue;
                }
                // A secret in plain text has its own fault.
                (None | Some(Value::Null), _) | (Some(_), ConfigKey::Secret | ConfigKey::Secrets) => None,
                (Some(Value::String(url)), ConfigKey::Address) => {
                    wrong_address(url).map(|why| (why, "it is `https://host/path`, without a password"))
                }
                (Some(_), ConfigKey::Address) => Some(("it is no address", "it is `https://host/path`")),
                (Some(Value::String(_)), ConfigKey::Text) | (Some(Value::Bool(_)), ConfigKey::Flag) => None,
                (Some(value), ConfigKey::Number) if value.is_u64() => None,
                (Some(_), ConfigKey::Text) => Some(("it is no text", "write a text")),
                (Some(_), ConfigKey::Number) => Some(("it is no number", "write a whole number")),
                (Some(_), ConfigKey::Flag) => Some(("it is neither true nor false", "write true or false")),
            };
            if let Some((why, hint)) = wrong {
                self.faults.refuse(at, "wrong_value", format!("`{name}` of `{}`: {why}", plugin.id), hint);
            }
        }
    }
}

/// Whether a pattern with `*` matches a name.
fn fits(pattern: &str, name: &str) -> bool {
    crate::policy::is_like(pattern, name)
}

#[cfg(test)]
mod tests {
    use crate::load::{KnownNames, load};

    #[test]
    fn an_observer_with_files_is_noted_where_no_disk_lasts() {
        let noted = |observer_files: Option<bool>, enabled: bool| {
            let nodes = "nodes: [{id: s, kind: deterministic, role: start, context: none}, {id: e, kind: deterministic, role: exit, context: none}]";
            let workflow = format!("{nodes}\nedges: [{{from: s, to: e}}]\n");
            let plugins = format!("plugins:\n  - id: lines\n    enabled: {enabled}\n    type: json_lines\n");
            let files = [("workflow.yaml".to_owned(), workflow), ("plugins.yaml".to_owned(), plugins)];
            let known = KnownNames { observer_files, ..KnownNames::default() };
            let flow = load("watched", files.into(), &known).unwrap_or_else(|report| panic!("{report}"));
            flow.notes.iter().map(|note| (note.file.clone(), note.line, note.code)).collect::<Vec<_>>()
        };
        assert_eq!(noted(Some(false), true), [("plugins.yaml".to_owned(), 4, "no_effect")]);
        for (observer_files, enabled) in [(Some(true), true), (None, true), (Some(false), false)] {
            assert_eq!(noted(observer_files, enabled), []);
        }
    }
}
