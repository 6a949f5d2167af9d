//! `mcp`: a call of a tool of an MCP server through the registry of tools, beside the same call over the bare pipes of the same server.

use crate::{Bench, Result, files::Embedded, report::Figure, samples::Samples, server};
use ::mcp::{Children, ServerConfig, ServerDependencies, Servers};
use assembly::HostEgress;
use domain::{CallId, Principal};
use embedded::LocalSecrets;
use ports::{Clock, SystemClock};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::PathBuf, process::Stdio, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::Instant,
};
use tools::{Call, Registry};

const CALLS: usize = 300;

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let folder = bench.folder("mcp")?;
    let words = words()?;
    server(async {
        let embedded = Embedded::new(&folder).await?;
        let registry = Registry::builtin().with_servers(Arc::new(servers(&words)?));
        let mut bare = Bare::start(&words).await?;
        let (mut ours, mut theirs) = <(Samples, Samples)>::default();
        // The first round connects, and does not count.
        for round in 0..=CALLS {
            let began = Instant::now();
            call(&embedded, &registry).await?;
            let of_tool = began.elapsed();
            let began = Instant::now();
            bare.call(round as u64 + 10).await?;
            if round > 0 {
                ours.add(of_tool);
                theirs.add(began.elapsed());
            }
        }
        let (ours_at, theirs_at) = (ours.median(), theirs.median());
        bench.report.add(
            Figure::new("mcp.call".to_owned(), ours_at, "ms")
                .beside("bare", theirs_at)
                .at_most(theirs_at + 1.0, "the bare server + 1 ms")
                .more("p99", ours.p99())
                .more("bare_p99", theirs.p99())
                .more("is", "echo of server-everything over pipes; ours with the look at the workspace's declarations"),
        )?;
        embedded.close().await;
        Ok(())
    })
}

/// The program and its arguments, as `scripts/mcp-parts` installs it.
fn words() -> Result<Vec<String>> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).map(|it| it.join("buildscale"));
    let cache = std::env::var_os("BUILDSCALE_CACHE").map(PathBuf::from).or(cache).unwrap_or_default();
    let modules = cache.join("mcp/installed/node_modules");
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    if !script.exists() {
        return Err("scripts/mcp-parts installs the server".into());
    }
    Ok(vec![modules.join("node/bin/node").display().to_string(), script.display().to_string(), "stdio".into()])
}

fn servers(words: &[String]) -> Result<Servers> {
    let (command, args) = (words.first().cloned(), words.iter().skip(1).cloned().collect());
    let config = ServerConfig { command, args, confined: false, ..ServerConfig::default() };
    let environment: Vec<_> = std::env::vars().collect();
    let parts = ServerDependencies {
        confined: None,
        children: Some(Arc::new(Children::new(&environment))),
        egress: Arc::new(HostEgress { allow_private: false }),
        secrets: Arc::new(LocalSecrets::new(None)),
        host_secrets: Arc::new(LocalSecrets::new(None)),
        accounts: None,
    };
    Ok(Servers::new(&BTreeMap::from([("bench".to_owned(), config)]), parts)?)
}

async fn call(embedded: &Embedded, registry: &Registry) -> Result<()> {
    let call = Call::outside(embedded.workspace.clone(), CallId(SystemClock.id()), Principal::local());
    let outcome = registry.call(&call, "mcp__bench__echo", r#"{"message": "hello"}"#).await;
    if outcome.output.contains("hello") { Ok(()) } else { Err(outcome.output.into()) }
}

/// The server by itself: a line out, a line in.
struct Bare {
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Bare {
    async fn start(words: &[String]) -> Result<Self> {
        let (program, args) = words.split_first().ok_or("there is no program")?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
        let mut bare = Self { _child: child, input, output: BufReader::new(output).lines() };
        let info = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        bare.ask(1, "initialize", params).await?;
        bare.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(bare)
    }

    async fn say(&mut self, message: &Value) -> Result<()> {
        self.input.write_all(format!("{message}\n").as_bytes()).await?;
        Ok(self.input.flush().await?)
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Result<Value> {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        loop {
            let line = self.output.next_line().await?.ok_or("the server is gone")?;
            let message: Value = serde_json::from_str(&line)?;
            // Between the answers it may tell that its lists have changed.
            if message["id"] == id {
                return Ok(message);
            }
        }
    }

    async fn call(&mut self, id: u64) -> Result<()> {
        let answer = self.ask(id, "tools/call", json!({ "name": "echo", "arguments": { "message": "hello" } })).await?;
        if answer["result"].to_string().contains("hello") { Ok(()) } else { Err(answer.to_string().into()) }
    }
}
