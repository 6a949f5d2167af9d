//! `isolation`: how much slower one tenant's work becomes while another tenant floods the same hub.
//!
//! Tenant B talks in a chat and runs a flow of a start and an exit, one after the other; the p99 of each is measured alone
//! and then beside tenant A, who floods the hub in one way. Each flood has a hub of its own, so nothing of the flood before is
//! left. The flood has a thread of its own, so that it does not delay the clock of tenant B.
//!
//! Floods of things that wait are measured twice: while they arrive, and once all of them wait. The other floods go on as long as they are
//! measured.
//!
//! Two floors are measured with each sample, since the flood also takes processors and the disk: `GET /health`, which involves no tenant
//! and no store, and an fdatasynced append of this process. Their ratios tell how much slower the machine itself becomes.

use crate::{
    Bench, Result, client,
    floor::{Append, READY, Sqlite},
    http::{Connection, Events},
    hub::Hub,
    report::Figure,
    samples::Samples,
    script,
    turns::Talk,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tokio::{sync::Mutex, task::JoinSet, time::Instant};

/// Turns and tasks of tenant B in each of the two phases.
const SAMPLES: usize = 500;
/// How long a phase takes at most.
const PHASE: Duration = Duration::from_secs(30);
/// The highest allowed ratio of tenant B's time beside the flood to its time alone.
const TARGET: f64 = 1.2;
/// Bytes of a file that a flood writes.
const FILE: usize = 100 * 1024;

/// One way to flood a hub.
struct Flood {
    name: &'static str,
    is: &'static str,
    /// Requests under way at one time.
    clients: usize,
    /// Requests in all: their work stays, waits or takes long.
    most: usize,
    /// Whether its work waits, once it was taken in.
    waits: bool,
    /// The node between the start and the exit of the flow that it runs, and that flow's `agents.yaml`.
    flow: Option<(&'static str, &'static str)>,
    request: fn(&Tenant, usize) -> Request,
}

/// A request, or a stream that is read up to its first `done`.
enum Request {
    Post(String, String),
    Stream(String),
}

/// The workspace and the chat of tenant A.
struct Tenant {
    workspace: String,
    chat: String,
}

const FLOODS: [Flood; 8] = [
    Flood {
        name: "slots",
        is: "1,000 tasks that wait for one slot",
        clients: 4,
        most: 1_000,
        waits: true,
        flow: Some((
            "{id: work, kind: agent, role: linear, agent_id: a, context: none, prompt: Go., max_concurrency: 1}",
            "agents: [{id: a, system: You hang.}]",
        )),
        request: |tenant, _| tenant.task(&Value::Null),
    },
    Flood {
        name: "commands",
        is: "1,000 tasks with a command of 1 s each",
        clients: 4,
        most: 1_000,
        waits: true,
        flow: Some(("{id: work, kind: deterministic, role: linear, context: none, op: {command: [sleep, '1']}}", "")),
        request: |tenant, _| tenant.task(&Value::Null),
    },
    Flood {
        name: "agents",
        is: "tasks with an agent that answers at once, 4 begun at a time, without a pause",
        clients: 4,
        most: usize::MAX,
        waits: false,
        flow: Some((
            "{id: work, kind: agent, role: linear, agent_id: a, context: none, prompt: Go.}",
            "agents: [{id: a, system: You answer.}]",
        )),
        request: |tenant, _| tenant.task(&Value::Null),
    },
    Flood {
        name: "hanging_model",
        is: "1,000 chats whose model never answers",
        clients: 4,
        most: 1_000,
        waits: true,
        flow: None,
        request: |tenant, _| {
            Request::Post(format!("{}/chats", tenant.workspace), json!({ "goal": script::HANG }).to_string())
        },
    },
    Flood {
        name: "writes",
        is: "files of 100 KB, 4 at a time, without a pause",
        clients: 4,
        most: usize::MAX,
        waits: false,
        flow: None,
        request: |tenant, number| {
            let args = json!({ "path": format!("/data/{number}.txt"), "content": noise(number) });
            Request::Post(format!("{}/tools", tenant.workspace), json!({ "tool": "write", "args": args }).to_string())
        },
    },
    Flood {
        name: "splits",
        is: "50 tasks of 1,000 subtasks",
        clients: 1,
        most: 50,
        waits: false,
        flow: Some((
            "{id: work, kind: deterministic, role: split, context: none, op: {function: 'list:repeat'}, \
             split: {over: input, max_subtasks: 1000}}",
            "",
        )),
        request: |tenant, _| tenant.task(&json!({ "value": "x", "count": 1_000 })),
    },
    Flood {
        name: "streams",
        is: "event streams that are opened and read to the end, 4 at a time, without a pause",
        clients: 4,
        most: usize::MAX,
        waits: false,
        flow: None,
        request: |tenant, _| Request::Stream(format!("{}/events?after=0", tenant.chat)),
    },
    Flood {
        name: "posts",
        is: "messages to one chat, 4 at a time, without a pause",
        clients: 4,
        most: usize::MAX,
        waits: false,
        flow: None,
        request: |tenant, _| Request::Post(tenant.chat.clone(), json!({ "content": script::TALK }).to_string()),
    },
];

impl Tenant {
    /// A task of the flow of the flood.
    fn task(&self, input: &Value) -> Request {
        Request::Post(format!("{}/flows/flood/tasks", self.workspace), json!({ "input": input }).to_string())
    }
}

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    store(bench)?;
    for flood in &FLOODS {
        beside(bench, flood)?;
    }
    Ok(())
}

