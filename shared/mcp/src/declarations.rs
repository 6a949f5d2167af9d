//! Declarations of servers: those of the configuration, and those of a workspace in the format that hosts of the protocol share.

use domain::FilePath;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// The longest name of a server. It is a part of the names of its tools, which providers of models bound at 64 characters.
const MAX_NAME: usize = 24;
/// The longest declaration of a workspace, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// The most servers that a workspace declares.
const MAX_SERVERS: usize = 16;
/// The longest time that a call may take.
const LONGEST: Duration = Duration::from_secs(600);
/// The time of a call where none is declared.
const USUAL: Duration = Duration::from_secs(60);

/// `[mcp.NAME]`: a server of tools that speaks the Model Context Protocol, for all workspaces. Either `command` or `url`. A text such as
/// `${env:NAME}` or `${secret:NAME}` in `env` or `headers` is a secret by reference.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The program, which is spoken to by its standard input and output.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables, beside the few that every command gets.
    pub env: BTreeMap<String, String>,
    /// The folder of the workspace that it sees and runs in.
    pub cwd: Option<String>,
    /// Whether it runs in the sandbox of the workspace. Else it is a child of the hub, with the rights of its user.
    pub confined: bool,
    /// Whether it may open sockets in the sandbox, where `sandbox.network` gives commands a network.
    pub network: bool,
    /// The address of a server that is reached over HTTP.
    pub url: Option<String>,
    /// Headers of each request to it.
    pub headers: BTreeMap<String, String>,
    /// The client at its issuer, where a sign-in is needed and the issuer registers no clients by itself.
    pub oauth: OauthConfig,
    /// Whether its address may be private.
    pub allow_private: bool,
    /// After so many seconds a call has failed; 1 to 600.
    pub timeout_s: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            confined: true,
            network: false,
            url: None,
            headers: BTreeMap::new(),
            oauth: OauthConfig::default(),
            allow_private: false,
            timeout_s: USUAL.as_secs(),
        }
    }
}

/// The client at the issuer of a server (RFC 6749 §2).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct OauthConfig {
    /// Its id there; without one it is registered with the first sign-in.
    pub client_id: Option<String>,
    /// Its secret, by reference.
    pub client_secret: Option<String>,
    /// The issuer where it is registered, such as `https://id.example.com`. A server that names another one gets no sign-in. The secret needs it, unless the
    /// issuer gives its tokens at the server's own host.
    pub issuer: Option<String>,
    /// The scope to ask for, other than the one that the server names.
    pub scope: Option<String>,
}

/// A declared server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredServer {
    pub how: DeclaredTransport,
    /// The time of a call.
    pub timeout: Duration,
    /// Whether the operator of the installation declares it, whose word needs no grant.
    pub is_own: bool,
}

/// The way to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeclaredTransport {
    Program { words: Vec<String>, env: BTreeMap<String, String>, folder: FilePath, confined: bool, network: bool },
    Http { url: String, headers: BTreeMap<String, String>, oauth: OauthConfig, allow_private: bool },
}

impl ServerConfig {
    /// Why this is no server, if so.
    ///
    /// # Errors
    /// The fault, for people.
    pub fn check(&self, name: &str) -> Result<(), String> {
        self.declared(name)?;
        let is_http = |url: &Url| ["http", "https"].contains(&url.scheme()) && url.has_host();
        if self.url.as_deref().is_some_and(|url| !url.parse::<Url>().is_ok_and(|url| is_http(&url))) {
            return Err("its url is no address such as https://mcp.example.com/mcp".into());
        }
        let most = LONGEST.as_secs();
        match (1..=most).contains(&self.timeout_s) {
            true => Ok(()),
            false => Err(format!("its timeout_s is {}; write 1 to {most}", self.timeout_s)),
        }
    }

