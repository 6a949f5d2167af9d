//! `buildscale acp`: an agent for editors, over standard input and output. [`protocols::acp`] reads the messages and writes the answers; here are the pipes
//! and the requests to the hub.
//!
//! Nothing that matters is kept here. Turns go on when the editor ends; a session that is loaded shows them, and asks again for what is still open.

mod commands;
mod failure;
mod servers;
mod terminal;

use crate::{
    args::AcpArgs,
    call_permissions::{self, Permitted},
    client::Client,
    failure::CliError,
    output::Output,
    value::text,
    workspace_client::{WorkspaceClient, with_query},
};
use commands::Commands;
use domain::CLIENT_PREFIX;
use failure::Failure;
use futures::{
    FutureExt as _,
    stream::{FuturesUnordered, StreamExt},
};
use protocols::{
    IncomingFile,
    acp::{self, EditorCapabilities, EditorRequest, EditorUpdate, PersonAsked, Reaction, ToolServer, Updates},
    hub,
};
use serde_json::{Value, json};
use servers::{EditorServers, Offered};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Duration,
};
use terminal::EditorTerminal;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    sync::{Notify, OnceCell, mpsc, oneshot},
    time::timeout,
};
use uuid::Uuid;

/// How many messages to the editor may wait for their place in the pipe.
const WAITING: usize = 256;
/// How many sessions a page of a list has.
const PAGE: &str = "50";
/// How long an editor may take to give a file.
const FILE: Duration = Duration::from_secs(10);
/// JSON-RPC's code for text that is none.
const PARSE_ERROR: i64 = -32_700;

/// Until standard input ends: then the editor is gone.
pub(crate) async fn run(args: AcpArgs, out: &mut Output) -> Result<(), CliError> {
    let (sender, mut messages) = mpsc::channel(WAITING);
    let (notices, mut noticed) = mpsc::unbounded_channel();
    let editor = Editor {
        client: Client::new(&args.connection)?,
        workspace: args.workspace,
        agent: args.agent,
        door: OnceCell::new(),
        out: sender,
        notices,
        turns: RefCell::default(),
        asks: RefCell::default(),
        asked: Cell::new(0),
        abilities: Cell::default(),
        projects: RefCell::default(),
        servers: RefCell::default(),
        commands: Commands::default(),
        permitted: RefCell::default(),
        program: Uuid::now_v7(),
    };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut pending = FuturesUnordered::new();
    loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(Some(line)) => pending.push(editor.serve(editor.take(&line))),
                Ok(None) => return Ok(()),
                Err(source) => return Err(CliError::Local { path: "standard input".into(), source }),
            },
            Some(()) = pending.next() => {}
            Some(message) = messages.recv() => {
                out.line(&message)?;
                out.flush()?;
            }
            Some(notice) = noticed.recv() => out.notice(notice)?,
        }
    }
}

/// The requests to the editor that wait for their response, by their numbers.
type Asks = RefCell<HashMap<u64, oneshot::Sender<Result<Value, String>>>>;

/// Forgets a request when nobody waits for its response any more.
struct Waiting<'a> {
    asks: &'a Asks,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.asks.borrow_mut().remove(&self.number);
    }
}

/// Work that a message asks for.
enum Work {
    Nothing,
    Say(Value),
    Serve { id: Value, asked: EditorRequest, cancel: Rc<Notify> },
}

struct Editor {
    client: Client,
    workspace: Option<String>,
    agent: String,
    /// Opened with the first request that needs it: an editor greets before a hub has to be there.
    door: OnceCell<WorkspaceClient>,
    out: mpsc::Sender<Value>,
    /// Words for the person, which editors keep in their log.
    notices: mpsc::UnboundedSender<String>,
    /// The turns that are followed, by their session: a word to each cancels it.
    turns: RefCell<HashMap<String, Rc<Notify>>>,
    asks: Asks,
    asked: Cell<u64>,
    abilities: Cell<EditorCapabilities>,
    /// The folders of the sessions that the editor has opened.
    projects: RefCell<HashMap<String, String>>,
    /// Their tool servers.
    servers: RefCell<HashMap<String, Rc<EditorServers>>>,
    /// Their slash commands.
    commands: Commands,
    /// Their permissions: a rule of a session outlives the turn in which it was granted.
    permitted: RefCell<HashMap<String, Permitted>>,
    /// This process, to the hub: it alone gets a command to run.
    program: Uuid,
}

