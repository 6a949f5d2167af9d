//! `acp` and `permission`: coding agents behind the hub, beside the same agent alone.
//!
//! The agent is this program in another mode, and the hub starts it as it starts every agent. It does what it is told over a socket, at once: so
//! the time from the word on the socket to the event on the stream is the time of the pipe and of the hub. Alone, it is the time of the pipe.

use crate::{
    Bench, Result, client,
    http::{Connection, Events},
    hub::{Hub, MIB},
    report::Figure,
    samples::Samples,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};
use tokio::time::Instant;

const STARTS: usize = 20;
const UPDATES: usize = 500;
const ASKS: usize = 100;
const THREADS: usize = 100;

/// The agent: ACP on the standard streams, and words of the bench on a socket, a connection per turn.
pub(crate) fn agent(address: &str) -> Result<()> {
    let out = Arc::new(Mutex::new(std::io::stdout()));
    let send = |message: Value| say(&out, &message);
    let turn = Arc::<Mutex<Option<TcpStream>>>::default();
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("initialize") => {
                send(json!({ "id": id, "result": { "protocolVersion": 1, "agentCapabilities": {} } }))?;
            }
            Some("session/new") => send(json!({ "id": id, "result": { "sessionId": "s" } }))?,
            Some("session/prompt") => {
                let socket = TcpStream::connect(address)?;
                socket.set_nodelay(true)?;
                *turn.lock() = Some(socket.try_clone()?);
                let out = out.clone();
                std::thread::spawn(move || perform(&out, socket, &id));
            }
            Some(_) => {}
            None => {
                let mut turn = turn.lock();
                if let Some(socket) = turn.as_mut() {
                    socket.write_all(b"answered\n")?;
                }
            }
        }
    }
    Ok(())
}

/// Does what the bench says, until the turn ends.
fn perform(out: &Mutex<std::io::Stdout>, socket: TcpStream, prompt: &Value) -> Result<()> {
    for word in BufReader::new(socket).lines() {
        let message = match word?.as_str() {
            "update" => update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "m" })),
            "text" => {
                let content = json!({ "type": "text", "text": "word " });
                update(json!({ "sessionUpdate": "agent_message_chunk", "content": content }))
            }
            "ask" => {
                let call =
                    json!({ "toolCallId": "t", "kind": "execute", "title": "ls", "rawInput": { "command": "ls" } });
                let option = |id: &str| json!({ "optionId": id, "name": id, "kind": id });
                let options = [option("allow_once"), option("reject_once")];
                let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
                json!({ "id": "q", "method": "session/request_permission", "params": params })
            }
            _ => {
                say(out, &json!({ "id": prompt, "result": { "stopReason": "end_turn" } }))?;
                return Ok(());
            }
        };
        say(out, &message)?;
    }
    Ok(())
}