/// The floor of a store with one log: a commit of one row, alone and beside a writer that always has as many ready as in the other
/// figures. They take turns, so a commit waits for the one that is under way, and then for its own.
fn store(bench: &mut Bench) -> Result<()> {
    let sqlite = Arc::new(Mutex::new(Sqlite::new(&bench.folder("isolation")?)?));
    let commits = || {
        let mut samples = Samples::default();
        for _ in 0..SAMPLES {
            let began = Instant::now();
            sqlite.blocking_lock().commit(1)?;
            samples.add(began.elapsed());
        }
        Result::Ok(samples)
    };
    let alone = commits()?;
    let ended = Arc::new(AtomicBool::new(false));
    let flood = thread::spawn({
        let (sqlite, ended) = (sqlite.clone(), ended.clone());
        move || {
            while !ended.load(Relaxed) {
                sqlite.blocking_lock().commit(READY)?;
            }
            Result::Ok(())
        }
    });
    let flooded = commits();
    ended.store(true, Relaxed);
    flood.join().map_err(|_| "the flood panicked")??;
    let flooded = flooded?;
    bench.report.add(
        Figure::new("isolation.store", flooded.p99() / alone.p99(), "x of p99 alone")
            .more("p50", flooded.median() / alone.median())
            .more("p99_ms", flooded.p99())
            .more("p99_ms_alone", alone.p99())
            .more("p50_ms", flooded.median())
            .more("p50_ms_alone", alone.median())
            .more("is", "a commit of SQLite beside a writer that always has 64 rows, in turns"),
    )
}

/// Tenant B alone, and then beside this flood.
fn beside(bench: &mut Bench, flood: &'static Flood) -> Result<()> {
    let folder = bench.folder("isolation")?;
    let (hub, append) = (Hub::start(bench, &folder, &[])?, Append::new(bench.home())?);
    let (alone, arriving, waiting, busy, requests) = client(async {
        let mut quiet = Quiet::begin(&hub, append).await?;
        let workspace = hub.workspace().await?;
        if let Some((node, agents)) = flood.flow {
            write_flow(&hub, &workspace, "flood", node, agents).await?;
        }
        let chat = Talk::begin(&hub, &workspace).await?.path().to_owned();
        // Its first turns load state that every later one finds in memory.
        quiet.measure(SAMPLES / 10).await?;
        let alone = quiet.measure(SAMPLES).await?;
        let running = Running::start(flood, Tenant { workspace, chat }, hub.address.clone());
        running.is_under_way().await;
        let (cpu, began) = (hub.cpu_ms()?, Instant::now());
        let flooded = quiet.measure(SAMPLES).await?;
        let busy = (hub.cpu_ms()? - cpu) / 1e3 / began.elapsed().as_secs_f64();
        let waiting = if flood.waits {
            running.is_taken_in(&hub).await?;
            Some(quiet.measure(SAMPLES).await?)
        } else {
            None
        };
        Ok((alone, flooded, waiting, busy, running.end()?))
    })?;
    if let Some(waiting) = &waiting {
        bench.report.add(figure(flood, "waiting", &alone, waiting))?;
    }
    bench.report.add(
        figure(flood, if flood.waits { "arriving" } else { "running" }, &alone, &arriving)
            .more("processors_busy", busy)
            .more("requests_of_the_flood", requests as f64),
    )
}

