//! The tool servers of an editor (MCP): this process speaks to them, as the person whose editor it is, and their tools are functions of the session.

use async_trait::async_trait;
use domain::{Sha256, WorkspaceId, served::SERVED_PREFIX, text::counted};
use mcp::{Children, Egress, ServerConfig, ServerDependencies, Servers};
use ports::{Recipient, Secret, SecretRef, Secrets, ServedTool, ServersOf, ToolServers as _};
use protocols::acp::{ToolServer, ToolServerTransport};
use serde_json::{Value, json, to_string};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use uuid::Uuid;

/// How long a new session waits for its servers: some are fetched before they start.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection to a server may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest name of a function, and the most functions that tools may be, with their size as JSON in bytes. The hub takes a few more: the
/// editor has methods of its own.
const MAX_NAME: usize = 55;
const MOST: usize = 60;
const MAX_ALL: usize = 56 * 1024;

/// The tool servers of a session.
pub(super) struct EditorServers {
    servers: Servers,
    of: ServersOf,
}

/// The tools of a session's servers.
pub(super) struct Offered {
    /// As `functions` of a new thread has them.
    pub functions: Vec<Value>,
    /// The servers and the tools that are not there, each with the reason.
    pub missing: Vec<String>,
}

impl EditorServers {
    /// Those that an editor declares for a project in this folder. Connects to nothing yet.
    ///
    /// # Errors
    /// The reason, for the editor, where one makes no sense.
    pub fn new(declared: Vec<ToolServer>, folder: &str) -> Result<Self, String> {
        let config = |server: ToolServer| {
            let rest = ServerConfig { confined: false, allow_private: true, ..ServerConfig::default() };
            let config = match server.way {
                ToolServerTransport::Program { command, args, env } => {
                    ServerConfig { command: Some(command), args, env: env.into_iter().collect(), ..rest }
                }
                ToolServerTransport::Http { url, headers } => {
                    ServerConfig { url: Some(url), headers: headers.into_iter().collect(), ..rest }
                }
            };
            (server.name, config)
        };
        let all: BTreeMap<String, ServerConfig> = declared.into_iter().map(config).collect();
        // Those that are no text are of no use to a server.
        let environment: Vec<_> = std::env::vars_os()
            .filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()))
            .collect();
        let secrets = Arc::new(NoSecrets);
        let parts = ServerDependencies {
            confined: None,
            children: Some(Arc::new(Children::new(&environment).in_folder(PathBuf::from(folder)))),
            egress: Arc::new(AnyAddress),
            secrets: secrets.clone(),
            host_secrets: secrets,
            accounts: None,
        };
        // They are of a session, and of no workspace.
        let of = ServersOf::new(WorkspaceId(Uuid::nil()));
        Ok(Self { servers: Servers::new(&all, parts)?, of })
    }

    /// Their tools, of those that answer in time.
    pub async fn offered(&self) -> Offered {
        let served = self.servers.tools(&self.of, PATIENCE).await;
        let missing = served.missing.into_iter().map(|(server, why)| format!("the tool server {server}: {why}"));
        let mut offered = Offered { functions: Vec::new(), missing: missing.collect() };
        let mut size = 0;
        for tool in &served.tools {
            let function = function(tool);
            size += function.to_string().len() + 1;
            if size > MAX_ALL || offered.functions.len() == MOST {
                let rest = served.tools.len() - offered.functions.len();
                offered.missing.push(format!("{} more than a session can have", counted(rest, "tool")));
                break;
            }
            offered.functions.push(function);
        }
        offered
    }

    /// Calls the tool that a function is: the words for the agent, and whether the call succeeded. None for a function that is no tool.
    pub async fn call(&self, name: &str, input: &Value) -> Option<(String, bool)> {
        // A session that is loaded has asked nobody yet; servers that are connected are not asked again.
        let tools = self.servers.tools(&self.of, PATIENCE).await.tools;
        let tool = tools.into_iter().find(|tool| function_name(&tool.name) == name)?;
        let args = input.as_object().cloned().unwrap_or_default();
        Some(match self.servers.call(&self.of, &tool.name, args).await {
            Ok(answer) if answer.text.is_empty() && !answer.data.is_null() => {
                (to_string(&answer.data).unwrap_or_default(), !answer.is_error)
            }
            Ok(answer) => (answer.text, !answer.is_error),
            Err(error) => (error.to_string(), false),
        })
    }
}

/// Whether a function is a tool of a server: the methods of an editor have no such name.
pub(super) fn is_tool(function: &str) -> bool {
    function.contains("__")
}

fn function(tool: &ServedTool) -> Value {
    json!({
        "name": function_name(&tool.name), "effects": "mcp", "description": tool.description, "parameters": tool.parameters,
    })
}

/// `server__tool`. One that is too long for a function ends with a digest of the whole.
fn function_name(tool: &str) -> String {
    let name = tool.strip_prefix(SERVED_PREFIX).unwrap_or(tool);
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let digest = Sha256::of(name.as_bytes()).to_string();
    name.chars().take(MAX_NAME - 9).chain(['_']).chain(digest.chars().take(8)).collect()
}

/// The addresses of an editor's servers are the person's own choice.
struct AnyAddress;

impl Egress for AnyAddress {
    fn client(&self, _: &str, _: bool) -> Result<reqwest::Client, String> {
        let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).connect_timeout(CONNECT);
        builder.build().map_err(|error| format!("there is no HTTP client: {error}"))
    }
}

/// An editor gives values, and no references to secrets.
struct NoSecrets;

#[async_trait]
impl Secrets for NoSecrets {
    async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_an_editors_servers_become_functions_with_names_that_fit() {
        let long = format!("mcp__files__{}", "a".repeat(52));
        let [short, long] = ["mcp__files__read", &long].map(function_name);
        assert_eq!(short, "files__read");
        assert!(long.len() == 55 && long.starts_with("files__aaa") && is_tool(&long), "{long}");
        assert_eq!(long, function_name(&format!("mcp__files__{}", "a".repeat(52))));
        assert_ne!(long, function_name(&format!("mcp__files__{}b", "a".repeat(51))));
        assert!(!is_tool("read_text_file"));
        let tool = ServedTool {
            name: "mcp__files__read".into(),
            description: "Reads.".into(),
            parameters: json!({ "type": "object" }),
            is_repeatable: true,
        };
        let declared = protocols::functions::declared(&json!([function(&tool)])).map(|all| all[0].effects);
        assert_eq!(declared.ok(), Some(domain::ClientEffects::Mcp), "a hint of a server is no permission");
    }
}
