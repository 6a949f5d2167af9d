//! Checks that each thing a manifest says can act here: versions, stores, rules, limits (steps 2, 5 and 7).

use super::{
    Loader,
    documents::Document,
    known_names::SERVED,
    report::{At, nearest},
};
use crate::{
    flow::{Bounds, PolicyTarget, StoreKind},
    graph::Role,
    manifest::{OpManifest, SourceManifest},
    op, template,
};
use domain::NodeId;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

/// The version of this engine, which manifests may ask for.
const ENGINE: &str = env!("CARGO_PKG_VERSION");
/// The code of a file that is not as it was packed.
pub const TAMPERED: &str = "tampered";
/// How stores are kept: the names that mean the table, and those that mean another place elsewhere.
const STORES: [&str; 3] = ["table", "default", "persistent"];
const KEPT_IN_THE_TABLE: [&str; 9] =
    ["in_memory", "memory", "file", "json", "jsonl", "sqlite", "dynamodb", "database", "local"];

/// The most subtasks of a split that says nothing.
pub(super) const MAX_SUBTASKS: u32 = 10_000;

impl Loader<'_> {
    /// Every manifest is of a version that is read here. Of `metrics.yaml` it is the author's own, and shown.
    pub(super) fn check_versions(&mut self) {
        fn one<T>(document: &Document<T>, version: &Value) -> Option<(String, super::tree::SourcePosition, Value)> {
            let text = match version {
                Value::Null => return None,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let major = text.trim_start_matches('v').split('.').next().unwrap_or_default();
            let is_read = matches!(major, "0" | "1") && text.len() <= 16;
            let At { file, place } = document.at("/version");
            (!is_read).then(|| (file.to_owned(), place, version.clone()))
        }
        let docs = &self.docs;
        let unread = [
            one(&docs.workflow, &docs.workflow.value.version),
            one(&docs.agents, &docs.agents.value.version),
            one(&docs.tools, &docs.tools.value.version),
            one(&docs.memory, &docs.memory.value.version),
            one(&docs.policy, &docs.policy.value.version),
            one(&docs.providers, &docs.providers.value.version),
            one(&docs.credentials, &docs.credentials.value.version),
            one(&docs.evaluations, &docs.evaluations.value.version),
            one(&docs.artifacts, &docs.artifacts.value.version),
            one(&docs.plugins, &docs.plugins.value.version),
            one(&docs.execution, &docs.execution.value.version),
            one(&docs.inspector, &docs.inspector.value.version),
            one(&docs.cli_profiles, &docs.cli_profiles.value.version),
            one(&docs.persistent_memory, &docs.persistent_memory.value.version),
            one(&docs.engine_metadata, &docs.engine_metadata.value.version),
            docs.deployment.value.as_ref().and_then(|value| one(&docs.deployment, &value.version)),
        ];
        for (file, place, version) in unread.into_iter().flatten() {
            let message = format!("manifests of the version {version} are not read here");
            let hint = "write `version: 1`, or leave it out; a flow's own version is `flow_version`";
            self.faults.refuse(At { file: &file, place }, "unsupported_version", message, hint);
        }
        self.check_engine_versions();
    }

    /// A package is as it was packed: each file that `deployment.yaml` has a fingerprint of, and no other (spec 002 §10.13).
    pub(super) fn check_package(&mut self, files: &BTreeMap<String, String>) {
        let document = &self.docs.deployment;
        let said = document.value.as_ref().filter(|said| !said.fingerprints.is_empty());
        for path in said.map(|said| template::drift(said, files)).unwrap_or_default() {
            let place = said.and_then(|said| said.fingerprints.iter().position(|print| print.path == path));
            let message = match (place, files.contains_key(&path)) {
                (Some(_), true) => format!("`{path}` is not as it was when the flow was packed"),
                (Some(_), false) => format!("`{path}` was packed and is not there"),
                (None, _) => format!("`{path}` was not packed"),
            };
            let at = match place {
                Some(place) => document.at(&format!("/fingerprints/{place}")),
                None => document.at_key("", "fingerprints"),
            };
            let hint = "restore it, or pack what is there now: `buildscale flow package`";
            self.faults.refuse(at, TAMPERED, message, hint);
        }
    }

    /// The engine must be one that the flow was made for (spec 002 §10.2, §10.13).
    fn check_engine_versions(&mut self) {
        let metadata = &self.docs.engine_metadata;
        let deployment = &self.docs.deployment;
        let wanted = [
            (metadata.at("/engine_version"), metadata.value.engine_version.as_deref()),
            (
                deployment.at("/engine_version"),
                deployment.value.as_ref().and_then(|deployment| deployment.engine_version.as_deref()),
            ),
        ];
        for (at, wanted) in wanted {
            let Some(wanted) = wanted else { continue };
            let Ok(range) = semver::VersionReq::parse(wanted) else {
                let hint = "write a range, such as `>=0.1, <0.3`";
                self.faults.refuse(at, "wrong_value", format!("`{wanted}` is no range of versions"), hint);
                continue;
            };
            if semver::Version::parse(ENGINE).is_ok_and(|engine| !range.matches(&engine)) {
                let message = format!("this flow is for the engine {wanted}; this one is {ENGINE}");
                let hint = "run it with an engine of that version, or try it with this one and correct the range";
                self.faults.refuse(at, "engine_version", message, hint);
            }
        }
    }

    /// The flow's names for the revisions of its schemas: the schemas must exist, and must not say otherwise themselves.
    pub(super) fn check_schema_revisions(&mut self) {
        let document = &self.docs.engine_metadata;
        for (name, revision) in &document.value.schema_revisions {
            let at = document.at_key("/schema_revisions", name);
            let Some(schema) = self.schemas.get(name) else {
                if !self.docs.schema_names.contains(name) {
                    let known = self.docs.schema_names.iter().map(String::as_str);
                    let hint = nearest(name, known, "the folder schemas")
                        .unwrap_or_else(|| format!("write schemas/{name}.json"));
                    self.faults.refuse(at, "unknown_schema", format!("there is no schema `{name}`"), hint);
                }
                continue;
            };
            let own = ["x-revision", "version", "x-version"].iter().find_map(|key| schema.source.get(*key));
            let own = own.map(|own| own.as_str().map_or_else(|| own.to_string(), str::to_owned));
            let hash = schema.revision().to_string();
            let is_hash = revision.len() >= 8 && revision.bytes().all(|letter| letter.is_ascii_hexdigit());
            let differs = match own {
                Some(own) => (own != *revision).then_some(own),
                None => (is_hash && !hash.starts_with(&revision.to_ascii_lowercase())).then_some(hash),
            };
            if let Some(own) = differs {
                let message = format!("the schema `{name}` is of the revision {own}, not {revision}");
                let hint = "correct one of them; every run records both";
                self.faults.refuse(at, "schema_revision", message, hint);
            }
        }
    }

    /// How stores are kept, and how much of each (spec 002 §10.10). The smaller bound of the two manifests counts.
    pub(super) fn store_bounds(&mut self) -> HashMap<StoreKind, Bounds> {
        let mut bounds: HashMap<StoreKind, Bounds> = HashMap::new();
        let memory = &self.docs.memory;
        let value = &memory.value;
        for (kind, key, store) in [
            (StoreKind::Task, "task_store", &value.task_store),
            (StoreKind::Project, "project_store", &value.project_store),
            (StoreKind::Global, "global_store", &value.global_store),
        ] {
            let Some(store) = store else { continue };
            if let Some(sort) = &store.sort {
                check_place(&mut self.faults, memory.at(&format!("/{key}/type")), "type", sort);
            }
            if store.config.is_some() {
                let at = memory.at_key(&format!("/{key}"), "config");
                self.faults.note(at, "no_effect", "`config` of a store has no effect here", NO_CONFIG);
            }
            bound(bounds.entry(kind).or_default(), store.max_items, None);
        }
        let persistent = &self.docs.persistent_memory;
        let mut seen = BTreeSet::new();
        for (place, store) in persistent.value.stores.iter().enumerate() {
            if !seen.insert(store.store.name()) {
                let at = persistent.at(&format!("/stores/{place}/store"));
                let message = format!("the store `{}` is there twice", store.store.name());
                self.faults.refuse(at, "duplicate_id", message, "keep one of them");
            }
            if let Some(backend) = &store.backend {
                check_place(&mut self.faults, persistent.at(&format!("/stores/{place}/backend")), "backend", backend);
            }
            if store.config.is_some() {
                let at = persistent.at_key(&format!("/stores/{place}"), "config");
                self.faults.note(at, "no_effect", "`config` of a store has no effect here", NO_CONFIG);
            }
            bound(bounds.entry(store.store).or_default(), store.max_items, store.retention_days);
        }
        bounds.retain(|_, bounds| *bounds != Bounds::default());
        bounds
    }

    /// The names in rules must exist: a rule with a mistyped name would permit silently. A pattern with `*` may match nothing.
    pub(super) fn check_rules(&mut self) {
        let nodes: BTreeMap<String, Option<Role>> = self.nodes_by_id();
        let rules = std::mem::take(&mut self.docs.policy.value.rules);
        for (index, rule) in rules.iter().enumerate() {
            for (place, name) in rule.names.iter().enumerate().filter(|(_, name)| !name.contains('*')) {
                let at = self.docs.policy.at(&format!("/rules/{index}/names/{place}"));
                let (code, what, hint) = match rule.target {
                    PolicyTarget::Tool
                        if name != "command" && self.docs.tools.listed && !self.docs.tools.ids.contains(name) =>
                    {
                        let known = self.docs.tools.ids.iter().map(String::as_str);
                        ("unknown_tool", "tool", nearest(name, known, "tools.yaml"))
                    }
                    PolicyTarget::Node if self.docs.workflow.listed && !nodes.contains_key(name) => {
                        ("unknown_node", "node", nearest(name, nodes.keys().map(String::as_str), "workflow.yaml"))
                    }
                    PolicyTarget::Node if !rule.allow && nodes.get(name) == Some(&Some(Role::Exit)) => {
                        let message = format!("the rule `{}` denies the exit `{name}`, which decides nothing", rule.id);
                        let hint = "deny the node before the exit";
                        self.faults.refuse(at, "exit_not_read_only", message, hint);
                        continue;
                    }
                    PolicyTarget::Context if !StoreKind::ALL.iter().any(|store| store.name() == name) => {
                        let known = StoreKind::ALL.map(StoreKind::name);
                        ("unknown_store", "store of memory", nearest(name, known, "memory.yaml"))
                    }
                    PolicyTarget::Model if name != "default" && !self.has_provider_of(name) => {
                        let provider = name.split('/').next().unwrap_or_default();
                        let providers = self.providers();
                        let near = nearest(provider, providers.iter().map(String::as_str), "`buildscale models`");
                        ("unknown_provider", "model", near)
                    }
                    _ => continue,
                };
                let message = format!("there is no {what} `{name}`, so the rule `{}` is about nothing", rule.id);
                let hint = hint.unwrap_or_else(|| "remove it".into());
                self.faults.refuse(at, code, message, hint);
            }
        }
        self.docs.policy.value.rules = rules;
    }

    /// Limits of providers must be of providers that there are.
    pub(super) fn check_execution(&mut self) {
        if !self.docs.providers.listed {
            return;
        }
        let known = self.providers();
        for name in self.docs.execution.value.providers.keys().filter(|name| !known.contains(*name)) {
            let at = self.docs.execution.at_key("/providers", name);
            let hint = nearest(name, known.iter().map(String::as_str), "`buildscale models`").unwrap_or_default();
            self.faults.refuse(at, "unknown_provider", format!("there is no provider `{name}`"), hint);
        }
    }

    /// The providers that a model can be of: those of the flow, and those of the installation.
    pub(super) fn providers(&self) -> BTreeSet<String> {
        let models = self.known.models.iter().flatten();
        let of_models = models.filter_map(|model| model.split('/').next().map(str::to_owned));
        let own = self.docs.providers.ids.iter().cloned();
        of_models.chain(own).chain(SERVED.map(str::to_owned)).collect()
    }

    fn has_provider_of(&self, model: &str) -> bool {
        !self.docs.providers.listed
            || model.split_once('/').is_some_and(|(provider, _)| self.providers().contains(provider))
    }

    /// The nodes that have an id, with their roles.
    pub(super) fn nodes_by_id(&self) -> BTreeMap<String, Option<Role>> {
        let nodes = self.docs.workflow.value.nodes.iter();
        nodes.filter_map(|node| Some((node.id.clone()?, node.role))).collect()
    }

    /// Keys of the field that have no effect here are named, so that no author waits for their effect elsewhere.
    pub(super) fn note_what_has_no_effect(&mut self) {
        let profiles = std::mem::take(&mut self.docs.cli_profiles.value.profiles);
        for (place, profile) in profiles.iter().enumerate() {
            let at = format!("/profiles/{place}");
            let policies = format!("{at}/session_policies");
            for (there, above, key, hint) in [
                (
                    profile.default_config_dir.is_some(),
                    &at,
                    "default_config_dir",
                    "a flow is the folder that it is run from, or one of the workspace: name it on the command line",
                ),
                (
                    profile.presentation_rules.is_some(),
                    &at,
                    "presentation_rules",
                    "`telemetry_overlays` chooses what is shown; `--json` gives everything to a program",
                ),
                (
                    profile.session_policies.persist_attachments.is_some(),
                    &policies,
                    "persist_attachments",
                    "attached files are files of the workspace, and stay there in any case",
                ),
            ] {
                if there {
                    let place = self.docs.cli_profiles.at_key(above, key);
                    self.faults.note(place, "no_effect", format!("`{key}` has no effect here"), hint);
                }
            }
        }
        self.docs.cli_profiles.value.profiles = profiles;
        for (place, profile) in self.docs.memory.value.context_profiles.iter().enumerate() {
            let twice =
                profile.sources.iter().enumerate().skip(1).find(|(index, source): &(usize, &SourceManifest)| {
                    profile.sources.iter().take(*index).any(|earlier| earlier == *source)
                });
            if let Some((index, source)) = twice {
                let at = self.docs.memory.at(&format!("/context_profiles/{place}/sources/{index}"));
                let message = format!("`{}` looks in the store `{}` twice", profile.id, source.store.name());
                self.faults.note(at, "no_effect", message, "remove one of them");
            }
        }
    }

    /// A split over a value that is written out and no list fails in every run.
    pub(super) fn check_splits(&mut self) {
        for (place, node) in self.docs.workflow.value.nodes.iter().enumerate() {
            let over = node.split.as_ref().and_then(|split| split.over.as_deref());
            let value = over.and_then(op::expr::constant);
            if let Some(value) = value.filter(|value| !value.is_array()) {
                let at = self.docs.workflow.at(&format!("/nodes/{place}/split/over"));
                let message = format!("the split is over `{value}`, which is no list");
                self.faults.refuse(at, "wrong_value", message, "an expression that gives a list: `input.items`");
            }
        }
    }

    /// The ids of nodes are parts of the names of their children, which must differ.
    pub(super) fn check_ids(&mut self) {
        for (place, node) in self.docs.workflow.value.nodes.iter().enumerate() {
            let Some(id) = &node.id else { continue };
            let wrong = |letter: char| letter == '/' || letter.is_control();
            if id.contains(wrong) || id.trim() != id {
                let at = self.docs.workflow.at(&format!("/nodes/{place}/id"));
                let message = format!("`{}` is no id of a node", id.escape_debug());
                let hint = "an id has no `/`, no line breaks and no space at its ends: clones are named `node/target`; \
                            use `_`, `-` or `.`";
                self.faults.refuse(at, "bad_id", message, hint);
            }
        }
    }

    /// A command that may not be run is denied in every run.
    pub(super) fn check_commands(&mut self) {
        for (place, tool) in self.docs.tools.value.tools.iter().enumerate() {
            if tool.command.is_some() && !tool.permissions.allow_shell {
                let at = self.docs.tools.at_key(&format!("/tools/{place}"), "command");
                let message = format!("`{}` is a command and has no permission to run one", tool.id);
                let hint = "write `permissions: {allow_shell: true}`";
                self.faults.refuse(at, "shell_not_allowed", message, hint);
            }
        }
    }

    /// How many can come to each merge with a quorum, at most; the quorum must not be more.
    pub(super) fn check_quorums(&mut self, graph: &crate::Graph) {
        let nodes = std::mem::take(&mut self.docs.workflow.value.nodes);
        for (place, node) in nodes.iter().enumerate() {
            let quorum = node.merge.as_ref().and_then(|merge| merge.quorum);
            let (Some(quorum), Some(id)) = (quorum, node.id.as_deref()) else { continue };
            let merge = NodeId::from(id);
            let most = arrivals(graph, &nodes, &merge);
            if u64::from(quorum) > most {
                let at = self.docs.workflow.at(&format!("/nodes/{place}/merge/quorum"));
                let message = format!("`{id}` waits for {quorum}, and at most {most} can come");
                let hint = format!("write {most} or less, or leave it out: more than half of those that come");
                self.faults.refuse(at, "quorum_out_of_reach", message, hint);
            }
        }
        self.docs.workflow.value.nodes = nodes;
    }
}

