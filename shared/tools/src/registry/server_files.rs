//! Resources and prompts of servers as files under [`ports::SERVED_FILES`] (spec 004 §11). `ls` and `read` of a path there ask the server; nothing of it is
//! stored, so no other tool finds it. A prompt is a command of people, too: a message that begins with `/mcp__SERVER__PROMPT`.

use super::{
    Registry,
    served_tools::{PATIENCE, demand, of},
};
use crate::{
    call::{Answer, Done},
    caps,
};
use domain::{Code, Error, FilePath};
use ports::{SERVED_FILES, ServedFile, ToolServers};
use serde_json::{Value, json};
use std::time::Duration;
use workspace::Workspace;

/// The tools that such files are read with.
const LISTS: &str = "ls";
const READS: &str = "read";
/// The start of a message that is a prompt.
const COMMAND: &str = "/mcp__";
/// How long servers that are not connected are waited for by a person who asks for the prompts.
const PROMPTS_WITHIN: Duration = Duration::from_secs(1);

/// The file or folder of a server that a call is about, if it is about one.
pub(crate) fn file_of(tool: &str, args: &str) -> Option<FilePath> {
    if tool != LISTS && tool != READS {
        return None;
    }
    let args: Value = serde_json::from_str(args).ok()?;
    let path = FilePath::parse(args["path"].as_str()?).ok()?;
    let rest = path.as_str().strip_prefix(SERVED_FILES)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(path)
}

/// The same of a call that asks the server for contents.
pub(crate) fn read_of(tool: &str, args: &str) -> Option<FilePath> {
    file_of(tool, args).filter(|_| tool == READS)
}

pub(crate) async fn call(
    servers: &dyn ToolServers,
    workspace: &Workspace,
    tool: &str,
    path: &FilePath,
    args: &Value,
) -> Answer {
    let of = of(workspace).await;
    if tool == LISTS {
        return list(&servers.files(&of, PATIENCE).await, path);
    }
    let inside = path.as_str().strip_prefix(SERVED_FILES).and_then(|rest| rest.split('/').nth(1));
    demand(servers, &of, workspace, inside.unwrap_or_default()).await?;
    let answer = servers.read(&of, path).await?;
    let first = args["offset"].as_u64().unwrap_or(1).saturating_sub(1) as usize;
    let most = args["limit"].as_u64().map_or(usize::MAX, |limit| limit as usize);
    let is_part = first > 0 || most < usize::MAX;
    let text = match is_part {
        true => answer.text.lines().skip(first).take(most).collect::<Vec<_>>().join("\n"),
        false => answer.text,
    };
    let (output, is_capped) = caps::cap(text);
    let truncated = answer.is_cut || is_capped;
    Ok(Done { output, truncated, result: json!({ "path": path }), capped: true, ..Done::default() })
}

/// The names right below a folder: files with their purpose, and folders.
fn list(files: &[ServedFile], path: &FilePath) -> Answer {
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    for file in files {
        let Some(rest) = file.path.strip_prefix(path.as_str()).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let (name, row) = match rest.split_once('/') {
            Some((folder, _)) => (format!("{folder}/"), format!("{folder}/")),
            None => (rest.to_owned(), format!("{rest}  {}", file.about)),
        };
        if names.last() != Some(&name) {
            names.push(name);
            rows.push(row);
        }
    }
    if names.is_empty() && path.as_str() != SERVED_FILES {
        return Err(
            Error::not_found("folder", path).hint(format!("ls {SERVED_FILES} lists the servers that have files"))
        );
    }
    let output = if rows.is_empty() { "no server has resources or prompts".to_owned() } else { rows.join("\n") };
    Ok(Done { output, result: json!({ "names": names }), ..Done::default() })
}

