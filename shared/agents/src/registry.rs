//! The agents of the box, and those of the configuration.

use ports::AgentInfo;
use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// An agent: how it is started, and installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAgent {
    /// Its id, such as `codex`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The program: a name on the `PATH`, or an absolute path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment, beside those that every agent has.
    pub env: BTreeMap<String, String>,
    /// The method of ACP by which it signs in before its first session; none for agents that are signed in already.
    pub auth: Option<String>,
    /// The command that would install it.
    pub install: Option<String>,
    /// Whether its process is confined.
    pub confined: Confined,
    /// Files and folders that it can read and run when it is confined, beside the system's and those of its program; relative ones are in its home.
    pub readable: Vec<PathBuf>,
    /// Folders that it can change when it is confined, beside the allowed roots and temporary ones; relative ones are in its home.
    pub writable: Vec<PathBuf>,
}

/// Whether the process of an agent is confined to the folders that it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confined {
    /// It is not: it sees all that the person who runs the hub sees.
    #[default]
    No,
    /// Where this machine can. For agents that are known to work so.
    WherePossible,
    /// Always: where this machine cannot, the agent is not available.
    Required,
}

/// The agents of the box. Each was written for its maker's own program; `docs/how-to/agents.md` names those that the tests run.
pub fn built_in_agents() -> Vec<KnownAgent> {
    let npm = |package: &str| Some(format!("npm install -g {package}"));
    let agent = |id: &str, name: &str, command: &str, args: &[&str], install: Option<String>| KnownAgent {
        id: id.into(),
        name: name.into(),
        command: command.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        install,
        ..KnownAgent::default()
    };
    // The tests run these so.
    let confined = |agent: KnownAgent, writable: &[&str]| KnownAgent {
        confined: Confined::WherePossible,
        writable: writable.iter().map(PathBuf::from).collect(),
        ..agent
    };
    vec![
        confined(
            agent("claude", "Claude Code", "claude-agent-acp", &[], npm("@agentclientprotocol/claude-agent-acp")),
            &[".claude", ".claude.json"],
        ),
        confined(agent("codex", "Codex", "codex-acp", &[], npm("@zed-industries/codex-acp")), &[".codex"]),
        agent("cursor", "Cursor", "cursor-agent", &["acp"], Some("curl -fsS https://cursor.com/install | bash".into())),
        confined(agent("gemini", "Gemini CLI", "gemini", &["--acp"], npm("@google/gemini-cli")), &[".gemini"]),
        agent("goose", "Goose", "goose", &["acp"], Some("brew install block-goose-cli".into())),
        agent("kimi", "Kimi CLI", "kimi", &["acp"], Some("uv tool install kimi-cli".into())),
        confined(
            agent("opencode", "OpenCode", "opencode", &["acp"], npm("opencode-ai")),
            &[".cache/opencode", ".config/opencode", ".local/share/opencode", ".local/state/opencode"],
        ),
        agent("qwen", "Qwen Code", "qwen", &["--acp"], npm("@qwen-code/qwen-code")),
    ]
}

impl KnownAgent {
    /// Its program, if it can be started. `path` is the `PATH` that it is looked for on.
    ///
    /// # Errors
    /// Why not, in words.
    pub(crate) fn program(&self, path: &str) -> Result<PathBuf, String> {
        let command = Path::new(&self.command);
        if self.command.is_empty() {
            return Err("no command is configured".into());
        }
        if command.is_absolute() {
            return match is_program(command) {
                true => Ok(command.to_owned()),
                false => Err(format!("{} is no program", self.command)),
            };
        }
        if command.components().count() > 1 {
            return Err(format!("{:?} is neither a name nor an absolute path", self.command));
        }
        let found =
            std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(command));
        found.into_iter().find(|path| is_program(path)).ok_or_else(|| format!("{} is not on the PATH", self.command))
    }

    /// `confines` is whether this machine can confine a process.
    pub(crate) fn info(&self, path: &str, confines: Result<(), &str>) -> AgentInfo {
        let missing = self.program(path).err();
        let install = self.install.clone().filter(|_| missing.is_some());
        let open = || confines.err().filter(|_| self.confined == Confined::Required);
        let unavailable = missing.or_else(|| open().map(|why| format!("it is to be confined, and cannot be: {why}")));
        AgentInfo { id: self.id.clone(), name: self.name.clone(), unavailable, install }
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_available_when_its_program_is_there() {
        let shell = KnownAgent {
            id: "x".into(),
            command: "sh".into(),
            install: Some("get sh".into()),
            ..KnownAgent::default()
        };
        assert_eq!(shell.info("/usr/bin:/bin", Ok(())).unavailable, None);
        let away = shell.info("/nowhere", Ok(()));
        assert_eq!(away.unavailable.as_deref(), Some("sh is not on the PATH"));
        assert_eq!(away.install.as_deref(), Some("get sh"));
        let to_be_confined = KnownAgent { confined: Confined::Required, ..shell.clone() };
        assert_eq!(to_be_confined.info("/bin", Ok(())).unavailable, None);
        let refused = to_be_confined.info("/bin", Err("no Landlock"));
        assert_eq!(refused.unavailable.as_deref(), Some("it is to be confined, and cannot be: no Landlock"));
        assert_eq!(refused.install, None, "it is there");
        assert!(KnownAgent { command: "./sh".into(), ..shell.clone() }.program("/bin").is_err());
        assert!(KnownAgent { command: "/etc/passwd".into(), ..shell }.program("/bin").is_err());
        let ids: Vec<String> = built_in_agents().into_iter().map(|agent| agent.id).collect();
        assert!(ids.is_sorted(), "{ids:?}");
        let named = built_in_agents().into_iter().map(|agent| (agent.id, agent.name)).collect::<Vec<_>>();
        assert_eq!(named, ports::STOCK_AGENTS.map(|(id, name)| (id.to_owned(), name.to_owned())));
        // A command, and no place to read about one.
        let installs = |agent: &KnownAgent| {
            let command = agent.install.as_deref().and_then(|install| install.split(' ').next());
            command.is_some_and(|command| ["npm", "uv", "brew", "curl"].contains(&command))
        };
        assert!(built_in_agents().iter().all(installs), "each says how it is installed");
    }
}
