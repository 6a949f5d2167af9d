//! The requests of an agent to us: files and terminals. Each is answered in its turn, but for the wait for the end of a command, which may take long.

use crate::{
    agent_updates::AgentUpdates,
    connection::{FAILED, RequestFailure},
    files,
    host_environment::HostEnvironment,
    registry::KnownAgent,
    roots::Roots,
    terminal::Terminals,
};
use serde_json::Value;
use std::{io, path::Path, sync::Arc};
use tokio::{sync::Semaphore, task::spawn_blocking};

/// Method not found, as JSON-RPC numbers it.
const NO_METHOD: i64 = -32601;
/// How many requests may wait at once for the ends of commands: each is a task here.
const WAITS: usize = 256;

/// The things that one process of an agent may ask us for.
#[derive(Debug)]
pub(crate) struct Callbacks {
    host: HostEnvironment,
    terminals: Terminals,
    waits: Arc<Semaphore>,
}

impl Callbacks {
    pub fn new(agent: &KnownAgent, cwd: &Path, host: &HostEnvironment) -> Self {
        let (terminals, waits) = (Terminals::new(agent, cwd, host), Arc::new(Semaphore::new(WAITS)));
        Self { host: host.clone(), terminals, waits }
    }

    /// The environment of the process.
    pub fn host(&self) -> &HostEnvironment {
        &self.host
    }

    /// Answers a request, now or once a command has ended.
    pub async fn answer(
        &self,
        shared: &Arc<AgentUpdates>,
        id: Value,
        method: &str,
        params: Value,
    ) -> Result<(), RequestFailure> {
        let failed = |error: io::Error| (FAILED, error.to_string());
        let work: fn(&Roots, &Value) -> io::Result<Value> = match method {
            "fs/read_text_file" => files::read,
            "fs/write_text_file" => files::write,
            "terminal/wait_for_exit" => {
                let Ok(place) = self.waits.clone().try_acquire_owned() else {
                    let why = format!("{WAITS} requests wait for the ends of commands already");
                    return shared.connection.respond(&id, Err((FAILED, why))).await;
                };
                let (ended, shared) = (self.terminals.wait(&params), shared.clone());
                tokio::spawn(async move {
                    let ended = ended.await.map_err(failed);
                    // An agent that is gone waits no more.
                    let _ = shared.connection.respond(&id, ended).await;
                    drop(place);
                });
                return Ok(());
            }
            _ => {
                let answer = self.terminals.answer(method, &params);
                let answer = answer.map_or_else(
                    || Err((NO_METHOD, format!("{method} is not offered"))),
                    |answer| answer.map_err(failed),
                );
                return shared.connection.respond(&id, answer).await;
            }
        };
        let (roots, host) = (self.host.roots.clone(), &self.host);
        let path = params["path"].as_str().and_then(|path| host.copied(Path::new(path)));
        let done = spawn_blocking(move || work(&roots, &params)).await;
        let done = done.map_err(io::Error::other).flatten().map_err(failed);
        match path.filter(|_| method == "fs/write_text_file" && done.is_ok()) {
            Some(path) => shared.wrote(id, path).await,
            None => shared.connection.respond(&id, done).await,
        }
    }
}
