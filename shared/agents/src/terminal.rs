//! Terminals: commands that an agent has us run (`terminal/*` of ACP). Each has a process group of its own, runs in a folder of the allowed
//! roots, and is confined where this machine can, whether the agent is or not: it sees the system and the roots, and not the agent's own
//! settings. Its environment has no key, also none of the agent's.

use crate::{
    confinement::Confinement,
    host_environment::{ENVIRONMENT, HostEnvironment},
    registry::KnownAgent,
};
use parking_lot::Mutex;
use processes::ProcessGroup;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, VecDeque},
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    sync::watch,
    time::timeout,
};

/// How many terminals an agent may have at once.
const MOST: usize = 32;
/// How much of an output is kept at most, and where nothing is said, in bytes.
const OUTPUT: usize = 1024 * 1024;
/// How long the output of a command that has ended is read on: what it started may hold it open.
const DRAIN: Duration = Duration::from_millis(500);
/// The longest command with its arguments, in bytes.
const COMMAND: usize = 128 * 1024;

/// The terminals of one process of an agent. They end with it.
#[derive(Debug)]
pub(crate) struct Terminals {
    host: HostEnvironment,
    walls: Option<Confinement>,
    cwd: PathBuf,
    all: Mutex<HashMap<String, Arc<Terminal>>>,
}

#[derive(Debug)]
struct Terminal {
    group: ProcessGroup,
    output: Arc<Mutex<KeptOutput>>,
    ended: watch::Receiver<Option<Value>>,
}

/// The end of an output.
#[derive(Debug)]
struct KeptOutput {
    bytes: VecDeque<u8>,
    most: usize,
    is_cut: bool,
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.into())
}

impl Terminals {
    pub fn new(agent: &KnownAgent, cwd: &Path, host: &HostEnvironment) -> Self {
        let (walls, cwd, all) = (Confinement::of_terminal(agent, host), cwd.to_owned(), Mutex::default());
        Self { host: host.clone(), walls, cwd, all }
    }

    /// Answers a request of `terminal/*` other than `terminal/wait_for_exit`; none for a method that is not known.
    pub fn answer(&self, method: &str, params: &Value) -> Option<io::Result<Value>> {
        Some(match method {
            "terminal/create" => self.create(params),
            "terminal/output" => self.of(params).map(|terminal| terminal.output_json()),
            "terminal/kill" => self.of(params).map(|terminal| {
                terminal.group.kill();
                json!({})
            }),
            "terminal/release" => self.release(params),
            _ => return None,
        })
    }

    /// The wait for the end of a command. It holds no terminal: those of an agent that is gone end while it waits.
    pub fn wait(&self, params: &Value) -> impl Future<Output = io::Result<Value>> + Send + use<> {
        let ended = self.of(params).map(|terminal| terminal.ended.clone());
        async move {
            let mut ended = ended?;
            let ended = ended.wait_for(Option::is_some).await.map_err(|_| invalid("the terminal was released"))?;
            Ok(ended.clone().unwrap_or_default())
        }
    }

    fn of(&self, params: &Value) -> io::Result<Arc<Terminal>> {
        let id = params["terminalId"].as_str().unwrap_or_default();
        let all = self.all.lock();
        all.get(id).cloned().ok_or_else(|| invalid(format!("there is no terminal {id:?}")))
    }

    fn release(&self, params: &Value) -> io::Result<Value> {
        let terminal = self.of(params)?;
        let id = params["terminalId"].as_str().unwrap_or_default();
        self.all.lock().remove(id);
        terminal.group.kill();
        Ok(json!({}))
    }

    fn create(&self, params: &Value) -> io::Result<Value> {
        if self.all.lock().len() >= MOST {
            return Err(invalid(format!("there are {MOST} terminals already: release one")));
        }
        let most = params["outputByteLimit"].as_u64().map_or(OUTPUT, |most| usize::try_from(most).unwrap_or(OUTPUT));
        let output = KeptOutput { bytes: VecDeque::new(), most: most.min(OUTPUT), is_cut: false };
        let output = Arc::new(Mutex::new(output));
        let group = ProcessGroup::new()?;
        let mut command = self.command(params)?;
        group.take_in(&mut command);
        command.kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = match self.walls.clone() {
            Some(walls) => walls.spawn(command),
            None => command.spawn(),
        }?;
        let (tell, ended) = watch::channel(None);
        tokio::spawn(follow(child, output.clone(), tell));
        let id = uuid::Uuid::now_v7().simple().to_string();
        let terminal = Arc::new(Terminal { group, output, ended });
        self.all.lock().insert(id.clone(), terminal);
        Ok(json!({ "terminalId": id }))
    }

    fn command(&self, params: &Value) -> io::Result<Command> {
        let program = params["command"].as_str().filter(|program| !program.is_empty());
        let program = program.ok_or_else(|| invalid("a terminal needs a command"))?;
        let args: Vec<&str> = params["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if program.len() + args.iter().map(|arg| arg.len()).sum::<usize>() > COMMAND {
            return Err(invalid(format!("a command has at most {COMMAND} bytes")));
        }
        let cwd = match params["cwd"].as_str() {
            Some(cwd) => self.host.roots.folder(cwd).map_err(invalid)?,
            None => self.cwd.clone(),
        };
        // Some agents send a line for a shell, and no arguments.
        let is_line = args.is_empty() && program.contains(char::is_whitespace);
        let mut command = Command::new(if is_line { "/bin/sh" } else { program });
        if is_line {
            command.args(["-c", program])
        } else {
            command.args(args)
        };
        command.current_dir(cwd).env_clear();
        let ours = self.host.environment.iter().filter(|(name, _)| ENVIRONMENT.contains(&name.as_str()));
        command.envs(ours.map(|(name, value)| (name, value)));
        let theirs = params["env"].as_array().into_iter().flatten();
        let theirs = theirs.filter_map(|one| Some((one["name"].as_str()?, one["value"].as_str()?)));
        command.envs(theirs.filter(|(name, _)| !name.is_empty() && !name.contains(['=', '\0'])));
        Ok(command)
    }
}

