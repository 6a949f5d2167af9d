//! `buildscale flow` and `buildscale task` as people and scripts use them: the real binary, here and against a hub.

use crate::support::{Hub, command, hub, text};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};
use testkit::flows::{APPROVAL, CHOICE, DOUBLES};

pub fn flow(folder: &Path, name: &str, workflow: &str) -> String {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("workflow.yaml"), workflow).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn s8_a_new_flow_is_sound_and_drawn_without_a_hub() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("first");
    let dir = dir.to_str().unwrap();
    let run = |args: &[&str]| command(args).env("BUILDSCALE_URL", "http://127.0.0.1:1").output().unwrap();
    let made = run(&["flow", "new", dir]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert!(text(&made.stdout).contains("workflow.yaml"));
    assert_eq!(run(&["flow", "new", dir]).status.code(), Some(2), "nothing is overwritten");
    let checked = run(&["flow", "check", dir]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stdout));

    for (format, begin) in [("svg", "<svg"), ("dot", "digraph"), ("mermaid", "flowchart"), ("text", "└─ → ")] {
        let drawn = run(&["flow", "graph", dir, "--format", format]);
        assert_eq!(drawn.status.code(), Some(0));
        assert!(text(&drawn.stdout).contains(begin), "{}", text(&drawn.stdout));
    }
    // A pipe gets the picture; a terminal would get the text.
    assert!(text(&run(&["flow", "graph", dir]).stdout).starts_with("<svg"));
    let schema = run(&["flow", "schema", "workflow.yaml"]);
    assert!(serde_json::from_slice::<Value>(&schema.stdout).unwrap().is_object());
    assert_eq!(run(&["flow", "schema", "nothing.yaml"]).status.code(), Some(3));

    // Packed, it is as its manifest says, until somebody changes it.
    assert_eq!(run(&["flow", "package", dir]).status.code(), Some(0));
    assert_eq!(run(&["flow", "package", dir, "--verify"]).status.code(), Some(0));
    let tools = Path::new(dir).join("tools.yaml");
    fs::write(&tools, fs::read_to_string(&tools).unwrap() + "# changed\n").unwrap();
    let changed = run(&["flow", "package", dir, "--verify"]);
    assert_eq!((changed.status.code(), text(&changed.stdout).as_str()), (Some(1), "tools.yaml\n"));
}

