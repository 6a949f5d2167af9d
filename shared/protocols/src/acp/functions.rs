//! The methods of an editor (`fs/*`, `terminal/*`) as functions of the client: the agent calls them, the hub asks a person where something is changed, and
//! the editor does it.

use serde_json::{Value, json};
use std::path::Path;

const READ: &str = "read_text_file";
const WRITE: &str = "write_text_file";
const RUN: &str = "run_command";

/// The most output of a command that the editor keeps, in bytes: as much as an agent reads.
const MAX_OUTPUT: u64 = 50 * 1024;

/// The methods that an editor offers to its agent, by its greeting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EditorCapabilities {
    /// It reads files.
    pub reads: bool,
    /// It writes files.
    pub writes: bool,
    /// It runs commands.
    pub runs: bool,
}

impl EditorCapabilities {
    /// Those of an editor that greets; none for another message.
    pub fn of(message: &Value) -> Option<Self> {
        let offered = &message["params"]["clientCapabilities"];
        let fs = &offered["fs"];
        (message["method"] == "initialize").then(|| Self {
            reads: fs["readTextFile"] == true,
            writes: fs["writeTextFile"] == true,
            runs: offered["terminal"] == true,
        })
    }

    /// The functions of a new thread for a project in this folder, as `POST /v1/threads` takes them.
    pub fn functions(self, cwd: &str) -> Value {
        let text = |description: &str| json!({ "type": "string", "description": description });
        let count = |description: &str| json!({ "type": "integer", "minimum": 1, "description": description });
        let place = || text("The path: absolute, or below the project's folder.");
        let function = |(name, effects, description, properties, required): (&str, &str, &str, Value, &[&str])| {
            json!({
                "name": name, "effects": effects, "description": format!("{description} The project's folder is {cwd}."),
                "parameters": {
                    "type": "object", "properties": properties, "required": required, "additionalProperties": false,
                },
            })
        };
        let read = (
            READ,
            "read",
            "Reads a text file of the person's project, as their editor has it, with changes that are not saved.",
            json!({ "path": place(), "line": count("The first line; 1 without it."), "limit": count("The most lines.") }),
            &["path"][..],
        );
        let write = (
            WRITE,
            "write",
            "Gives a text file of the person's project a new content, by their editor. Read it before.",
            json!({ "path": place(), "content": text("The whole new content.") }),
            &["path", "content"][..],
        );
        let run = (
            RUN,
            "execute",
            "Runs a shell command on the person's machine, in a terminal of their editor, and answers with its output. List, find and test with it.",
            json!({ "command": text("The command line."), "cwd": text("The folder that it runs in; the project's without it.") }),
            &["command"][..],
        );
        let offered = [(self.reads, read), (self.writes, write), (self.runs, run)];
        offered.into_iter().filter(|(is_there, _)| *is_there).map(|(_, offered)| function(offered)).collect()
    }
}

/// A call that the editor carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A file is read.
    Read {
        /// Its path.
        path: String,
        /// The first line.
        line: Option<u64>,
        /// The most lines.
        limit: Option<u64>,
    },
    /// A file gets a new content.
    Write {
        /// Its path.
        path: String,
        /// The content.
        content: String,
    },
    /// A command runs.
    Run {
        /// The command line.
        command: String,
        /// Its folder.
        cwd: String,
    },
}

impl Call {
    /// The call in a frame `call_handed_out`, for a project in this folder.
    ///
    /// # Errors
    /// The reason, for the agent, where it is no call of a function that [`EditorCapabilities::functions`] has.
    pub fn read(data: &Value, project: &str) -> Result<Self, String> {
        let (name, input) = (data["function"].as_str().unwrap_or_default(), &data["rawInput"]);
        let text = |field: &str| input[field].as_str().ok_or_else(|| format!("{name}: {field} is missing, or no text"));
        let path = || text("path").map(|path| resolved(project, path));
        match name {
            READ => Ok(Self::Read { path: path()?, line: input["line"].as_u64(), limit: input["limit"].as_u64() }),
            WRITE => Ok(Self::Write { path: path()?, content: text("content")?.to_owned() }),
            RUN => {
                let cwd = resolved(project, input["cwd"].as_str().unwrap_or_default());
                Ok(Self::Run { command: text("command")?.to_owned(), cwd })
            }
            _ => Err(format!("this editor has no function {name}")),
        }
    }