/// Tenant B's times beside a flood, in this phase of it.
fn figure(flood: &Flood, phase: &str, alone: &Times, flooded: &Times) -> Figure {
    let ratio = |of: fn(&Times) -> &Samples| of(flooded).p99() / of(alone).p99();
    let (turn, task) = (ratio(|times| &times.turns), ratio(|times| &times.tasks));
    let (health, append) = (ratio(|times| &times.health), ratio(|times| &times.appends));
    Figure::new(format!("isolation.{}.{phase}", flood.name), turn.max(task), "x of p99 alone")
        .at_most(TARGET, "1.2x")
        .more("turn", turn)
        .more("task", task)
        .more("floor_health", health)
        .more("floor_append", append)
        .more("health_p99_ms", flooded.health.p99())
        .more("health_p99_ms_alone", alone.health.p99())
        .more("append_p99_ms", flooded.appends.p99())
        .more("append_p99_ms_alone", alone.appends.p99())
        .more("turn_p99_ms", flooded.turns.p99())
        .more("turn_p99_ms_alone", alone.turns.p99())
        .more("turn_p50_ms", flooded.turns.median())
        .more("accepted_p50_ms", flooded.accepted.median())
        .more("accepted_p99_ms", flooded.accepted.p99())
        .more("first_p50_ms", flooded.first.median())
        .more("first_p99_ms", flooded.first.p99())
        .more("accepted_p50_ms_alone", alone.accepted.median())
        .more("first_p50_ms_alone", alone.first.median())
        .more("turn_p50_ms_alone", alone.turns.median())
        .more("task_p99_ms", flooded.tasks.p99())
        .more("task_p99_ms_alone", alone.tasks.p99())
        .more("task_p50_ms", flooded.tasks.median())
        .more("task_p50_ms_alone", alone.tasks.median())
        .more("samples", flooded.turns.len() as f64)
        .more("is", flood.is)
}

/// Tenant B.
struct Quiet {
    talk: Talk,
    posts: Connection,
    address: String,
    workspace: String,
    append: Append,
}

/// The times of tenant B's work, and of the floors beside it.
#[derive(Default)]
struct Times {
    /// Until the answer, until the first event, and until the last one.
    accepted: Samples,
    first: Samples,
    turns: Samples,
    tasks: Samples,
    health: Samples,
    appends: Samples,
}

impl Quiet {
    async fn begin(hub: &Hub, append: Append) -> Result<Self> {
        let workspace = hub.workspace().await?;
        write_flow(hub, &workspace, "quick", "", "").await?;
        let (talk, posts) = (Talk::begin(hub, &workspace).await?, Connection::open(&hub.address).await?);
        Ok(Self { talk, posts, address: hub.address.clone(), workspace, append })
    }

    /// So many turns and tasks, or as many as the time allows.
    async fn measure(&mut self, samples: usize) -> Result<Times> {
        let (began, mut times) = (Instant::now(), Times::default());
        for _ in 0..samples {
            let turn = self.talk.turn(script::TALK).await?;
            times.accepted.add(turn.accepted);
            times.first.add(turn.first);
            times.turns.add(turn.done);
            times.tasks.add(self.task().await?);
            times.health.add(self.health().await?);
            times.appends.add(self.append.once()?);
            if began.elapsed() > PHASE {
                break;
            }
        }
        Ok(times)
    }

    /// A request that nothing is read or written for.
    async fn health(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let (status, _) = self.posts.call("GET", "/health", "").await?;
        if status == 200 { Ok(began.elapsed()) } else { Err(format!("/health: {status}").into()) }
    }

    /// A task from its POST to its `done`.
    async fn task(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let made = self.posts.json("POST", &format!("{}/flows/quick/tasks", self.workspace), "{}").await?;
        let task = made["task_id"].as_str().ok_or_else(|| format!("no task: {made}"))?;
        let path = format!("{}/tasks/{task}/events?after=0", self.workspace);
        Ok(Events::open(&self.address, &path).await?.until("done").await? - began)
    }
}