#[test]
fn s8_a_check_of_a_folder_that_is_not_there_says_so() {
    for args in [["flow", "check", "/nonexist"], ["flow", "graph", "./nonexist"], ["flow", "run", "nonexist/flow"]] {
        let output = command(&args).env("BUILDSCALE_URL", "http://127.0.0.1:1").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        let told = text(&output.stderr);
        assert!(told.contains("there is no folder ") && told.contains("hint"), "{told}");
        assert!(!told.contains("os error"), "{told}");
    }
    // A possible name of a flow needs a hub; that it is no folder is told, too.
    let output = command(&["flow", "check", "nonexist"]).env("BUILDSCALE_URL", "http://127.0.0.1:1").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("there is no folder nonexist here"), "{}", text(&output.stderr));
    let output = command(&["flow", "check", "/nonexist", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let told: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(
        (&told["error"]["code"], told["error"]["message"].as_str()),
        (&json!("NOT_FOUND"), Some("there is no folder /nonexist"))
    );
    assert!(told["error"]["hint"].as_str().unwrap().contains("buildscale flow new"));
}

#[test]
fn s8_possible_entry_points_are_listed() {
    let listed = text(&command(&["flow", "entrypoints"]).output().unwrap().stdout);
    let read = listed.lines().find(|line| line.starts_with("read ")).unwrap();
    assert!(read.contains("read_file") && listed.contains("\ntext:lines\n"), "{listed}");
    let listed: Value =
        serde_json::from_slice(&command(&["flow", "entrypoints", "--json"]).output().unwrap().stdout).unwrap();
    assert_eq!((listed["tools"].as_array().unwrap().len(), listed["functions"].as_array().unwrap().len()), (39, 13));
}

#[test]
fn s8_a_check_tells_every_fault_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let workflow = CHOICE.replace("role: decision", "role: decison").replace("to: bad,", "to: worse,");
    let dir = flow(folder.path(), "broken", &workflow);
    let output = command(&["flow", "check", &dir]).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("workflow.yaml:6:") && said.contains("did you mean"), "{said}");
    let output = command(&["flow", "check", &dir, "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), report["ok"].as_bool()), (Some(1), Some(false)));
    assert!(report["faults"].as_array().unwrap().len() >= 2, "{report:#}");
    assert_eq!(command(&["flow", "graph", &dir]).output().unwrap().status.code(), Some(1));
}

#[test]
fn s10_9_a_folder_is_run_and_its_status_is_the_exit_code() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "choice", CHOICE);
    let output = hub.run(&["flow", "run", &dir, "--input", r#"{"good": true}"#]);
    let (said, beside) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), said.as_str()), (Some(0), "well done\n"), "{beside}");
    assert!(beside.contains("+ choose") && beside.contains("success in"), "{beside}");
    assert!(!beside.contains('\x1b'), "no colours in a pipe: {beside}");

    // By name, from standard input; the exit always fails.
    let output = hub.run_with_input(&["flow", "run", "choice", "--input", "-"], r#"{"good": false}"#);
    let beside = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{beside}");
    assert!(
        beside.contains("the exit bad always fails: choose chose no"),
        "it tells why the task came there: {beside}"
    );
    assert!(beside.contains("hint: a re-run from choose decides again"), "{beside}");
    assert_eq!(hub.run(&["flow", "run", "nothing"]).status.code(), Some(3));
    assert_eq!(hub.run(&["flow", "run", "choice", "--input", "{bad"]).status.code(), Some(2));

    // A folder that did not change keeps its versions; one with faults is refused before anything is written.
    let versions = || hub.json(0, &["files", "history", "/system/flows/choice/workflow.yaml", "--json"]);
    hub.run(&["flow", "run", &dir, "--input", r#"{"good": true}"#]);
    assert_eq!(versions()[0]["versions"].as_array().unwrap().len(), 1);
    flow(folder.path(), "choice", "nodes: []\n");
    assert_eq!(hub.run(&["flow", "run", &dir]).status.code(), Some(2));
    assert_eq!(versions()[0]["versions"].as_array().unwrap().len(), 1);

    let flows = hub.json(0, &["flow", "list", "--json"]);
    let named = |name: &str| flows[0]["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == name).cloned();
    assert!(named("choice").is_some(), "{flows:?}");
    let purpose = named("plan_and_execute").and_then(|flow| Some(flow["description"].as_str()?.to_owned())).unwrap();
    let listed = text(&hub.run(&["flow", "list"]).stdout);
    let shown = text(&hub.run(&["flow", "show", "plan_and_execute"]).stdout);
    assert!(shown.contains("input goal: string, approve?: boolean"), "a newcomer sees what to give it: {shown}");
    assert!(listed.contains(&purpose) && listed.contains("Starts on /projects/*/plan.md status=ready"), "{listed}");
    let tasks = hub.json(0, &["task", "list", "--flow", "choice", "--since", "2020-01-01T00:00:00Z", "--json"]);
    let statuses: Vec<&Value> = tasks[0]["tasks"].as_array().unwrap().iter().map(|task| &task["status"]).collect();
    assert_eq!(statuses, [&json!("success"), &json!("failure"), &json!("success")]);
}

#[test]
fn s6_a_run_is_shown_traced_and_compared() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "choice", CHOICE);
    let run = |good: bool, code| {
        let input = json!({ "good": good }).to_string();
        let events = hub.json(code, &["flow", "run", &dir, "--input", &input, "--json"]);
        assert_eq!(events.last().unwrap()["event"], "done");
        events[0]["data"]["task_id"].as_str().unwrap().to_owned()
    };
    let (one, two, other) = (run(true, 0), run(true, 0), run(false, 1));
    let shown = hub.json(0, &["task", "show", &one, "--json"]);
    let stages = shown[0]["stages"].as_array().unwrap();
    let nodes: Vec<&str> = stages.iter().map(|stage| stage["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["begin", "choose", "good", "end"]);
    assert_eq!(stages[1]["input"], json!({ "good": true }));
    let unknown = hub.run(&["-w", "default", "task", "show", "019bf537-f228-7cd3-aa1c-000000000001"]);
    assert!(text(&unknown.stderr).contains("`buildscale task list` lists"), "{}", text(&unknown.stderr));
    let words = text(&hub.run(&["task", "show", &one]).stdout);
    assert!(words.contains("\n  input: {\"good\":true}\n"), "{words}");
    let words = text(&hub.run(&["task", "show", &one, "--full"]).stdout);
    assert!(words.contains("choose") && words.contains("selected_edge"), "{words}");

    let trace = |task: &str| hub.run(&["task", "show", task, "--trace"]).stdout;
    assert!(!trace(&one).is_empty());
    assert_eq!(trace(&one), trace(&one), "rebuilt, it has the same bytes");
    assert_eq!(hub.run(&["task", "diff", &one, &two]).status.code(), Some(0));
    let diff = hub.run(&["task", "diff", &one, &other]);
    assert_eq!(diff.status.code(), Some(1));
    assert!(text(&diff.stdout).contains("part"), "{}", text(&diff.stdout));

    let painted = text(&hub.run(&["flow", "graph", "--task", &one]).stdout);
    assert!(painted.contains("<svg") && painted.contains("success"), "{painted}");

    // A tail shows it from its beginning to its end, and ends with its status.
    let tail = hub.run(&["task", "tail", &other]);
    assert_eq!(tail.status.code(), Some(1));
    assert!(text(&tail.stdout).contains("+ choose"), "{}", text(&tail.stdout));
    let again = hub.json(0, &["task", "replay", &one, "--follow", "--json"]);
    assert_eq!(again.last().unwrap()["data"]["output"], "well done");
    assert_eq!(hub.run(&["task", "show", "019bf537-f228-7cd3-aa1c-3da8af302e12"]).status.code(), Some(3));
}

#[test]
fn s3_3_a_split_shows_how_far_it_is() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "split", DOUBLES);
    let items: Vec<u32> = (0..40).collect();
    let output = hub.run(&["flow", "run", &dir, "--input", &json!({ "items": items }).to_string()]);
    let beside = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{beside}");
    assert!(beside.contains("items: 40 subtasks"), "{beside}");
    // They end in a merge, and are counted by tenths up to the last one.
    for done in [4, 20, 40] {
        assert!(beside.contains(&format!("items: {done} of 40 subtasks")), "{done}: {beside}");
    }
    let task = hub.json(0, &["task", "list", "--json"])[0]["tasks"][0].clone();
    assert_eq!(task["children"], 40);
    let parent = task["task_id"].as_str().unwrap();
    let children = hub.json(0, &["task", "list", "--parent", parent, "-n", "100", "--json"]);
    assert_eq!(children[0]["tasks"].as_array().unwrap().len(), 40);
    for (limit, has_more) in [("39", true), ("40", false)] {
        let listed = hub.run(&["task", "list", "--parent", parent, "-n", limit]);
        assert_eq!(text(&listed.stderr).contains("there are more; --limit shows them"), has_more, "{limit}");
    }
}

#[test]
fn s10_7_a_task_is_paused_stepped_and_stopped() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "choice", CHOICE);
    let run = ["flow", "run", &dir, "--input", r#"{"good": true}"#, "--detach", "--break", "good"];
    let task = text(&hub.run(&run).stdout).trim().to_owned();
    let mut tail = hub.command(&["task", "tail", &task, "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(tail.stdout.take().unwrap()).lines().map(|line| {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        event
    });
    let mut until = |name: &str| loop {
        let event = events.next().unwrap_or_else(|| panic!("no {name}"));
        if event["event"] == name {
            break event;
        }
    };
    assert_eq!(until("paused")["data"]["node"], "good");
    assert_eq!(hub.run(&["task", "step", &task]).status.code(), Some(0));
    assert_eq!(until("paused")["data"]["node"], "end");
    assert_eq!(hub.run(&["task", "resume", &task]).status.code(), Some(0));
    assert_eq!(until("done")["data"]["status"], "success");
    assert_eq!(tail.wait().unwrap().code(), Some(0));
    assert_eq!(hub.run(&["task", "step", &task]).status.code(), Some(4), "it has ended");

    let task = text(&hub.run(&run).stdout).trim().to_owned();
    assert_eq!(hub.run(&["task", "stop", &task]).status.code(), Some(0));
    assert_eq!(hub.run(&["task", "tail", &task]).status.code(), Some(6));
    // There is nothing more to stop, and after its last event nothing more to follow.
    let again = hub.run(&["task", "cancel", &task]);
    assert_eq!((again.status.code(), text(&again.stdout).as_str()), (Some(0), "it had ended before: failure\n"));
    let events = hub.json(6, &["task", "tail", &task, "--json"]);
    let last = events.last().unwrap()["id"].to_string();
    assert_eq!(hub.run(&["task", "tail", &task, "--after", &last]).status.code(), Some(6));
}

