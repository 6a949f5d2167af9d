//! Flows that ask people: in a terminal, by a script, and from the list of what waits.

use crate::{
    support::{Hub, hub, metrics, text},
    tasks::{answer_as_told, flow},
};
use serde_json::json;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::Stdio,
};
use testkit::flows::APPROVAL;

#[test]
fn a_flow_whose_agent_asks_says_how_to_answer_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let script = "rules:\n- when: {user: '^Keep '}\n  steps:\n  - {calls: [{tool: write, args: {path: /system/skills/kept/SKILL.md, \
                  content: x}}]}\n  - {text: It is kept.}\n";
    let file = folder.path().join("script.yaml");
    fs::write(&file, script).unwrap();
    let model = [("BUILDSCALE__AI__SCRIPT", file.to_str().unwrap()), ("BUILDSCALE__AI__MODEL", "scripted/script")];
    let hub = Hub::start(folder.path(), "127.0.0.1:0", &model);
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: keep, kind: agent, role: linear, context: none, agent_id: keeper, prompt: 'Keep {{input}}', tools: [write]}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: keep}, {from: keep, to: end}]
";
    let dir = flow(folder.path(), "keep", workflow);
    fs::write(Path::new(&dir).join("agents.yaml"), "agents:\n  - {id: keeper, system: You are a keeper of skills.}\n")
        .unwrap();
    fs::write(Path::new(&dir).join("tools.yaml"), "tools:\n  - {id: write}\n").unwrap();
    let output = hub.run(&["flow", "run", &dir, "--input", "it"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{said}");
    assert!(said.contains("? the agent of keep asks for permission: write"), "{said}");
    let listed = hub.json(0, &["permit", "--json"]);
    let asked = &listed[0]["permissions"][0];
    assert_eq!((&asked["node"], &asked["request"]["tool"]), (&json!("keep"), &json!("write")), "{listed:?}");
    let task = asked["task_id"].as_str().unwrap();
    let shown = text(&hub.run(&["task", "show", task]).stdout);
    assert_eq!(answer_as_told(&hub, &shown), 1, "{shown}");
    assert_eq!(hub.run(&["task", "tail", task, "--follow"]).status.code(), Some(0));
    assert_eq!(hub.run(&["task", "tail", task]).status.code(), Some(0), "an answered request is told no more");
    // The chat of its agent is named, to be read.
    let shown = text(&hub.run(&["task", "show", task]).stdout);
    let chat = shown.lines().find_map(|line| line.split_once("chat ")).unwrap_or_else(|| panic!("{shown}")).1;
    let told = hub.run(&["tail", chat.trim(), "--after", "0", "--until-idle"]);
    assert!(text(&told.stdout).contains("It is kept."), "{}", text(&told.stderr));
}

#[test]
fn a_flow_that_asks_waits_for_a_script_that_thinks() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "approval", APPROVAL);
    let run = ["flow", "run", &dir, "--input", "the report"];
    let pipe = Stdio::piped;
    let mut runner = hub.command(&run).stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    // It looks for what waits below it, and listens all the same.
    let mut input = runner.stdin.take().unwrap();
    let mut beside = BufReader::new(runner.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Publish the report?") {
        assert_ne!(beside.read_line(&mut said).unwrap(), 0, "it ended: {said}");
    }
    let looks = || {
        let of_list = |line: &&str| line.contains("duration_seconds_count{") && line.contains("/waiting\"");
        let text = metrics(&hub.address).unwrap();
        let count = text.lines().find(of_list).and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        count.unwrap_or_default()
    };
    while looks() < 4 {
        assert!(runner.try_wait().unwrap().is_none(), "it left at its own question");
    }
    input.write_all(b"y\n").unwrap();
    drop(input);
    assert_eq!(runner.wait().unwrap().code(), Some(0));
}

#[test]
fn people_are_asked_in_the_terminal_or_answer_later() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "approval", APPROVAL);
    let run = ["flow", "run", &dir, "--input", "the report"];
    let output = hub.run_with_input(&run, "y\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("Publish the report?"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "the report\n", "an approved value passes");

    let output = hub.run(&run);
    assert_eq!(output.status.code(), Some(8), "no terminal is there: {}", text(&output.stderr));
    let waiting = hub.json(0, &["task", "list", "--phase", "suspended", "--json"]);
    let task = waiting[0]["tasks"][0]["task_id"].as_str().unwrap();
    assert!(text(&output.stderr).contains(&format!("buildscale task answer {task} --node review --approve")));
    let listed = text(&hub.run(&["task", "list"]).stdout);
    assert!(listed.lines().any(|line| line.contains(task) && line.contains("waits for a person")), "{listed}");
    let shown = text(&hub.run(&["task", "show", task]).stdout);
    assert!(shown.starts_with("waits for a person  approval"), "no status before the end: {shown}");
    assert_eq!(hub.run(&["task", "answer", task, "--node", "end", "--approve"]).status.code(), Some(4));
    assert_eq!(hub.run(&["task", "answer", task, "approved=maybe"]).status.code(), Some(2));
    assert_eq!(hub.run(&["task", "answer", task, "--approve", "--comment", "fine"]).status.code(), Some(0));
    // A tail that does not follow would leave while the task still waits: the answer is accepted, and taken in a moment later.
    assert_eq!(hub.run(&["task", "tail", task, "--follow"]).status.code(), Some(0));
    let late = hub.run(&["task", "answer", task, "--approve"]);
    assert_eq!(late.status.code(), Some(3));
    assert!(text(&late.stderr).contains("the task has ended, success"), "{}", text(&late.stderr));
}
