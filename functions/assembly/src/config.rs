//! The configuration, of the hub and of the functions in the cloud: a TOML file (the hub's alone), with environment variables on
//! top, with command-line flags on top.
//!
//! `BUILDSCALE__AI__ACTOR_INACTIVITY_TIMEOUT_SECONDS=60` is `actor_inactivity_timeout_seconds = 60` under `[ai]`; so for
//! every key. The usual variables of providers (`OPENAI_API_KEY`, `OPENAI_BASE_URL`, …) work, too.

mod bounds;
mod documents;
mod hub;
mod ineffective;
#[cfg(test)]
mod keys;
mod observe;
mod planner;
mod read;
mod sandbox;
mod search;
mod webhooks;

use crate::{
    Auth, Settings, SetupError,
    grants::{Grant, Grants},
    process,
};
pub use documents::Documents;
use domain::Limits;
use engine::handoff::HandoffLimits;
pub use hub::{Agent, Hub};
pub use observe::{Observe, Telemetry};
pub use planner::Planner;
use ports::KnownSecrets;
pub use read::{Origin, Setting, Sources, nearest, unknown_variables};
pub use sandbox::Sandbox;
pub use search::Search;
use serde::Deserialize;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use toml::{Table, Value};
pub use webhooks::Webhooks;

/// Everything that can be configured. Every key may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address of the hub, and the callers that it accepts.
    pub server: Server,
    /// Accounts, tokens and limits.
    pub auth: Auth,
    /// Durability.
    pub store: Store,
    /// Agents and models.
    pub ai: Ai,
    /// Sessions of the planner chat.
    pub planner: Planner,
    /// Retention and checks of files.
    pub files: Files,
    /// Observers of tasks.
    pub observe: Observe,
    /// Webhooks of workspaces.
    pub webhooks: Webhooks,
    /// Traces.
    pub telemetry: Telemetry,
    /// The bounds of tasks.
    pub tasks: Tasks,
    /// Providers that flows name themselves.
    pub providers: Providers,
    /// The secrets of the host that flows may send, and their recipients. Without a grant, flows of accounts may send none; those of a hub for
    /// one person may send the secrets of its folder, and the usual variable of a provider to it, such as `OPENAI_API_KEY` to `openai`.
    pub grants: Vec<Grant>,
    /// The sandbox of commands.
    pub sandbox: Sandbox,
    /// Search by meaning.
    pub search: Search,
    /// Descriptions of pictures, sound and film.
    pub documents: Documents,
    /// Where coding agents may work. The hub's alone.
    pub hub: Hub,
    /// Coding agents, by their names. The hub's alone; a hub with accounts has none.
    pub agents: BTreeMap<String, Agent>,
    /// Servers of tools that speak the Model Context Protocol, by name; a workspace may declare its own in `/system/mcp.json`.
    pub mcp: BTreeMap<String, mcp::ServerConfig>,
    /// The web as tools of agents.
    pub web: web::WebConfig,
    /// Calendars elsewhere that people connect.
    pub calendars: calendars::CalendarsConfig,
    /// All secrets that are known so far: those of this configuration, and those learned since.
    #[serde(skip)]
    pub secrets: KnownSecrets,
    /// The file that it was read from, if it was.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// `[server]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The address and port to listen on, such as `127.0.0.1:8686`.
    pub listen: Option<String>,
    /// The bearer token that requests must have. The hub's alone.
    pub auth_token: Option<models::Secret>,
    /// Whether to listen on an address that others can reach. The hub's alone.
    pub allow_public: bool,
    /// Web origins that may call the API from a browser.
    pub cors_origins: Vec<String>,
    /// How many connections one client may have at once (an IPv4 address, or a network of 64 bits of IPv6); further ones are closed. By default
    /// a quarter of all that there may be. Loopback addresses have no bound: a proxy on this machine brings all clients from there. A proxy on
    /// another machine counts as one client: set it as high as there may be connections through it. 1 or more. The hub's alone.
    pub connections_per_address: Option<usize>,
    /// How long running turns may take to end after Ctrl-C, before they are checkpointed; in seconds, 0 for no time. The hub's alone.
    pub drain_seconds: Option<u64>,
}

