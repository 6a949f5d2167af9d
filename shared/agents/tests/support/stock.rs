//! The coding agents that `scripts/agents` installs, and the model server on this machine that they ask. Also the tests of the hub read this file.

use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// An agent as it is set up for a home and a model server.
pub struct Stock {
    pub id: &'static str,
    pub command: String,
    pub args: Vec<&'static str>,
    pub auth: Option<&'static str>,
    pub env: BTreeMap<String, String>,
}

/// Sets an agent up, by its home and the address of the model server.
pub type Setup = fn(&Path, &str) -> Stock;

impl Stock {
    fn new(id: &'static str, program: &str, home: &Path, env: &[(&str, String)]) -> Self {
        let home = ("HOME".to_owned(), home.display().to_string());
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).chain([home]).collect();
        Self { id, command: installed(program), args: Vec::new(), auth: None, env }
    }
}

/// A folder for an agent's home and work. It is not among temporary files, which also a confined agent sees.
pub fn folder() -> TempDir {
    let stories = packages().ancestors().nth(2).unwrap().join("stories");
    fs::create_dir_all(&stories).unwrap();
    tempfile::tempdir_in(stories).unwrap()
}

/// A program that `scripts/agents` has installed.
pub fn installed(name: &str) -> String {
    let path = packages().join(".bin").join(name);
    assert!(path.exists(), "{name} is not installed: run scripts/agents, which puts it at {}", path.display());
    path.display().to_string()
}

/// The folder of the packages that `scripts/agents` has installed.
pub fn packages() -> PathBuf {
    testkit::installed("agents", "agents").join("node_modules")
}

pub fn codex(home: &Path, models: &str) -> Stock {
    let config = format!(
        "model = \"stub\"\nmodel_provider = \"stub\"\napproval_policy = \"untrusted\"\nsandbox_mode = \"read-only\"\n\
         [model_providers.stub]\nname = \"stub\"\nbase_url = \"{models}/v1\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n\
         requires_openai_auth = false\n"
    );
    fs::create_dir_all(home.join(".codex")).unwrap();
    fs::write(home.join(".codex/config.toml"), config).unwrap();
    Stock::new("codex", "codex-acp", home, &[("STUB_KEY", "x".into())])
}

pub fn opencode(home: &Path, models: &str) -> Stock {
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "stub", "models": { "stub": { "name": "stub" } },
        "options": { "baseURL": format!("{models}/v1"), "apiKey": "x" },
    });
    let config = json!({
        "provider": { "stub": provider }, "model": "stub/stub", "small_model": "stub/stub",
        "permission": { "bash": "ask", "edit": "ask" },
    });
    let env = [
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".into()),
    ];
    Stock { args: vec!["acp"], ..Stock::new("opencode", "opencode", home, &env) }
}

pub fn gemini(home: &Path, models: &str) -> Stock {
    let env = [("GEMINI_API_KEY", "x".into()), ("GOOGLE_GEMINI_BASE_URL", models.to_owned())];
    Stock { args: vec!["--acp"], auth: Some("gemini-api-key"), ..Stock::new("gemini", "gemini", home, &env) }
}

pub fn claude(home: &Path, models: &str) -> Stock {
    let env = [
        ("ANTHROPIC_BASE_URL", models.to_owned()),
        ("ANTHROPIC_API_KEY", "x".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
    ];
    Stock::new("claude", "claude-agent-acp", home, &env)
}

/// Waits for an effect of a command of an agent, which may take a moment longer than the turn of it; whether it comes. Codex has been seen, on a busy
/// machine, to end a turn without the effect of a command that was permitted: then it is asked once more.
pub async fn comes(is_there: impl Fn() -> bool) -> bool {
    let looks = async {
        while !is_there() {
            // poll: nobody tells of a file
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), looks).await.is_ok()
}

/// The model server; it ends with the test.
pub struct Models {
    process: Child,
    port: u16,
}

impl Models {
    pub fn start() -> Self {
        // Cargo runs each test in the folder of its crate.
        let script = ["tests/models.py", "../../shared/agents/tests/models.py"]
            .into_iter()
            .find(|path| Path::new(path).exists());
        let mut command = Command::new("python3");
        let mut process = command.arg(script.unwrap()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap() }
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Models {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