    /// Whether a second run of it does no harm.
    pub fn is_repeatable(&self) -> bool {
        !matches!(self, Self::Run { .. })
    }

    /// The method and the parameters of the request that begins it, without the session.
    pub fn request(&self) -> (&'static str, Value) {
        match self {
            Self::Read { path, line, limit } => {
                let mut params = json!({ "path": path });
                for (name, number) in [("line", line), ("limit", limit)] {
                    if let Some(number) = number {
                        params[name] = json!(number);
                    }
                }
                ("fs/read_text_file", params)
            }
            Self::Write { path, content } => ("fs/write_text_file", json!({ "path": path, "content": content })),
            Self::Run { command, cwd } => {
                let args = json!(["-c", command]);
                ("terminal/create", json!({ "command": "sh", "args": args, "cwd": cwd, "outputByteLimit": MAX_OUTPUT }))
            }
        }
    }
}

/// A path of an agent as an editor takes it: absolute.
fn resolved(project: &str, path: &str) -> String {
    // Joined with an absolute path, the folder is gone.
    let whole = Path::new(project).join(path);
    whole.to_string_lossy().trim_end_matches('/').to_owned()
}

/// The words for the agent about a command that has ended: its output, and its end where that was no success.
pub fn ended(output: &Value) -> (String, bool) {
    let mut text = output["output"].as_str().unwrap_or_default().to_owned();
    if output["truncated"] == true {
        text.insert_str(0, "(The beginning of the output was cut.)\n");
    }
    let exit = &output["exitStatus"];
    match (exit["exitCode"].as_i64(), exit["signal"].as_str()) {
        (Some(0), _) => (text, true),
        (Some(code), _) => (format!("{text}\n(exit code {code})"), false),
        (None, Some(signal)) => (format!("{text}\n(ended by {signal})"), false),
        (None, None) => (format!("{text}\n(it has not ended)"), false),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn greeting(capabilities: Value) -> Value {
        json!({ "method": "initialize", "params": { "clientCapabilities": capabilities } })
    }

    #[test]
    fn an_editor_offers_what_it_can() {
        let all = json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true });
        let offered = EditorCapabilities::of(&greeting(all)).unwrap().functions("/src/app");
        let declared = crate::functions::declared(&offered).unwrap();
        let names: Vec<_> = declared.iter().map(|function| function.spec.name.as_str()).collect();
        assert_eq!(names, ["client__read_text_file", "client__write_text_file", "client__run_command"]);
        assert!(declared.iter().all(|function| function.spec.description.contains("/src/app")));
        let none = EditorCapabilities::of(&greeting(json!({}))).unwrap();
        assert_eq!((none, none.functions("/")), (EditorCapabilities::default(), json!([])));
        assert_eq!(EditorCapabilities::of(&json!({ "method": "session/new" })), None);
    }

    #[test]
    fn calls_become_requests_to_the_editor() {
        let call =
            |function: &str, input: Value| Call::read(&json!({ "function": function, "rawInput": input }), "/src/app");
        let read = call("read_text_file", json!({ "path": "a.rs", "line": 2 })).unwrap();
        assert_eq!(read.request(), ("fs/read_text_file", json!({ "path": "/src/app/a.rs", "line": 2 })));
        let write = call("write_text_file", json!({ "path": "/etc/x", "content": "y" })).unwrap();
        assert_eq!(write.request().1, json!({ "path": "/etc/x", "content": "y" }));
        let run = call("run_command", json!({ "command": "ls | wc" })).unwrap();
        assert_eq!(run.request().1["args"], json!(["-c", "ls | wc"]));
        assert_eq!((run.request().1["cwd"].as_str(), run.is_repeatable()), (Some("/src/app"), false));
        for (function, input) in
            [("read_text_file", json!({})), ("write_text_file", json!({ "path": "a" })), ("other", json!({}))]
        {
            assert!(call(function, input).is_err(), "{function}");
        }
    }

    #[test]
    fn the_end_of_a_command_is_told() {
        let output = |exit: Value| json!({ "output": "x", "truncated": false, "exitStatus": exit });
        assert_eq!(ended(&output(json!({ "exitCode": 0 }))), ("x".to_owned(), true));
        assert_eq!(ended(&output(json!({ "exitCode": 2 }))), ("x\n(exit code 2)".to_owned(), false));
        assert_eq!(ended(&output(json!({ "signal": "SIGKILL" }))).0, "x\n(ended by SIGKILL)");
    }
}
