//! Coding agents in a sandbox, as a worker has them: through the port, over HTTP.

use crate::server::{Served, WORKSPACE};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{AgentOptions, ChatId, FilePath, Sha256, ThreadAgent, TurnId, WorkspaceId};
use parking_lot::Mutex;
use ports::{
    AgentInfo, AgentPrompt, AgentTurn, AgentUpdate, Agents, CopiedFile, Error, Result, Sandbox, SandboxState,
    SandboxView, Sandboxes,
};
use sandbox::{Remote, SandboxAgents};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);

/// One sandbox, which is cold until it is asked for, starts for a moment, and can go away.
pub struct One {
    remote: Remote,
    states: Mutex<Vec<SandboxState>>,
    is_gone: AtomicBool,
}

impl One {
    pub fn new(remote: Remote, states: &[SandboxState]) -> Self {
        Self { remote, states: Mutex::new(states.to_vec()), is_gone: AtomicBool::new(false) }
    }

    fn view(&self) -> SandboxView {
        let state = self.states.lock().first().copied().unwrap_or(SandboxState::Ready);
        SandboxView { state, since: None, reason: None }
    }
}

#[async_trait]
impl Sandboxes for One {
    async fn look(&self, _: WorkspaceId) -> Result<SandboxView> {
        let mut states = self.states.lock();
        if states.first() == Some(&SandboxState::Starting) {
            states.remove(0);
        }
        drop(states);
        Ok(self.view())
    }
    async fn warm(&self, _: WorkspaceId) -> Result<SandboxView> {
        let mut states = self.states.lock();
        if states.first() == Some(&SandboxState::Cold) {
            states.remove(0);
        }
        drop(states);
        Ok(self.view())
    }
    async fn release(&self, _: WorkspaceId) -> Result<()> {
        Ok(())
    }
    async fn ready(&self, _: WorkspaceId) -> Result<Option<Arc<dyn Sandbox>>> {
        let is_ready = self.view().state == SandboxState::Ready && !self.is_gone.load(Ordering::Relaxed);
        Ok(is_ready.then(|| Arc::new(self.remote.clone()) as Arc<dyn Sandbox>))
    }
}

struct World {
    served: Served,
    one: Arc<One>,
    agents: SandboxAgents,
    turns: u128,
}

impl World {
    async fn new(states: &[SandboxState]) -> Self {
        let served = Served::new().await;
        let one = Arc::new(One::new(served.remote(), states));
        let info = AgentInfo { id: "test".into(), name: "Test".into(), unavailable: None, install: None };
        let agents = SandboxAgents::new(one.clone(), vec![info]);
        Self { served, one, agents, turns: 0 }
    }

    fn turn(&mut self) -> AgentTurn {
        self.turns += 1;
        let turn = TurnId(Uuid::from_u128(100 + self.turns));
        AgentTurn { workspace: WorkspaceId::from(WORKSPACE), chat: ChatId(Uuid::from_u128(2)), turn }
    }

    async fn prompt(&mut self, words: &str) -> AgentTurn {
        let turn = self.turn();
        let thread =
            ThreadAgent { agent: "test".into(), cwd: "/workspace/app".into(), options: AgentOptions::default() };
        let content = vec![json!({ "type": "text", "text": words })];
        self.agents
            .prompt(AgentPrompt { turn, thread, content, context: String::new(), own_mode: false })
            .await
            .unwrap();
        turn
    }

    async fn until(&self, turn: &AgentTurn, last: impl Fn(&AgentUpdate) -> bool) -> Vec<AgentUpdate> {
        let mut all = Vec::new();
        while !all.last().is_some_and(&last) {
            all.extend(timeout(PATIENCE, self.agents.updates(turn)).await.unwrap().unwrap());
        }
        all
    }

    async fn end(&self, turn: &AgentTurn) -> Vec<AgentUpdate> {
        self.until(turn, |update| matches!(update, AgentUpdate::Ended { .. } | AgentUpdate::Gone { .. })).await
    }
}

