//! `bench-driver`: runs flows of given sizes on the parts of a hub in this process, without HTTP, for comparisons with other engines.
//!
//! It prints one JSON line when it is ready and one with the steps and the seconds when it is done. Every step is durable.
//! The payload is text that does not compress.

use assembly::{Config, process};
use clap::Parser;
use domain::{Principal, Status, TaskEvent, TaskId, WorkspaceId};
use engine::NewTask;
use futures::{StreamExt, stream};
use hub::assemble::{self, Hub};
use serde_json::{Value, json};
use std::{collections::BTreeMap, error::Error, io::Write, path::PathBuf, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workspace::Access;

/// The scenario and its parameters.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench-driver")]
struct DriverArgs {
    /// The scenario to run
    #[arg(value_enum)]
    scenario: Scenario,
    /// Nodes of a chain, subtasks of a fanout, layers of 24 clones; a diamond has no size
    #[arg(long, default_value_t = 100, value_name = "N")]
    size: u32,
    /// Tasks in all
    #[arg(long, default_value_t = 1, value_name = "N")]
    tasks: u32,
    /// Tasks at once
    #[arg(long, default_value_t = 1, value_name = "N")]
    concurrency: usize,
    /// Bytes of payload that each step carries
    #[arg(long, default_value_t = 1024, value_name = "BYTES")]
    payload: usize,
    /// The data folder; it should be empty
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

/// The shapes that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    /// Nodes one after the other
    Chain,
    /// A list that is split into subtasks, which a merge joins
    Fanout,
    /// A branch of two, which a merge joins
    Diamond,
    /// Layers one after the other, each a branch of 24 clones that a merge joins
    Layers,
    /// Tasks that wait for a person; it ends when all of them do
    Suspended,
}

/// Clones of one layer.
const CLONES: u32 = 24;

fn main() -> Result<(), Box<dyn Error>> {
    // The parts of a hub start this program again to see whether commands can have namespaces of their own.
    sandbox::enter();
    run(DriverArgs::parse())
}

/// Runs the scenario and prints both lines.
#[tokio::main]
async fn run(args: DriverArgs) -> Result<(), Box<dyn Error>> {
    assembly::log::begin(
        std::io::stderr,
        tracing::level_filters::LevelFilter::WARN,
        assembly::log::Format::Json,
        ports::KnownSecrets::default(),
    );
    let shutdown = CancellationToken::new();
    let hub = assemble::assemble(&args.data_dir, &Config::default(), &[], shutdown.clone())?;
    let worker = hub.worker.clone();
    let working = tokio::spawn({
        let shutdown = shutdown.clone();
        async move { worker.run(shutdown).await }
    });
    let driver = Driver::prepare(&hub, &args).await?;
    print(&json!({ "ready": true }))?;
    let before = Used::now(&hub);
    let began = Instant::now();
    let steps = driver.all().await?;
    let seconds = began.elapsed().as_secs_f64();
    let after = Used::now(&hub);
    print(&json!({
        "steps": steps,
        "seconds": seconds,
        "cpu_seconds": after.cpu_seconds - before.cpu_seconds,
        "memory_grown_bytes": after.resident.saturating_sub(before.resident),
        "written_bytes": after.written.saturating_sub(before.written),
        "store_requests": after.requests - before.requests,
        "store_transactions": after.transactions - before.transactions,
    }))?;
    shutdown.cancel();
    working.await?;
    Ok(())
}

/// The resources that this process has used so far.
struct Used {
    cpu_seconds: f64,
    resident: u64,
    written: u64,
    /// Commits and sends, and the transactions that they shared.
    requests: u64,
    transactions: u64,
}

impl Used {
    fn now(hub: &Hub) -> Self {
        let store = hub.store.stats();
        Self {
            cpu_seconds: process::cpu_seconds().unwrap_or_default(),
            resident: process::resident().unwrap_or_default(),
            written: process::written().unwrap_or_default(),
            requests: store.requests,
            transactions: store.groups,
        }
    }
}

fn print(line: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

struct Driver<'a> {
    hub: &'a Hub,
    args: &'a DriverArgs,
    workspace: WorkspaceId,
}

impl<'a> Driver<'a> {
    async fn prepare(hub: &'a Hub, args: &'a DriverArgs) -> Result<Self, domain::Error> {
        let workspace = WorkspaceId(Uuid::now_v7());
        let by = Principal::local();
        hub.workspaces.create(workspace, "bench", &by).await?;
        let files = hub.workspaces.open(workspace, Access::platform("the workspace of a bench")).await?;
        for (name, text) in manifests(args) {
            let path = domain::FilePath::parse(&format!("{}/bench/{name}", engine::FLOWS))?;
            files.write(&path, text.into_bytes(), workspace::Expect::Any, &by.clone().into()).await?;
        }
        hub.tasks.flows().load(workspace, "bench").await?;
        Ok(Self { hub, args, workspace })
    }

    async fn all(&self) -> Result<u64, domain::Error> {
        let running =
            stream::iter(0..self.args.tasks).map(|_| self.one()).buffer_unordered(self.args.concurrency.max(1));
        let steps: Vec<Result<u64, domain::Error>> = running.collect().await;
        steps.into_iter().sum()
    }

    /// One task to its end; how many nodes it and its children executed.
    async fn one(&self) -> Result<u64, domain::Error> {
        let task = TaskId::root(Uuid::now_v7());
        let actor = engine::machine::actor_id(self.workspace, task);
        let internal = |error: ports::Error| domain::Error::new(domain::Code::Internal, error.to_string());
        let mut events = self.hub.bus.subscribe(actor.as_str()).await.map_err(internal)?;
        let new = NewTask { input: self.input(), ..NewTask::default() };
        self.hub.tasks.create(self.workspace, task, "bench", new, &Principal::local()).await?;
        loop {
            // The bus is a hint: now and then the view is looked at, too.
            let heard = tokio::time::timeout(Duration::from_millis(500), events.next()).await;
            let finished = match heard {
                Ok(Some(message)) => is_end(&message) || self.args.scenario == Scenario::Suspended,
                Ok(None) | Err(_) => true,
            };
            if !finished {
                continue;
            }
            let view = self.hub.tasks.get(self.workspace, task).await?;
            if self.args.scenario == Scenario::Suspended && view.phase == domain::TaskPhase::Suspended {
                return Ok(view.steps);
            }
            if view.phase != domain::TaskPhase::Finished {
                continue;
            }
            if view.status != Status::Success {
                let error = view.error.unwrap_or_else(|| domain::Error::new(domain::Code::Internal, "it failed"));
                return Err(error);
            }
            return Ok(view.steps + self.steps_of_children());
        }
    }

    fn steps_of_children(&self) -> u64 {
        match self.args.scenario {
            Scenario::Chain | Scenario::Suspended => 0,
            Scenario::Fanout => u64::from(self.args.size),
            Scenario::Diamond => 2,
            Scenario::Layers => u64::from(self.args.size * CLONES),
        }
    }

    fn input(&self) -> Value {
        match self.args.scenario {
            Scenario::Chain | Scenario::Diamond | Scenario::Suspended | Scenario::Layers => {
                json!({ "payload": noise(self.args.payload) })
            }
            // The list is made by the flow, as large as it is wanted: an input has to fit into a message.
            Scenario::Fanout => json!({ "value": noise(self.args.payload), "count": self.args.size }),
        }
    }
}

/// Text of so many bytes that does not compress.
fn noise(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 32);
    while text.len() < bytes {
        text.push_str(&Uuid::new_v4().simple().to_string());
    }
    text.truncate(bytes);
    text
}

