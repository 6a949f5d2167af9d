//! The files of a folder, read and checked against their schemas (step 1).

use super::{
    http_tools,
    report::{At, Faults, meant, nearest},
    schema_check::SchemaCheck,
    secrets,
    tree::{Content, DuplicateKey, InexactNumber, Malformed, SourcePosition, SourceTree},
};
use crate::{
    bundle::{self, Part},
    flow::{HttpTool, Schema},
    manifest::{self, MANIFESTS, schema_of},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The most bytes of the patterns of all schemas of a flow together, once they are compiled.
const ALL_COMPILED: usize = 64 * 1024 * 1024;

/// One manifest, without the parts of a wrong shape.
pub(super) struct Document<T> {
    /// Its path; the one it would have when it is not there.
    pub(super) file: String,
    pub(super) value: T,
    /// The ids of its list, also those of entries that were taken out.
    pub(super) ids: BTreeSet<String>,
    /// Whether these are all ids. Not when the file or its list cannot be read: that has its fault, and a reference to an id
    /// that could not be read is no further one.
    pub(super) listed: bool,
    tree: SourceTree,
}

impl<T> Document<T> {
    /// The place that a JSON pointer leads to.
    pub(super) fn at(&self, pointer: &str) -> At<'_> {
        At { file: &self.file, place: self.tree.place_of(pointer) }
    }

    /// Whether this key of the file is there and right.
    pub(super) fn has(&self, key: &str) -> bool {
        self.tree.get(key).is_some()
    }

    /// The place of a key of the object that a JSON pointer leads to.
    pub(super) fn at_key(&self, pointer: &str, key: &str) -> At<'_> {
        At { file: &self.file, place: self.tree.place_of_key(pointer, key) }
    }
}

/// All manifests of a folder; those that are not there are empty.
pub(super) struct Documents {
    pub(super) workflow: Document<manifest::Workflow>,
    pub(super) agents: Document<manifest::Agents>,
    pub(super) tools: Document<manifest::Tools>,
    pub(super) memory: Document<manifest::MemoryManifest>,
    pub(super) policy: Document<manifest::Policies>,
    pub(super) providers: Document<manifest::Providers>,
    pub(super) credentials: Document<manifest::Credentials>,
    pub(super) evaluations: Document<manifest::Evaluations>,
    pub(super) metrics: Document<manifest::Metrics>,
    pub(super) artifacts: Document<manifest::Artifacts>,
    pub(super) plugins: Document<manifest::Plugins>,
    pub(super) execution: Document<manifest::Execution>,
    pub(super) inspector: Document<manifest::Inspector>,
    pub(super) cli_profiles: Document<manifest::CliProfiles>,
    pub(super) persistent_memory: Document<manifest::PersistentMemory>,
    pub(super) engine_metadata: Document<manifest::EngineMetadata>,
    pub(super) deployment: Document<Option<manifest::Deployment>>,
    /// The names of files in `schemas/`, also of those that are no schema.
    pub(super) schema_names: BTreeSet<String>,
    /// The HTTP tools of `tools/`, by the names that agents call them by.
    pub(super) http_tools: BTreeMap<String, HttpTool>,
}

