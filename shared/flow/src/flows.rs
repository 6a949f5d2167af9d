//! The flows of a workspace: folders under `/system/flows/<name>/`, and the bundles that running tasks began with.
//!
//! A flow is loaded from its folder when a task is made of it. From then on the task finds it by the hash of its manifests,
//! whatever becomes of the folder (seed 002 §10.2).

use crate::{
    Flow, FlowCache,
    load::{self, Known, Report},
    tasks::internal,
};
use domain::{Code, Error, FilePath, WorkspaceId, task::FlowRef};
use ports::{Expect, Key, Table, Write};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};
use workspace::{Kind, Workspace, Workspaces};

/// Where a workspace keeps its flows.
pub const FOLDER: &str = "/system/flows";
/// The most files of one flow, and the longest of all of them together in bytes.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Flows, for those who make tasks of them.
#[derive(Clone)]
pub struct Flows {
    table: Arc<dyn Table>,
    workspaces: Workspaces,
    cache: FlowCache,
    known: Arc<Known>,
}

/// A flow as lists show it.
#[derive(Clone, Debug, Serialize)]
pub struct FlowInfo {
    /// The name of its folder.
    pub name: String,
    /// The hash of its manifests, if they have no fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// How many nodes it has.
    pub nodes: usize,
    /// How many faults its manifests have.
    pub faults: usize,
}

impl Flows {
    /// Over these ports. `known` is what manifests may name; `cache` is shared with the machine that drives the tasks.
    pub fn new(table: Arc<dyn Table>, workspaces: Workspaces, cache: FlowCache, known: Known) -> Self {
        Self { table, workspaces, cache, known: Arc::new(known) }
    }

    /// What manifests may name.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// The flows of a workspace, by name.
    pub async fn list(&self, workspace: WorkspaceId) -> Result<Vec<FlowInfo>, Error> {
        const SHOWN: usize = 200;
        let opened = self.workspaces.open(workspace).await?;
        let folder = FilePath::parse(FOLDER)?;
        let listing = match opened.ls(&folder, SHOWN, None).await {
            Ok(listing) => listing,
            Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut flows = Vec::new();
        for entry in listing.entries.iter().filter(|entry| entry.kind == Kind::Folder) {
            let name = entry.name.clone();
            let info = match self.check(workspace, &name).await? {
                Ok(flow) => FlowInfo {
                    name,
                    hash: Some(flow.reference.hash.to_string()),
                    nodes: flow.nodes.len(),
                    faults: 0,
                },
                Err(report) => FlowInfo { name, hash: None, nodes: 0, faults: report.faults.len() },
            };
            flows.push(info);
        }
        Ok(flows)
    }

    /// Loads the flow of this name. `UNPROCESSABLE` with all faults when its manifests have some.
    pub async fn load(&self, workspace: WorkspaceId, name: &str) -> Result<Arc<Flow>, Error> {
        self.check(workspace, name).await?.map_err(|report| refused(name, &report))
    }

    /// The same, with the report of all faults instead of an error.
    pub async fn check(&self, workspace: WorkspaceId, name: &str) -> Result<Result<Arc<Flow>, Report>, Error> {
        let files = self.files(workspace, name).await?;
        Ok(self.check_files(name, files))
    }

    /// Loads a flow from texts.
    pub fn check_files(&self, name: &str, files: BTreeMap<String, String>) -> Result<Arc<Flow>, Report> {
        if let Some(flow) = self.cache.get(&load::hash(&files)).filter(|flow| flow.reference.name == name) {
            return Ok(flow);
        }
        load::load(name, files, &self.known).map(Arc::new)
    }

    /// The files of a flow, by their paths in its folder.
    pub async fn files(&self, workspace: WorkspaceId, name: &str) -> Result<BTreeMap<String, String>, Error> {
        let opened = self.workspaces.open(workspace).await?;
        let folder = folder_of(name)?;
        let (entries, whole) = match opened.list_tree(&folder, MAX_FILES).await {
            Ok(found) => found,
            Err(error) if error.code == Code::NotFound => return Err(no_flow(&opened, name).await),
            Err(error) => return Err(error),
        };
        let size: u64 = entries.iter().map(|entry| entry.size).sum();
        if !whole || size > MAX_BYTES {
            let text = format!("a flow has at most {MAX_FILES} files of {MAX_BYTES} bytes together");
            return Err(Error::new(Code::PayloadTooLarge, text).hint("keep other files elsewhere in the workspace"));
        }
        let mut files = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.kind != Kind::Folder) {
            let content = opened.read(&entry.path, None).await?;
            let Some(path) = entry.path.as_str().strip_prefix(folder.as_str()) else { continue };
            // What is not text is no manifest.
            if let Ok(text) = String::from_utf8(content.bytes.to_vec()) {
                files.insert(path.trim_start_matches('/').to_owned(), text);
            }
        }
        Ok(files)
    }