const NO_CONFIG: &str =
    "every store is kept in the table of this installation; `max_items` and `retention_days` bound it";

/// The most tasks that can come to a merge for one task that owns it.
fn arrivals(graph: &crate::Graph, nodes: &[crate::manifest::NodeManifest], merge: &NodeId) -> u64 {
    let Some(owner) = graph.node(merge).map(|node| node.forks.as_slice()) else { return u64::MAX };
    // Of each split how many subtasks it makes of its list; none where it is over no list.
    let splits: HashMap<&str, Option<u64>> = nodes
        .iter()
        .filter(|node| node.role == Some(Role::Split))
        .filter_map(|node| {
            let split = node.split.as_ref();
            let most = u64::from(split.and_then(|split| split.max_subtasks).unwrap_or(MAX_SUBTASKS));
            let subtasks =
                split.and_then(|split| split.over.as_deref()).map(|over| match op::expr::list_length(over) {
                    Some(length) => most.min(length as u64),
                    None => most,
                });
            Some((node.id.as_deref()?, subtasks))
        })
        .collect();
    // From the merge back to where its owner begins: for each node how many come of one task there.
    let mut most: HashMap<&NodeId, u64> = HashMap::from([(merge, 1)]);
    fn of<'g>(
        graph: &'g crate::Graph,
        splits: &HashMap<&str, Option<u64>>,
        most: &mut HashMap<&'g NodeId, u64>,
        id: &'g NodeId,
    ) -> u64 {
        // Without recursion: flows may be chains of thousands of nodes.
        let mut open = vec![(id, false)];
        while let Some((id, seen)) = open.pop() {
            if most.contains_key(id) {
                continue;
            }
            let Some(node) = graph.node(id) else { continue };
            if !seen {
                open.push((id, true));
                open.extend(node.out.iter().map(|edge| (&edge.to, false)));
                continue;
            }
            let ways = || node.out.iter().map(|edge| most.get(&edge.to).copied().unwrap_or_default());
            let sum = ways().fold(0_u64, u64::saturating_add);
            let best = ways().max().unwrap_or_default();
            let count = match (node.role, splits.get(id.as_str()).copied().flatten()) {
                (Role::Branch, _) | (Role::Split, None) => sum,
                (Role::Split, Some(subtasks)) => best.saturating_mul(subtasks),
                _ => best,
            };
            most.insert(id, count);
        }
        most.get(id).copied().unwrap_or_default()
    }
    let begins: Vec<&NodeId> = match owner.last() {
        Some(fork) => graph.node(fork).into_iter().flat_map(|fork| fork.out.iter().map(|edge| &edge.to)).collect(),
        None => graph.nodes().iter().filter(|node| node.role == Role::Start).map(|node| &node.id).collect(),
    };
    begins.into_iter().map(|id| of(graph, &splits, &mut most, id)).max().unwrap_or_default()
}

