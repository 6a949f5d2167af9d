//! The triggers of a workspace's flows.

mod overlaps;

use crate::FLOWS;
use domain::{Code, Error, FilePath, Sha256};
use flow::{built_in, load::triggers_of_workflow, trigger::Trigger};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, LazyLock},
};
use workspace::{FileInFolder, Workspace};

/// The names that a `workflow.yaml` may have.
const WORKFLOWS: [&str; 3] = ["workflow.yaml", "workflow.yml", "workflow.json"];
/// The beginning of them.
const WORKFLOW: &str = "workflow.";
/// How many workflows' triggers are remembered.
const KNOWN_KEPT: usize = 1_024;

/// The triggers of the built-in flows.
static BUILT_IN: LazyLock<BTreeMap<&'static str, Arc<[Trigger]>>> = LazyLock::new(|| {
    let of = |name: &'static str| {
        let files = built_in::files(name)?;
        let triggers = triggers_of_workflow("workflow.yaml", files.get("workflow.yaml")?);
        (!triggers.is_empty()).then(|| (name, triggers.into()))
    };
    built_in::names().filter_map(of).collect()
});

/// The triggers of flows. They are read off the flows' manifests as they are now; what a content means is remembered by its digest. Cheap to clone.
#[derive(Clone, Default)]
pub struct Triggers {
    known: Arc<Mutex<HashMap<Sha256, Arc<[Trigger]>>>>,
}

impl Triggers {
    /// The flows of a workspace that have triggers, by name.
    ///
    /// # Errors
    /// Those of reading the workspace.
    pub async fn of(&self, workspace: &Workspace) -> Result<BTreeMap<String, Arc<[Trigger]>>, Error> {
        let (own, files) = workspace.inside_of_each(&FilePath::parse(FLOWS)?, WORKFLOW).await?;
        let own: BTreeSet<String> = own.into_iter().collect();
        let built_in_triggers = BUILT_IN.iter().filter(|(name, _)| !own.contains(**name));
        let mut found: BTreeMap<String, Arc<[Trigger]>> =
            built_in_triggers.map(|(name, triggers)| ((*name).to_owned(), triggers.clone())).collect();
        let is_workflow =
            |file: &&FileInFolder| WORKFLOWS.contains(&file.path.name()) && domain::is_flow_name(&file.folder);
        for file in files.iter().filter(is_workflow) {
            let triggers = self.of_manifest(workspace, file).await?;
            if !triggers.is_empty() {
                found.insert(file.folder.clone(), triggers);
            }
        }
        Ok(found)
    }

    /// The triggers of a manifest. One that is lost has none: it starts nothing until it is repaired, and keeps no other flow from starting.
    async fn of_manifest(&self, workspace: &Workspace, file: &FileInFolder) -> Result<Arc<[Trigger]>, Error> {
        let known = self.known.lock().get(&file.sha256).cloned();
        if let Some(triggers) = known {
            return Ok(triggers);
        }
        let content = match workspace.read(&file.path, None).await {
            Err(error) if is_lost(&error) => {
                tracing::warn!(workspace = %workspace.id(), path = %file.path, %error, "a flow starts no tasks: its manifest is lost");
                return Ok(Arc::default());
            }
            content => content?,
        };
        let triggers: Arc<[Trigger]> = parse_triggers(file.path.name().to_owned(), content.bytes.to_vec()).await.into();
        let mut known = self.known.lock();
        if known.len() >= KNOWN_KEPT {
            known.clear();
        }
        if let Some(sha256) = content.info.sha256 {
            known.insert(sha256, triggers.clone());
        }
        Ok(triggers)
    }
}

/// Whether an error says that a content has no good copy.
pub(crate) fn is_lost(error: &Error) -> bool {
    matches!(error.code, Code::ContentMissing | Code::ContentDamaged)
}

/// Reads triggers on a thread for such work; none when that does not end well.
async fn parse_triggers(file: String, bytes: Vec<u8>) -> Vec<Trigger> {
    let read = move || String::from_utf8(bytes).map(|text| triggers_of_workflow(&file, &text)).unwrap_or_default();
    workspace::blocking::run(read).await.unwrap_or_default()
}
