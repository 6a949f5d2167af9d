//! The faults of a report: none twice, none that only follows from another, and all of them in our words.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/folder.rs"]
mod folder;

use buildscale_flow::{
    Flow,
    flow::ToolTarget,
    load::{KnownNames, ManifestFault, Report, load},
    op::{Functions, Signature},
};
use domain::{Error, Limits};
use folder::sound;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn refused(files: BTreeMap<String, String>) -> Report {
    load("base", files, &KnownNames::default()).err().unwrap_or_else(|| panic!("it loads"))
}

fn change(files: &mut BTreeMap<String, String>, file: &str, from: &str, to: &str) {
    let text = files.get_mut(file).unwrap();
    assert!(text.contains(from), "{file} has no {from:?}");
    *text = text.replacen(from, to, 1);
}

/// The sound folder with one text changed.
fn with(file: &str, from: &str, to: &str) -> BTreeMap<String, String> {
    let mut files = sound();
    change(&mut files, file, from, to);
    files
}

/// The one fault that there is.
#[track_caller]
fn only(report: Report) -> ManifestFault {
    let [fault] = report.faults.as_slice() else { panic!("{report}") };
    fault.clone()
}

fn place(fault: &ManifestFault) -> (&str, u32, u32) {
    (&fault.file, fault.line, fault.column)
}

#[test]
fn s8_a_file_that_cannot_be_read_is_one_fault() {
    for path in sound().into_keys().filter(|path| path.ends_with(".yaml")) {
        let mut files = sound();
        files.get_mut(&path).unwrap().insert_str(0, "broken: [1\n");
        let fault = only(refused(files));
        assert_eq!((fault.file.as_str(), fault.code), (path.as_str(), "malformed"));
        assert!(fault.message.starts_with("this is no YAML: ") && !fault.message.contains(" line "), "{fault}");
    }
    let mut files = sound();
    files.remove("workflow.yaml");
    assert_eq!(only(refused(files)).code, "missing_manifest");
}

#[test]
fn s8_ids_that_could_not_be_read_are_not_missed() {
    for (file, list) in [
        ("workflow.yaml", "nodes"),
        ("workflow.yaml", "edges"),
        ("agents.yaml", "agents"),
        ("tools.yaml", "tools"),
        ("memory.yaml", "context_profiles"),
        ("providers.yaml", "providers"),
        ("provider_credentials.yaml", "provider_credentials"),
    ] {
        let (key, mistyped) = (format!("{list}:\n"), format!("{}s:\n", list.trim_end_matches('s').to_owned() + "e"));
        // An unknown key of this file may be the key to a secret.
        let code = if list == "provider_credentials" { "credential_value" } else { "unknown_key" };
        assert_eq!(only(refused(with(file, &key, &mistyped))).code, code, "{file}");
        let fault = only(refused(with(file, &key, &format!("{list}: all\nx-those:\n"))));
        assert_eq!((fault.file.as_str(), fault.code), (file, "wrong_type"));
    }
    let mut files = sound();
    let agents = files.remove("agents.yaml").unwrap();
    files.insert("agent.yaml".into(), agents);
    assert_eq!(only(refused(files)).code, "unknown_manifest", "its content is in no other file");
    // Faults of files that were read are told beside those of files that could not be read.
    let mut files = with("tools.yaml", "tools:\n", "tools: [\n");
    change(&mut files, "workflow.yaml", "agent_id: thinker", "agent_id: thinkr");
    let codes: Vec<_> = refused(files).faults.iter().map(|fault| fault.code).collect();
    assert_eq!(codes, ["malformed", "unknown_agent"]);
}

