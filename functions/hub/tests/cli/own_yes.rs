//! The machine of a person in a workspace with other people: a program on it changes something or runs a command with this person's own yes alone.

use crate::{
    people::{Shared, token},
    support::PATIENCE,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Lines, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};
use tempfile::TempDir;
use tokio::time::Instant;

const SCRIPT: &str = "\
rules:
- when: {user: '^act'}
  steps:
  - {calls: [{tool: client__write_file, args: {path: a.txt, content: for bob}}]}
  - {calls: [{tool: client__write_file, args: {path: a.txt, content: for ann}}]}
  - {calls: [{tool: client__run_command, args: {command: 'echo bob > ran'}}]}
  - {calls: [{tool: client__run_command, args: {command: 'echo ann > ran'}}]}
  - {calls: [{tool: client__write_file, args: {path: b.txt, content: by a rule}}]}
  - {calls: [{tool: client__write_file, args: {path: c.txt, content: unasked}}]}
  - {text: 'Done.'}
- when: {user: '^edit'}
  steps:
  - {calls: [{tool: client__write_text_file, args: {path: a.txt, content: for bob}}]}
  - {calls: [{tool: client__write_text_file, args: {path: a.txt, content: for ann}}]}
  - {text: 'Done.'}
";
const REFUSAL: &str = "the person of this machine has not permitted it";

/// A hub with a workspace of Ann's in which Bob may approve.
struct Team {
    hub: Shared,
    data: TempDir,
    ann: String,
    bob: String,
    workspace: String,
}

impl Team {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let script = data.path().join("script.yaml");
        fs::write(&script, SCRIPT).unwrap();
        let model =
            [("BUILDSCALE__AI__SCRIPT", script.to_str().unwrap()), ("BUILDSCALE__AI__MODEL", "scripted/script")];
        let hub = Shared::start(data.path(), &model);
        let (ann, bob) = (token("ann"), token("bob"));
        let workspace = hub.says(&ann, &["workspaces", "create", "Ann's"]);
        hub.says(&ann, &["member", "add", "bob", "editor", "-w", &workspace]);
        Self { hub, data, ann, bob, workspace }
    }

    /// Bob answers a request for permission.
    fn bob_says(&self, answer: &str, permission: &str) {
        self.hub.says(&self.bob, &["permit", permission, answer, "-w", &self.workspace]);
    }

    /// The request that waits, as Bob sees it.
    fn open_permission(&self) -> String {
        let late = Instant::now() + PATIENCE;
        loop {
            let listed = self.hub.json(&self.bob, &["permit", "-w", &self.workspace]);
            if let Some(id) = listed["permissions"][0]["request"]["permission_id"].as_str() {
                return id.to_owned();
            }
            assert!(Instant::now() < late, "nothing waits: {listed}");
        }
    }

    /// Begins a program on Ann's machine.
    fn on_anns_machine(&self, args: &[&str]) -> Program {
        let mut command = self.hub.0.command(&[args, &["-w", self.workspace.as_str()]].concat());
        let command = command.env("BUILDSCALE_TOKEN", &self.ann).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        Program { process, input, lines: BufReader::new(output).lines() }
    }
}

/// A program that runs, and tells of its work in lines of JSON.
struct Program {
    process: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn say(&mut self, line: impl std::fmt::Display) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line that fits.
    #[track_caller]
    fn tells(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let told: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
            if fits(&told) {
                return told;
            }
        }
    }

    /// The data of the next event of a chat with one of these names.
    #[track_caller]
    fn hears(&mut self, names: &[&str]) -> Value {
        self.tells(|told| names.iter().any(|name| told["event"] == *name))["data"].take()
    }

    /// The next request to an editor, or the end of a call.
    #[track_caller]
    fn acts(&mut self) -> Value {
        self.tells(|told| {
            let update = &told["params"]["update"];
            let ended = ["completed", "failed"].iter().any(|status| update["status"] == *status);
            told["method"] == "fs/write_text_file" || (update["sessionUpdate"] == "tool_call_update" && ended)
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[track_caller]
fn is_refused(observed: &Value) {
    let words = observed["output"].as_str().unwrap_or_default();
    assert!(observed["success"] == false && words.contains(REFUSAL), "{observed}");
}

fn content(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn a_folder_of_a_persons_machine_changes_with_their_own_yes_and_no_one_elses() {
    let team = Team::start();
    let project = team.data.path().join("project");
    fs::create_dir(&project).unwrap();
    let at = |name: &str| project.join(name);
    let mut chat = team.on_anns_machine(&["chat", "--json", "--folder", project.to_str().unwrap(), "act"]);
    for (file, of_ann) in [("a.txt", "for ann"), ("ran", "ann\n")] {
        let asked = chat.hears(&["permission_required"]);
        team.bob_says("yes", asked["permission_id"].as_str().unwrap());
        let observed = chat.hears(&["observation"]);
        assert_eq!(observed["call_id"], asked["call_id"]);
        is_refused(&observed);
        assert_eq!(content(&at(file)), None, "Bob's yes is none for Ann's machine");

        let asked = chat.hears(&["permission_required"]);
        chat.say("y");
        let observed = chat.hears(&["observation"]);
        assert_eq!((&observed["call_id"], &observed["success"]), (&asked["call_id"], &json!(true)), "{observed}");
        assert_eq!(content(&at(file)).as_deref(), Some(of_ann));
    }
    let asked = chat.hears(&["permission_required"]);
    team.bob_says("allow_always", asked["permission_id"].as_str().unwrap());
    for file in ["b.txt", "c.txt"] {
        // The rule covers the second of them: nobody is asked about it.
        is_refused(&chat.hears(&["observation", "permission_required"]));
        assert_eq!(content(&at(file)), None, "a rule of Bob's is none for Ann's machine");
    }
    assert_eq!(chat.hears(&["done"])["message"], "Done.");
    chat.input = None;
    assert_eq!(chat.process.wait().unwrap().code(), Some(0));
}

#[test]
fn an_editor_writes_a_file_with_the_yes_of_its_own_person_and_no_one_elses() {
    let team = Team::start();
    let mut editor = team.on_anns_machine(&["acp"]);
    let message = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let result = |id: &Value, result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let answers = |id: u64| move |told: &Value| told["method"].is_null() && told["id"] == id;
    let abilities = json!({ "fs": { "readTextFile": false, "writeTextFile": true } });
    editor.say(message(1, "initialize", json!({ "protocolVersion": 1, "clientCapabilities": abilities })));
    editor.tells(answers(1));
    editor.say(message(2, "session/new", json!({ "cwd": "/workspace", "mcpServers": [] })));
    let made = editor.tells(answers(2));
    let prompt = json!([{ "type": "text", "text": "edit it" }]);
    editor.say(message(3, "session/prompt", json!({ "sessionId": made["result"]["sessionId"], "prompt": prompt })));

    let asks = |told: &Value| told["method"] == "session/request_permission";
    editor.tells(asks);
    team.bob_says("yes", &team.open_permission());
    let refused = editor.acts();
    let update = &refused["params"]["update"];
    let words = update["rawOutput"].as_str().unwrap_or_default();
    assert!(update["status"] == "failed" && words.contains(REFUSAL), "{refused}");

    let asked = editor.tells(asks);
    editor.say(result(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } })));
    let writes = editor.acts();
    assert_eq!(writes["params"]["content"], "for ann", "{writes}");
    editor.say(result(&writes["id"], json!({})));
    let written = editor.acts();
    assert_eq!(written["params"]["update"]["status"], "completed", "{written}");
    let ended = editor.tells(answers(3));
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
}
