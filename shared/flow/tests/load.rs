//! Loading: each kind of fault with its place and its hint, all of them at once, and the flow of a folder without faults.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/folder.rs"]
mod folder;

use buildscale_flow::{
    Flow,
    flow::{ContextUse, Op, Retrieval, StoreKind, ToolTarget},
    graph::{Role, Strategy as JoinStrategy},
    load::{KnownNames, ManifestFault, Report, load},
    manifest::{QueuePolicy, SecretReference},
};
use folder::sound;
use proptest::{prelude::*, sample::Index};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

#[path = "load/injected_faults.rs"]
mod injected_faults;

use injected_faults::{ALONE, PLANTS, Plant};

fn known() -> KnownNames {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect::<BTreeSet<_>>();
    KnownNames {
        personas: Some(set(&["coder", "planner"])),
        models: Some(set(&["openai/*", "anthropic/claude"])),
        ..KnownNames::default()
    }
}

/// The place of a plant: line and column, where it says that.
type LineAndColumn = Option<(u32, u32)>;

/// Plants faults; gives for each its file, line and column, where it says that.
fn plant(plants: &[&Plant]) -> (BTreeMap<String, String>, Vec<LineAndColumn>) {
    let mark = |place: usize| char::from_u32(0xE000 + place as u32).unwrap();
    let mut files = sound();
    for (place, (file, from, to, ..)) in plants.iter().enumerate() {
        let text = files.get_mut(*file).unwrap();
        assert!(text.contains(from), "{file} has no {from:?}");
        *text = text.replacen(from, &to.replace('«', &mark(place).to_string()), 1);
    }
    let places = plants.iter().enumerate().map(|(place, (file, ..))| {
        // Marks before it on its line take no room.
        let (before, _) = files[*file].split_once(mark(place))?;
        let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
        let start = before.rsplit('\n').next().unwrap_or_default();
        let column = start.chars().filter(|letter| !('\u{E000}'..'\u{F000}').contains(letter)).count() + 1;
        Some((line as u32, column as u32))
    });
    let places = places.collect();
    for text in files.values_mut() {
        text.retain(|letter| !('\u{E000}'..'\u{F000}').contains(&letter));
    }
    (files, places)
}

fn refused(files: BTreeMap<String, String>) -> Report {
    load("base", files, &known()).err().unwrap_or_else(|| panic!("it loads"))
}

/// The fault that a plant makes, if the report has it.
fn found<'a>(report: &'a Report, plant: &Plant, place: Option<(u32, u32)>) -> Option<&'a ManifestFault> {
    let (file, _, _, code, hint) = plant;
    report.faults.iter().find(|fault| {
        let hint_fits = !fault.hint.is_empty() && fault.hint.contains(hint);
        let place_fits = place.is_none_or(|place| place == (fault.line, fault.column) && fault.file == *file);
        fault.code == *code && place_fits && hint_fits
    })
}

fn flow() -> Flow {
    load("base", sound(), &known()).unwrap_or_else(|report| panic!("{report}"))
}

#[test]
fn s8_a_folder_without_a_fault_loads() {
    let flow = flow();
    assert_eq!(flow.reference.name, "base");
    assert_eq!(flow.default_start.as_str(), "begin");
    assert!(flow.is_checked);

    let think = &flow.nodes[&"think".into()];
    assert_eq!(think.op, Op::Agent { agent: "thinker".into(), prompt: Some("Think of {{input}}".into()) });
    assert_eq!(think.context, ContextUse::Profile("notes".into()));
    assert_eq!(
        (think.timeout, think.failures.retry.times, think.max_concurrency),
        (Some(Duration::from_secs(30)), 2, Some(4))
    );
    assert_eq!(flow.nodes[&"right".into()].tools, ["look"], "to call a tool is to list it");
    assert_eq!(flow.nodes[&"right".into()].remember.as_ref().unwrap().store, StoreKind::Project);
    assert_eq!(flow.nodes[&"each".into()].split.as_ref().unwrap().max_subtasks, 50);
    assert_eq!(flow.nodes[&"gather".into()].score.as_deref(), Some("size(input.output)"));
    assert!(matches!(&flow.nodes[&"people".into()].op, Op::Ask(rule) if rule.questions.len() == 1));
    assert!(flow.graph.node(&"left".into()).unwrap().continue_on_failure);
    assert_eq!(flow.graph.node(&"gather".into()).unwrap().join.strategy, JoinStrategy::BestOf);
    assert_eq!(flow.graph.nodes().iter().filter(|node| node.role == Role::Exit).count(), 2);

    assert_eq!(flow.tools["look"].target, ToolTarget::Builtin("read".into()));
    assert_eq!(flow.tools["look"].permissions.root.as_deref(), Some("/projects"));
    assert_eq!(flow.tools["change"].target, ToolTarget::Builtin("write".into()));
    assert_eq!(flow.tools["count"].target, ToolTarget::Command(vec!["wc".into(), "-l".into()]));
    assert_eq!(flow.tools["lines"].target, ToolTarget::Function("text:lines".into()));
    assert_eq!(flow.agents["thinker"].limits.max_steps, 5);
    assert_eq!(flow.memory.profiles["notes"].policy, Retrieval::Recency);
    assert_eq!(flow.limits.providers, BTreeMap::from([("house".into(), 2), ("openai".into(), 4)]));
    assert!(!flow.policy[0].allow);

    let settings = &flow.settings;
    assert_eq!(settings.credentials[0].reference(), Some(SecretReference::Env("HOUSE_API_KEY".into())));
    assert_eq!(settings.credentials[1].reference(), Some(SecretReference::File("/run/secrets/other".into())));
    assert_eq!(settings.queue_policy, QueuePolicy::Priority);
    assert_eq!(settings.evaluations[0].cases[0].assertions.len(), 4);
    assert_eq!(settings.inspector.breakpoints, ["think"]);
    assert_eq!(settings.plugins.len() + settings.metrics.metrics.len() + settings.cli_profiles.len(), 3);
    assert_eq!(settings.persistent_memory[0].retention_days, Some(90));
    assert!(!flow.bundle.contains_key("README.md") && flow.bundle.contains_key("schemas/thought.json"));
}

