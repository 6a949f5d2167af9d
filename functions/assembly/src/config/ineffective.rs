//! The keys that are set and have no effect, because of the values of other keys. A start names them and goes on: an operator may prepare a part that
//! is switched on later.

use super::{Config, Sources, observe::ENDPOINT};
use crate::SetupError;

/// A table, or a key, whose values cannot act now.
struct Rule {
    /// The beginning of the keys, to the end of a word.
    keys: &'static [&'static str],
    /// Whether this configuration leaves them without an effect.
    applies: bool,
    reason: &'static str,
}

impl Sources {
    /// The keys that are set without an effect, each with its place and the reason. `config` is that of these sources.
    pub fn without_effect(&self, config: &Config) -> Vec<String> {
        let Ok(settings) = self.settings() else { return Vec::new() };
        let rules = rules(config, self);
        let mut told = Vec::new();
        for setting in &settings {
            let key = setting.key.as_str();
            let rule = rules.iter().find(|rule| rule.applies && rule.keys.iter().any(|own| is_in(key, own)));
            let reason = rule.map(|rule| rule.reason).or_else(|| of_server(config, key));
            if let Some(SetupError::Config(words)) =
                reason.map(|reason| self.refused(key, &format!("it has no effect: {reason}")))
            {
                told.push(words);
            }
        }
        told
    }
}

/// Whether a key is `own`, or in the table `own`.
fn is_in(key: &str, own: &str) -> bool {
    key.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

const fn rule(keys: &'static [&'static str], applies: bool, reason: &'static str) -> Rule {
    Rule { keys, applies, reason }
}

fn rules(config: &Config, sources: &Sources) -> Vec<Rule> {
    let Config { auth, telemetry, sandbox, search, files, web, .. } = config;
    let has_issuer = auth.jwks_url.as_deref().is_some_and(|url| !url.trim().is_empty());
    let has_collector = telemetry.otlp_endpoint.is_some() || sources.is_set(ENDPOINT);
    let has_embedder = search.embedding_model.as_deref().is_some_and(|model| !model.trim().is_empty());
    vec![
        rule(
            &["auth.issuer", "auth.audience"],
            !auth.has_accounts(),
            "tokens are accepted only with auth.jwks_url or auth.secret",
        ),
        rule(
            &["auth.cli_client_id", "auth.console_client_id", "auth.cli_scopes"],
            !has_issuer,
            "people sign in only at an issuer that publishes its keys, which auth.jwks_url names",
        ),
        rule(
            &["planner.requests_per_minute", "planner.tokens_per_minute"],
            auth.allowance().is_some(),
            "the limits of [auth] count messages to the planner chat among all requests",
        ),
        rule(
            &["agents", "hub.agent_idle_seconds", "hub.agent_start_seconds", "hub.max_active"],
            auth.has_accounts(),
            "a hub with accounts has no coding agents",
        ),
        rule(
            &[
                "sandbox.network",
                "sandbox.allow_private",
                "sandbox.timeout_s",
                "sandbox.longest_s",
                "sandbox.start_timeout_s",
            ],
            !sandbox.commands,
            "sandbox.commands refuses all commands",
        ),
        rule(&["sandbox.allow_private"], !sandbox.network, "commands have no network without sandbox.network"),
        rule(&["search.embedding_dimensions"], !has_embedder, "search.embedding_model names no model"),
        rule(&["documents.description_model"], !files.convert, "files.convert keeps documents from being converted"),
        rule(
            &["telemetry.otlp_headers_secret", "telemetry.service_name", "telemetry.content"],
            !has_collector,
            "telemetry.otlp_endpoint names no collector",
        ),
        rule(
            &["web.search.url", "web.search.api_key"],
            web.search.provider.is_none(),
            "web.search.provider names no provider, so agents cannot search",
        ),
        rule(&["web.search.api_key"], !web.search.needs_key(), "searxng is asked without a key"),
    ]
}

/// Why a key of a server of tools has no effect beside the others of this server.
fn of_server(config: &Config, key: &str) -> Option<&'static str> {
    let (name, own) = key.strip_prefix("mcp.")?.split_once('.')?;
    config.mcp.get(name)?.without_effect(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that are told for a file.
    fn told(text: &str, environment: &[(&str, &str)]) -> Vec<String> {
        let sources = Sources::of_text(text, environment);
        let (config, faults) = sources.examine();
        assert!(faults.is_empty(), "{text}: {faults:?}");
        let told = sources.without_effect(&config);
        let is_placed = |words: &String| words.starts_with("buildscale.toml, line ");
        assert!(told.iter().all(is_placed), "{told:?}");
        let key = |words: &String| words.split(": ").nth(1).map(str::to_owned);
        told.iter().filter_map(key).collect()
    }

    #[test]
    fn a_key_that_cannot_act_beside_the_others_is_told_with_its_place() {
        const SECRET: &str = "secret = \"a secret of at least thirty-two bytes\"\n";
        let accounts = |text: &str| format!("[auth]\n{SECRET}{text}");
        for (text, dead) in [
            ("[auth]\nissuer = \"a\"\naudience = \"b\"\n".to_owned(), vec!["auth.issuer", "auth.audience"]),
            (accounts("issuer = \"a\"\ncli_client_id = \"c\"\n"), vec!["auth.cli_client_id"]),
            (accounts("[planner]\nrequests_per_minute = 5\n"), vec!["planner.requests_per_minute"]),
            (
                "[auth]\nrequests_per_minute = 5\n[planner]\ntokens_per_minute = 5\n".to_owned(),
                vec!["planner.tokens_per_minute"],
            ),
            (
                accounts("[hub]\nmax_active = 2\nallowed_roots = [\"/\"]\n[agents.own]\ncommand = \"x\"\n"),
                vec!["hub.max_active", "agents.own.command"],
            ),
            ("[sandbox]\ncommands = false\ntimeout_s = 5\n".to_owned(), vec!["sandbox.timeout_s"]),
            ("[sandbox]\nallow_private = true\n".to_owned(), vec!["sandbox.allow_private"]),
            ("[search]\nembedding_dimensions = 8\n".to_owned(), vec!["search.embedding_dimensions"]),
            (
                "[files]\nconvert = false\n[documents]\ndescription_model = \"ollama/llava\"\n".to_owned(),
                vec!["documents.description_model"],
            ),
            ("[telemetry]\ncontent = true\n".to_owned(), vec!["telemetry.content"]),
            ("[web.search]\nurl = \"https://a.example\"\n".to_owned(), vec!["web.search.url"]),
            (
                "[web.search]\nprovider = \"searxng\"\nurl = \"http://127.0.0.1\"\napi_key = \"k\"\n".to_owned(),
                vec!["web.search.api_key"],
            ),
            (
                "[mcp.far]\nurl = \"https://a.example\"\nargs = [\"x\"]\nheaders = { A = \"b\" }\n".to_owned(),
                vec!["mcp.far.args"],
            ),
        ] {
            let mut found = told(&text, &[]);
            found.sort();
            let mut dead = dead;
            dead.sort_unstable();
            assert_eq!(found, dead, "{text}");
        }
        let collector = [(ENDPOINT, "http://127.0.0.1:4318")];
        assert_eq!(told("[telemetry]\ncontent = true\n", &collector), Vec::<String>::new());
        let acts = "[sandbox]\nnetwork = true\nallow_private = true\n[planner]\nrequests_per_minute = 5\n[agents.own]\ncommand = \"x\"\n";
        assert_eq!(told(acts, &[]), Vec::<String>::new());
    }
}