impl Editor {
    /// Takes in a message. Responses and cancellations take effect at once, and so in the order of the pipe.
    fn take(&self, line: &str) -> Work {
        let message: Value = match serde_json::from_str(&domain::exact_numbers::quoted(line)) {
            Ok(message) => message,
            Err(error) => {
                return Work::Say(acp::failure(&Value::Null, PARSE_ERROR, &format!("this is no JSON: {error}")));
            }
        };
        if let Some(abilities) = EditorCapabilities::of(&message) {
            self.abilities.set(abilities);
        }
        match acp::take(&message) {
            Reaction::Silent => Work::Nothing,
            Reaction::Answer(answer) => Work::Say(answer),
            Reaction::Response { id, result } => {
                if let Some(ask) = self.asks.borrow_mut().remove(&id) {
                    // One whose turn is over needs no answer.
                    let _ = ask.send(result);
                }
                Work::Nothing
            }
            Reaction::Cancel { session } => {
                if let Some(turn) = self.turns.borrow().get(&session) {
                    turn.notify_one();
                }
                Work::Nothing
            }
            Reaction::Ask { id, asked } => {
                let cancel = match &asked {
                    EditorRequest::Prompt { session, .. } => self.turn_of(session),
                    _ => Rc::default(),
                };
                Work::Serve { id, asked, cancel }
            }
        }
    }

    /// The word that cancels the next turn of a session that is followed; of two at once, the hub refuses the later one.
    fn turn_of(&self, session: &str) -> Rc<Notify> {
        let cancel = Rc::<Notify>::default();
        self.turns.borrow_mut().entry(session.to_owned()).or_insert_with(|| cancel.clone());
        cancel
    }

    fn forget(&self, session: &str, cancel: &Rc<Notify>) {
        let mut turns = self.turns.borrow_mut();
        if turns.get(session).is_some_and(|of| Rc::ptr_eq(of, cancel)) {
            turns.remove(session);
        }
    }

    async fn serve(&self, work: Work) {
        match work {
            Work::Nothing => {}
            Work::Say(message) => self.say(message).await,
            Work::Serve { id, asked, cancel } => {
                let told = match self.answer(&id, asked, &cancel).await {
                    Ok(None) => return,
                    Ok(Some(result)) => acp::success(&id, result),
                    Err(Failure((code, message, hint))) => acp::refused(&id, &code, &message, hint.as_deref()),
                };
                // The result of a session that is made names it, and no other result does.
                let made = told["result"]["sessionId"].as_str().map(ToOwned::to_owned);
                self.say(told).await;
                if let Some(session) = made {
                    self.tell_commands(&session).await;
                }
            }
        }
    }

    /// Tells the slash commands of a session, where the editor does not know them.
    async fn tell_commands(&self, session: &str) {
        let Ok(door) = self.door().await else { return };
        if let Some(update) = self.commands.news(door, session).await {
            self.say(acp::notification(session, &update)).await;
        }
    }

    async fn say(&self, message: Value) {
        // The receiver lives as long as this.
        let _ = self.out.send(message).await;
    }

    async fn door(&self) -> Result<&WorkspaceClient, Failure> {
        let open = || WorkspaceClient::open_or_new(self.client.clone(), self.workspace.as_deref());
        Ok(self.door.get_or_try_init(open).await?)
    }