#[test]
fn s8_every_kind_of_fault_is_said_with_its_place_and_a_hint() {
    for case in PLANTS.iter().chain(ALONE) {
        let (files, places) = plant(&[case]);
        let report = load("base", files, &known()).err().unwrap_or_else(|| panic!("{case:#?} loads"));
        assert!(found(&report, case, places[0]).is_some(), "{case:#?} at {:?}:\n{report}", places[0]);
    }
}

#[test]
fn s8_one_mistake_is_one_fault() {
    for case in PLANTS {
        let (files, _) = plant(&[case]);
        let report = refused(files);
        assert!(report.faults.len() == 1, "{case:#?}:\n{report}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn s8_all_faults_of_a_folder_are_in_one_report(chosen in prop::collection::vec(any::<Index>(), 1..12)) {
        let chosen: BTreeSet<usize> = chosen.iter().map(|index| index.index(PLANTS.len())).collect();
        let plants: Vec<&Plant> = chosen.iter().map(|place| &PLANTS[*place]).collect();
        let (files, places) = plant(&plants);
        let report = refused(files);
        for (case, place) in plants.iter().zip(places) {
            prop_assert!(found(&report, case, place).is_some(), "{:#?} at {:?}:\n{}", case, place, report);
        }
        let sorted = report.faults.is_sorted_by_key(|fault| (fault.file.clone(), fault.line, fault.column));
        prop_assert!(sorted, "{}", report);
    }
}

#[test]
fn s8_a_report_reads_well() {
    let all: Vec<&Plant> = PLANTS.iter().collect();
    insta::assert_snapshot!(refused(plant(&all).0));
}

#[test]
fn s8_a_report_is_json() {
    let (files, _) = plant(&[&PLANTS[0]]);
    insta::assert_json_snapshot!(refused(files), @r#"
    {
      "faults": [
        {
          "file": "workflow.yaml",
          "line": 3,
          "column": 1,
          "code": "unknown_key",
          "message": "there is no key `descripton` here",
          "hint": "did you mean `description`?"
        }
      ]
    }
    "#);
}

#[test]
fn s10_11_no_report_shows_a_value_that_may_be_a_key() {
    for case in PLANTS.iter().chain(ALONE).filter(|case| case.3 == "credential_value") {
        let report = refused(plant(&[case]).0);
        assert!(!format!("{report}{report:?}").contains("planted"), "{report}");
    }
}

#[test]
fn s8_files_that_are_not_manifests_are_named() {
    let mut files = sound();
    files.insert("agent.yaml".into(), String::new());
    files.insert("tools.json".into(), "{\"tools\": []}".into());
    files.remove("workflow.yaml");
    let report = refused(files);
    let said: Vec<(&str, &str)> = report.faults.iter().map(|fault| (fault.file.as_str(), fault.code)).collect();
    for fault in [
        ("agent.yaml", "unknown_manifest"),
        ("tools.yaml", "duplicate_manifest"),
        ("workflow.yaml", "missing_manifest"),
    ] {
        assert!(said.contains(&fault), "{report}");
    }
    assert_eq!(report.faults[0].hint, "did you mean `agents.yaml`?");
}

#[test]
fn a_manifest_of_nothing_but_comments_says_nothing() {
    let mut files = sound();
    for path in ["policy.yaml", "plugins.yaml", "evaluations.yaml", "metrics.yaml", "deployment.yaml"] {
        files.insert(path.into(), "# nothing yet\n".into());
    }
    let flow = load("base", files, &known()).unwrap_or_else(|report| panic!("{report}"));
    assert!(flow.policy.is_empty() && flow.settings.metrics.enabled && flow.settings.deployment.is_none());
}

#[test]
fn s8_manifests_may_be_json_and_lists() {
    let mut files = sound();
    let tools: serde_json::Value = serde_saphyr::from_str(&files.remove("tools.yaml").unwrap()).unwrap();
    files.insert("tools.json".into(), serde_json::to_string_pretty(&tools["tools"]).unwrap());
    assert_eq!(load("base", files.clone(), &known()).unwrap_or_else(|report| panic!("{report}")).tools, flow().tools);
    let text = files["tools.json"].replace("\"entrypoint\": \"write_file\"", "\"entrypont\": \"write_file\"");
    files.insert("tools.json".into(), text);
    let report = refused(files);
    assert!(
        report.faults.iter().any(|fault| fault.code == "unknown_key" && (fault.line, fault.column) == (14, 5)),
        "{report}"
    );
}

#[test]
fn keys_of_ones_own_are_left_alone() {
    let mut files = sound();
    for (path, text) in &mut files {
        if path.ends_with(".yaml") {
            text.push_str("x-owner: {team: [a, b]}\n");
        }
    }
    let workflow = files["workflow.yaml"].replace("  - id: second\n", "  - id: second\n    x-colour: red\n");
    files.insert("workflow.yaml".into(), workflow);
    load("base", files, &known()).unwrap_or_else(|report| panic!("{report}"));
}

#[test]
fn s10_2_the_same_manifests_are_the_same_flow() {
    let flow = flow();
    let again = Flow::from_bundle("base", (*flow.bundle).clone(), &known()).unwrap();
    assert_eq!(again.reference, flow.reference);
    assert_eq!(again.bundle, flow.bundle);

    let mut other = sound();
    other.insert("README.md".into(), "other words".into());
    assert_eq!(load("base", other.clone(), &known()).unwrap().reference, flow.reference, "not a manifest");
    other.get_mut("workflow.yaml").unwrap().push('\n');
    assert_ne!(load("base", other, &known()).unwrap().reference.hash, flow.reference.hash);
}

#[test]
fn s10_2_the_end_of_a_file_counts() {
    let files = |pairs: [(&str, &str); 2]| pairs.map(|(path, text)| (path.to_string(), text.to_string())).into();
    let one = buildscale_flow::load::hash(&files([("agents.yaml", "ab"), ("tools.yaml", "c")]));
    let other = buildscale_flow::load::hash(&files([("agents.yaml", "a"), ("tools.yaml", "bc")]));
    assert_ne!(one, other);
}

#[test]
fn schemas_say_what_is_wrong_and_where() {
    let schema = buildscale_flow::flow::Schema::compile(
        "thought",
        serde_json::json!({"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}, "required": ["m"]}),
    )
    .unwrap();
    assert!(schema.errors(&serde_json::json!({"m": 1, "n": []})).is_empty());
    let errors = schema.errors(&serde_json::json!({"n": [1, "two"]}));
    assert_eq!(errors, ["\"m\" is a required property", "/n/1: \"two\" is not of type \"integer\""]);
    let many = serde_json::json!({"m": 1, "n": vec!["x"; 50]});
    assert_eq!(schema.errors(&many).len(), 10);
}

#[test]
fn a_folder_is_read_without_what_is_no_manifest() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in sound() {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir(folder.path().join("golden")).unwrap();
    std::fs::write(folder.path().join("golden/workflow.yaml"), "not: read").unwrap();
    let mut expected = sound();
    expected.remove("README.md");
    assert_eq!(buildscale_flow::load::read_folder(folder.path()).unwrap(), expected);
    assert!(buildscale_flow::load::read_folder(folder.path().join("nothing")).is_err());
}

#[test]
fn the_fields_own_manifests_load() {
    // As others write them: no operations, a decision between agents, `root: false`, the longer form of credentials.
    let workflow = r#"
version: "1.0"
nodes:
  - {id: start, name: Start, kind: deterministic, role: start, default_start: true, context: none, continue_on_failure: false}
  - {id: decide, kind: agent, role: decision, agent_id: editor, context: global, tools: []}
  - {id: draft, kind: agent, role: linear, agent_id: editor, context: global, tools: [write_file]}
  - {id: edit, kind: agent, role: linear, agent_id: editor, context: global, tools: [write_file]}
  - {id: sum, kind: agent, role: merge, agent_id: editor, context: global, tools: []}
  - {id: exit, kind: deterministic, role: exit, context: none}
edges:
  - {from: start, to: decide}
  - {from: decide, to: draft, label: create}
  - {from: decide, to: edit, label: edit}
  - {from: draft, to: sum}
  - {from: edit, to: sum}
  - {from: sum, to: exit}
"#;
    let files = [
        ("workflow.yaml", workflow),
        ("agents.yaml", "agents:\n  - {id: editor, kind: agent, llm: anthropic/claude, config: {}}\n"),
        (
            "tools.yaml",
            "tools:\n  - {id: write_file, type: filesystem, entrypoint: \"agent_engine.tools.filesystem:write_file\", permissions: {root: false}}\n",
        ),
        (
            "provider_credentials.yaml",
            "provider_credentials:\n  - {id: a, provider: anthropic, auth: {type: api_key, source: env, env_var: ANTHROPIC_API_KEY}}\n",
        ),
    ];
    let files = files.map(|(path, text)| (path.to_string(), text.to_string())).into();
    let flow = load("mini", files, &known()).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(flow.default_start.as_str(), "start");
    assert!(flow.graph.node(&"sum".into()).unwrap().forks.is_empty());
}