fn bound(bounds: &mut Bounds, max_items: Option<u64>, retention_days: Option<u32>) {
    let max_items = max_items.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    let retention = retention_days.map(|days| Duration::from_secs(u64::from(days) * 24 * 3600));
    bounds.max_items = [bounds.max_items, max_items].into_iter().flatten().min();
    bounds.retention = [bounds.retention, retention].into_iter().flatten().min();
}

/// Checks the place of a store: the table, or one that this engine has not got.
fn check_place(faults: &mut super::report::Faults, at: At<'_>, key: &str, name: &str) {
    let lower = name.to_ascii_lowercase();
    if STORES.contains(&lower.as_str()) {
        return;
    }
    if KEPT_IN_THE_TABLE.contains(&lower.as_str()) {
        let message = format!("the store is kept in the table of this installation, not in `{name}`");
        return faults.note(at, "no_effect", message, format!("write `{key}: table`, or leave it out"));
    }
    let message = format!("no store is kept in `{name}` here");
    let hint = "every store is kept in the table of this installation: write `table`, or leave it out";
    faults.refuse(at, "unsupported_store", message, hint);
}

/// Whether an operation of an exit does anything.
pub(super) fn acts(op: &OpManifest) -> bool {
    matches!(op, OpManifest::Spec(_))
}
