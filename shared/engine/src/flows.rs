//! The flows of a workspace: folders under `/system/flows/<name>/`, the flows in the box, and the bundles that running tasks
//! began with.
//!
//! A flow in the box is one that every workspace has; a folder of the same name in the workspace goes before it.
//!
//! A flow is loaded from its folder when a task is made of it. From then on the task finds it by the hash of its manifests,
//! also when the folder changes (spec 002 §10.2). A bundle is kept for as long as tasks read it, and [`KEPT_FOR`] beyond.

use crate::{
    FLOWS, FlowCache, Triggers, error::internal, http_tools, personas, provider::FlowProviders, triggers::is_lost,
};
use domain::{Code, Error, FilePath, Timestamp, WorkspaceId, task::FlowRef};
use flow::{
    Flow, built_in,
    load::{self, KnownNames, ManifestFault, Report},
    trigger::Trigger,
};
use parking_lot::Mutex;
use ports::{Clock, Expect, Item, Key, Table, Write};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use workspace::{Access, FileKind, Workspace, Workspaces, blocking};

/// The most files of one flow, and the longest of all of them together in bytes.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// How long the manifests of a flow are kept after a task was last made of them or read them. A task that waits for longer than
/// this, without a read of it, cannot go on.
pub const KEPT_FOR: Duration = Duration::from_secs(400 * 24 * 3600);
/// How much of that has to be over before it is renewed: one write per month, and not one per task.
const RENEWED_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);
/// The number of bundles that memory remembers as kept.
const KNOWN_KEPT: usize = 4_096;

/// Flows, for those who make tasks of them.
#[derive(Clone)]
pub struct Flows {
    table: Arc<dyn Table>,
    workspaces: Workspaces,
    cache: FlowCache,
    known: Arc<KnownNames>,
    /// The bundles that this process has kept, and when: the same flow is kept once per workspace, for a while.
    kept: Arc<Mutex<HashMap<(WorkspaceId, FlowRef), Timestamp>>>,
    /// None where it is kept for ever.
    clock: Option<Arc<dyn Clock>>,
    providers: Arc<FlowProviders>,
}

/// A flow as lists show it.
#[derive(Clone, Debug, Serialize)]
pub struct FlowInfo {
    /// The name of its folder.
    pub name: String,
    /// The hash of its manifests, if they have no fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Its purpose, in the words of its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many nodes it has.
    pub nodes: usize,
    /// How many faults its manifests have.
    pub faults: usize,
    /// Whether it is one in the box, which the workspace has no folder of.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub built_in: bool,
    /// The files whose new versions start a task of it, if its manifests have no fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<Trigger>,
}

/// Why manifests are read without a decision: they are of everybody, and a worker reads them without a caller.
const MANIFESTS: &str = "manifests of flows";

impl Flows {
    /// Over these ports. `known` is what manifests may name; `cache` is shared with the machine that drives the tasks.
    pub fn new(table: Arc<dyn Table>, workspaces: Workspaces, cache: FlowCache, known: KnownNames) -> Self {
        Self {
            table,
            workspaces,
            cache,
            known: Arc::new(known),
            kept: Arc::default(),
            clock: None,
            providers: Arc::default(),
        }
    }

    /// The same, on a host that reaches the providers of flows (`providers.yaml`). Without this, agents of a flow that
    /// declares one fail before they say anything.
    #[must_use]
    pub fn with_providers(self, providers: Arc<FlowProviders>) -> Self {
        Self { providers, ..self }
    }

