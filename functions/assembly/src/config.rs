//! The configuration, of the hub and of the functions in the cloud: a TOML file (the hub's alone), with environment variables on
//! top, with command-line flags on top.
//!
//! `BUILDSCALE__AI__ACTOR_INACTIVITY_TIMEOUT_SECONDS=60` is `actor_inactivity_timeout_seconds = 60` under `[ai]`; so for
//! every key. The usual variables of providers (`OPENAI_API_KEY`, `OPENAI_BASE_URL`, …) work, too.

use crate::{
    Auth, Failure, Settings,
    grants::{Grant, Grants},
    secrets,
};
use domain::Limits;
use ports::KnownSecrets;
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use toml::{Table, Value};
use tools::Commands;

/// The prefix of environment variables that are configuration keys.
const PREFIX: &str = "BUILDSCALE__";

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
    /// Retention and checks of files.
    pub files: Files,
    /// Observers of tasks.
    pub observe: Observe,
    /// The bounds of tasks.
    pub tasks: Tasks,
    /// Providers that flows name themselves.
    pub providers: Providers,
    /// Which secrets of the host flows may send, and where to. Without a grant, flows of accounts may send none; those of a hub for
    /// one person may send the secrets of its folder, and the usual variable of a provider to that provider, such as
    /// `OPENAI_API_KEY` to `openai`.
    pub grants: Vec<Grant>,
    /// The sandbox of commands.
    pub sandbox: Sandbox,
    /// All secrets that are known so far: those of this configuration, and what was learned since.
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
    /// The bearer token that requests must have.
    pub auth_token: Option<models::Secret>,
    /// Whether to listen on an address that others can reach.
    pub allow_public: bool,
    /// Web origins that may call the API from a browser.
    pub cors_origins: Vec<String>,
    /// How long running turns may take to end after Ctrl-C, before they are checkpointed; in seconds.
    pub drain_seconds: Option<u64>,
}

/// `[observe]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observe {
    /// Whether the observers that flows list in `plugins.yaml` may be in private networks and on this machine. The endpoint of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` always may.
    pub allow_private: bool,
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
    /// How many days something stays in the trash before it is removed for good.
    pub trash_days: u32,
    /// How many days after the beginning of a round the archive is compared with its digests again; 0 for never.
    pub scrub_days: u32,
}

impl Default for Files {
    fn default() -> Self {
        Self { trash_days: 30, scrub_days: 7 }
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
    /// done. The limits of a single flow are in its `execution.yaml`.
    pub max_waiting: usize,
}

impl Default for Tasks {
    fn default() -> Self {
        Self { max_waiting: flow::tasks::MOST_WAITING }
    }
}

/// `[sandbox]`
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Whether commands run at all: those of agents (the tool `exec`), of flows and of people.
    pub commands: bool,
    /// Whether they may reach the network: public addresses, through a proxy that programs find in `https_proxy`. Those of flows
    /// need their own permission, too.
    pub network: bool,
    /// Whether they then reach private networks and services of this machine, too; never the hub itself.
    pub allow_private: bool,
    /// How long a command runs when nothing is said, in seconds.
    pub timeout_s: u64,
    /// How long it runs at most.
    pub longest_s: u64,
    /// How long to wait for a sandbox that starts, in seconds.
    pub start_timeout_s: u64,
    /// Folders of this machine that commands may read and run from, beside those of the system, such as a toolchain's. The hub's
    /// alone.
    pub readable: Vec<PathBuf>,
}

impl Default for Sandbox {
    fn default() -> Self {
        let Commands { network, timeout, longest, start_timeout } = Commands::default();
        Self {
            commands: true,
            network,
            allow_private: false,
            timeout_s: timeout.as_secs(),
            longest_s: longest.as_secs(),
            start_timeout_s: start_timeout.as_secs(),
            readable: Vec::new(),
        }
    }
}

impl Sandbox {
    /// How commands are run; none where none are.
    pub fn commands(&self) -> Option<Commands> {
        let seconds = Duration::from_secs;
        self.commands.then(|| Commands {
            network: self.network,
            timeout: seconds(self.timeout_s),
            longest: seconds(self.longest_s.max(self.timeout_s)),
            start_timeout: seconds(self.start_timeout_s),
        })
    }
}