/// `[providers]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Providers {
    /// Whether the providers that flows name in `providers.yaml` may be in private networks and on this machine.
    pub allow_private: bool,
}

/// `[files]`
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// How many days something stays in the trash before it is removed for good; with 0 until the next sweep.
    pub trash_days: u32,
    /// How many days after the beginning of a round the archive is compared with its digests again; 0 for never.
    pub scrub_days: u32,
    /// Whether documents, under `/data` or attached to a chat, are converted to Markdown in the background.
    pub convert: bool,
}

impl Default for Files {
    fn default() -> Self {
        Self { trash_days: 30, scrub_days: 7, convert: true }
    }
}

impl Files {
    /// See [`Files::scrub_days`].
    pub fn scrub_every(&self) -> Option<Duration> {
        (self.scrub_days > 0).then(|| Duration::from_secs(u64::from(self.scrub_days) * 24 * 3600))
    }

    /// See [`Files::trash_days`].
    pub fn trash_kept(&self) -> Duration {
        Duration::from_secs(u64::from(self.trash_days) * 24 * 3600)
    }
}

/// `[tasks]`
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tasks {
    /// How many messages of tasks one workspace may have waiting; one that has as many is refused further tasks until some are
    /// done. 1 or more. The limits of a single flow are in its `execution.yaml`.
    pub max_waiting: usize,
    /// How many tasks may follow each other in a workspace, each started by a file that the one before it wrote; 1 to 100. The next one is refused,
    /// and the refusal names the loop, if there is one.
    pub handoff_depth: usize,
    /// How many tasks files may start in a workspace in a minute; 1 to 10000. More wait.
    pub handoffs_per_minute: usize,
}

impl Default for Tasks {
    fn default() -> Self {
        let HandoffLimits { depth, per_minute } = HandoffLimits::default();
        Self { max_waiting: engine::tasks::MOST_WAITING, handoff_depth: depth, handoffs_per_minute: per_minute }
    }
}

/// `[store]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// `full` (the default): every answered request survives a power cut. `normal`: a crash of the program loses nothing, but a power cut may lose
    /// the last moments; commits cost no sync. The hub's alone.
    pub durability: Durability,
}

/// See [`Store::durability`].
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Every commit is synced.
    #[default]
    Full,
    /// Only checkpoints are synced.
    Normal,
}

/// `[ai]`
#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct Ai {
    /// How long an idle chat stays at rest until it is shut down, in seconds (spec 000 §3); 1 or more.
    pub actor_inactivity_timeout_seconds: u64,
    /// How long the context of a chat stays in memory, in seconds, also after it was shut down (spec 003 §14); at most 64 MiB are kept. 0 for none.
    pub context_cache_seconds: u64,
    /// The context budget of new chats, in tokens; 1 or more.
    pub context_tokens: u64,
    /// How long a question of an agent waits for an answer, in seconds; 1 or more.
    pub question_timeout_seconds: u64,
    /// How long a request for permission waits for an answer, in seconds; 1 or more.
    pub permission_timeout_seconds: u64,
    /// The limits of one turn of a chat, and of an agent in a flow: both can ask for less.
    pub limits: Limits,
    /// The rest of `[ai]` is about models.
    #[serde(flatten)]
    pub models: Table,
}

impl Default for Ai {
    fn default() -> Self {
        Self {
            actor_inactivity_timeout_seconds: 600,
            context_cache_seconds: 3600,
            context_tokens: 100_000,
            question_timeout_seconds: 24 * 3600,
            permission_timeout_seconds: 3600,
            limits: Limits::default(),
            models: Table::new(),
        }
    }
}

impl Ai {
    /// The keys that are not about models.
    const OWN: [&str; 6] = [
        "actor_inactivity_timeout_seconds",
        "context_cache_seconds",
        "context_tokens",
        "question_timeout_seconds",
        "permission_timeout_seconds",
        "limits",
    ];

    /// The configuration of models, with the usual variables of providers on top.
    ///
    /// # Errors
    /// [`SetupError::Config`] for a key that models do not have, or a value of another type.
    pub fn models(&self, environment: &[(String, String)]) -> Result<models::Config, SetupError> {
        let file = models::Config::deserialize(Value::Table(self.models.clone()))
            .map_err(|error| SetupError::Config(format!("ai: {}", error.message())))?;
        let lookup = |name: &str| process::variable(environment, name).map(str::to_owned);
        Ok(models::Config::from_lookup(Some(file), lookup))
    }
}