#[test]
fn s8_a_key_that_is_there_twice_is_told_in_our_words() {
    let mut files = with("workflow.yaml", "    schema_in: request\n", "    schema_in: request\n    role: exit\n");
    change(&mut files, "workflow.yaml", "retries: 2", "retry: 2");
    change(&mut files, "agents.yaml", "{temperature: 0.2,", "{temperature: 0.2, temperature: 9,");
    let report = refused(files);
    let told: Vec<_> = report.faults.iter().map(|fault| (fault.code, place(fault))).collect();
    assert_eq!(
        told,
        [
            ("duplicate_key", ("agents.yaml", 5, 32)),
            ("duplicate_key", ("workflow.yaml", 14, 5)),
            ("unknown_key", ("workflow.yaml", 28, 5)),
        ],
        "with everything else, and the first of them counts:\n{report}"
    );
    assert_eq!(report.faults[1].message, "the key `role` is there twice");
    assert_eq!(report.faults[1].hint, "keep one of them; the first is in line 10");

    // The second of two lists is not missed; and keys that are taken over from elsewhere may be written again.
    let more = "nodes:\n  - {id: other, kind: deterministic, role: exit, context: none}\nedges:\n";
    assert_eq!(only(refused(with("workflow.yaml", "edges:\n", more))).code, "duplicate_key");
    let mut files = with("workflow.yaml", "nodes:\n", "x-usual: &usual {kind: agent, context: none}\nnodes:\n");
    change(
        &mut files,
        "workflow.yaml",
        "id: second\n    kind: deterministic\n",
        "<<: *usual\n    id: second\n    kind: deterministic\n",
    );
    assert!(load("base", files, &KnownNames::default()).is_ok());

    let mut files = sound();
    files.remove("tools.yaml");
    let tools = r#"{"tools": [
  {"id": "look", "entrypoint": "read_file"}, {"id": "change", "entrypoint": "read_file", "entrypoint": "write_file"}
]}"#;
    files.insert("tools.json".into(), tools.into());
    assert_eq!(place(&only(refused(files))), ("tools.json", 2, 90), "JSON has such keys, too");
}

#[test]
fn s8_a_number_that_is_too_large_for_us_is_told_with_its_range() {
    for (file, key, to, range) in [
        ("workflow.yaml", "retries: 2", "retries: 256", "it goes from 0 to 20"),
        ("workflow.yaml", "max_concurrency: 4", "max_concurrency: 4294967296", "it goes from 1 to 4294967295"),
        ("agents.yaml", "max_tokens: 400", "max_tokens: -7", "it goes from 1 to 4294967295"),
        ("persistent_memory.yaml", "retention_days: 90", "retention_days: 4294967296", "to 4294967295"),
    ] {
        let fault = only(refused(with(file, key, to)));
        assert_eq!(fault.code, "wrong_value");
        assert!(fault.line > 1 && fault.hint.contains(range), "{fault}");
    }
}

#[test]
fn s8_of_many_names_the_nearest_are_told_and_where_all_are() {
    let fault = only(refused(with("tools.yaml", "entrypoint: \"text:lines\"", "entrypoint: \"text:linse\"")));
    let hint = "did you mean `text:lines`? the nearest of 52 are: `text:lines`, ";
    assert!(fault.hint.starts_with(hint), "{}", fault.hint);
    assert!(fault.hint.ends_with("; `buildscale flow entrypoints` has all of them"), "{}", fault.hint);
    let fault = only(refused(with("tools.yaml", "tools.fs:read_file", "tools.fs:raed_file")));
    assert!(fault.hint.starts_with("did you mean `read_file`? the nearest of 52 are: `"), "{}", fault.hint);
    let fault = only(refused(with("inspector.yaml", "breakpoints: [think]", "breakpoints: [what]")));
    assert!(fault.hint.starts_with("the nearest of 14 are: `"), "{}", fault.hint);
    assert!(fault.hint.ends_with("; workflow.yaml has all of them"), "{}", fault.hint);
}

/// Functions, of which one has no signature.
fn functions() -> Functions {
    let mut functions = Functions::builtin();
    functions.register("mine:secret", |input, _| Ok(input.clone())).unwrap();
    let signature = Signature::new("Says it twice.", json!({ "type": "object" })).unwrap();
    functions.register_tool("mine:open", signature, |input, _| Ok::<_, Error>(json!([input, input]))).unwrap();
    functions
}