impl Documents {
    /// Reads all files, and compiles the schemas.
    pub(super) fn read(files: &BTreeMap<String, String>, faults: &mut Faults) -> (Self, HashMap<String, Arc<Schema>>) {
        let mut trees: HashMap<&'static str, (&str, SourceTree)> = HashMap::new();
        let mut names: BTreeMap<&'static str, &str> = BTreeMap::new();
        let mut schemas = HashMap::new();
        let mut schema_names = BTreeSet::new();
        let mut tools = Vec::new();
        let mut unread: BTreeSet<&'static str> = BTreeSet::new();
        let all = files.keys().filter(|path| matches!(bundle::part(path), Part::Schema(_))).count();
        let most_compiled = (ALL_COMPILED / all.max(1)).min(schema::MOST_COMPILED);
        for (path, text) in files {
            let part = bundle::part(path);
            match part {
                Part::Other => continue,
                Part::Unknown => {
                    unread.extend(unknown_manifest(path, faults));
                    continue;
                }
                Part::Manifest(name) => {
                    if let Some(earlier) = names.insert(name, path) {
                        let start = At { file: path, place: SourcePosition::default() };
                        let message = format!("`{earlier}` already says what `{path}` says");
                        faults.add(start, "duplicate_manifest", message, "keep one of them");
                        continue;
                    }
                }
                Part::Schema(name) => drop(schema_names.insert(name.to_string())),
                Part::Tool => {}
            }
            let (tree, is_whole) = read_tree(path, text, faults);
            if let Part::Manifest(name) = part
                && !is_whole
            {
                unread.insert(name);
            }
            let Some(tree) = tree else { continue };
            match part {
                Part::Manifest(name) => drop(trees.insert(name, (path, tree))),
                Part::Schema(name) => schemas.extend(compiled((path, name), &tree, most_compiled, faults)),
                Part::Tool => tools.push((path.as_str(), tree)),
                Part::Unknown | Part::Other => {}
            }
        }
        if !names.contains_key("workflow") {
            let at = At { file: "workflow.yaml", place: SourcePosition::default() };
            let hint = "a flow is a folder with a workflow.yaml that lists `nodes` and `edges`";
            faults.add(at, "missing_manifest", "there is no workflow.yaml", hint);
        }
        let http_tools = http_tools::read(tools, faults);
        let mut reader = Reader { trees, unread, faults };
        let docs = Self {
            workflow: reader.read("workflow"),
            agents: reader.read("agents"),
            tools: reader.read("tools"),
            memory: reader.read("memory"),
            policy: reader.read("policy"),
            providers: reader.read("providers"),
            credentials: reader.read("provider_credentials"),
            evaluations: reader.read("evaluations"),
            metrics: reader.read("metrics"),
            artifacts: reader.read("artifacts"),
            plugins: reader.read("plugins"),
            execution: reader.read("execution"),
            inspector: reader.read("inspector"),
            cli_profiles: reader.read("cli_profiles"),
            persistent_memory: reader.read("persistent_memory"),
            engine_metadata: reader.read("engine_metadata"),
            deployment: reader.read("deployment"),
            schema_names,
            http_tools,
        };
        (docs, schemas)
    }
}

/// Reports a file that has no name of a manifest. Returns the manifest that its name is closest to: its content is in no other file.
fn unknown_manifest(path: &str, faults: &mut Faults) -> Option<&'static str> {
    let known: Vec<String> =
        MANIFESTS.iter().flat_map(|(_, stems, _)| *stems).map(|stem| format!("{stem}.yaml")).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let manifest = match meant(path, &known).map(bundle::part) {
        Some(Part::Manifest(name)) => Some(name),
        _ => None,
    };
    let hint = nearest(path, known, "`buildscale flow schema`").unwrap_or_default();
    let start = At { file: path, place: SourcePosition::default() };
    faults.add(start, "unknown_manifest", format!("no manifest is called `{path}`"), hint);
    manifest
}

/// Parses a file and reports its faults. Returns the tree, if there is one, and whether it has all that the file says.
fn read_tree(path: &str, text: &str, faults: &mut Faults) -> (Option<SourceTree>, bool) {
    // The place of bytes that are no text is known to the reader of the file.
    if let Some((before, _)) = text.split_once(char::REPLACEMENT_CHARACTER) {
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let place = SourcePosition { line: line as u32, column: column as u32 };
        let hint = "save the file as UTF-8; the rest of it was looked at";
        faults.refuse(At { file: path, place }, "not_utf8", "the file is no UTF-8 text here", hint);
    }
    let (tree, again, inexact) = match SourceTree::read(path, text) {
        Ok(read) => read,
        Err(Malformed { place, message, hint }) => {
            let hint = format!("{hint}; nothing else in this file was looked at");
            faults.add(At { file: path, place }, "malformed", message, hint);
            return (None, false);
        }
    };
    let mut is_whole = true;
    for DuplicateKey { key, place, first, at_root } in again {
        // Half of a list is in neither of the two.
        is_whole &= !at_root;
        let hint = match first.line {
            0 => "keep one of them".into(),
            line => format!("keep one of them; the first is in line {line}"),
        };
        faults.add(At { file: path, place }, "duplicate_key", format!("the key `{key}` is there twice"), hint);
    }
    for InexactNumber { place, number } in inexact {
        let message = format!("the number {number} cannot be kept exactly: it is no 64-bit integer and no double");
        faults.refuse(At { file: path, place }, "wrong_value", message, "write it as a text, in quotes");
    }
    (Some(tree), is_whole)
}