    /// The same, where bundles without a reference go in the end, by this clock. Without this they are kept for ever.
    #[must_use]
    pub fn expiring_by(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// The service that opens the providers of flows.
    pub fn providers(&self) -> &FlowProviders {
        &self.providers
    }

    /// The names that manifests may refer to.
    pub fn known(&self) -> &KnownNames {
        &self.known
    }

    /// The flows of a workspace, by name: its own, and those in the box. A flow with faults is listed with their number, and one whose folder is too
    /// large or lacks a content as one with a fault: [`Flows::check`] gives the reason. A folder whose name no flow can have is none.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace; those of reading it.
    pub async fn list(&self, workspace: WorkspaceId) -> Result<Vec<FlowInfo>, Error> {
        let own = folders(&self.workspaces.open(workspace, Access::platform(MANIFESTS)).await?).await?;
        let mut names: BTreeSet<&str> = built_in::names().collect();
        names.extend(own.iter().map(String::as_str));
        let mut flows = Vec::new();
        for name in names {
            let (name, built_in) = (name.to_owned(), !own.contains(name));
            let faults = match self.check(workspace, &name).await {
                Ok(Ok(flow)) => {
                    let (hash, description) = (Some(flow.reference.hash.to_string()), flow.description.clone());
                    let (nodes, on) = (flow.nodes.len(), flow.triggers.clone());
                    flows.push(FlowInfo { name, hash, description, nodes, faults: 0, built_in, on });
                    continue;
                }
                Ok(Err(report)) => report.faults.len(),
                Err(error) if concerns_one_folder(&error) => 1,
                // Its folder was removed after the folders were listed.
                Err(error) if error.code == Code::NotFound => continue,
                Err(error) => return Err(error),
            };
            flows.push(FlowInfo { name, hash: None, description: None, nodes: 0, faults, built_in, on: Vec::new() });
        }
        Ok(flows)
    }

    /// Whether a name means a flow in the box: the workspace has no folder of it.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace; those of reading it.
    pub async fn is_built_in(&self, workspace: WorkspaceId, name: &str) -> Result<bool, Error> {
        if built_in::files(name).is_none() {
            return Ok(false);
        }
        match self.workspaces.open(workspace, Access::platform(MANIFESTS)).await?.stat(&folder_of(name)?).await {
            Ok(_) => Ok(false),
            Err(error) if error.code == Code::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Loads the flow of this name.
    ///
    /// # Errors
    /// `UNPROCESSABLE`, with all `faults`, when its manifests have some; those of [`Flows::files`].
    pub async fn load(&self, workspace: WorkspaceId, name: &str) -> Result<Arc<Flow>, Error> {
        self.check(workspace, name).await?.map_err(|report| refused(name, &report))
    }

    /// The same, with the report of all faults instead of an error.
    ///
    /// # Errors
    /// Those of [`Flows::files`] and [`Flows::check_in`].
    pub async fn check(&self, workspace: WorkspaceId, name: &str) -> Result<Result<Arc<Flow>, Report>, Error> {
        let files = self.files(workspace, name).await?;
        let checked = self.check_in(workspace, name, files).await?;
        // The flow of a folder will be asked for again; a draft that is only checked will not.
        if let Ok(flow) = &checked
            && self.cache.get(&flow.reference).is_none_or(|known| !known.is_checked)
        {
            self.cache.put(flow.clone());
        }
        Ok(checked)
    }

    /// Loads a flow from texts, and checks its HTTP tools beside those of the workspace.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace; those of reading it and of [`Flows::check_files`].
    pub async fn check_in(
        &self,
        workspace: WorkspaceId,
        name: &str,
        files: BTreeMap<String, String>,
    ) -> Result<Result<Arc<Flow>, Report>, Error> {
        let flow = match self.check_files(name, files).await? {
            Ok(flow) if !flow.http_tools.is_empty() => flow,
            checked => return Ok(checked),
        };
        let opened = self.workspaces.open(workspace, Access::platform(MANIFESTS)).await?;
        Ok(http_tools::check(&opened, &flow).await.map(|()| flow))
    }

    /// Loads a flow from texts; on a thread for such work, as a megabyte of YAML takes a while.
    ///
    /// # Errors
    /// `INTERNAL` when the check does not run to its end. Faults of the manifests are the inner error.
    pub async fn check_files(
        &self,
        name: &str,
        files: BTreeMap<String, String>,
    ) -> Result<Result<Arc<Flow>, Report>, Error> {
        let (name, known, cache) = (name.to_owned(), self.known.clone(), self.cache.clone());
        let check = move || {
            let reference = FlowRef { name, hash: load::hash(&files) };
            if let Some(flow) = cache.get(&reference).filter(|flow| flow.is_checked) {
                return Ok(flow);
            }
            load::load(&reference.name, files, &known).map(Arc::new)
        };
        blocking::run(check).await.map_err(internal)
    }

    /// The files of a flow, by their paths in its folder.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace or flow; `INVALID_ARGUMENT` for a name that no flow can have; `PAYLOAD_TOO_LARGE` for a
    /// folder of more than 512 files or 4 MiB; those of reading the workspace.
    pub async fn files(&self, workspace: WorkspaceId, name: &str) -> Result<BTreeMap<String, String>, Error> {
        let opened = self.workspaces.open(workspace, Access::platform(MANIFESTS)).await?;
        let folder = folder_of(name)?;
        let (entries, whole) = match opened.list_tree(&folder, MAX_FILES).await {
            Ok(found) => found,
            Err(error) if error.code == Code::NotFound => match built_in::files(name) {
                Some(files) => return Ok(files),
                None => return Err(no_flow(&opened, name).await),
            },
            Err(error) => return Err(error),
        };
        let size: u64 = entries.iter().map(|entry| entry.size).sum();
        if !whole || size > MAX_BYTES {
            let text = format!("a flow has at most {MAX_FILES} files of {MAX_BYTES} bytes together");
            return Err(Error::new(Code::PayloadTooLarge, text).hint("keep other files elsewhere in the workspace"));
        }
        let mut files = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.kind != FileKind::Folder) {
            let content = opened.read(&entry.path, None).await?;
            let Some(path) = entry.path.as_str().strip_prefix(folder.as_str()) else { continue };
            let path = path.trim_start_matches('/');
            match String::from_utf8(content.bytes.to_vec()) {
                Ok(text) => drop(files.insert(path.to_owned(), text)),
                // The loader says where bytes are that are no text.
                Err(wrong) if load::is_part(path) => {
                    let text = String::from_utf8_lossy(wrong.as_bytes()).into_owned();
                    files.insert(path.to_owned(), text);
                }
                Err(_) => {}
            }
        }
        Ok(files)
    }

    /// Notes about a flow among the other files of its workspace: one for each of its triggers that shares versions of files with a trigger of another
    /// flow, one for each tool that a node lists and the persona of its agent forbids, and one for each persona that cannot be read.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace; those of reading it.
    pub async fn notes(&self, workspace: WorkspaceId, flow: &Flow) -> Result<Vec<ManifestFault>, Error> {
        let opened = self.workspaces.open(workspace, Access::platform(MANIFESTS)).await?;
        let shared = Triggers::default().shared_with_others(&opened, flow).await?;
        Ok([shared, personas::notes(&opened, flow).await?].concat())
    }

    /// The cache of the other inputs of tasks' machines.
    pub(crate) fn cache(&self) -> &FlowCache {
        &self.cache
    }

    /// The flow of a task that is driven, if it is in memory.
    pub fn cached(&self, reference: &FlowRef) -> Option<Arc<Flow>> {
        self.cache.get(reference)
    }

    /// Keeps the manifests of a flow for the tasks that run them.
    ///
    /// # Errors
    /// `INTERNAL` when the table does not answer, `STORAGE_FULL` when it has no room.
    pub async fn keep(&self, workspace: WorkspaceId, flow: &Arc<Flow>) -> Result<(), Error> {
        let this = (workspace, flow.reference.clone());
        let now = self.clock.as_ref().map(|clock| clock.now()).unwrap_or_default();
        let is_kept = |kept: &HashMap<_, Timestamp>| kept.get(&this).is_some_and(|at| now.since(*at) < RENEWED_AFTER);
        if !is_kept(&self.kept.lock()) {
            let body = serde_json::to_string(&*flow.bundle).map_err(internal)?;
            let put = self.bundle(bundle_key(workspace, &flow.reference), body, Expect::Any);
            self.table.commit(vec![put]).await.map_err(internal)?;
            let mut kept = self.kept.lock();
            if kept.len() >= KNOWN_KEPT {
                kept.clear();
            }
            kept.insert(this, now);
        }
        if self.cache.get(&flow.reference).is_none() {
            self.cache.put(flow.clone());
        }
        Ok(())
    }

    /// The flow that a task began with.
    ///
    /// # Errors
    /// `NOT_FOUND` when its manifests are gone; `UNPROCESSABLE`, with all `faults`, when they load no more here; `UPSTREAM_UNAVAILABLE` when the
    /// table does not answer, `INTERNAL` for stored manifests that cannot be read.
    pub async fn by_hash(&self, workspace: WorkspaceId, reference: &FlowRef) -> Result<Arc<Flow>, Error> {
        match self.bundled(workspace, reference).await.map_err(internal)? {
            Some(Ok(flow)) => Ok(flow),
            // It loaded once: a name in it lacks its registration here.
            Some(Err(report)) => Err(refused(&reference.name, &report)
                .hint("this task began with these manifests, and this server lacks something that they name")),
            None => Err(Error::new(Code::NotFound, "the manifests that this task began with are gone")),
        }
    }

    /// The same for those who can do without it: none when it is gone or loads no more.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the table does not answer, `INTERNAL` for stored manifests that cannot be read.
    pub async fn if_it_loads(&self, workspace: WorkspaceId, reference: &FlowRef) -> Result<Option<Arc<Flow>>, Error> {
        match self.bundled(workspace, reference).await.map_err(internal)? {
            Some(Ok(flow)) => Ok(Some(flow)),
            Some(Err(report)) => {
                tracing::warn!(flow = reference.name, %report, "the flow of a task loads no more");
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// The same for a worker: an error of the table is one of the table.
    pub(crate) async fn read_bundle(
        &self,
        workspace: WorkspaceId,
        reference: &FlowRef,
    ) -> ports::Result<Option<Arc<Flow>>> {
        let loaded = self.bundled(workspace, reference).await?.transpose();
        loaded.map_err(|report| ports::Error::Invalid(format!("the flow {} loads no more: {report}", reference.name)))
    }

    /// The flow of a kept bundle, or the faults that it has here.
    async fn bundled(
        &self,
        workspace: WorkspaceId,
        reference: &FlowRef,
    ) -> ports::Result<Option<Result<Arc<Flow>, Report>>> {
        if let Some(flow) = self.cache.get(reference) {
            return Ok(Some(Ok(flow)));
        }
        let Some(item) = self.table.get(&bundle_key(workspace, reference)).await? else { return Ok(None) };
        self.renew(&item).await;
        let (name, known) = (reference.name.clone(), self.known.clone());
        let load = move || {
            let files: BTreeMap<String, String> =
                serde_json::from_str(&item.body).map_err(|error| ports::Error::Damaged(error.to_string()))?;
            Ok(Flow::from_bundle(&name, files, &known))
        };
        let loaded = blocking::run(load).await.map_err(|error| ports::Error::unavailable("flows", error))??;
        Ok(Some(loaded.map(Arc::new).inspect(|flow| self.cache.put(flow.clone()))))
    }
}

impl Flows {
    fn bundle(&self, key: Key, body: String, expect: Expect) -> Write {
        let put = Write::put(key, body, expect);
        match &self.clock {
            Some(clock) => put.expiring(clock.now() + KEPT_FOR),
            None => put,
        }
    }

    /// A reader of a bundle extends its life; when that fails now, the next reader does.
    async fn renew(&self, item: &Item) {
        let (Some(clock), Some(expires_at)) = (&self.clock, item.expires_at) else { return };
        if expires_at.since(clock.now()) > KEPT_FOR - RENEWED_AFTER {
            return;
        }
        let put = self.bundle(item.key.clone(), item.body.clone(), Expect::Rev(item.rev));
        if let Err(error) = self.table.commit(vec![put]).await {
            tracing::debug!(error = %error.with_causes(), "a bundle was not renewed this time");
        }
    }
}

fn bundle_key(workspace: WorkspaceId, reference: &FlowRef) -> Key {
    Key::new(partition(workspace), format!("{}/{}", reference.name, reference.hash))
}

/// The partition of the bundles of a workspace, by name and hash.
pub(crate) fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/flows")
}

fn folder_of(name: &str) -> Result<FilePath, Error> {
    if !domain::is_flow_name(name) {
        let shown: String = name.chars().take(64).collect();
        return Err(Error::invalid("flow", format!("{shown:?} is no name of a flow"))
            .hint("a flow is named as its folder under /system/flows"));
    }
    Ok(FilePath::parse(&format!("{FLOWS}/{name}"))?)
}

/// The names of the folders that a workspace has for flows. Others, such as `.git`, are no flows.
async fn folders(opened: &Workspace) -> Result<BTreeSet<String>, Error> {
    let names = opened.folders_in(&FilePath::parse(FLOWS)?).await?.into_iter();
    Ok(names.filter(|name| domain::is_flow_name(name)).collect())
}

/// Whether an error is of the folder of one flow, so that the other flows can be listed.
fn concerns_one_folder(error: &Error) -> bool {
    error.code == Code::PayloadTooLarge || is_lost(error)
}

async fn no_flow(opened: &Workspace, name: &str) -> Error {
    let shown: String = name.chars().take(64).collect();
    let mut names = folders(opened).await.unwrap_or_default();
    names.extend(built_in::names().map(str::to_owned));
    let names: Vec<String> = names.into_iter().take(50).collect();
    Error::new(Code::NotFound, format!("there is no flow {shown:?}"))
        .hint(format!("the flows are: {}; others are folders under {FLOWS}", names.join(", ")))
}

fn refused(name: &str, report: &Report) -> Error {
    let text = match report.faults.as_slice() {
        [fault] => format!("the flow {name} has a fault: {}", fault.message),
        faults => format!("the flow {name} has {} faults", faults.len()),
    };
    Error::new(Code::Unprocessable, text)
        .detail("faults", serde_json::to_value(&report.faults).unwrap_or_default())
        .hint("`buildscale flow check` prints them with their places")
}
