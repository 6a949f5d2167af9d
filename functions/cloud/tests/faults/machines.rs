//! Machines of sandboxes: an ECS that runs the container's binary, behind a proxy, and an observer beside its machines, which counts the
//! commands that run there, and lets each of them go on.

use crate::lane::Lane;
use domain::WorkspaceId;
use emulators::{
    Call, Calls, Fate,
    ecs::{Deployed, Ecs, Watched},
};
use journeys::{Emulators, Options};
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle};

/// Tells in its scratch folder that it runs, and goes on when it is told to there. So one that runs a second time is seen, whether or not
/// its result arrives, and without leave it never ends.
pub const COMMAND: &str = r#": > "$TMPDIR/began"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done; echo ran"#;
/// Written beside `began` by the observer that has counted it.
const COUNTED: &str = "counted";

/// How often a command has begun.
type Begun = BTreeMap<WorkspaceId, usize>;

/// The machines of one deployment.
pub struct Machines {
    pub ecs: Arc<Ecs>,
    calls: Calls,
    begun: watch::Receiver<Begun>,
    may_go_on: watch::Sender<bool>,
    stands_by: JoinHandle<()>,
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.stands_by.abort();
    }
}

impl Machines {
    /// Machines whose commands go on as soon as they have been counted.
    pub async fn start() -> Self {
        let ecs = Arc::new(Ecs::start(Deployed::sandboxes(env!("CARGO_BIN_EXE_buildscale-sandbox"))).await.unwrap());
        let calls = Calls::of(ecs.endpoint()).await.unwrap();
        let (tells, begun) = watch::channel(Begun::new());
        let (may_go_on, leave) = watch::channel(true);
        let stands_by = tokio::spawn(stand_by(ecs.clone(), tells, leave));
        Self { ecs, calls, begun, may_go_on, stands_by }
    }

    /// A deployment whose sandboxes run on them.
    pub async fn deploy(&self, emulators: &Arc<Emulators>, options: Options<'_>) -> Lane {
        let variables = self.ecs.variables();
        let mut settings: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        settings.push(("AWS_ENDPOINT_URL_ECS", self.calls.endpoint()));
        Lane::deploy_as(emulators, Options { settings: &settings, ..options }).await
    }

    /// Decides the fate of every call about the sandbox of one workspace, or about none.
    pub fn plan(&self, mut plan: impl FnMut(&Call, Option<WorkspaceId>) -> Fate + Send + 'static) {
        let ecs = self.ecs.clone();
        self.calls.plan_calls(move |call| plan(call, about(&ecs, call)));
    }

    /// Whether commands that begin from now on, and those that wait, go on.
    pub fn may_go_on(&self, may: bool) {
        self.may_go_on.send_replace(may);
    }

    /// How often a command of this workspace has begun.
    pub fn begun(&self, workspace: WorkspaceId) -> usize {
        self.begun.borrow().get(&workspace).copied().unwrap_or_default()
    }

    /// Waits until a command of this workspace has begun.
    pub async fn until_begun(&self, workspace: WorkspaceId) {
        let mut begun = self.begun.clone();
        let waited = tokio::time::timeout(journeys::PATIENCE, begun.wait_for(|begun| begun.contains_key(&workspace)));
        drop(waited.await.expect("a command begins").unwrap());
    }

    /// All tasks that there ever were for a workspace.
    pub fn of(&self, workspace: WorkspaceId) -> Vec<Watched> {
        self.ecs.tasks().into_iter().filter(|task| owner(task) == Some(workspace)).collect()
    }
}

fn owner(task: &Watched) -> Option<WorkspaceId> {
    task.started_by.split_once('/')?.0.parse().ok()
}

/// The workspace whose sandbox a call is about.
fn about(ecs: &Ecs, call: &Call) -> Option<WorkspaceId> {
    let body: Value = serde_json::from_slice(&call.body).ok()?;
    if let Some((workspace, _)) = body["startedBy"].as_str().and_then(|by| by.split_once('/')) {
        return workspace.parse().ok();
    }
    let task = body["task"].as_str().or_else(|| body["tasks"][0].as_str())?;
    owner(ecs.tasks().iter().find(|known| known.task == task)?)
}

async fn stand_by(ecs: Arc<Ecs>, tells: watch::Sender<Begun>, may_go_on: watch::Receiver<bool>) {
    loop {
        for task in ecs.living() {
            let Some(workspace) = owner(&task) else { continue };
            for entry in fs::read_dir(ecs.scratch(&task.task)).into_iter().flatten().flatten() {
                let begins = look_after(&entry.path(), *may_go_on.borrow());
                if begins {
                    tells.send_modify(|begun| *begun.entry(workspace).or_default() += 1);
                }
            }
        }
        // poll: a process tells only its parent about its state
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Whether the command with this scratch folder has begun since the last time; one that has may go on. The folder goes with it.
fn look_after(scratch: &Path, may_go_on: bool) -> bool {
    let has = |name: &str| scratch.join(name).exists();
    if !has("began") {
        return false;
    }
    let begins = !has(COUNTED) && fs::write(scratch.join(COUNTED), "").is_ok();
    if may_go_on && !has("go") {
        drop(fs::write(scratch.join("go"), ""));
    }
    begins
}
