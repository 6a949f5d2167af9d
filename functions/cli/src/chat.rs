//! `buildscale chat`: the beginning of a conversation. The conversation itself is in [`session`].

mod activity;
pub(crate) mod changes;
pub(crate) mod commands;
pub(crate) mod session;

use crate::{
    args::{ChatArgs, labels_body},
    client::Client,
    failure::{CliError, Exit},
    folder::{Calls, Folder},
    input::Lines,
    local, locate,
    output::{Output, WorkOutput},
    value::text,
};
use serde_json::{Map, Value, json};
use session::{Session, SessionMode};
use std::{
    io::{self, IsTerminal, Read},
    path::Path,
};

/// Talks until the person leaves, or in one-shot mode until the turn has ended.
pub(crate) async fn run(args: ChatArgs, out: &mut Output) -> Result<Exit, CliError> {
    let client = Client::new(&args.connection)?;
    let folder = args.folder.as_deref().map(opened).transpose()?;
    let typed = io::stdin().is_terminal();
    if args.once && args.goal.is_empty() && typed {
        return Err(CliError::Usage(
            "--once needs a message: type it behind the options, or send it to standard input".into(),
        ));
    }
    if !args.goal.is_empty() && args.goal.iter().all(|word| word.trim().is_empty()) {
        // Perhaps an empty variable of a script, which would take silence and exit code 0 for an answer.
        return Err(CliError::Usage("the message is empty".into()));
    }
    let from_input = args.goal == ["-"] || (args.once && args.goal.is_empty());
    let terminal = typed && !from_input;
    let goal = if from_input { Some(all_input()?) } else { Some(args.goal.join(" ")).filter(|goal| !goal.is_empty()) };
    let once = goal.is_some() && (args.once || !terminal);
    let manner = match (once, terminal) {
        (true, _) => SessionMode::Once,
        (false, true) => SessionMode::Terminal,
        (false, false) => SessionMode::Script,
    };

    match (args.quiet, args.events || out.width().is_some() || out.is_json()) {
        (true, _) => out.tell_to(WorkOutput::Nowhere),
        (false, true) => {}
        (false, false) => out.tell_to(WorkOutput::Beside),
    }
    local::hub(&client, out).await?;
    let wanted = args.workspace.as_deref();
    let (workspace, chat) = match &args.chat {
        Some(chat) => locate::chat(&client, wanted, chat).await.map(|(workspace, chat)| (workspace, Some(chat)))?,
        None => (locate::workspace_or_new(&client, wanted).await?, None),
    };
    let chat = match chat {
        Some(chat) => Some(chat),
        None if args.resume => Some(last_active(&client, &workspace).await?),
        None => None,
    };
    let files = attached(&client, &workspace, &args.files).await?;
    let lines = if from_input { Lines::none() } else { Lines::default() };
    let mut setup = setup(&args);
    if let Some(path) = &args.plan {
        let plan = locate::file(&client, &workspace, path).await?;
        setup.insert("plan_id".into(), json!(text(&plan, "file_id")));
    }
    if let Some(v) = args.plan_version {
        setup.insert("plan_v".into(), json!(v));
    }
    // A refusal of what is named stands alone.
    let configured = model_notice(&client, args.model.is_none(), out).await?;
    if let Some(folder) = &folder {
        setup.insert("functions".into(), folder.functions());
        out.notice(format_args!("working on {}: changes and commands are asked about", folder.root().display()))?;
    }
    let first = FirstMessage { setup, files, configured };
    let mut session = Session::new(client, workspace, manner, lines, first)?;
    session.calls = folder.map(Calls::new);
    if let Some(chat) = chat {
        session.join(chat, out).await?;
    }
    session.talk(goal, out).await
}

/// The settings that go along with the first message.
pub(crate) struct FirstMessage {
    /// How a new chat is set up.
    setup: Map<String, Value>,
    /// Attached files, by id.
    files: Vec<Value>,
    /// Whether a model is configured.
    configured: bool,
}

/// How the arguments set a new chat up.
pub(crate) fn setup(args: &ChatArgs) -> Map<String, Value> {
    let mode = args.mode.map(|mode| mode.as_str().to_owned());
    let scenario = args.scenario.map(|scenario| scenario.as_str().to_owned());
    let fields = [("role", args.role.clone()), ("model", args.model.clone()), ("mode", mode), ("scenario", scenario)];
    let mut setup: Map<String, Value> =
        fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect();
    if !args.agents.is_empty() {
        setup.insert("agents".into(), json!(args.agents));
    }
    if !args.labels.is_empty() {
        setup.insert("labels".into(), labels_body(&args.labels));
    }
    setup
}

fn opened(path: &Path) -> Result<Folder, CliError> {
    Folder::open(path)
        .map_err(|error| CliError::Usage(format!("--folder: {} cannot be opened: {error}", path.display())))
}

fn all_input() -> Result<String, CliError> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let text = text.trim();
    if text.is_empty() { Err(CliError::Usage("standard input has no message".into())) } else { Ok(text.to_owned()) }
}

/// Says once, and plainly, when a demo script answers instead of a model.
async fn model_notice(client: &Client, is_default: bool, out: &mut Output) -> Result<bool, CliError> {
    let models = client.get(&["models"], &[]).await?;
    if let (true, Some(note)) = (is_default, models.get("note").and_then(Value::as_str)) {
        out.notice(note)?;
    }
    Ok(models.get("configured").and_then(Value::as_bool).unwrap_or(true))
}

async fn last_active(client: &Client, workspace: &str) -> Result<String, CliError> {
    let chats = client.list(&["workspaces", workspace, "chats"], "chats", &[], 1).await?;
    let last = chats.first().map(|chat| text(chat, "chat_id").to_owned());
    last.ok_or_else(|| CliError::NotFound("there is no chat to go on with yet".into()))
}

async fn attached(client: &Client, workspace: &str, paths: &[String]) -> Result<Vec<Value>, CliError> {
    let mut ids = Vec::new();
    for path in paths {
        let file = locate::file(client, workspace, path).await?;
        ids.push(json!(text(&file, "file_id")));
    }
    Ok(ids)
}

impl Session {
    /// Whether the status line may be shown: something runs, and the cursor is neither in a line that is edited nor behind a question.
    fn shows_status(&self, out: &Output) -> bool {
        let is_seen = out.is_live() && out.telling() != WorkOutput::Nowhere && !self.renderer.is_at_edge(out);
        is_seen && self.is_busy() && self.asks.is_empty() && !self.prompted && !self.lines.is_edited()
    }
}
