//! `sandbox`: the cost of a command that does nothing, in a namespace of its own and behind the inner wall alone, beside a bare spawn.

use crate::{Bench, Result, report::Figure, samples::Samples, server};
use ::sandbox::{Isolation, Local, Options};
use domain::{CallId, FilePath, WorkspaceId};
use futures::StreamExt;
use ports::{Exec, Execution, Reservation, Reserve, Sandboxes};
use std::{collections::BTreeMap, fs, path::Path, process::Command, time::Duration};
use tokio::time::Instant;
use uuid::Uuid;

const COMMANDS: usize = 200;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let home = bench.folder("sandbox")?;
    let (bare, begun, ended, inner) = server(async {
        let workspace = WorkspaceId::from(Uuid::now_v7());
        let namespaced = local(&home, workspace, ::sandbox::probe_namespaces()?)?;
        let confined = local(&home, workspace, Isolation::Container)?;
        let (mut bare, mut begun, mut ended, mut inner) = <(Samples, Samples, Samples, Samples)>::default();
        for _ in 0..COMMANDS {
            let at = Instant::now();
            Command::new("true").status()?;
            bare.add(at.elapsed());
            let took = run(&namespaced, workspace).await?;
            begun.add(took.0);
            ended.add(took.1);
            inner.add(run(&confined, workspace).await?.1);
        }
        Ok((bare, begun, ended, inner))
    })?;
    let figure = |name: &str, samples: &Samples, is: &str| {
        let figure = Figure::new(name, samples.median(), "ms").beside("a bare spawn", bare.median());
        figure.more("p99", samples.p99()).more("is", is)
    };
    let start = figure("sandbox.start", &begun, "until `true` runs in namespaces of its own");
    bench.report.add(start.at_most(15.0, "15 ms"))?;
    bench.report.add(figure("sandbox.whole", &ended, "until nothing is left of it"))?;
    bench.report.add(figure("sandbox.inner", &inner, "the same behind Landlock and seccomp alone"))
}

fn local(home: &Path, workspace: WorkspaceId, isolation: Isolation) -> Result<Local> {
    fs::create_dir_all(home.join(format!("files/{workspace}/latest")))?;
    let mut options = Options::new(home.join("scratch"));
    options.isolation = isolation;
    Ok(Local::with(home.join("files"), options))
}

/// Until a command runs, and until nothing is left of it.
async fn run(local: &Local, workspace: WorkspaceId) -> Result<(Duration, Duration)> {
    let sandbox = local.ready(workspace).await?.ok_or("there is no sandbox")?;
    let call = CallId::from(Uuid::now_v7());
    let Reservation::Granted(grant) = sandbox.reserve(Reserve { call, direct: true, wait: PATIENCE }).await? else {
        return Err("there is no place".into());
    };
    let command = Exec {
        call,
        grant,
        words: vec!["true".into()],
        folder: FilePath::root(),
        root: FilePath::root(),
        hidden: Vec::new(),
        env: BTreeMap::new(),
        stdin: None,
        timeout: PATIENCE,
        network: false,
        max_output: 1000,
        keep: Vec::new(),
    };
    let at = Instant::now();
    let Execution::Begun(mut events) = sandbox.exec(command).await? else { return Err("it did not begin".into()) };
    let begun = at.elapsed();
    while let Some(event) = events.next().await {
        event?;
    }
    Ok((begun, at.elapsed()))
}
