//! Programs from which files of a workspace are hidden: those who share one, and its end when other files are hidden, when it has gone, or with its workspace.

#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_mcp::{Children, Egress, Program, Programs, ServerDependencies, Servers};
use domain::{CallId, Code, Error, FilePath, WorkspaceId};
use parking_lot::Mutex;
use ports::{
    Probe, Recipient, RunningProgram, Secret, SecretRef, Secrets, ServedCall, ServedStep, ServerAccounts as _,
    ServersOf, ToolServers,
};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Counts its calls, and asks a person in a call of `ask`.
const SERVER: &str = r#"
n=0
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"own","version":"1"}}' ;;
  *'"tools/list"'*) r='{"tools":[{"name":"count","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}}]}' ;;
  *'"name":"ask"'*)
    printf '%s\n' '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}'
    read -r answer
    case "$answer" in *'"Ada"'*) who=Ada ;; *) who=nobody ;; esac
    n=$((n+1)); r="{\"content\":[{\"type\":\"text\",\"text\":\"$who $n\"}]}" ;;
  *'"tools/call"'*) n=$((n+1)); r="{\"content\":[{\"type\":\"text\",\"text\":\"$n\"}]}" ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

struct Nothing;

impl Egress for Nothing {
    fn client(&self, url: &str, _: bool) -> Result<reqwest::Client, String> {
        Err(format!("{url} may not be reached"))
    }
}

#[async_trait]
impl Secrets for Nothing {
    async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok(None)
    }
}

/// Starts programs in no sandbox, and keeps what was to be hidden from each.
struct Sandbox {
    children: Children,
    hides: bool,
    started: Mutex<Vec<Vec<String>>>,
    /// Whether the files of a program that runs have changed; the program that says so is asked once.
    has_changed: Arc<AtomicBool>,
    /// Whether the program that runs has gone without the end of its pipes; it is asked once.
    has_gone: Arc<AtomicBool>,
}

#[async_trait]
impl Programs for Sandbox {
    fn hides(&self) -> bool {
        self.hides
    }

    async fn start(&self, workspace: WorkspaceId, program: Program) -> Result<RunningProgram, String> {
        self.started.lock().push(program.hidden.iter().map(FilePath::to_string).collect());
        let running = self.children.start(workspace, program).await?;
        let (has_changed, has_gone) = (self.has_changed.clone(), self.has_gone.clone());
        let is_there: Probe = Box::new(move || Box::pin(std::future::ready(!has_gone.swap(false, Ordering::AcqRel))));
        let is_outdated = Box::new(move || has_changed.swap(false, Ordering::AcqRel));
        Ok(RunningProgram { is_outdated, is_there: Some(is_there), ..running })
    }
}

/// A server in a folder of the workspace, where files can be hidden or not.
fn server(cwd: &str, hides: bool) -> (Servers, Arc<Sandbox>) {
    let environment: Vec<_> = std::env::vars().collect();
    let sandbox = Arc::new(Sandbox {
        children: Children::new(&environment),
        hides,
        started: Mutex::default(),
        has_changed: Arc::default(),
        has_gone: Arc::default(),
    });
    let parts = ServerDependencies {
        confined: Some(sandbox.clone()),
        children: None,
        egress: Arc::new(Nothing),
        secrets: Arc::new(Nothing),
        host_secrets: Arc::new(Nothing),
        accounts: None,
    };
    let config = json!({ "command": "/bin/sh", "args": ["-c", SERVER], "cwd": cwd });
    let own = BTreeMap::from([("own".to_owned(), serde_json::from_value(config).unwrap())]);
    (Servers::new(&own, parts).unwrap(), sandbox)
}

fn of(party: &str, hidden: &[&str]) -> ServersOf {
    let hidden: Vec<FilePath> = hidden.iter().map(|path| path.parse().unwrap()).collect();
    ServersOf::new(WorkspaceId::from_key("tests", "mcp")).with_party(party.into(), async move { Ok(hidden) })
}

/// The number of the call, in the program that answers it.
async fn count(servers: &Servers, of: &ServersOf) -> String {
    servers.call(of, "mcp__own__count", Map::new()).await.unwrap().text
}

#[tokio::test]
async fn parties_share_a_program_only_if_the_same_files_are_hidden_from_them() {
    let (servers, sandbox) = server("/", true);
    let (ann, bob) = (of("ann", &["/users/bob"]), of("bob", &["/users/ann"]));
    assert_eq!(count(&servers, &ann).await, "1");
    assert_eq!(count(&servers, &of("agent of ann", &["/users/bob"])).await, "2");
    assert_eq!(count(&servers, &bob).await, "1");
    assert_eq!(count(&servers, &ann).await, "3");
    assert_eq!(count(&servers, &bob).await, "2");
    assert_eq!(*sandbox.started.lock(), [["/users/bob"], ["/users/ann"]]);
}

#[tokio::test]
async fn a_program_ends_when_other_files_are_hidden_from_the_last_party_that_used_it() {
    let (servers, sandbox) = server("/", true);
    let (before, after) = (&["/users/bob"], &["/users/bob", "/vault"]);
    let (ann, agent) = (of("ann", before), of("agent of ann", before));
    assert_eq!((count(&servers, &ann).await, count(&servers, &agent).await), ("1".into(), "2".into()));
    assert_eq!(count(&servers, &of("ann", after)).await, "1");
    assert_eq!(count(&servers, &agent).await, "3", "it still serves the agent");
    assert_eq!(count(&servers, &of("agent of ann", after)).await, "2");
    assert_eq!(count(&servers, &agent).await, "1", "nobody used it any more");
    let started: Vec<usize> = sandbox.started.lock().iter().map(Vec::len).collect();
    assert_eq!(started, [1, 2, 1]);
}