#[test]
fn s5_a_tool_that_no_agent_can_call_is_refused_where_its_node_lists_it() {
    let known = KnownNames::default().with_functions(&functions());
    let loaded = |entrypoint: &str, id: &str| -> Result<Flow, Report> {
        let tool = format!("tools:\n  - id: \"{id}\"\n    {entrypoint}\n");
        let mut files = with("tools.yaml", "tools:\n", &tool);
        change(&mut files, "workflow.yaml", "tools: [look, change]", &format!("tools: [look, \"{id}\"]"));
        load("base", files, &known)
    };
    for (entrypoint, id, code, hint) in [
        ("entrypoint: \"mine:secret\"", "secret", "function_without_schema", "register it with a signature"),
        ("command: [date]\n    permissions: {allow_shell: true}", "today", "no_sandbox", "configure a sandbox"),
        ("entrypoint: read_file", "fs.read", "tool_name", "letters, digits"),
        ("entrypoint: read_file", "r\u{e9}ad", "tool_name", "letters, digits"),
    ] {
        let fault = only(loaded(entrypoint, id).unwrap_err());
        assert_eq!((fault.code, place(&fault)), (code, ("workflow.yaml", 24, 19)), "{fault}");
        assert!(fault.hint.contains(hint), "{fault}");
    }
    let flow = loaded("entrypoint: \"mine:open\"", "open").unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(flow.tools["open"].target, ToolTarget::Function("mine:open".into()));
    // Deterministic nodes call with any arguments.
    let files = with("tools.yaml", "entrypoint: \"text:lines\"", "entrypoint: \"mine:secret\"");
    assert!(load("base", files, &known).is_ok());
    let files = with("workflow.yaml", "tools: [look, change]", "tools: [look, count]");
    assert!(load("base", files, &KnownNames { sandbox: true, ..known }).is_ok(), "a sandbox runs commands");
}

#[test]
fn s5_tools_that_reach_the_network_are_known_and_none_is_built_in() {
    let flow = load("base", sound(), &KnownNames::default()).unwrap();
    assert!(flow.tools.values().all(|tool| !tool.reaches_network));
    let known = KnownNames { networked: ["read".to_owned()].into(), ..KnownNames::default() };
    let flow = load("base", sound(), &known).unwrap();
    assert!(flow.tools["look"].reaches_network && !flow.tools["change"].reaches_network);
}

const RATES: &str = "description: Converts money.
parameters:
  type: object
  properties: {amount: {type: number}}
url: https://rates.example.com/convert
";

/// The sound folder with an HTTP tool of its own, which a node lists.
fn with_tool(path: &str, text: &str) -> BTreeMap<String, String> {
    let bound = "tools:\n  - {id: rates, entrypoint: http__rates, permissions: {allow_network: true}}\n";
    let mut files = with("tools.yaml", "tools:\n", bound);
    change(&mut files, "workflow.yaml", "tools: [look, change]", "tools: [look, rates]");
    files.insert(path.into(), text.into());
    files
}

#[test]
fn s5_a_flow_brings_http_tools_in_files_of_its_folder() {
    let known = KnownNames::default();
    let mut files = with_tool("tools/rates.yaml", RATES);
    files.extend(["tools/more/x.yaml", "tools/x.py"].map(|other| (other.to_owned(), "[".to_owned())));
    let flow = load("base", files, &known).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(flow.http_tools.keys().collect::<Vec<_>>(), ["http__rates"]);
    let tool = &flow.http_tools["http__rates"];
    assert_eq!((tool.file.as_str(), tool.line), ("tools/rates.yaml", 1));
    let declared: Value = serde_json::from_str(&tool.declaration).unwrap();
    assert_eq!((&declared["name"], &declared["url"]), (&json!("rates"), &json!("https://rates.example.com/convert")));
    assert!(flow.tools["rates"].reaches_network, "it takes the permission for the network");

    // A task keeps the version that it began with.
    let again = Flow::from_bundle("base", (*flow.bundle).clone(), &known).unwrap();
    assert_eq!((&again.http_tools, &again.reference), (&flow.http_tools, &flow.reference));
    let later = load("base", with_tool("tools/rates.yaml", &RATES.replace("https", "http")), &known).unwrap();
    assert_ne!(later.reference.hash, flow.reference.hash);

    let json = r#"{"name": "rates", "description": "Converts money.", "url": "https://rates.example.com/convert"}"#;
    let flow = load("base", with_tool("tools/any-name.json", json), &known).unwrap();
    assert_eq!(flow.http_tools["http__rates"].file, "tools/any-name.json");
}