/// Runs the commands that a tail suggests as answers, as they are.
pub fn answer_as_told(hub: &Hub, said: &str) -> usize {
    let commands = said.lines().filter_map(|line| line.split_once("answer it with: buildscale "));
    let commands: Vec<Vec<&str>> = commands.map(|(_, command)| command.split(' ').collect()).collect();
    for command in &commands {
        assert_eq!(hub.run(command).status.code(), Some(0), "{command:?}");
    }
    commands.len()
}

#[test]
fn s10_9_a_tail_of_a_task_that_waits_says_how_to_answer_and_ends() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "approval", APPROVAL);
    let task = text(&hub.run(&["flow", "run", &dir, "--input", "the report", "--detach"]).stdout).trim().to_owned();
    let follower = hub.command(&["task", "tail", &task, "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let tail = hub.run(&["task", "tail", &task]);
    let said = text(&tail.stdout);
    assert_eq!(tail.status.code(), Some(8), "{said}{}", text(&tail.stderr));
    assert!(said.contains("+ begin") && said.contains("? review: Publish the report?"), "{said}");
    let events = hub.json(8, &["task", "tail", &task, "--json"]);
    let command = events.last().unwrap()["data"]["command"].as_str().unwrap().to_owned();
    assert_eq!(command, format!("buildscale task answer {task} --node review --approve"));
    assert!(text(&hub.run(&["task", "show", &task]).stdout).contains(&command));
    assert_eq!(answer_as_told(&hub, &said), 1);
    let followed = follower.wait_with_output().unwrap();
    assert_eq!(followed.status.code(), Some(0), "it went on all the while: {}", text(&followed.stdout));
    assert_eq!(hub.run(&["task", "tail", &task]).status.code(), Some(0), "an answered question is asked no more");
}

#[test]
fn s10_9_a_tail_tells_questions_of_subtasks_when_nothing_else_moves() {
    let (folder, hub) = hub();
    let asks = "role: linear, context: none, ask: {approve: 'Is {{input}} right?'}}";
    let dir =
        flow(folder.path(), "each", &DOUBLES.replace("role: linear, context: none, op: {expr: 'input * 2'}}", asks));
    let run = ["flow", "run", &dir, "--input", r#"{"items": [1, 2]}"#, "--detach"];
    let task = text(&hub.run(&run).stdout).trim().to_owned();
    let tail = hub.run(&["task", "tail", &task]);
    let said = text(&tail.stdout);
    assert_eq!(tail.status.code(), Some(8), "{said}{}", text(&tail.stderr));
    assert!(said.contains("Is 1 right?") && said.contains("Is 2 right?"), "{said}");
    assert_eq!(answer_as_told(&hub, &said), 2);
    assert_eq!(hub.run(&["task", "tail", &task, "--follow"]).status.code(), Some(0));

    // A script that runs it is told the same, and does not wait for ever.
    let output = hub.run(&["flow", "run", "each", "--input", r#"{"items": [1, 2]}"#]);
    let beside = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{beside}");
    assert_eq!(beside.matches("--node worker --approve").count(), 2, "{beside}");
}

#[test]
fn s10_3_suites_are_run_and_failures_told() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "choice", CHOICE);
    let case = |id: &str, good: bool| {
        format!(
            "      - id: {id}\n        input: {{good: {good}}}\n        assertions: [{{type: status, expected: success}}]\n"
        )
    };
    let suite = format!("suites:\n  - name: first\n    cases:\n{}{}", case("right", true), case("wrong", false));
    fs::write(Path::new(&dir).join("evaluations.yaml"), suite).unwrap();
    let junit = folder.path().join("report.xml");
    let output = hub.run(&["flow", "eval", &dir, "--junit", junit.to_str().unwrap()]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stderr));
    assert!(said.contains("+ first/right") && said.contains("! first/wrong"), "{said}");
    assert!(said.contains("1 passed, 1 failed, 0 skipped"), "{said}");
    assert!(fs::read_to_string(&junit).unwrap().contains("<testsuite"));
    // The task of the case that failed is kept, and a line has the command that shows it.
    let told: Vec<&str> = said.lines().filter_map(|line| Some(line.split_once(": buildscale ")?.1)).collect();
    let [command] = told.as_slice() else { panic!("{said}") };
    let shown = hub.run(&command.split_whitespace().collect::<Vec<_>>());
    assert!(shown.status.success() && text(&shown.stdout).contains("choice"), "{}", text(&shown.stderr));
    assert_eq!(hub.run(&["flow", "eval", &dir, "--suite", "nothing"]).status.code(), Some(2));
}

#[test]
fn a_suite_that_passes_leaves_no_warning_in_the_log() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "choice", CHOICE);
    let case = |id: usize| {
        format!(
            "      - id: c{id}\n        input: {{good: true}}\n        assertions: [{{type: status, expected: success}}]\n"
        )
    };
    let cases: String = (0..24).map(case).collect();
    fs::write(Path::new(&dir).join("evaluations.yaml"), format!("suites:\n  - name: green\n    cases:\n{cases}"))
        .unwrap();
    let output = hub.run(&["flow", "eval", &dir]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    // The workspace of a case that passed is removed while its task is archived.
    let log = fs::read_to_string(folder.path().join("hub.log")).unwrap();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN") && line.contains("task")).collect();
    assert_eq!(warnings, Vec::<&str>::new());
}