    /// The result of a request; none where it was told already.
    async fn answer(&self, id: &Value, asked: EditorRequest, cancel: &Rc<Notify>) -> Result<Option<Value>, Failure> {
        let door = self.door().await?;
        Ok(Some(match asked {
            EditorRequest::New { cwd, servers } => {
                let mut new = json!({ "agent": self.agent, "cwd": cwd });
                let mut tools = None;
                // A coding agent has tools of its own.
                if self.is_coding(door).await? {
                    servers.iter().for_each(|server| {
                        self.notice(format!("{}: a coding agent has tools of its own", server.name))
                    });
                } else {
                    let mut functions = self.abilities.get().functions(&cwd);
                    tools = self.connect(servers, &cwd)?;
                    if let Some(tools) = &tools {
                        let Offered { functions: more, missing } = tools.offered().await;
                        functions.as_array_mut().into_iter().for_each(|all| all.extend_from_slice(&more));
                        missing.into_iter().for_each(|why| self.notice(why));
                    }
                    new["functions"] = functions;
                }
                let made = door.post("/v1/threads", &new).await?;
                let session = text(&made, "threadId");
                self.projects.borrow_mut().insert(session.to_owned(), cwd);
                self.servers.borrow_mut().extend(tools.map(|tools| (session.to_owned(), tools)));
                acp::opened(Some(session), &door.get(&format!("/v1/threads/{session}/config-options")).await?)
            }
            EditorRequest::Load { session, cwd, servers } => {
                let tools = self.connect(servers, cwd.as_deref().unwrap_or("/"))?;
                self.servers.borrow_mut().extend(tools.map(|tools| (session.clone(), tools)));
                self.projects.borrow_mut().extend(cwd.map(|cwd| (session.clone(), cwd)));
                self.load(door, id, &session).await?;
                return Ok(None);
            }
            EditorRequest::List { cwd, cursor } => {
                let query = [("limit", PAGE), ("cursor", cursor.as_deref().unwrap_or_default())];
                let query = if cursor.is_some() { &query[..] } else { &query[..1] };
                acp::listed(&door.get(&with_query("/v1/threads", query)).await?, cwd.as_deref())
            }
            EditorRequest::Prompt { session, input, links, files } => {
                let input = self.with_files(&session, input, links).await;
                let ended = self.prompt(door, &session, (&input, &files), cancel).await;
                self.forget(&session, cancel);
                self.tell_commands(&session).await;
                acp::prompted(ended?)
            }
            EditorRequest::SetMode { session, mode } => {
                self.choose(door, &session, "mode", &mode).await?;
                json!({})
            }
            EditorRequest::SetOption { session, option, value } => {
                let chosen = self.choose(door, &session, &option, &value).await?;
                json!({ "configOptions": chosen.get("configOptions") })
            }
        }))
    }

    /// The words of a prompt with the files that they link to, as the editor has them. One that it does not give in time stays a link.
    async fn with_files(&self, session: &str, mut input: String, links: Vec<String>) -> String {
        for path in links.into_iter().filter(|_| self.abilities.get().reads) {
            let read = acp::Call::Read { path: path.clone(), line: None, limit: None };
            if let Ok(Ok(result)) = timeout(FILE, self.ask_editor(session, read.request())).await {
                input = acp::with_file(input, &path, text(&result, "content"));
            }
        }
        input
    }

    /// The tool servers of a session; none where the editor has none.
    fn connect(&self, declared: Vec<ToolServer>, folder: &str) -> Result<Option<Rc<EditorServers>>, Failure> {
        if declared.is_empty() {
            return Ok(None);
        }
        match EditorServers::new(declared, folder) {
            Ok(servers) => Ok(Some(Rc::new(servers))),
            Err(why) => Err(Failure(("INVALID_ARGUMENT".into(), why, None))),
        }
    }

    fn notice(&self, words: String) {
        // The receiver lives as long as this.
        let _ = self.notices.send(words);
    }

    fn next_number(&self) -> u64 {
        self.asked.replace(self.asked.get() + 1)
    }

    /// The editor's response to a request about a session.
    async fn ask_editor(&self, session: &str, request: (&str, Value)) -> Result<Value, String> {
        let (number, (answer, answered)) = (self.next_number(), oneshot::channel());
        self.asks.borrow_mut().insert(number, answer);
        let _waiting = Waiting { asks: &self.asks, number };
        self.say(acp::of_editor(number, session, request)).await;
        answered.await.unwrap_or_else(|_| Err("the editor is gone".to_owned()))
    }

