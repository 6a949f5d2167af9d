//! An editor at `buildscale acp` (spec 004 §13): the client library of the Agent Client Protocol, in Node.js, as `scripts/agents` installs it.

use crate::{
    served::installed,
    stock_agents::stock::packages,
    support::{PATIENCE, Result, start},
};
use std::path::Path;
use tokio::{process::Command, time::timeout};

#[tokio::test]
async fn an_editors_library_completes_a_story_and_its_session_outlives_it() -> Result {
    let data = tempfile::tempdir()?;
    let app = data.path().join("app");
    std::fs::create_dir(&app)?;
    let cwd = std::fs::canonicalize(&app)?.display().to_string();
    let hub = start(&data.path().join("hub"), &[("BUILDSCALE__HUB__ALLOWED_ROOTS", &cwd)]).await?;
    let url = hub.client().address("/");
    let library = packages().join("@agentclientprotocol/sdk");
    assert!(
        library.exists(),
        "the library is not installed: run scripts/agents, which puts it at {}",
        library.display()
    );
    let servers = installed().join("node_modules");
    let [node, everything] = ["node/bin/node", "@modelcontextprotocol/server-everything/dist/index.js"]
        .map(|path| servers.join(path).display().to_string());
    let program = env!("CARGO_BIN_EXE_buildscale");
    let run = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editor.mjs"))
        .args([&library.display().to_string(), program, url.trim_end_matches('/'), &cwd, &node, &everything])
        .kill_on_drop(true)
        .output();
    let done = timeout(PATIENCE, run).await??;
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.trim().ends_with("ok"), "{said}");
    Ok(())
}