fn is_end(message: &[u8]) -> bool {
    serde_json::from_slice::<actor::Entry<TaskEvent>>(message)
        .is_ok_and(|entry| entry.events.iter().any(|event| matches!(event, TaskEvent::Finished { .. })))
}

fn manifests(args: &DriverArgs) -> BTreeMap<&'static str, String> {
    let node = |id: &str, role: &str, more: Value| {
        let mut node = json!({ "id": id, "kind": "deterministic", "role": role, "context": "none" });
        if let (Some(node), Value::Object(more)) = (node.as_object_mut(), more) {
            node.extend(more);
        }
        node
    };
    let edge = |from: &str, to: &str| json!({ "from": from, "to": to });
    let (nodes, edges) = match args.scenario {
        Scenario::Chain => {
            let names: Vec<String> = (0..args.size.max(3)).map(|number| format!("n{number}")).collect();
            let last = names.len() - 1;
            let role = |position: usize| match position {
                0 => "start",
                position if position == last => "exit",
                _ => "linear",
            };
            let nodes: Vec<Value> =
                names.iter().enumerate().map(|(position, name)| node(name, role(position), json!({}))).collect();
            let edges: Vec<Value> = names.windows(2).map(|pair| edge(&pair[0], &pair[1])).collect();
            (nodes, edges)
        }
        Scenario::Fanout => {
            let over = json!({
                "op": { "function": "list:repeat" },
                "split": { "over": "input", "max_subtasks": 100_000 },
            });
            let nodes = vec![
                node("start", "start", json!({})),
                node("split", "split", over),
                node("work", "linear", json!({})),
                node("join", "merge", json!({ "op": { "expr": "size(input)" } })),
                node("end", "exit", json!({})),
            ];
            let edges = vec![edge("start", "split"), edge("split", "work"), edge("work", "join"), edge("join", "end")];
            (nodes, edges)
        }
        Scenario::Layers => {
            let (mut nodes, mut edges) = (vec![node("start", "start", json!({}))], Vec::new());
            let mut last = "start".to_owned();
            for layer in 0..args.size.max(1) {
                let (branch, merge) = (format!("branch{layer}"), format!("merge{layer}"));
                nodes.push(node(&branch, "branch", json!({})));
                edges.push(edge(&last, &branch));
                for place in 0..CLONES {
                    let clone = format!("clone{layer}_{place}");
                    nodes.push(node(&clone, "linear", json!({})));
                    edges.extend([edge(&branch, &clone), edge(&clone, &merge)]);
                }
                // Each clone brings its own input: one of them goes on.
                nodes.push(node(&merge, "merge", json!({ "op": { "expr": "input[0].output" } })));
                last = merge;
            }
            nodes.push(node("end", "exit", json!({})));
            edges.push(edge(&last, "end"));
            (nodes, edges)
        }
        Scenario::Suspended => {
            let nodes = vec![
                node("start", "start", json!({})),
                node("ask", "linear", json!({ "ask": { "approve": "Go on?" } })),
                node("end", "exit", json!({})),
            ];
            (nodes, vec![edge("start", "ask"), edge("ask", "end")])
        }
        Scenario::Diamond => {
            let nodes = vec![
                node("start", "start", json!({})),
                node("branch", "branch", json!({})),
                node("left", "linear", json!({})),
                node("right", "linear", json!({})),
                node("join", "merge", json!({ "op": { "expr": "size(input)" } })),
                node("end", "exit", json!({})),
            ];
            let edges = vec![
                edge("start", "branch"),
                edge("branch", "left"),
                edge("branch", "right"),
                edge("left", "join"),
                edge("right", "join"),
                edge("join", "end"),
            ];
            (nodes, edges)
        }
    };
    BTreeMap::from([("workflow.yaml", json!({ "nodes": nodes, "edges": edges }).to_string())])
}