#[tokio::test]
async fn a_program_ends_with_its_workspace() {
    let (servers, sandbox) = server("/", true);
    let of = of("ann", &[]);
    let other = ServersOf { workspace: WorkspaceId::from_key("tests", "other"), ..of.clone() };
    assert_eq!((count(&servers, &of).await, count(&servers, &of).await), ("1".into(), "2".into()));
    assert_eq!(count(&servers, &other).await, "1");
    for _ in 0..2 {
        servers.forget(of.workspace).await.unwrap();
    }
    assert_eq!(count(&servers, &of).await, "1", "it is another program");
    assert_eq!(count(&servers, &other).await, "2");
    assert_eq!(sandbox.started.lock().len(), 3);
}

#[tokio::test]
async fn a_program_that_went_unnoticed_is_started_again_before_a_call() {
    let (servers, sandbox) = server("/", true);
    let ann = of("ann", &[]);
    assert_eq!((count(&servers, &ann).await, count(&servers, &ann).await), ("1".into(), "2".into()));
    sandbox.has_gone.store(true, Ordering::Release);
    assert_eq!(count(&servers, &ann).await, "1", "another one is asked, and once");
    assert_eq!(count(&servers, &ann).await, "2", "it stays");
    assert_eq!(sandbox.started.lock().len(), 2);
}

#[tokio::test]
async fn a_program_goes_on_when_it_is_not_known_what_is_hidden() {
    let (servers, sandbox) = server("/", true);
    let ann = of("ann", &["/users/bob"]);
    assert_eq!(count(&servers, &ann).await, "1");
    let failed = async |code| {
        let of =
            ServersOf::new(ann.workspace).with_party("ann".into(), async move { Err(Error::new(code, "a fault")) });
        servers.call(&of, "mcp__own__count", Map::new()).await.unwrap_err();
    };
    failed(Code::Internal).await;
    assert_eq!(count(&servers, &ann).await, "2");
    failed(Code::Forbidden).await;
    assert_eq!(count(&servers, &ann).await, "1", "it may not run for its last party any more");
    assert_eq!(sandbox.started.lock().len(), 2);
}

#[tokio::test]
async fn a_call_that_waits_for_a_person_is_answered_in_the_program_that_it_began_in() {
    let (servers, sandbox) = server("/", true);
    let (before, after) = (of("ann", &["/users/bob"]), of("ann", &["/users/bob", "/users/cleo"]));
    let step = async |of: &ServersOf, reply: Option<Value>| {
        let (id, args) = (CallId::from_key("ask", "1"), Map::new());
        servers.follow(of, ServedCall { id, tool: "mcp__own__ask".into(), args, reply, told: None }).await
    };
    assert_eq!(count(&servers, &before).await, "1");
    assert!(matches!(step(&before, None).await.unwrap(), ServedStep::Asks(_)));
    assert_eq!(count(&servers, &after).await, "1", "new calls go to a program of their own");
    let reply = json!({ "action": "accept", "content": { "name": "Ada" } });
    let bob = of("bob", &["/users/ann"]);
    assert_eq!(step(&bob, Some(reply.clone())).await.unwrap_err().code, Code::OutcomeUnknown, "it is not his");
    let ServedStep::Answered(answer) = step(&after, Some(reply.clone())).await.unwrap() else { panic!("it is done") };
    assert_eq!(answer.text, "Ada 2");
    assert_eq!(step(&after, Some(reply)).await.unwrap_err().code, Code::OutcomeUnknown);
    assert_eq!((count(&servers, &after).await, count(&servers, &before).await), ("2".into(), "1".into()), "it is over");
    assert_eq!(sandbox.started.lock().len(), 4);
}

#[tokio::test]
async fn a_program_whose_files_have_changed_is_started_again() {
    let (servers, sandbox) = server("/", true);
    let ann = of("ann", &["/users/-"]);
    assert_eq!((count(&servers, &ann).await, count(&servers, &ann).await), ("1".into(), "2".into()));
    sandbox.has_changed.store(true, Ordering::Release);
    assert_eq!(count(&servers, &ann).await, "1");
    assert_eq!(count(&servers, &ann).await, "2");
}

#[tokio::test]
async fn a_program_that_would_see_what_is_hidden_does_not_start() {
    let hidden = of("bob", &["/users/ann", "/vault"]);
    for (cwd, hides) in [("/", false), ("/users", false), ("/users/ann/notes", true)] {
        let (servers, sandbox) = server(cwd, hides);
        let refused = servers.sees(&hidden, "own").await.unwrap_err();
        assert_eq!((refused.code, &refused.details["path"]), (Code::Forbidden, &Value::from(cwd)));
        let served = servers.tools(&hidden, PATIENCE).await;
        assert_eq!((served.tools, served.missing), (Vec::new(), vec![("own".to_owned(), refused.message)]));
        assert!(servers.call(&hidden, "mcp__own__count", Map::new()).await.is_err());
        assert!(sandbox.started.lock().is_empty(), "{cwd}");
    }
    // Nothing of what is hidden is in its folder.
    for (cwd, hides) in [("/", true), ("/projects", false)] {
        let (servers, _) = server(cwd, hides);
        assert_eq!(servers.sees(&hidden, "own").await.unwrap(), Some(cwd.parse().unwrap()));
        assert_eq!(count(&servers, &hidden).await, "1", "{cwd}");
    }
    // Nobody has said what is to be hidden.
    let (servers, sandbox) = server("/", true);
    let unknown = ServersOf::new(WorkspaceId::from_key("tests", "mcp"));
    assert_eq!(servers.sees(&unknown, "own").await.unwrap_err().code, Code::Forbidden);
    assert!(servers.tools(&unknown, PATIENCE).await.tools.is_empty() && sandbox.started.lock().is_empty());
}