#[test]
fn s10_9_each_line_of_the_repl_is_one_task() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "choice", CHOICE);
    let input = "/help\n{\"good\": true}\n/telemetry off\n!1\n/history\n/nothing\n/files\n";
    let output = hub.run_with_input(&["flow", "repl", &dir], input);
    let (said, beside) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), said.as_str()), (Some(0), "well done\nwell done\n"), "{beside}");
    assert!(beside.contains("/telemetry on|off") && beside.contains("there is no /nothing"), "{beside}");
    assert_eq!(beside.matches("+ choose").count(), 1, "telemetry is off the second time: {beside}");
    let tasks = hub.json(0, &["task", "list", "--json"]);
    assert_eq!(tasks[0]["tasks"].as_array().unwrap().len(), 2);
    // Typed lines are there in the next session, and the last task's end is the script's.
    let output = hub.run_with_input(&["flow", "repl", "choice"], "!1\n{\"good\": false}\n");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn s10_9_a_profile_without_overlays_tells_neither_stages_nor_figures_of_a_run() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "choice", CHOICE);
    let profile = |id: &str, enabled: bool| format!("  - {{id: {id}, telemetry_overlays: {{enabled: {enabled}}}}}\n");
    let profiles = format!("profiles:\n{}{}", profile("still", false), profile("loud", true));
    fs::write(Path::new(&dir).join("cli_profiles.yaml"), profiles).unwrap();
    let told = |flow: &str, before: &str| {
        let output = hub.run_with_input(&["flow", "repl", flow], format!("{before}{{\"good\": true}}\n"));
        let beside = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "well done\n"), "{beside}");
        (beside.contains("+ choose"), beside.contains(" stages"))
    };
    assert_eq!(told(&dir, ""), (false, false), "the first profile shows nothing");
    assert_eq!(told("choice", "/profile loud\n"), (true, true));
    assert_eq!(told("choice", "/profile loud\n/profile still\n"), (false, false));
}

