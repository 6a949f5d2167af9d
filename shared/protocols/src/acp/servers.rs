//! The tool servers of an editor (MCP), as it declares them for a session.

use serde_json::Value;

/// The most servers of a session.
const MOST: usize = 16;
/// The longest name of a server. It is a part of the names of its tools.
const MAX_NAME: usize = 24;

/// A tool server of the editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolServer {
    /// Its name in signs that names of tools take; no other server of the session has it.
    pub name: String,
    /// The way to it.
    pub way: ToolServerTransport,
}

/// The transport to a tool server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolServerTransport {
    /// A program, which is spoken to by its standard input and output.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables.
        env: Vec<(String, String)>,
    },
    /// A server that is reached over streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of each request to it.
        headers: Vec<(String, String)>,
    },
}

/// Reads `mcpServers` of a session; without it there are none.
///
/// # Errors
/// The reason, for the editor.
pub(super) fn declared(list: &Value) -> Result<Vec<ToolServer>, String> {
    let list = match list {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        _ => return Err("mcpServers is a list".into()),
    };
    if list.len() > MOST {
        return Err(format!("there are {} tool servers; a session has at most {MOST}", list.len()));
    }
    let mut servers = Vec::<ToolServer>::new();
    for server in list {
        let shown = server["name"].as_str().ok_or("a tool server has a name")?;
        let way = way(server).map_err(|why| format!("the tool server {shown:?}: {why}"))?;
        let is_taken = |name: &str| servers.iter().any(|known| known.name == name);
        let plain = plain(shown);
        let numbered = (2..).map(|number| format!("{}-{number}", &plain[..plain.len().min(MAX_NAME - 3)]));
        let name = [plain.clone()].into_iter().chain(numbered).find(|name| !is_taken(name)).unwrap_or(plain);
        servers.push(ToolServer { name, way });
    }
    Ok(servers)
}

fn way(server: &Value) -> Result<ToolServerTransport, String> {
    let text = |name: &str| {
        let text = server[name].as_str().filter(|text| !text.is_empty());
        text.map(ToOwned::to_owned).ok_or_else(|| format!("{name} is missing, or no text"))
    };
    match server["type"].as_str() {
        None | Some("stdio") => {
            let args = match &server["args"] {
                Value::Null => Some(Vec::new()),
                args => {
                    args.as_array().and_then(|args| args.iter().map(|arg| arg.as_str().map(str::to_owned)).collect())
                }
            };
            let args = args.ok_or("args is a list of texts")?;
            Ok(ToolServerTransport::Program { command: text("command")?, args, env: pairs(server, "env")? })
        }
        Some("http") => Ok(ToolServerTransport::Http { url: text("url")?, headers: pairs(server, "headers")? }),
        Some(other) => Err(format!("{other:?} is no way to a server that this agent offers: it has stdio and http")),
    }
}

/// A list of names and values.
fn pairs(server: &Value, field: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |one: &Value| Some((one["name"].as_str()?.to_owned(), one["value"].as_str()?.to_owned()));
    match &server[field] {
        Value::Null => Ok(Vec::new()),
        list => list
            .as_array()
            .and_then(|list| list.iter().map(pair).collect())
            .ok_or_else(|| format!("{field} is a list of names and values")),
    }
}

/// A name in the signs that names of tools take, with single `_` between others: two of them part a server from its tool.
fn plain(shown: &str) -> String {
    let mut name = String::new();
    for sign in shown.chars() {
        match sign {
            sign if sign.is_ascii_alphanumeric() || sign == '-' => name.push(sign),
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    name.truncate(MAX_NAME);
    let name = name.trim_end_matches('_');
    if name.is_empty() { "server".into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_of_an_editor_are_read_and_get_names_of_tools() {
        let program = json!({ "name": "My  files (work)", "command": "/bin/files", "args": ["-x"], "env": [{ "name": "A", "value": "b" }] });
        let http = json!({ "type": "http", "name": "__", "url": "https://mcp.example.com/", "headers": [] });
        let long = json!({ "name": "a".repeat(30), "command": "x", "args": [], "env": [] });
        let servers = declared(&json!([program, http, long, long])).unwrap();
        let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["My_files_work", "server", &"a".repeat(24), &format!("{}-2", "a".repeat(21))]);
        let env = vec![("A".to_owned(), "b".to_owned())];
        assert_eq!(
            servers[0].way,
            ToolServerTransport::Program { command: "/bin/files".into(), args: vec!["-x".into()], env }
        );
        assert_eq!(
            servers[1].way,
            ToolServerTransport::Http { url: "https://mcp.example.com/".into(), headers: Vec::new() }
        );
        assert_eq!(declared(&Value::Null).unwrap(), []);
    }

    #[test]
    fn a_server_that_makes_no_sense_is_refused_by_its_name() {
        for (server, words) in [
            (json!({ "name": "far", "type": "sse", "url": "https://mcp.example.com/" }), "\"sse\" is no way"),
            (json!({ "name": "far", "type": "http" }), "url is missing"),
            (json!({ "name": "far", "command": "x", "args": [1] }), "args is a list"),
            (json!({ "name": "far", "command": "x", "env": { "A": "b" } }), "env is a list"),
        ] {
            let why = declared(&json!([server])).unwrap_err();
            assert!(why.starts_with("the tool server \"far\": ") && why.contains(words), "{why}");
        }
        assert!(declared(&json!([{ "command": "x" }])).is_err());
        assert!(declared(&json!({})).is_err());
        assert!(declared(&json!(vec![json!({ "name": "a", "command": "x" }); 17])).unwrap_err().contains("at most 16"));
    }
}