fn update(update: Value) -> Value {
    json!({ "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

fn say(out: &Mutex<std::io::Stdout>, message: &Value) -> Result<()> {
    let mut message = message.clone();
    message["jsonrpc"] = json!("2.0");
    let mut out = out.lock();
    writeln!(out, "{message}")?;
    Ok(out.flush()?)
}

/// The bench's end of a turn.
struct Turn {
    words: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Turn {
    /// The turn of the next agent that begins one.
    fn next(listener: &TcpListener) -> Result<Self> {
        let (words, _) = listener.accept()?;
        words.set_nodelay(true)?;
        Ok(Self { answers: BufReader::new(words.try_clone()?), words })
    }

    fn tell(&mut self, word: &str) -> Result<()> {
        Ok(self.words.write_all(format!("{word}\n").as_bytes())?)
    }

    /// Waits until the agent has heard an answer.
    fn answered(&mut self) -> Result<()> {
        self.answers.read_line(&mut String::new())?;
        Ok(())
    }
}

/// The agent without a hub.
struct Alone {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Alone {
    fn start(binary: &Path, address: &str) -> Result<Self> {
        let mut command = Command::new(binary);
        command.args(["agent", address]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the agent has no streams".into());
        };
        let mut alone = Self { process, input, output: BufReader::new(output) };
        for method in ["initialize", "session/new"] {
            alone.send(&json!({ "id": 1, "method": method, "params": {} }))?;
            alone.line()?;
        }
        alone.send(&json!({ "id": 2, "method": "session/prompt", "params": {} }))?;
        Ok(alone)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        Ok(writeln!(self.input, "{message}")?)
    }

    /// The next thing that it says.
    fn line(&mut self) -> Result<()> {
        self.output.read_line(&mut String::new())?;
        Ok(())
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A hub that knows the agent.
struct World {
    hub: Hub,
    workspace: String,
    cwd: String,
    listener: TcpListener,
    address: String,
    binary: PathBuf,
}

impl World {
    async fn start(bench: &Bench, name: &str) -> Result<Self> {
        let folder = bench.folder(name)?;
        let cwd = folder.join("app");
        std::fs::create_dir(&cwd)?;
        let cwd = cwd.canonicalize()?.display().to_string();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let binary = std::env::current_exe()?;
        let (command, args) = (binary.display().to_string(), format!("agent,{address}"));
        let settings = [
            ("BUILDSCALE__HUB__ALLOWED_ROOTS", cwd.as_str()),
            ("BUILDSCALE__AGENTS__BENCH__COMMAND", command.as_str()),
            ("BUILDSCALE__AGENTS__BENCH__ARGS", args.as_str()),
            ("PATH", "/usr/bin:/bin"),
        ];
        let hub = Hub::start(bench, &folder.join("data"), &settings)?;
        let workspace = hub.workspace().await?;
        Ok(Self { hub, workspace, cwd, listener, address, binary })
    }

    /// Makes a chat, whose first turn starts the agent; its path.
    async fn chat(&self, posts: &mut Connection) -> Result<String> {
        let body = json!({ "goal": "go", "agent": "bench", "cwd": self.cwd }).to_string();
        let made = posts.json("POST", &format!("{}/chats", self.workspace), &body).await?;
        let id = made["chat_id"].as_str().ok_or_else(|| format!("no chat: {made}"))?;
        Ok(format!("{}/chats/{id}", self.workspace))
    }

    /// A chat in the middle of its turn.
    async fn running(&self) -> Result<(String, Turn, Events)> {
        let mut posts = Connection::open(&self.hub.address).await?;
        let path = self.chat(&mut posts).await?;
        let turn = Turn::next(&self.listener)?;
        let events = Events::open(&self.hub.address, &format!("{path}/events?after=0")).await?;
        Ok((path, turn, events))
    }
}

/// `acp`: start, updates, and many threads.
pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    client(async {
        let world = World::start(bench, "acp").await?;
        first(bench, &world).await?;
        updates(bench, &world).await?;
        threads(bench, &world).await
    })
}

/// From the message that begins a chat to the first update on its stream.
async fn first(bench: &mut Bench, world: &World) -> Result<()> {
    let (mut alone, mut behind) = <(Samples, Samples)>::default();
    let mut posts = Connection::open(&world.hub.address).await?;
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut agent = Alone::start(&world.binary, &world.address)?;
        Turn::next(&world.listener)?.tell("update")?;
        agent.line()?;
        alone.add(began.elapsed());

        let began = Instant::now();
        let path = world.chat(&mut posts).await?;
        let mut turn = Turn::next(&world.listener)?;
        turn.tell("update")?;
        let mut events = Events::open(&world.hub.address, &format!("{path}/events?after=0")).await?;
        behind.add(events.until("agent_update").await? - began);
        turn.tell("end")?;
        events.until("done").await?;
    }
    bench.report.add(
        Figure::new("acp.first_update", behind.median(), "ms")
            .beside("the agent alone", alone.median())
            .more("p99", behind.p99())
            .more("is", "POST of a new chat to the first update on its stream, with the start of the process, p50"),
    )
}

/// The time that the hub adds to an update, in the middle of a turn.
async fn updates(bench: &mut Bench, world: &World) -> Result<()> {
    let mut agent = Alone::start(&world.binary, &world.address)?;
    let mut beside = Turn::next(&world.listener)?;
    let (_, mut turn, mut events) = world.running().await?;
    for (word, event, target) in [("update", "agent_update", true), ("text", "chunk", false)] {
        let (mut alone, mut behind) = <(Samples, Samples)>::default();
        for _ in 0..UPDATES {
            let began = Instant::now();
            beside.tell(word)?;
            agent.line()?;
            alone.add(began.elapsed());

            let began = Instant::now();
            turn.tell(word)?;
            behind.add(events.until(event).await? - began);
        }
        let (a, b) = (alone.median(), behind.median());
        let figure = Figure::new(format!("acp.{word}_added"), b - a, "ms").beside("the agent alone", a);
        let figure = figure.more("p50", b).more("p99", behind.p99());
        let figure = match target {
            true => figure
                .at_most(1.0, "1 ms")
                .more("is", "a tool call or any other update that is no text, durable before it is shown"),
            false => figure.more("is", "a piece of text: pieces are joined for 50 ms"),
        };
        bench.report.add(figure)?;
    }
    turn.tell("end")?;
    events.until("done").await.map(drop)
}

/// Many threads that begin at once.
async fn threads(bench: &mut Bench, world: &World) -> Result<()> {
    let before = world.hub.resident()?;
    let mut posts = Connection::open(&world.hub.address).await?;
    let began = Instant::now();
    let (mut paths, mut turns, mut last) = (Vec::new(), Vec::new(), began);
    for _ in 0..THREADS {
        paths.push(world.chat(&mut posts).await?);
    }
    for _ in 0..THREADS {
        let mut turn = Turn::next(&world.listener)?;
        turn.tell("update")?;
        turns.push(turn);
    }
    let mut streams = Vec::new();
    for path in &paths {
        let mut events = Events::open(&world.hub.address, &format!("{path}/events?after=0")).await?;
        last = last.max(events.until("agent_update").await?);
        streams.push(events);
    }
    let each = (world.hub.resident()? - before) / MIB / THREADS as f64;
    bench.report.add(
        Figure::new("acp.threads_100", (last - began).as_secs_f64() * 1e3, "ms").more("hub_mib_a_thread", each).more(
            "is",
            "100 new chats at once, each with a process of its own, until the last one has shown an update",
        ),
    )?;
    // All of them before the first wait: agents come in another order than their chats were made.
    for turn in &mut turns {
        turn.tell("end")?;
    }
    for events in &mut streams {
        events.until("done").await?;
    }
    Ok(())
}

/// `permission`: from the request of an agent to a person and back.
pub(crate) fn permission(bench: &mut Bench) -> Result<()> {
    client(async {
        let world = World::start(bench, "permission").await?;
        let mut agent = Alone::start(&world.binary, &world.address)?;
        let mut beside = Turn::next(&world.listener)?;
        let (path, mut turn, mut events) = world.running().await?;
        let mut posts = Connection::open(&world.hub.address).await?;
        let (mut alone, mut shown, mut heard) = <(Samples, Samples, Samples)>::default();
        for _ in 0..ASKS {
            let began = Instant::now();
            beside.tell("ask")?;
            agent.line()?;
            agent.send(&json!({ "jsonrpc": "2.0", "id": "q", "result": {} }))?;
            beside.answered()?;
            alone.add(began.elapsed());

            let began = Instant::now();
            turn.tell("ask")?;
            shown.add(events.until("permission_required").await? - began);
            let view = posts.json("GET", &path, "").await?;
            let id = view["waiting_for"][0]["data"]["permission_id"].as_str().ok_or("nothing is asked")?.to_owned();
            let began = Instant::now();
            posts.json("POST", &format!("{path}/permissions/{id}"), r#"{"outcome": "approved"}"#).await?;
            turn.answered()?;
            heard.add(began.elapsed());
        }
        bench.report.add(
            Figure::new("permission.round_trip", shown.median() + heard.median(), "ms")
                .beside("the agent alone", alone.median())
                .more("shown", shown.median())
                .more("answered", heard.median())
                .more("p99", shown.p99() + heard.p99())
                .more("is", "from the agent's request to the event of a client, and from the client's POST to the answer at the agent"),
        )
    })
}