const TENTHS: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: items, kind: deterministic, role: split, context: none, split: {over: input}}
  - {id: worker, kind: deterministic, role: linear, context: none, op: {expr: '10 / input'}}
  - {id: join, kind: deterministic, role: merge, context: none, merge: {strategy: all}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: items}
  - {from: items, to: worker}
  - {from: worker, to: join}
  - {from: join, to: end}
";

#[test]
fn s10_9_a_failed_split_is_looked_into_from_its_own_output() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "tenths", TENTHS);
    let mut list = vec![1; 30];
    list[7] = 0;
    let run = hub.run(&["flow", "run", &dir, "--input", &json!(list).to_string(), "--json"]);
    assert_eq!(run.status.code(), Some(1));
    let accepted: Value = serde_json::from_str(text(&run.stdout).lines().next().unwrap()).unwrap();
    let task = accepted["data"]["task_id"].as_str().unwrap();

    // The child, its error, and the task to look at are shown.
    let shown = text(&hub.run(&["task", "show", task]).stdout);
    let line = shown
        .lines()
        .find(|line| line.trim_start().starts_with("items/worker[7]"))
        .unwrap_or_else(|| panic!("{shown}"));
    let child = line.split_whitespace().last().unwrap().to_owned();
    assert!(shown.contains(&format!("buildscale task show {child}")) && shown.contains("join"), "{shown}");

    // All are on one scale of time; of many, those that failed, and then the first ones.
    let bar = shown
        .lines()
        .find(|line| line.starts_with("  failure    items/worker[7]"))
        .unwrap_or_else(|| panic!("{shown}"));
    assert!(bar.contains('#') && bar.ends_with('s') && !bar.contains('\x1b'), "{bar}");
    assert_eq!(
        shown.lines().filter(|line| line.contains("items/worker[") && line.contains('#')).count(),
        20,
        "{shown}"
    );
    assert!(shown.contains(&format!("and 10 more: `buildscale task list --parent {task}`")), "{shown}");

    // An id may be cut as long as it is the only one that begins so.
    let short = &child[..13];
    let shown = text(&hub.run(&["task", "show", short]).stdout);
    assert!(shown.contains("failure") && shown.contains("worker"), "{shown}");
    assert_eq!(hub.run(&["task", "show", "ffffffff"]).status.code(), Some(3));
    assert_eq!(hub.run(&["task", "show", "ff"]).status.code(), Some(2));

    // Of many, those that failed are shown one by one, and the others are counted.
    let tree = text(&hub.run(&["task", "show", task, "--tree"]).stdout);
    assert!(tree.lines().any(|line| line.contains("items/worker[7]") && line.contains(&child)), "{tree}");
    assert!(tree.contains("and 29 success") && !tree.contains("items/worker[3]"), "{tree}");
    let listed = text(&hub.run(&["task", "list", "--parent", &task[..18], "--status", "failure"]).stdout);
    assert!(listed.contains(&child) && listed.contains("items/worker[7]"), "{listed}");
}