    /// Why a key has no effect beside the others, if so. `key` is one of this server, such as `headers.Authorization`.
    pub fn without_effect(&self, key: &str) -> Option<&'static str> {
        match (&self.command, key.split('.').next().unwrap_or_default()) {
            (Some(_), "headers" | "oauth" | "allow_private") => Some("it is for servers that have a url"),
            (None, "args" | "env" | "cwd" | "confined" | "network") => Some("it is for servers that have a command"),
            (Some(_), "network") if !self.confined => {
                Some("a program outside of the sandbox has the network of the hub")
            }
            _ => None,
        }
    }

    pub(crate) fn declared(&self, name: &str) -> Result<DeclaredServer, String> {
        check_name(name)?;
        let Self { command, args, env, cwd, confined, network, url, headers, oauth, allow_private, timeout_s } =
            self.clone();
        if !confined && cwd.is_some() {
            return Err("cwd is a folder of the workspace, which a program outside of the sandbox does not see".into());
        }
        let how = match (command, url) {
            (Some(command), None) => DeclaredTransport::Program {
                words: words(command, args)?,
                env,
                folder: folder(cwd.as_deref())?,
                confined,
                network,
            },
            (None, Some(url)) => DeclaredTransport::Http { url, headers, oauth, allow_private },
            (Some(_), Some(_)) => return Err("it has a command and a url; give one of them".into()),
            (None, None) => return Err("it has neither a command nor a url".into()),
        };
        Ok(DeclaredServer { how, timeout: Duration::from_secs(timeout_s.max(1)).min(LONGEST), is_own: true })
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
        return Err(format!("a name has at most {MAX_NAME} letters, digits, - and _"));
    }
    // Else the server of a tool could not be told from the tool's name.
    if name.contains("__") || name.starts_with('_') || name.ends_with('_') {
        return Err("a name has single _ between other signs".into());
    }
    Ok(())
}

fn words(command: String, args: Vec<String>) -> Result<Vec<String>, String> {
    if command.trim().is_empty() {
        return Err("its command is empty".into());
    }
    Ok([command].into_iter().chain(args).collect())
}

fn folder(cwd: Option<&str>) -> Result<FilePath, String> {
    cwd.map_or(Ok(FilePath::root()), |path| {
        FilePath::parse(path).map_err(|error| format!("its cwd is no folder of the workspace: {error}"))
    })
}

/// A server as hosts declare it. Keys of other hosts mean nothing here.
#[derive(Deserialize)]
struct Pasted {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    oauth: PastedOauth,
    #[serde(default)]
    disabled: bool,
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

/// A client at an issuer as hosts declare it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PastedOauth {
    #[serde(alias = "clientId")]
    client_id: Option<String>,
    #[serde(alias = "clientSecret")]
    client_secret: Option<String>,
    issuer: Option<String>,
    scope: Option<String>,
}

/// A server by its name, or its fault.
pub(crate) type Named = (String, Result<DeclaredServer, String>);

/// Checks a text that declares servers, as `/system/mcp.json` does.
///
/// # Errors
/// The fault of the whole, or of the first server that has one, for people.
pub fn check(text: &str) -> Result<(), String> {
    parse(text)?.into_iter().try_for_each(|(name, server)| match server {
        Ok(_) => Ok(()),
        Err(why) => Err(format!("{name}: {why}")),
    })
}

/// The servers that a workspace declares; or the fault of the whole.
pub(crate) fn parse(text: &str) -> Result<Vec<Named>, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("it is longer than {} KiB", MAX_TEXT >> 10));
    }
    let whole: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let servers = whole.get("mcpServers").or_else(|| whole.get("servers")).and_then(Value::as_object);
    let servers = servers.ok_or("it has no object mcpServers")?;
    if servers.len() > MAX_SERVERS {
        return Err(format!("it declares {} servers; the limit is {MAX_SERVERS}", servers.len()));
    }
    let one = |(name, value): (&String, &Value)| match Pasted::deserialize(value) {
        Ok(pasted) if pasted.disabled => None,
        Ok(pasted) => Some((shorten(name), pasted.declared(name))),
        Err(error) => Some((shorten(name), Err(error.to_string()))),
    };
    Ok(servers.iter().filter_map(one).collect())
}