/// A flood under way, in a thread of its own.
struct Running {
    thread: thread::JoinHandle<Result<()>>,
    ended: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
    enough: usize,
}

impl Running {
    fn start(flood: &'static Flood, tenant: Tenant, address: String) -> Self {
        let (ended, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = thread::spawn({
            let (ended, requests) = (ended.clone(), requests.clone());
            move || client(pour(flood, Arc::new(tenant), address, ended, requests))
        });
        // As much of it as is to be in place before the first sample.
        Self { thread, ended, requests, enough: flood.most.min(50) }
    }

    async fn is_under_way(&self) {
        while self.requests.load(Relaxed) < self.enough && !self.thread.is_finished() {
            // poll: the flood is another thread's
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until all of its requests are answered and the hub has little left to compute for them.
    async fn is_taken_in(&self, hub: &Hub) -> Result<()> {
        const CALM: Duration = Duration::from_millis(500);
        let began = Instant::now();
        loop {
            let cpu = hub.cpu_ms()?;
            // poll: the flood is another thread's, and the processor's time is another process's
            tokio::time::sleep(CALM).await;
            let is_calm = hub.cpu_ms()? - cpu < CALM.as_secs_f64() * 1e3 / 10.0;
            if (is_calm && self.thread.is_finished()) || began.elapsed() > PHASE {
                return Ok(());
            }
        }
    }

    /// Ends it, and says how many requests were answered.
    fn end(self) -> Result<usize> {
        self.ended.store(true, Relaxed);
        self.thread.join().map_err(|_| "the flood panicked")??;
        Ok(self.requests.load(Relaxed))
    }
}

async fn pour(
    flood: &'static Flood,
    tenant: Arc<Tenant>,
    address: String,
    ended: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
) -> Result<()> {
    let begun = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..flood.clients {
        let (tenant, address) = (tenant.clone(), address.clone());
        let (ended, requests, begun) = (ended.clone(), requests.clone(), begun.clone());
        clients.spawn(async move {
            let mut connection = Connection::open(&address).await?;
            while !ended.load(Relaxed) {
                let number = begun.fetch_add(1, Relaxed);
                if number >= flood.most {
                    break;
                }
                match (flood.request)(&tenant, number) {
                    Request::Post(path, body) => drop(connection.json("POST", &path, &body).await?),
                    Request::Stream(path) => drop(Events::open(&address, &path).await?.until("done").await?),
                }
                requests.fetch_add(1, Relaxed);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    Ok(())
}

/// Puts a flow into a workspace: a start, this node if there is one, and an exit.
async fn write_flow(hub: &Hub, workspace: &str, name: &str, node: &str, agents: &str) -> Result<()> {
    let (nodes, edges) = match node {
        "" => (String::new(), "{from: begin, to: end}"),
        // A split needs a way for its subtasks, which ends in a merge.
        node if node.contains("role: split") => (
            format!(
                "\n- {node}\n- {{id: each, kind: deterministic, role: linear, context: none}}\
                 \n- {{id: join, kind: deterministic, role: merge, context: none, op: {{expr: size(input)}}}}"
            ),
            "{from: begin, to: work}, {from: work, to: each}, {from: each, to: join}, {from: join, to: end}",
        ),
        node => (format!("\n- {node}"), "{from: begin, to: work}, {from: work, to: end}"),
    };
    let workflow = format!(
        "nodes:\n- {{id: begin, kind: deterministic, role: start, context: none}}{nodes}\
         \n- {{id: end, kind: deterministic, role: exit, context: none}}\nedges: [{edges}]\n"
    );
    let mut connection = Connection::open(&hub.address).await?;
    for (file, content) in [("workflow.yaml", workflow.as_str()), ("agents.yaml", agents)] {
        if content.is_empty() {
            continue;
        }
        let args = json!({ "path": format!("/system/flows/{name}/{file}"), "content": content });
        let write = json!({ "tool": "write", "args": args }).to_string();
        connection.json("POST", &format!("{workspace}/tools"), &write).await?;
    }
    Ok(())
}

/// Text for a file, another one for each number.
fn noise(number: usize) -> String {
    let line = format!("{number} is the number of this file\n");
    line.repeat(FILE / line.len())
}