#[test]
fn s10_9_a_task_is_shown_whole_with_its_conversations_and_its_output_once() {
    let (folder, hub) = hub();
    let dir = flow(folder.path(), "choice", CHOICE);
    let events = hub.json(0, &["flow", "run", &dir, "--input", r#"{"good": true}"#, "--json"]);
    let task = events[0]["data"]["task_id"].as_str().unwrap();
    let shown = text(&hub.run(&["task", "show", task, "--full"]).stdout);
    assert_eq!(shown.matches("output: well done").count(), 2, "the node and the exit gave it: {shown}");
    // One that pauses says where, and which node a step executes.
    let paused = hub.run(&["flow", "run", &dir, "--input", r#"{"good": true}"#, "--stepping", "--detach"]);
    let task = text(&paused.stdout).trim().to_owned();
    let paused_before = |node: &str| {
        let is_there = |shown: &Value| shown["task"]["phase"] == "paused" && shown["task"]["node"] == node;
        hub.until(&["task", "show", &task, "--json"], is_there);
    };
    paused_before("begin");
    let step = text(&hub.run(&["task", "step", &task]).stdout);
    assert_eq!(step, "executes begin, then pauses again\n");
    paused_before("choose");
    assert_eq!(text(&hub.run(&["task", "stop", &task]).stdout).lines().count(), 1);
}