/// Those of a configuration without a key, where no worker has a converter.
impl Default for Settings {
    fn default() -> Self {
        Self { converts: false, ..Config::default().agents() }
    }
}

impl Config {
    /// The secrets that flows may use.
    pub fn grants(&self) -> Grants {
        Grants::new(&self.grants, self.auth.has_accounts())
    }

    /// How agents and tasks are kept.
    pub fn agents(&self) -> Settings {
        let ai = &self.ai;
        Settings {
            inactivity: Duration::from_secs(ai.actor_inactivity_timeout_seconds),
            context_cache: Duration::from_secs(ai.context_cache_seconds),
            context_tokens: ai.context_tokens,
            question_timeout: Duration::from_secs(ai.question_timeout_seconds),
            permission_timeout: Duration::from_secs(ai.permission_timeout_seconds),
            limits: ai.limits,
            sessions: self.planner.sessions(),
            most_waiting: self.tasks.max_waiting,
            handoffs: HandoffLimits { depth: self.tasks.handoff_depth, per_minute: self.tasks.handoffs_per_minute },
            converts: self.files.convert,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(file: &str, environment: &[(&str, &str)]) -> Result<Config, SetupError> {
        Sources::of_text(file, environment).read()
    }

    #[test]
    fn the_environment_is_on_top_of_the_file() -> Result<(), SetupError> {
        let file = "[ai]\nactor_inactivity_timeout_seconds = 5\nmodel = \"gpt-4o-mini\"\n[ai.limits]\nmax_steps = 3\n";
        let config = load(file, &[("BUILDSCALE__AI__ACTOR_INACTIVITY_TIMEOUT_SECONDS", "7"), ("OTHER", "1")])?;
        let Settings { inactivity, context_cache, .. } = config.agents();
        assert_eq!((inactivity, context_cache), (Duration::from_secs(7), Duration::from_secs(3600)));
        assert_eq!(config.ai.limits.max_steps, 3);
        assert_eq!(config.ai.models(&[])?.model.as_deref(), Some("gpt-4o-mini"));
        Ok(())
    }

    #[test]
    fn unknown_keys_are_refused() {
        for (file, environment) in [
            ("[server]\nlisten_on = 1\n", vec![]),
            ("[store]\ndurability = \"none\"\n", vec![]),
            ("", vec![("BUILDSCALE__SERVER__LISTEN", "x"), ("BUILDSCALE__SERVER__LISTEN__PORT", "1")]),
            ("not toml", vec![]),
        ] {
            assert!(matches!(load(file, &environment), Err(SetupError::Config(_))), "{file} {environment:?}");
        }
    }

    #[test]
    fn a_fault_names_its_file_line_and_key_or_its_variable_and_suggests_a_name() {
        let check = |file: &str, environment: &[(&str, &str)], expected: &str| {
            let words = load(file, environment).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(words.ends_with(expected), "{words}\n{expected}");
        };
        check(
            "[ai]\n# which\nmodle = \"x\"\n",
            &[],
            "buildscale.toml, line 3: ai.modle: there is no such key; did you mean model?",
        );
        check(
            "[server]\nlisten = 1\n",
            &[],
            "buildscale.toml, line 2: server.listen: invalid type: integer `1`, expected a string",
        );
        check("[sever]\n", &[], "line 1: sever: there is no such key; did you mean server?");
        check(
            "\n[ai.openai]\nbase_ur = \"x\"\n",
            &[],
            "line 3: ai.openai.base_ur: there is no such key; did you mean base_url?",
        );
        check(
            "[planner]\ncontext_tokens = 100\n",
            &[],
            "buildscale.toml, line 2: planner.context_tokens: a session has 100 tokens, and its conversation, location and profile 3800; \
             raise it, or lower these",
        );
        check("[ai]\ncontext_token = 1\n", &[], "ai.context_token: there is no such key; did you mean context_tokens?");
        check(
            "[server]\nlisten = \"x\"\n",
            &[("BUILDSCALE__SERVER__DRAIN_SECONDS", "soon")],
            "BUILDSCALE__SERVER__DRAIN_SECONDS: server.drain_seconds: invalid type: string \"soon\", expected a whole number",
        );
        check("a = \n", &[], "buildscale.toml, line 1: string values must be quoted, expected literal string");
    }

    #[test]
    fn a_file_that_is_named_has_to_be_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let nowhere = folder.path().join("nope.toml");
        let named = Sources::find(Some(&nowhere), folder.path(), &[]).map(drop);
        assert!(matches!(named, Err(SetupError::Config(words)) if words.ends_with("nope.toml: there is no such file")));
        assert!(Sources::find(None, folder.path(), &[]).is_ok_and(|sources| sources.file().is_none()));
    }

    #[test]
    fn a_list_of_a_variable_needs_no_brackets() -> Result<(), SetupError> {
        let config = load("", &[("BUILDSCALE__SERVER__CORS_ORIGINS", "http://a.example, http://b.example")])?;
        assert_eq!(config.server.cors_origins, ["http://a.example", "http://b.example"]);
        Ok(())
    }

    #[test]
    fn settings_are_shown_with_their_origin_and_without_secrets() -> Result<(), SetupError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("buildscale.toml");
        std::fs::write(&path, "[server]\nauth_token = \"hunter2\"\n[ai]\nmodel = \"gpt-5\"\n").expect("written");
        let environment = [("BUILDSCALE__AI__CONTEXT_TOKENS".to_owned(), "7".to_owned())];
        let settings = Sources::find(None, folder.path(), &environment)?.settings()?;
        let shown: Vec<_> = settings
            .iter()
            .map(|one| (one.key.as_str(), one.value.as_str(), one.origin.as_ref().map(ToString::to_string)))
            .collect();
        let line = |line: usize| Some(format!("{}, line {line}", path.display()));
        let expected = [
            ("server.auth_token", "(hidden)", line(2)),
            ("ai.model", "\"gpt-5\"", line(4)),
            ("ai.context_tokens", "7", Some("BUILDSCALE__AI__CONTEXT_TOKENS".to_owned())),
        ];
        assert!(expected.iter().all(|one| shown.contains(one)), "{shown:?}");
        Ok(())
    }