/// The schema of a file under its name; none where it is no schema, which is reported.
fn compiled(
    (path, name): (&str, &str),
    tree: &SourceTree,
    most_compiled: usize,
    faults: &mut Faults,
) -> Option<(String, Arc<Schema>)> {
    let error = match Schema::compile_within(name, tree.to_value(), most_compiled) {
        Ok(schema) => return Some((name.to_string(), Arc::new(schema))),
        Err(error) => error,
    };
    match tree.reference_out() {
        Some((place, reference)) => {
            let message = format!("`{reference}` is in no file of the flow, and nothing is fetched");
            let hint = "put what it leads to under `$defs`, and refer to it as `#/$defs/…`";
            faults.add(At { file: path, place }, "invalid_schema", message, hint);
        }
        None => {
            let at = At { file: path, place: tree.place_of(&error.pointer) };
            faults.add(at, "invalid_schema", error.message, "it is read as JSON Schema 2020-12");
        }
    }
    None
}

struct Reader<'a> {
    trees: HashMap<&'static str, (&'a str, SourceTree)>,
    /// Manifests that are there and could not be read as a whole.
    unread: BTreeSet<&'static str>,
    faults: &'a mut Faults,
}

impl Reader<'_> {
    fn read<T: DeserializeOwned + Default>(&mut self, name: &'static str) -> Document<T> {
        let empty = SourceTree { place: SourcePosition::default(), content: Content::Map(Vec::new()) };
        let none = |file: &str, listed| Document {
            file: file.into(),
            value: T::default(),
            ids: BTreeSet::new(),
            listed,
            tree: empty.clone(),
        };
        let Some((file, tree)) = self.trees.remove(name) else {
            return none(&format!("{name}.yaml"), name != "workflow" && !self.unread.contains(name));
        };
        let list = MANIFESTS.iter().find(|(manifest, ..)| *manifest == name).map_or("", |(.., list)| *list);
        let tree = match tree.content {
            // An empty file says nothing; a file may be nothing but its list.
            Content::Scalar(Value::Null) if name != "workflow" => return none(file, true),
            Content::List(_) if !list.is_empty() && name != "workflow" => {
                SourceTree { place: tree.place, content: Content::Map(vec![(list.into(), tree.place, tree)]) }
            }
            _ => tree,
        };
        let stem = file.split('.').next().unwrap_or(name);
        let tree = tree.unwrapped(stem, schema_of(name));
        let ids = self.ids(file, &tree, list, name != "workflow");
        for place in secrets::in_configs(&tree, list) {
            let hint = "say where it is: `{env: NAME}`, `{file: path}` or `{secret: name}`";
            self.faults.add(At { file, place }, "credential_value", "manifests hold no secrets", hint);
        }
        let may_be_left_out = is_left_out(&tree, list, schema_of(name));
        let mut check =
            SchemaCheck { file, root: schema_of(name), secret: name == "provider_credentials", faults: self.faults };
        let tree = check.check(tree).unwrap_or(empty);
        let value = serde_json::from_value(tree.to_value()).unwrap_or_else(|error| {
            let at = At { file, place: SourcePosition::default() };
            let hint = format!("`buildscale flow schema {name}.yaml` prints what it may say");
            self.faults.add(at, "wrong_type", format!("it cannot be read: {error}"), hint);
            T::default()
        });
        let whole = list.is_empty() || may_be_left_out || tree.get(list).is_some();
        let listed = whole && !self.unread.contains(name);
        Document { file: file.into(), value, ids, listed, tree }
    }

    /// The ids of a list as they are written, and a fault for each that is there twice.
    fn ids(&mut self, file: &str, tree: &SourceTree, list: &str, check: bool) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        let Some(Content::List(items)) = tree.get(list).map(|list| &list.content) else { return ids };
        for item in items {
            let Some(id) = item.get("id").or_else(|| item.get("name")) else { continue };
            let Content::Scalar(Value::String(text)) = &id.content else { continue };
            if !ids.insert(text.clone()) && check {
                let message = format!("the id `{text}` is taken by an earlier entry of `{list}`");
                let hint = "give one of them another id; references to it mean the earlier one";
                self.faults.add(At { file, place: id.place }, "duplicate_id", message, hint);
            }
        }
        ids
    }
}

/// Whether a file rightly has no such list: it need not have one, and no key of it looks like a mistyped one.
fn is_left_out(tree: &SourceTree, list: &str, schema: &Value) -> bool {
    let Content::Map(map) = &tree.content else { return false };
    let keys: Vec<&str> = map.iter().map(|(key, ..)| key.as_str()).collect();
    let required =
        schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|name| name == list));
    !required && !keys.contains(&list) && meant(list, &keys).is_none()
}