    /// The flow of a task that is driven, if it is in memory.
    pub fn cached(&self, reference: &FlowRef) -> Option<Arc<Flow>> {
        self.cache.get(&reference.hash)
    }

    /// Keeps the manifests of a flow for the tasks that run them.
    pub async fn keep(&self, workspace: WorkspaceId, flow: &Arc<Flow>) -> Result<(), Error> {
        if self.cache.get(&flow.reference.hash).is_none() {
            let body = serde_json::to_string(&*flow.bundle).map_err(internal)?;
            let put = Write::put(bundle_key(workspace, &flow.reference), body, Expect::Any);
            self.table.commit(vec![put]).await.map_err(internal)?;
            self.cache.put(flow.clone());
        }
        Ok(())
    }

    /// The flow that a task began with.
    pub async fn by_hash(&self, workspace: WorkspaceId, reference: &FlowRef) -> Result<Arc<Flow>, Error> {
        match self.read_bundle(workspace, reference).await.map_err(internal)? {
            Some(flow) => Ok(flow),
            None => Err(Error::new(Code::NotFound, "the manifests that this task began with are gone")),
        }
    }

    /// The same for a worker: an error of the table is one of the table.
    pub(crate) async fn read_bundle(
        &self,
        workspace: WorkspaceId,
        reference: &FlowRef,
    ) -> ports::Result<Option<Arc<Flow>>> {
        if let Some(flow) = self.cache.get(&reference.hash) {
            return Ok(Some(flow));
        }
        let Some(item) = self.table.get(&bundle_key(workspace, reference)).await? else { return Ok(None) };
        let files: BTreeMap<String, String> =
            serde_json::from_str(&item.body).map_err(|error| ports::Error::Damaged(error.to_string()))?;
        match load::load(&reference.name, files, &self.known) {
            Ok(flow) => {
                let flow = Arc::new(flow);
                self.cache.put(flow.clone());
                Ok(Some(flow))
            }
            // It loaded once: what it names is no longer registered here.
            Err(report) => Err(ports::Error::Invalid(format!("the flow {} loads no more: {report}", reference.name))),
        }
    }
}

fn bundle_key(workspace: WorkspaceId, reference: &FlowRef) -> Key {
    Key::new(format!("{workspace}/flows"), format!("{}/{}", reference.name, reference.hash))
}

fn folder_of(name: &str) -> Result<FilePath, Error> {
    let wrong = name.is_empty() || name.contains('/') || name.starts_with('.');
    if wrong {
        let shown: String = name.chars().take(64).collect();
        return Err(Error::invalid("flow", format!("{shown:?} is no name of a flow"))
            .hint("a flow is named as its folder under /system/flows"));
    }
    Ok(FilePath::parse(&format!("{FOLDER}/{name}"))?)
}

async fn no_flow(opened: &Workspace, name: &str) -> Error {
    let shown: String = name.chars().take(64).collect();
    let mut names = Vec::new();
    if let Ok(folder) = FilePath::parse(FOLDER)
        && let Ok(listing) = opened.ls(&folder, 50, None).await
    {
        names.extend(listing.entries.iter().filter(|entry| entry.kind == Kind::Folder).map(|entry| entry.name.clone()));
    }
    let hint = match names.as_slice() {
        [] => format!("there is none yet: put its manifests into {FOLDER}/{shown}/"),
        names => format!("the flows are: {}", names.join(", ")),
    };
    Error::new(Code::NotFound, format!("there is no flow {shown:?}")).hint(hint)
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
