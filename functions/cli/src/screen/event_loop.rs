//! The edge of the screen: the terminal, signals, and the tasks that speak to the hub. All of them send inputs to the machine.

use super::{
    hub::Hub,
    keys::Keys,
    machine::{Action, Input, Screen},
    terminal::{self, Ansi, TakenTerminal},
};
use crate::{
    args::{ChatArgs, LeadingOptions, TrailingOptions},
    chat::setup,
    client::Client,
    failure::{CliError, Exit},
    history::History,
    local, locate,
    output::{Output, Style},
    value::{list, text},
};
use clap::Parser;
use ratatui::Terminal;
use rustix::{
    io::Errno,
    process::{Signal as Number, getpid, getsid, kill_current_process_group},
};
use serde_json::Value;
use std::{io, thread, time::Duration};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::sleep,
};

/// How long an escape waits for the rest of a sequence: much longer than a terminal takes, and shorter than a person notices.
const ESCAPE: Duration = Duration::from_millis(30);
/// How often the size is read again after a signal that it has changed: Linux signals a change of a pseudoterminal before the terminal has
/// the new size (`pty_resize`).
const RESIZE_LOOKS: usize = 10;
/// Inputs that are taken before the screen is drawn again.
const AT_ONCE: usize = 1_000;
/// Inputs that wait.
const WAITING: usize = 256;

/// A command line without words: all else comes from the environment.
#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    chat: ChatArgs,
}

/// Shows chats until the person leaves.
pub(crate) async fn run(leading: LeadingOptions, out: &mut Output) -> Result<Exit, CliError> {
    let Alone { chat: mut args } = Alone::parse_from(["buildscale"]);
    args.connection.apply_leading(&leading, TrailingOptions::default()).map_err(CliError::Usage)?;
    args.workspace = leading.workspace.or(args.workspace);
    let client = Client::new(&args.connection)?;
    local::hub(&client, out).await?;
    let workspace = locate::workspace_or_new(&client, args.workspace.as_deref()).await?;
    let view = client.get(&["workspaces", &workspace], &[]).await?;
    let models = client.get(&["models"], &[]).await?;
    let is_default = |model: &&Value| model.get("default") == Some(&Value::Bool(true));
    let model = list(&models, "models").iter().find(is_default).map(|model| text(model, "id")).unwrap_or_default();
    out.flush()?;
    let size = terminal::size();
    let colour = out.style() == Style::Colour;
    let mut screen = Screen::new((size.width, size.height), colour, text(&view, "name"), model, setup(&args));
    let history = History::kept("chat_history");
    screen.history = history.lines().to_vec();
    if let Some(note) = models.get("note").and_then(Value::as_str) {
        screen.note(note);
    }
    let mut edge = Edge::new(client, workspace, history)?;
    let exit = {
        let _taken = TakenTerminal::take()?;
        edge.show(&mut screen).await?
    };
    if let Some(chat) = screen.pane().and_then(|pane| pane.chat.clone()) {
        let state =
            if screen.pane().is_some_and(super::chat_pane::ChatPane::is_busy) { "the turn goes on; " } else { "" };
        out.notice(format_args!("{state}go on with: buildscale, or buildscale chat --chat {chat}"))?;
    }
    Ok(exit)
}

struct Edge {
    hub: Hub,
    inputs: mpsc::Receiver<Input>,
    history: History,
    signals: Signals,
}

struct Signals {
    resized: Signal,
    ended: Signal,
    hung_up: Signal,
    interrupted: Signal,
    suspended: Signal,
    resumed: Signal,
}

/// The next input or signal.
enum Next {
    Bytes(Option<Vec<u8>>),
    Settle,
    Input(Input),
    Resized,
    LookAgain,
    Suspend,
    Resumed,
    End,
}

impl Edge {
    fn new(client: Client, workspace: String, history: History) -> Result<Self, CliError> {
        let (sender, inputs) = mpsc::channel(WAITING);
        let signals = Signals {
            resized: signal(SignalKind::window_change())?,
            ended: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            interrupted: signal(SignalKind::interrupt())?,
            suspended: signal(SignalKind::from_raw(Number::TSTP.as_raw()))?,
            resumed: signal(SignalKind::from_raw(Number::CONT.as_raw()))?,
        };
        Ok(Self { hub: Hub::new(client, workspace, sender), inputs, history, signals })
    }