fn text(updates: &[AgentUpdate]) -> String {
    let text = |update: &AgentUpdate| match update {
        AgentUpdate::Text(text) => Some(text.clone()),
        _ => None,
    };
    updates.iter().filter_map(text).collect()
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

#[tokio::test]
async fn section_14_a_thread_works_in_the_sandbox_of_its_workspace_which_is_started_for_it() {
    let mut world = World::new(&[SandboxState::Cold, SandboxState::Starting]).await;
    assert_eq!(world.agents.list().await[0].name, "Test");
    assert_eq!(world.agents.allowed("/workspace//app/./").await.unwrap(), "/workspace/app");
    assert!(world.agents.allowed("/srv").await.is_err(), "the machine is not its own");
    let turn = world.prompt("say one two").await;
    assert_eq!(text(&world.end(&turn).await), "one two ");
    // The whole of the last batch is: it has the text, too, where the text came together with the end.
    assert!(matches!(world.end(&turn).await.last(), Some(AgentUpdate::Ended { .. })), "it is told again");

    let turn = world.prompt("ask rm -r x").await;
    let updates = world.until(&turn, |update| matches!(update, AgentUpdate::Asks(_))).await;
    let Some(AgentUpdate::Asks(request)) = updates.last() else { panic!("{updates:?}") };
    assert_eq!(request.options.len(), 3);
    assert!(matches!(world.agents.answer(&turn, "another", None).await, Err(Error::Conflict { .. })));
    world.agents.answer(&turn, &request.request, Some("once")).await.unwrap();
    assert_eq!(text(&world.end(&turn).await), "once");

    let turn = world.prompt("put b.txt two words").await;
    let updates = world.until(&turn, |update| matches!(update, AgentUpdate::Wrote { .. })).await;
    let Some(AgentUpdate::Wrote { request, path }) = updates.last() else { panic!("{updates:?}") };
    assert_eq!(path.as_str(), "/app/b.txt");
    world.agents.settle(&turn, request, Some("not this one")).await.unwrap();
    assert_eq!(text(&world.end(&turn).await), r#""not this one""#);

    let other = AgentTurn { workspace: WorkspaceId(Uuid::from_u128(9)), ..turn };
    let call = sandbox::wire::AgentCall::Cancel(other);
    let refused = crate::server::http()
        .post(format!("http://{}/workspaces/{WORKSPACE}/agents", world.served.address))
        .bearer_auth(crate::server::TOKEN)
        .json(&call)
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), 400, "a sandbox has the turns of one workspace");
}

#[tokio::test]
async fn a_turn_is_cancelled_and_one_whose_sandbox_has_gone_is_lost() {
    let mut world = World::new(&[]).await;
    let turn = world.prompt("ask x").await;
    world.until(&turn, |update| matches!(update, AgentUpdate::Asks(_))).await;
    world.agents.cancel(&turn).await.unwrap();
    let updates = world.end(&turn).await;
    assert!(matches!(updates.last(), Some(AgentUpdate::Ended { .. } | AgentUpdate::Gone { .. })), "{updates:?}");

    let turn = world.prompt("ask x").await;
    let updates = world.until(&turn, |update| matches!(update, AgentUpdate::Asks(_))).await;
    let Some(AgentUpdate::Asks(request)) = updates.last() else { panic!("{updates:?}") };
    world.one.is_gone.store(true, Ordering::Relaxed);
    assert!(matches!(world.agents.updates(&turn).await, Err(Error::Conflict { .. })));
    assert!(matches!(world.agents.answer(&turn, &request.request, None).await, Err(Error::Conflict { .. })));
    world.agents.cancel(&turn).await.unwrap();
    world.agents.end(turn.workspace, turn.chat).await.unwrap();
}

#[tokio::test]
async fn a_copy_is_in_one_hand_and_is_let_go() {
    let world = World::new(&[]).await;
    let (workspace, chat) = (WorkspaceId::from(WORKSPACE), ChatId(Uuid::from_u128(2)));
    let copies = world.agents.copies().unwrap();
    let mut copy = copies.hold(workspace, chat).await.unwrap();
    assert!(copy.put(&path("/app/a"), Bytes::from_static(b"one"), None).await.unwrap());
    assert!(!copy.put(&path("/app/a"), Bytes::from_static(b"mine"), None).await.unwrap(), "something is there");
    let found = CopiedFile { digest: Sha256::of(b"one"), size: 3 };
    assert_eq!(copy.scan(&path("/app")).await.unwrap().into_iter().collect::<Vec<_>>(), [(path("/app/a"), found)]);
    assert_eq!(copy.read(&path("/app/a"), found).await.unwrap().as_deref(), Some(&b"one"[..]));
    let other = CopiedFile { digest: Sha256::of(b"two"), size: 3 };
    assert_eq!(copy.read(&path("/app/a"), other).await.unwrap(), None);
    copy.record().untold.push("this".into());
    copy.keep().await.unwrap();

    let holding = tokio::spawn({
        let copies = copies.clone();
        async move { copies.hold(workspace, chat).await.map(|mut copy| copy.record().untold.clone()) }
    });
    tokio::task::yield_now().await;
    assert!(!holding.is_finished(), "it is in another hand");
    assert!(copy.take_away(&path("/app/a"), found).await.unwrap());
    drop(copy);
    assert_eq!(timeout(PATIENCE, holding).await.unwrap().unwrap().unwrap(), ["this"]);
    copies.remove(workspace, chat).await.unwrap();
    assert_eq!(copies.hold(workspace, chat).await.unwrap().record().untold, Vec::<String>::new());
}