impl Terminal {
    fn output_json(&self) -> Value {
        let output = self.output.lock();
        let bytes: Vec<u8> = output.bytes.iter().copied().collect();
        // A cut may be inside of a character.
        let from = if output.is_cut { bytes.iter().take_while(|byte| (**byte & 0xC0) == 0x80).count() } else { 0 };
        let text = String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned();
        let mut shown = json!({ "output": text, "truncated": output.is_cut });
        if let Some(ended) = &*self.ended.borrow() {
            shown["exitStatus"] = ended.clone();
        }
        shown
    }
}

async fn follow(mut child: Child, output: Arc<Mutex<KeptOutput>>, tell: watch::Sender<Option<Value>>) {
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let reading = async {
        tokio::join!(keep(out, &output), keep(errors, &output));
    };
    tokio::pin!(reading);
    let status = tokio::select! {
        status = child.wait() => {
            let _ = timeout(DRAIN, &mut reading).await;
            status
        }
        () = &mut reading => child.wait().await,
    };
    tell.send_replace(Some(exit(status.ok())));
}

async fn keep(from: Option<impl AsyncRead + Unpin>, output: &Mutex<KeptOutput>) {
    let Some(mut from) = from else { return };
    let mut piece = [0; 8192];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let mut kept = output.lock();
        kept.bytes.extend(&piece[..read]);
        let excess = kept.bytes.len().saturating_sub(kept.most);
        kept.is_cut |= excess > 0;
        kept.bytes.drain(..excess);
    }
}

/// An end as ACP has it.
fn exit(status: Option<ExitStatus>) -> Value {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal()).map(|signal| format!("signal {signal}"));
    json!({ "exitCode": code, "signal": signal })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::roots::Roots;
    use ports::KnownSecrets;

    fn terminals(folder: &Path) -> Terminals {
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into()), ("OPENAI_API_KEY".into(), "sk-1".into())];
        let (roots, known) = (Roots::new([folder.to_owned()]), KnownSecrets::default());
        let host = HostEnvironment { environment, roots, known, confine: Err("not here".into()), copy: None };
        Terminals::new(&KnownAgent::default(), folder, &host)
    }

    fn made(terminals: &Terminals, params: Value) -> Value {
        let made = terminals.answer("terminal/create", &params).unwrap().unwrap();
        json!({ "terminalId": made["terminalId"] })
    }

    #[tokio::test]
    async fn a_command_is_run_and_its_output_and_end_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let terminals = terminals(folder.path());
        let env = json!([{ "name": "WORD", "value": "hello" }]);
        let at =
            made(&terminals, json!({ "command": "echo \"$WORD$OPENAI_API_KEY\"; echo no >&2; exit 3", "env": env }));
        assert_eq!(terminals.wait(&at).await.unwrap(), json!({ "exitCode": 3, "signal": null }));
        let told = terminals.answer("terminal/output", &at).unwrap().unwrap();
        let mut lines: Vec<&str> = told["output"].as_str().unwrap().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["hello", "no"], "and no key of ours");
        assert_eq!((&told["exitStatus"]["exitCode"], &told["truncated"]), (&json!(3), &json!(false)));
        terminals.answer("terminal/release", &at).unwrap().unwrap();
        assert!(terminals.answer("terminal/output", &at).unwrap().is_err(), "it is released");
    }

    #[tokio::test]
    async fn a_terminal_is_killed_with_all_that_it_started_and_keeps_the_end_of_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let terminals = terminals(folder.path());
        let line = "printf '0123456789äb'; sleep 1000 & sleep 1000";
        let at = made(&terminals, json!({ "command": "sh", "args": ["-c", line], "outputByteLimit": 4 }));
        let output = || terminals.answer("terminal/output", &at).unwrap().unwrap();
        while output()["truncated"] == false {
            tokio::task::yield_now().await;
        }
        terminals.answer("terminal/kill", &at).unwrap().unwrap();
        assert_eq!(terminals.wait(&at).await.unwrap(), json!({ "exitCode": null, "signal": "signal 9" }));
        assert_eq!(output()["output"], "9äb");
    }

    #[tokio::test]
    async fn a_command_that_is_waited_for_ends_with_its_agent() {
        let folder = tempfile::tempdir().unwrap();
        let terminals = terminals(folder.path());
        let at = made(&terminals, json!({ "command": "sleep", "args": ["1000"] }));
        let waiting = tokio::spawn(terminals.wait(&at));
        drop(terminals);
        assert_eq!(waiting.await.unwrap().unwrap(), json!({ "exitCode": null, "signal": "signal 9" }));
    }

    #[tokio::test]
    async fn folders_outside_and_too_many_terminals_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let terminals = terminals(folder.path());
        let refused = |params: Value| terminals.answer("terminal/create", &params).unwrap().is_err();
        assert!(refused(json!({ "command": "ls", "cwd": "/" })));
        assert!(refused(json!({ "command": "" })));
        assert!(refused(json!({ "command": "/nowhere/program" })));
        for _ in 0..MOST {
            made(&terminals, json!({ "command": "sleep", "args": ["1000"] }));
        }
        assert!(refused(json!({ "command": "ls" })));
        assert!(terminals.answer("terminal/other", &json!({})).is_none());
    }
}