/// `[store]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// `full` (the default): what was answered survives a power cut. `normal`: a crash of the program loses nothing, but a power
    /// cut may lose the last moments; commits cost no sync.
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
    /// How long an idle chat stays in memory, in seconds (spec 000 §3).
    pub actor_inactivity_timeout_seconds: u64,
    /// The context budget of new chats, in tokens.
    pub context_tokens: u64,
    /// How long a question of an agent waits for an answer, in seconds.
    pub question_timeout_seconds: u64,
    /// How long a request for permission waits for an answer, in seconds.
    pub permission_timeout_seconds: u64,
    /// The limits of one turn.
    pub limits: Limits,
    /// The rest of `[ai]` is about models.
    #[serde(flatten)]
    pub models: Table,
}

impl Default for Ai {
    fn default() -> Self {
        Self {
            actor_inactivity_timeout_seconds: 600,
            context_tokens: 100_000,
            question_timeout_seconds: 24 * 3600,
            permission_timeout_seconds: 3600,
            limits: Limits::default(),
            models: Table::new(),
        }
    }
}

impl Ai {
    /// See [`Ai::actor_inactivity_timeout_seconds`].
    pub fn inactivity(&self) -> Duration {
        Duration::from_secs(self.actor_inactivity_timeout_seconds)
    }

    /// The configuration of models, with the usual variables of providers on top.
    pub fn models(&self, environment: &[(String, String)]) -> Result<models::Config, Failure> {
        let file = models::Config::deserialize(Value::Table(self.models.clone())).map_err(wrong)?;
        let lookup = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        Ok(models::Config::from_lookup(Some(file), lookup))
    }
}

impl Config {
    /// Which secrets flows may use.
    pub fn grants(&self) -> Grants {
        Grants::new(&self.grants, self.auth.has_accounts())
    }

    /// How agents and tasks are kept.
    pub fn agents(&self) -> Settings {
        let ai = &self.ai;
        Settings {
            inactivity: ai.inactivity(),
            context_tokens: ai.context_tokens,
            question_timeout: Duration::from_secs(ai.question_timeout_seconds),
            permission_timeout: Duration::from_secs(ai.permission_timeout_seconds),
            limits: ai.limits,
            most_waiting: self.tasks.max_waiting,
        }
    }

    /// Reads the file at `path`, if there is one, and puts the environment on top.
    pub fn load(path: &Path, environment: &[(String, String)]) -> Result<Self, Failure> {
        let table = match std::fs::read_to_string(path) {
            Ok(text) => text.parse::<Table>().map_err(|error| at_line(path, &text, &error))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Table::new(),
            Err(error) => return Err(Failure::Config(format!("{}: {error}", path.display()))),
        };
        Ok(Self { file: Some(path.to_owned()), ..Self::of(table, environment)? })
    }

    /// The environment alone; `theirs` says which of its keys are somebody else's.
    pub fn of_environment(environment: &[(String, String)], theirs: impl Fn(&str) -> bool) -> Result<Self, Failure> {
        let ours: Vec<_> = environment.iter().filter(|(name, _)| !theirs(name)).cloned().collect();
        Self::of(Table::new(), &ours)
    }

    fn of(mut table: Table, environment: &[(String, String)]) -> Result<Self, Failure> {
        for (name, value) in environment {
            if let Some(keys) = name.strip_prefix(PREFIX) {
                let keys: Vec<String> = keys.split("__").map(str::to_lowercase).collect();
                set(&mut table, &keys, value).map_err(|reason| Failure::Config(format!("{name}: {reason}")))?;
            }
        }
        let secrets = KnownSecrets::default();
        secrets::learn_configuration(&table, &secrets);
        // What is wrong with a value may be told with the value.
        let config = Self::deserialize(Value::Table(table))
            .map_err(|error| Failure::Config(secrets.redactor().text(error.message()).into_owned()))?;
        config.server.cors_origins.iter().try_for_each(|origin| origin_of_a_page(origin))?;
        Ok(Self { secrets, ..config })
    }
}

/// Where and why, without the line itself: it may hold a key.
fn at_line(path: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    Failure::Config(format!("{}, line {line}: {}", path.display(), error.message()))
}

fn wrong(error: toml::de::Error) -> Failure {
    Failure::Config(error.message().to_owned())
}