/// The commands among the files of servers. A prompt with a blank in its name is none: no message could name it.
fn commands(files: Vec<ServedFile>) -> Vec<(String, String)> {
    let command = |file: ServedFile| {
        let (server, rest) = file.path.strip_prefix(SERVED_FILES)?.strip_prefix('/')?.split_once('/')?;
        let prompt = rest.strip_prefix("prompts/")?.strip_suffix(".md").filter(|name| !name.contains([' ', '/']))?;
        Some((format!("mcp__{server}__{prompt}"), file.about))
    };
    files.into_iter().filter_map(command).collect()
}

impl Registry {
    /// The commands that the prompts of servers are, such as `mcp__github__review`, each with its purpose and its arguments. A server that does not answer
    /// within a second has none.
    pub async fn prompts(&self, workspace: &Workspace) -> Vec<(String, String)> {
        let Some(servers) = self.servers() else { return Vec::new() };
        commands(servers.files(&of(workspace).await, PROMPTS_WITHIN).await)
    }

    /// The words that a message stands for which is a prompt of a server, such as `/mcp__github__review 4`; none for any other message.
    ///
    /// # Errors
    /// `NOT_FOUND` for a prompt that a server of the workspace does not have, `INVALID_ARGUMENT` for arguments that it does not take; those of its server.
    pub async fn prompted(&self, workspace: &Workspace, message: &str) -> Result<Option<String>, Error> {
        let (Some(servers), Some(command)) = (self.servers(), message.trim().strip_prefix(COMMAND)) else {
            return Ok(None);
        };
        let (name, args) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let of = of(workspace).await;
        let server = name.split_once("__").map_or(name, |(server, _)| server);
        demand(&**servers, &of, workspace, server).await?;
        let answer = match servers.prompt(&of, name, args.trim()).await {
            // No server of the workspace is meant.
            Err(error) if error.code == Code::NotFound && error.hint.is_none() => return Ok(None),
            answer => answer?,
        };
        Ok(Some(format!("{}\n\n{}", message.trim(), caps::cap(answer.text).0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_about_files_of_servers_are_told_by_their_paths() {
        let path =
            |tool: &str, path: &str| file_of(tool, &json!({ "path": path }).to_string()).map(|path| path.to_string());
        assert_eq!(path("read", "/system/mcp/a/x").as_deref(), Some("/system/mcp/a/x"));
        assert_eq!(path("ls", "/system/mcp").as_deref(), Some("/system/mcp"));
        assert_eq!(path("read", "/system/mcp/../mcp/a/x"), None);
        for other in ["/system/mcp.json", "/system/mcpx/a", "/projects/mcp"] {
            assert_eq!(path("read", other), None, "{other}");
        }
        assert_eq!(path("grep", "/system/mcp/a"), None);
        assert_eq!(read_of("ls", r#"{"path":"/system/mcp/a"}"#), None);
    }

    #[test]
    fn prompts_are_commands_that_a_message_can_name() {
        let file = |path: &str| ServedFile { path: format!("{SERVED_FILES}{path}"), about: "words".into() };
        let files = ["/a/prompts/p.md", "/a/prompts/two words.md", "/a/resources/prompts/x.md", "/b/prompts/q.md"];
        let named: Vec<String> = commands(files.map(file).into()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(named, ["mcp__a__p", "mcp__b__q"]);
    }

    #[test]
    fn folders_are_those_that_the_paths_have() -> Result<(), Error> {
        let file = |path: &str| ServedFile { path: format!("{SERVED_FILES}{path}"), about: "words".into() };
        let files = [
            file("/a/prompts/p.md"),
            file("/a/resources/demo/x"),
            file("/a/resources/demo/y"),
            file("/b/prompts/q.md"),
        ];
        let listed = |path: &str| Ok::<_, Error>(list(&files, &FilePath::parse(path)?)?.output);
        assert_eq!(listed("/system/mcp")?, "a/\nb/");
        assert_eq!(listed("/system/mcp/a")?, "prompts/\nresources/");
        assert_eq!(listed("/system/mcp/a/resources/demo")?, "x  words\ny  words");
        assert!(listed("/system/mcp/c").is_err());
        assert_eq!(list(&[], &FilePath::parse("/system/mcp")?)?.output, "no server has resources or prompts");
        Ok(())
    }
}