    /// Whether the agent of new sessions is a coding agent of the hub.
    async fn is_coding(&self, door: &WorkspaceClient) -> Result<bool, Failure> {
        let agents = door.get("/v1/agents").await?;
        let all = agents["agents"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(all.iter().any(|agent| agent["id"] == self.agent.as_str() && agent["kind"] == "coding"))
    }

    /// Has the editor, or its tool server, carry a call out, and answers it. The hub refuses a call that was answered, or that another program has taken: then nothing is to be done.
    async fn carry_out(&self, door: &WorkspaceClient, session: &str, (data, by): (Value, Option<String>)) {
        let project = self.projects.borrow().get(session).cloned().unwrap_or_default();
        let function = text(&data, "function");
        let servers = self.servers.borrow().get(session).filter(|_| servers::is_tool(function)).cloned();
        let call = acp::Call::read(&data, &project);
        let is_repeatable = call.as_ref().is_ok_and(acp::Call::is_repeatable);
        // A session that is loaded again has its calls that do no harm carried out again; any other is taken by one process.
        let program = if is_repeatable { session.to_owned() } else { self.program.to_string() };
        let id = text(&data, "toolCallId");
        let path = ["workspaces", &door.workspace, "chats", session, "calls", id];
        if door.client.post(&[&path[..], &["take"]].concat(), &json!({ "program": program })).await.is_err() {
            return;
        }
        let acts = servers.is_some() || call.as_ref().is_ok_and(|call| !matches!(call, acp::Call::Read { .. }));
        let may = call_permissions::here(acts, (&door.client, &door.workspace), by).await;
        let served = match servers.filter(|_| may.is_ok()) {
            Some(servers) => servers.call(function, &data["rawInput"]).await,
            None => None,
        };
        let (output, success) = match (served, may.and(call)) {
            (Some(served), _) => served,
            (None, Ok(call)) => self.performed(session, id, &call).await.unwrap_or_else(|why| (why, false)),
            (None, Err(why)) => (why, false),
        };
        let _ = door.client.post(&path, &json!({ "output": output, "is_error": !success })).await;
    }

    /// The words for the agent about a call that was carried out, and whether it succeeded.
    async fn performed(&self, session: &str, id: &str, call: &acp::Call) -> Result<(String, bool), String> {
        let result = self.ask_editor(session, call.request()).await?;
        match call {
            acp::Call::Read { .. } => return Ok((text(&result, "content").to_owned(), true)),
            acp::Call::Write { .. } => return Ok(("written".to_owned(), true)),
            acp::Call::Run { .. } => {}
        }
        let of_terminal = json!({ "terminalId": result["terminalId"] });
        let _terminal = EditorTerminal { editor: self, session, of_terminal: &of_terminal };
        let shown = json!([{ "type": "terminal", "terminalId": result["terminalId"] }]);
        let update =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress", "content": shown });
        self.say(acp::notification(session, &update)).await;
        let _exit = self.ask_editor(session, ("terminal/wait_for_exit", of_terminal.clone())).await?;
        Ok(acp::ended(&self.ask_editor(session, ("terminal/output", of_terminal.clone())).await?))
    }

    async fn prompt(
        &self,
        door: &WorkspaceClient,
        session: &str,
        (input, files): (&str, &[IncomingFile]),
        cancel: &Notify,
    ) -> Result<&'static str, Failure> {
        let path = format!("/v1/threads/{session}/turns");
        let begun = match files {
            [] => door.post(&path, &json!({ "input": input })).await?,
            files => door.post_form(&path, hub::form(input, files)).await?,
        };
        self.follow(door, session, text(&begun, "turnId"), cancel).await
    }

    async fn choose(&self, door: &WorkspaceClient, session: &str, option: &str, value: &str) -> Result<Value, Failure> {
        let choice = json!({ "configId": option, "value": value });
        Ok(door.post(&format!("/v1/threads/{session}/config-options"), &choice).await?)
    }