fn set(table: &mut Table, keys: &[String], value: &str) -> Result<(), String> {
    let Some((last, folders)) = keys.split_last() else { return Err("it names no key".into()) };
    let mut table = table;
    for folder in folders {
        let entry = table.entry(folder.clone()).or_insert_with(|| Value::Table(Table::new()));
        table = entry.as_table_mut().ok_or_else(|| format!("{folder} is a value and has no keys"))?;
    }
    // Secrets are texts, whatever they look like.
    let is_secret = ["token", "key", "secret"].iter().any(|ending| last.ends_with(ending));
    if is_secret {
        table.insert(last.clone(), Value::String(value.to_owned()));
        return Ok(());
    }
    // Numbers, booleans and lists as TOML has them; anything else is a text.
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut parsed| parsed.remove("value"));
    table.insert(last.clone(), parsed.unwrap_or_else(|| Value::String(value.to_owned())));
    Ok(())
}

/// That this is one origin (RFC 6454 §6.2). `*` would open a hub on loopback to every page that its person looks at, and `null`
/// is the origin of sandboxed frames of any site.
fn origin_of_a_page(origin: &str) -> Result<(), Failure> {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
    if !rest.is_empty() && rest.bytes().all(fits) {
        return Ok(());
    }
    Err(Failure::Config(format!(
        "server.cors_origins: {origin:?} is no origin of a web page; write its scheme, host and port, such as http://localhost:5173"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(file: &str, environment: &[(&str, &str)]) -> Result<Config, Failure> {
        let failed = |error: std::io::Error| Failure::Config(error.to_string());
        let folder = tempfile::tempdir().map_err(failed)?;
        let path = folder.path().join("buildscale.toml");
        std::fs::write(&path, file).map_err(failed)?;
        let environment: Vec<_> = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Config::load(&path, &environment)
    }

    #[test]
    fn the_environment_is_on_top_of_the_file() -> Result<(), Failure> {
        let file = "[ai]\nactor_inactivity_timeout_seconds = 5\nmodel = \"gpt-4o-mini\"\n[ai.limits]\nmax_steps = 3\n";
        let config = load(file, &[("BUILDSCALE__AI__ACTOR_INACTIVITY_TIMEOUT_SECONDS", "7"), ("OTHER", "1")])?;
        assert_eq!(config.ai.inactivity(), Duration::from_secs(7));
        assert_eq!(config.ai.limits.max_steps, 3);
        assert_eq!(config.ai.models(&[])?.model.as_deref(), Some("gpt-4o-mini"));
        Ok(())
    }

    #[test]
    fn commands_run_unless_somebody_says_no() -> Result<(), Failure> {
        assert_eq!(load("", &[])?.sandbox.commands(), Some(Commands::default()));
        assert_eq!(load("[sandbox]\ncommands = false\n", &[])?.sandbox.commands(), None);
        let long = [("BUILDSCALE__SANDBOX__TIMEOUT_S", "900"), ("BUILDSCALE__SANDBOX__NETWORK", "true")];
        let commands = load("", &long)?.sandbox.commands();
        let fifteen = Duration::from_secs(900);
        let expected = Commands { network: true, timeout: fifteen, longest: fifteen, ..Commands::default() };
        assert_eq!(commands, Some(expected));
        Ok(())
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (file, environment) in [
            ("[server]\nlisten_on = 1\n", vec![]),
            ("[store]\ndurability = \"none\"\n", vec![]),
            ("", vec![("BUILDSCALE__SERVER__LISTEN", "x"), ("BUILDSCALE__SERVER__LISTEN__PORT", "1")]),
            ("not toml", vec![]),
        ] {
            assert!(matches!(load(file, &environment), Err(Failure::Config(_))), "{file} {environment:?}");
        }
        let unknown = load("[ai]\nmodle = \"x\"\n", &[]).and_then(|config| config.ai.models(&[]));
        assert!(matches!(unknown, Err(Failure::Config(message)) if message.contains("modle")));
    }

    #[test]
    fn a_token_is_not_shown() -> Result<(), Failure> {
        let config = load("[server]\nauth_token = \"hunter2\"\n", &[])?;
        assert!(!format!("{config:?}").contains("hunter2"));
        Ok(())
    }

    #[test]
    fn origins_are_those_of_single_pages() {
        let origins = |list: &str| {
            let environment = [("BUILDSCALE__SERVER__CORS_ORIGINS".to_owned(), list.to_owned())];
            Config::of_environment(&environment, |_| false).map(|config| config.server.cors_origins)
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