#[test]
fn s8_a_tool_of_a_flow_is_checked_with_its_place_and_a_hint() {
    for (from, to, code, at, hint) in [
        ("description:", "descripton:", "unknown_key", (1, 1), "did you mean `description`?"),
        ("url:", "urls:", "unknown_key", (5, 1), "did you mean `url`?"),
        ("url: https:", "url: ftp:", "wrong_value", (5, 6), "https://host/path"),
        ("url: https://rates.", "url: https://{host}.", "wrong_value", (5, 6), "https://host/path"),
        ("type: number", "type: numbr", "invalid_schema", (4, 31), "JSON Schema"),
        ("url:", "timeout_s: soon\nurl:", "wrong_type", (5, 12), "in seconds"),
        ("url:", "method: FETCH\nurl:", "wrong_value", (5, 9), "there are: `"),
        ("url:", "code: true\nurl:", "misplaced_key", (5, 7), "/system/tools"),
    ] {
        let text = RATES.replacen(from, to, 1);
        let fault = only(refused(with_tool("tools/rates.yaml", &text)));
        assert_eq!((fault.code, place(&fault)), (code, ("tools/rates.yaml", at.0, at.1)), "{fault}");
        assert!(fault.hint.contains(hint), "{fault}");
    }
    let fault = only(refused(with_tool("tools/rates.yaml", "url: https://rates.example.com\n")));
    assert_eq!((fault.code, fault.file.as_str()), ("missing_key", "tools/rates.yaml"), "{fault}");
    let fault = only(refused(with_tool("tools/my rates.yaml", RATES)));
    assert_eq!((fault.code, fault.file.as_str()), ("wrong_value", "tools/my rates.yaml"), "{fault}");
    let mut files = with_tool("tools/rates.yaml", RATES);
    files.insert("tools/second.yaml".into(), format!("name: rates\n{RATES}"));
    let fault = only(refused(files));
    assert_eq!((fault.code, place(&fault)), ("duplicate_id", ("tools/second.yaml", 1, 1)), "{fault}");
    assert!(fault.message.contains("`tools/rates.yaml` declares `http__rates` already"), "{fault}");
}

#[test]
fn s1_parts_that_the_project_does_not_declare_are_not_there() {
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: end}]
";
    let files = |workflow: &str| BTreeMap::from([("workflow.yaml".to_owned(), workflow.to_owned())]);
    let flow = load("bare", files(workflow), &KnownNames::default()).unwrap();
    assert_eq!(flow.graph.nodes().len(), 2, "no node but those of the manifest");
    assert!(flow.agents.is_empty() && flow.tools.is_empty() && flow.schemas.is_empty());
    assert!(flow.memory.profiles.is_empty() && flow.policy.is_empty() && flow.settings.providers.is_empty());
    // Not even built-in ones, unless the project names them.
    let node = "- {id: end,";
    let more = "- {id: work, kind: agent, role: linear, agent_id: assistant, context: recent, tools: [read], schema_out: answer}\n  ";
    let edges = "edges: [{from: begin, to: work}, {from: work, to: end}]";
    let workflow = workflow.replace(node, &format!("{more}{node}")).replace("edges: [{from: begin, to: end}]", edges);
    let mut codes: Vec<_> = refused(files(&workflow)).faults.iter().map(|fault| fault.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["unknown_agent", "unknown_profile", "unknown_schema", "unknown_tool"]);
}

#[test]
fn s4_a_policy_of_meaning_without_a_model_is_noted() {
    let noted = |policy: &str, embeds: Option<bool>| {
        let files = with("memory.yaml", "retrieval_policy: recency", &format!("retrieval_policy: {policy}"));
        let flow = load("base", files, &KnownNames { embeds, ..KnownNames::default() }).unwrap();
        flow.notes
            .iter()
            .filter(|note| note.code == "no_embedding_model")
            .map(|note| note.file.clone())
            .collect::<Vec<_>>()
    };
    for policy in ["semantic", "hybrid"] {
        assert_eq!(noted(policy, Some(false)), ["memory.yaml"]);
        assert!(noted(policy, Some(true)).is_empty() && noted(policy, None).is_empty());
    }
    assert!(noted("recency", Some(false)).is_empty());
}