    /// Tells the conversation so far, and goes on with the turn that runs.
    async fn load(&self, door: &WorkspaceClient, id: &Value, session: &str) -> Result<(), Failure> {
        let history = door.get(&format!("/v1/threads/{session}/history?includeEvents=true")).await?;
        let (updates, running) = acp::replay(&history);
        for update in updates {
            self.say(acp::notification(session, &update)).await;
        }
        let options = door.get(&format!("/v1/threads/{session}/config-options")).await?;
        self.say(acp::success(id, acp::opened(None, &options))).await;
        let Some(turn) = running else {
            self.tell_commands(session).await;
            return Ok(());
        };
        let cancel = self.turn_of(session);
        let ended = self.follow(door, session, &turn, &cancel).await;
        self.forget(session, &cancel);
        if let Err(Failure((_, message, _))) = ended {
            let content = json!({ "type": "text", "text": format!("\n\n{message}") });
            let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
            self.say(acp::notification(session, &update)).await;
        }
        self.tell_commands(session).await;
        Ok(())
    }

    /// Tells of a turn until it ends: the reason of its end.
    async fn follow(
        &self,
        door: &WorkspaceClient,
        session: &str,
        turn: &str,
        cancel: &Notify,
    ) -> Result<&'static str, Failure> {
        let mut events = door.watch(&format!("/v1/turns/{turn}/events")).start();
        let (mut updates, mut asked) = (Updates::default(), FuturesUnordered::new());
        loop {
            tokio::select! {
                event = events.next_event() => {
                    let Some(event) = event? else {
                        return Err(Failure(("INTERNAL".into(), "the hub tells no more of the turn".into(), None)));
                    };
                    self.permitted.borrow_mut().entry(session.to_owned()).or_default().note(&event.name, &event.data);
                    match updates.take_in(&event.name, &event.data) {
                        None => {}
                        Some(EditorUpdate::Update(update)) => self.say(acp::notification(session, &update)).await,
                        Some(EditorUpdate::Wants(wanted)) => asked.push(self.decide(door, session, wanted).boxed_local()),
                        Some(EditorUpdate::Calls(call)) => {
                            let function = format!("{CLIENT_PREFIX}{}", text(&call, "function"));
                            let take = |of: &mut Permitted| of.take(text(&call, "toolCallId"), &function);
                            let by = self.permitted.borrow_mut().get_mut(session).and_then(take);
                            asked.push(self.carry_out(door, session, (call, by)).boxed_local());
                        }
                        Some(EditorUpdate::Ended(Ok(reason))) => return Ok(reason),
                        Some(EditorUpdate::Ended(Err((code, message)))) => return Err(Failure((code, message, None))),
                    }
                }
                Some(()) = asked.next() => {}
                () = cancel.notified() => {
                    // A refusal says that the turn has ended; the stream tells how.
                    let _ = door.post(&format!("/v1/turns/{turn}/cancel"), &json!({})).await;
                }
            }
        }
    }

    /// Has the editor's person decide, and hands the decision on. Where somebody else was faster, the hub refuses it, and nothing is to be done.
    async fn decide(&self, door: &WorkspaceClient, session: &str, wanted: PersonAsked) {
        let (PersonAsked::Permission { params, .. } | PersonAsked::Answer { params, .. }) = &wanted;
        // An editor that fails has not decided: others may, or the time is up.
        let Ok(result) = self.ask_editor(session, ("session/request_permission", params.clone())).await else { return };
        let option = result.pointer("/outcome/optionId").and_then(Value::as_str);
        let _ = match wanted {
            PersonAsked::Permission { id, .. } => {
                let decision =
                    option.map_or_else(|| json!({ "outcome": "cancelled" }), |option| json!({ "optionId": option }));
                door.post(&format!("/v1/permissions/{id}"), &decision).await
            }
            PersonAsked::Answer { id, name, answers, .. } => {
                let chosen = option.and_then(|option| answers.get(option.parse::<usize>().ok()?));
                let Some(chosen) = chosen else { return };
                let path = ["workspaces", &door.workspace, "chats", session, "answers", &id];
                let answers: serde_json::Map<String, Value> = [(name, chosen.clone())].into_iter().collect();
                door.client.post(&path, &json!({ "answers": answers })).await
            }
        };
    }
}