    #[test]
    fn variables_that_mean_nothing_are_told() {
        let environment = [
            "BUILDSCALE_SERVER_LISTEN",
            "BUILDSCALE_SEARCH_EMBEDDING_MODEL",
            "BUILDSCALE_LOGS",
            "BUILDSCALE_URL",
            "BUILDSCALE_CALENDAR_CLIENT_SECRET",
            "BUILDSCALE__AI__MODEL",
            "HOME",
        ];
        let told = unknown_variables(&environment.map(|name| (name.to_owned(), String::new())));
        assert_eq!(
            told,
            [
                "BUILDSCALE_SERVER_LISTEN means nothing; did you mean BUILDSCALE__SERVER__LISTEN?",
                "BUILDSCALE_SEARCH_EMBEDDING_MODEL means nothing; did you mean BUILDSCALE__SEARCH__EMBEDDING_MODEL?",
                "BUILDSCALE_LOGS means nothing; did you mean BUILDSCALE_LOG?",
            ]
        );
    }

    #[test]
    fn a_token_is_not_shown() -> Result<(), SetupError> {
        let config = load("[server]\nauth_token = \"hunter2\"\n", &[])?;
        assert!(!format!("{config:?}").contains("hunter2"));
        Ok(())
    }

    #[test]
    fn origins_are_those_of_single_pages() {
        let origins = |list: &str| {
            let environment = [("BUILDSCALE__SERVER__CORS_ORIGINS".to_owned(), list.to_owned())];
            Sources::of_environment(&environment, |_| false).read().map(|config| config.server.cors_origins)
        };
        assert!(origins(r#"["http://localhost:5173", "https://[::1]:8443"]"#).is_ok_and(|list| list.len() == 2));
        for bad in [
            "*",
            "null",
            "localhost:5173",
            "http://",
            "https://a.example/",
            "https://a.example/path",
            "https://*.example",
        ] {
            let refused = origins(&format!("[{bad:?}]"));
            assert!(refused.is_err_and(|error| error.to_string().contains("cors_origins")), "{bad}");
        }
    }
}