#[test]
fn s8_agents_stay_within_the_limits_of_the_server() {
    let most = Limits { max_steps: 3, max_wall_ms: 90_000, ..Limits::default() };
    let loaded = |limits: &str| {
        let files = with("agents.yaml", "    limits: {max_steps: 5}\n", limits);
        load("base", files, &KnownNames { limits: Some(most), ..KnownNames::default() }).unwrap()
    };
    let silent = loaded("");
    assert_eq!(silent.agents["thinker"].limits, most);
    assert!(silent.notes.iter().all(|note| note.code != "narrowed"));
    let asking = loaded("    limits: {max_steps: 5, max_seconds: 120.5, max_cost_usd: 0.25}\n");
    assert_eq!(asking.agents["thinker"].limits, Limits { max_cost_usd: 0.25, ..most });
    let notes = asking.notes.iter().filter(|note| note.code == "narrowed");
    let notes: Vec<_> = notes.map(|note| (note.file.as_str(), note.message.as_str())).collect();
    let steps = "`limits/max_steps` of `thinker` is more than the 3 that this server allows";
    let seconds = "`limits/max_seconds` of `thinker` is more than the 90 that this server allows";
    assert_eq!(notes, [("agents.yaml", steps), ("agents.yaml", seconds)]);
    // A check without a server does not know its limits, and claims nothing about them.
    let wide = with("agents.yaml", "    limits: {max_steps: 5}\n", "    limits: {max_steps: 5000}\n");
    let offline = load("base", wide, &KnownNames::default()).unwrap();
    assert!(offline.notes.iter().all(|note| note.code != "narrowed"), "{:?}", offline.notes);
    assert_eq!(offline.agents["thinker"].limits, Limits::default());
}

/// To find the name that was meant takes the product of the lengths of both names, for each name that is there.
#[test]
fn mistyped_names_are_faults_without_a_long_search_however_many_there_are() {
    let node = |id: &str, role: &str| json!({ "id": id, "kind": "deterministic", "role": role, "context": "none" });
    let long = |number: usize| format!("{}{number:04}", "n".repeat(96));
    // How many of the faults have the name that was meant.
    let hints = |count: usize| {
        let mut nodes: Vec<Value> = (0..count).map(|number| node(&long(number), "linear")).collect();
        nodes.extend([node("a", "start"), node("finish", "exit")]);
        let edges: Vec<Value> =
            (0..count).map(|number| json!({ "from": "a", "to": format!("x{}", &long(number)[1..]) })).collect();
        let workflow = json!({ "nodes": nodes, "edges": edges }).to_string();
        let report = refused(BTreeMap::from([("workflow.json".to_owned(), workflow)]));
        let unknown = report.faults.iter().filter(|fault| fault.code == "unknown_node");
        unknown
            .map(|fault| usize::from(fault.hint.contains("did you mean")))
            .fold((0, 0), |(all, meant), one| (all + 1, meant + one))
    };
    assert_eq!(hints(20), (20, 20));
    let (all, meant) = hints(300);
    assert!(all == 300 && meant < 100, "{meant} of {all}");
    assert_eq!(hints(3), (3, 3), "each load has a budget of its own");
}

#[test]
fn a_flow_of_more_nodes_or_edges_than_are_taken_is_refused_without_a_look_at_them() {
    let node = |n: usize| json!({ "id": format!("n{n}"), "kind": "deterministic", "role": "exit", "context": "none" });
    let edge = |n: usize| json!({ "from": "n0", "to": format!("n{n}") });
    for (nodes, edges, told) in [(10_001, 1, "10001 nodes; 10000 are"), (2, 20_001, "20001 edges; 20000 are")] {
        let nodes: Vec<Value> = (0..nodes).map(node).collect();
        let edges: Vec<Value> = (0..edges).map(edge).collect();
        let workflow = json!({ "nodes": nodes, "edges": edges }).to_string();
        let fault = only(refused(BTreeMap::from([("workflow.json".to_owned(), workflow)])));
        assert!(fault.code == "too_many" && fault.message.contains(told), "{fault}");
    }
}

#[test]
fn a_flow_that_was_accepted_before_runs_on_however_deep_its_forks_lie() {
    let node = |id: &str, role: &str| json!({ "id": id, "kind": "deterministic", "role": role, "context": "none" });
    let splits: Vec<String> = (0..101).map(|level| format!("s{level}")).collect();
    let way: Vec<&str> = ["a"].into_iter().chain(splits.iter().map(String::as_str)).chain(["z"]).collect();
    let mut nodes = vec![node("a", "start"), node("z", "exit")];
    nodes.extend(splits.iter().map(|id| node(id, "split")));
    let edges: Vec<Value> = way.windows(2).map(|ends| json!({ "from": ends[0], "to": ends[1] })).collect();
    let workflow = json!({ "nodes": nodes, "edges": edges }).to_string();
    let files = BTreeMap::from([("workflow.json".to_owned(), workflow)]);
    assert_eq!(only(refused(files.clone())).code, "too_deep");
    let flow = Flow::from_bundle("base", files, &KnownNames::default()).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(flow.graph.node(&"z".into()).unwrap().forks.len(), 101);
}