    async fn show(&mut self, screen: &mut Screen) -> Result<Exit, CliError> {
        let mut terminal = Terminal::new(Ansi::default())?;
        let (mut bytes, mut keys, mut looks) = (bytes(), Keys::default(), 0);
        loop {
            terminal.draw(|frame| super::draw::draw(screen, frame))?;
            let inputs = match self.next(&mut bytes, keys.is_open(), looks > 0).await {
                Next::Bytes(None) | Next::End => return Ok(Exit::Interrupted),
                Next::Bytes(Some(bytes)) => keys.take(&bytes).into_iter().map(Input::Key).collect(),
                Next::Settle => keys.settle().into_iter().map(Input::Key).collect(),
                Next::Resized => {
                    looks = RESIZE_LOOKS;
                    vec![resized()]
                }
                Next::LookAgain => {
                    looks -= 1;
                    vec![resized()]
                }
                Next::Suspend => {
                    self.suspend(&mut terminal).await?;
                    vec![resized()]
                }
                Next::Resumed => {
                    // Somebody else stopped the process, and the shell has set its own modes.
                    terminal::restore();
                    terminal::enter()?;
                    terminal.clear()?;
                    vec![resized()]
                }
                Next::Input(input) => {
                    let mut inputs = vec![input];
                    while let (true, Ok(input)) = (inputs.len() < AT_ONCE, self.inputs.try_recv()) {
                        inputs.push(input);
                    }
                    inputs
                }
            };
            for input in inputs {
                for action in screen.on(input) {
                    match action {
                        Action::Leave => return Ok(Exit::Done),
                        Action::Redraw => terminal.clear()?,
                        Action::Suspend => {
                            self.suspend(&mut terminal).await?;
                            screen.on(resized());
                        }
                        // A file has one line per entry.
                        Action::Remember(line) if !line.contains('\n') => self.history.add(&line),
                        Action::Remember(_) => {}
                        action => self.hub.perform(action),
                    }
                }
            }
        }
    }

    async fn next(&mut self, bytes: &mut mpsc::Receiver<Vec<u8>>, open: bool, looks: bool) -> Next {
        let signals = &mut self.signals;
        tokio::select! {
            bytes = bytes.recv() => Next::Bytes(bytes),
            () = sleep(ESCAPE), if open => Next::Settle,
            Some(input) = self.inputs.recv() => Next::Input(input),
            _ = signals.resized.recv() => Next::Resized,
            () = sleep(ESCAPE), if looks => Next::LookAgain,
            _ = signals.suspended.recv() => Next::Suspend,
            _ = signals.resumed.recv() => Next::Resumed,
            _ = signals.ended.recv() => Next::End,
            _ = signals.hung_up.recv() => Next::End,
            _ = signals.interrupted.recv() => Next::End,
        }
    }

    /// Gives the terminal to the shell, until that continues this program.
    async fn suspend(&mut self, terminal: &mut Terminal<Ansi>) -> Result<(), CliError> {
        // The leader of a session has no shell that could continue it.
        if getsid(None).is_ok_and(|leader| leader == getpid()) {
            return Ok(());
        }
        terminal::restore();
        kill_current_process_group(Number::STOP).map_err(io::Error::from)?;
        self.signals.resumed.recv().await;
        terminal::enter()?;
        Ok(terminal.clear()?)
    }
}

fn resized() -> Input {
    let size = terminal::size();
    Input::Size(size.width, size.height)
}

/// The bytes that the terminal sends. A read of it cannot be given up, so a thread does it.
fn bytes() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    // A thread that cannot be started drops the sender, and the input has ended.
    let _ = thread::Builder::new().name("keys".into()).spawn(move || {
        let mut bytes = [0; 4096];
        loop {
            match rustix::io::read(io::stdin(), &mut bytes) {
                Ok(read @ 1..) => {
                    if sender.blocking_send(bytes.get(..read).unwrap_or_default().to_vec()).is_err() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    });
    receiver
}