fn shorten(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

impl Pasted {
    fn declared(self, name: &str) -> Result<DeclaredServer, String> {
        if self.kind.as_deref() == Some("sse") {
            return Err(
                "servers of the old transport over SSE are not spoken to; most offer streamable HTTP, too".into()
            );
        }
        let Self { command, args, env, cwd, url, headers, oauth, .. } = self;
        let PastedOauth { client_id, client_secret, issuer, scope } = oauth;
        let oauth = OauthConfig { client_id, client_secret, issuer, scope };
        let config = ServerConfig { command, args, env, cwd, url, headers, oauth, ..ServerConfig::default() };
        Ok(DeclaredServer { is_own: false, ..config.declared(name)? })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_declaration_of_another_host_is_read_as_it_is() {
        let text = json!({ "mcpServers": {
            "everything": { "command": "npx", "args": ["-y", "x"], "env": { "A": "${secret:a}" }, "autoApprove": ["echo"] },
            "far": { "type": "http", "url": "https://mcp.example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } },
            "off": { "command": "x", "disabled": true },
            "old": { "type": "sse", "url": "https://mcp.example.com/sse" },
            "bad name": { "command": "x" },
            "none": {},
        } });
        let servers = parse(&text.to_string()).unwrap();
        let names: Vec<_> = servers.iter().map(|(name, declared)| (name.as_str(), declared.is_ok())).collect();
        let expected = [("everything", true), ("far", true), ("old", false), ("bad name", false), ("none", false)];
        assert_eq!(names, expected);
        let Ok(DeclaredServer { how: DeclaredTransport::Program { words, confined, .. }, is_own, .. }) = &servers[0].1
        else {
            panic!()
        };
        assert_eq!((words.join(" ").as_str(), *confined, *is_own), ("npx -y x", true, false));
    }

    #[test]
    fn a_server_of_the_operator_has_an_address_a_time_and_no_key_of_the_other_kind() {
        let server = |declared: serde_json::Value| serde_json::from_value::<ServerConfig>(declared).unwrap();
        for (declared, told) in [
            (json!({ "url": "mcp.example.com/mcp" }), "its url is no address"),
            (json!({ "url": "file:///etc/passwd" }), "its url is no address"),
            (json!({ "command": "x", "timeout_s": 0 }), "its timeout_s is 0; write 1 to 600"),
            (json!({ "command": "x", "timeout_s": 601 }), "its timeout_s is 601; write 1 to 600"),
            (json!({ "command": "x", "confined": false, "cwd": "/projects" }), "cwd is a folder of the workspace"),
        ] {
            let fault = server(declared.clone()).check("far").unwrap_err();
            assert!(fault.starts_with(told), "{declared}: {fault}");
        }
        let dead = |declared: serde_json::Value| {
            let (server, keys) = (server(declared.clone()), declared.as_object().unwrap().clone());
            assert_eq!(server.check("far"), Ok(()), "{declared}");
            let mut dead: Vec<String> = keys.into_iter().map(|(key, _)| key).collect();
            dead.retain(|key| server.without_effect(key).is_some());
            dead.sort();
            dead
        };
        let far = json!({ "url": "https://a.example/mcp", "headers": {}, "allow_private": true, "timeout_s": 600 });
        assert_eq!(dead(far), Vec::<String>::new());
        assert_eq!(dead(json!({ "url": "http://127.0.0.1:1", "network": true, "env": {} })), ["env", "network"]);
        assert_eq!(dead(json!({ "command": "x", "args": [], "network": true })), Vec::<String>::new());
        assert_eq!(dead(json!({ "command": "x", "confined": false, "network": true })), ["network"]);
        assert_eq!(dead(json!({ "command": "x", "oauth": {} })), ["oauth"]);
    }

    #[test]
    fn each_key_of_a_server_reaches_its_connection() {
        let declared = |declared: serde_json::Value| {
            let server: ServerConfig = serde_json::from_value(declared).unwrap();
            server.declared("far").unwrap()
        };
        let program = declared(json!({
            "command": "library", "args": ["--all"], "env": { "KEY": "k" }, "cwd": "/projects", "network": true, "timeout_s": 7,
        }));
        let how = DeclaredTransport::Program {
            words: vec!["library".into(), "--all".into()],
            env: BTreeMap::from([("KEY".to_owned(), "k".to_owned())]),
            folder: FilePath::parse("/projects").unwrap(),
            confined: true,
            network: true,
        };
        assert_eq!(program, DeclaredServer { how, timeout: Duration::from_secs(7), is_own: true });
        let child = declared(json!({ "command": "library", "confined": false }));
        assert!(matches!(child.how, DeclaredTransport::Program { confined: false, network: false, .. }));
        let oauth =
            json!({ "client_id": "a", "client_secret": "${env:B}", "issuer": "https://c.example", "scope": "d" });
        let service = declared(json!({
            "url": "https://a.example/mcp", "headers": { "A": "b" }, "oauth": oauth, "allow_private": true,
        }));
        let how = DeclaredTransport::Http {
            url: "https://a.example/mcp".into(),
            headers: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            oauth: OauthConfig {
                client_id: Some("a".into()),
                client_secret: Some("${env:B}".into()),
                issuer: Some("https://c.example".into()),
                scope: Some("d".into()),
            },
            allow_private: true,
        };
        assert_eq!(service, DeclaredServer { how, timeout: USUAL, is_own: true });
    }

    #[test]
    fn a_declaration_is_bounded() {
        let many: serde_json::Map<_, _> = (0..17).map(|n| (format!("s{n}"), json!({ "command": "x" }))).collect();
        assert!(parse(&json!({ "mcpServers": many }).to_string()).unwrap_err().contains("limit is 16"));
        assert!(parse(&" ".repeat(MAX_TEXT + 1)).unwrap_err().contains("64 KiB"));
        assert!(parse("[]").unwrap_err().contains("mcpServers"));
    }
}
