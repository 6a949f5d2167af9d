//! Sign-ins at MCP servers, through the API of a hub (spec 004 §11).

use crate::{
    support::{LOG, PATIENCE, Result, start},
    tool_servers::installed,
};
use serde_json::{Value, json};
use std::{path::PathBuf, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

const SCRIPT: &str = "rules:\n- when: {user: '^who'}\n  steps:\n  - {calls: [{tool: mcp__guarded__whoami, args: {}}]}\n  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}\n";

/// A server that its own issuer protects. It ends with the child.
async fn guarded() -> Result<(String, Child)> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/mcp/tests/oauth/issuer.mjs");
    let mut child = Command::new(installed().join("node_modules/node/bin/node"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let origin = timeout(PATIENCE, lines.next_line()).await??.ok_or("it says no address")?;
    Ok((origin, child))
}

/// Follows a sign-in as the browser of a person who agrees: from the issuer back to the hub.
async fn browse(url: &str) -> Result<String> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    Ok(http.get(url).send().await?.text().await?)
}

#[tokio::test]
async fn an_agent_works_under_an_account_after_an_admin_has_signed_in() -> Result {
    let data = tempfile::tempdir()?;
    std::fs::write(data.path().join(LOG), "")?;
    let (origin, _server) = guarded().await?;
    let script = data.path().join("who.yaml");
    std::fs::write(&script, SCRIPT)?;
    let (url, script) = (format!("{origin}/mcp"), script.display().to_string());
    let settings = [
        ("BUILDSCALE__AI__SCRIPT", script.as_str()),
        ("BUILDSCALE__MCP__GUARDED__URL", url.as_str()),
        ("BUILDSCALE__MCP__GUARDED__ALLOW_PRIVATE", "true"),
    ];
    let mut hub = start(data.path(), &settings).await?;
    let client = hub.client();
    let place = client.place().await?;
    // Its issuer may take long to answer on a busy machine.
    let server_is = async |client: &crate::support::Client, state: &'static str| -> Result<Value> {
        let is_so = |listed: &Value| listed["servers"][0]["state"] == state;
        Ok(client.until(&format!("{place}/mcp/servers"), is_so).await?["servers"][0].clone())
    };
    let before = server_is(&client, "needs_sign_in").await?;
    assert_eq!(before["signed_in"], false, "{before}");
    assert!(before["reason"].as_str().is_some_and(|why| why.contains("buildscale mcp login guarded")), "{before}");
    let asked = client.post(&format!("{place}/mcp/guarded/authorize"), json!({})).await?;
    let said = browse(asked["authorize_url"].as_str().ok_or("no address")?).await?;
    assert_eq!(said, "Signed in at the MCP server guarded. You can close this page.\n");
    let after = server_is(&client, "connected").await?;
    assert_eq!((&after["signed_in"], &after["tools"]), (&json!(true), &json!(1)), "{after}");

    let chat = client.chat(&place, "who am I?").await?;
    let wanted = client.watch(&chat).until_event("permission_required").await?;
    let permission = wanted.data["permission_id"].as_str().ok_or("no permission_id")?;
    client.post(&format!("{chat}/permissions/{permission}"), json!({ "outcome": "approved" })).await?;
    let done = client.watch(&chat).until_event("done").await?;
    assert!(done.data["message"].as_str().is_some_and(|said| said.contains("you are signed in")), "{:?}", done.data);
    // The account outlives the hub, and its tokens are in nothing that is said.
    hub.kill().await?;
    hub.restart().await?;
    let client = hub.client();
    server_is(&client, "connected").await?;
    let log = std::fs::read_to_string(data.path().join(LOG))?;
    for secret in ["access-", "refresh-", "code-"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    // The answer of the issuer is good once, and an unknown server is none.
    let (status, _) = client.call(reqwest::Method::GET, "/api/v1/mcp/callback?state=x&code=y", Value::Null).await?;
    assert_eq!(status, 404);
    let absent = format!("{place}/mcp/absent/authorize");
    assert_eq!(client.call(reqwest::Method::POST, &absent, json!({})).await?.0, 404);
    // Signing out forgets the account.
    let place_of_account = format!("{place}/mcp/guarded/authorize");
    assert_eq!(client.call(reqwest::Method::DELETE, &place_of_account, Value::Null).await?.0, 204);
    server_is(&client, "needs_sign_in").await?;
    Ok(())
}

#[tokio::test]
async fn a_person_signs_in_with_the_command_line() -> Result {
    let data = tempfile::tempdir()?;
    let (origin, _server) = guarded().await?;
    let url = format!("{origin}/mcp");
    let settings =
        [("BUILDSCALE__MCP__GUARDED__URL", url.as_str()), ("BUILDSCALE__MCP__GUARDED__ALLOW_PRIVATE", "true")];
    let hub = start(data.path(), &settings).await?;
    let client = hub.client();
    client.workspace().await?;
    let address = client.address("/");
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_buildscale"));
        command.args(words).args(["--url", address.trim_end_matches('/')]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    };
    let mut login = command(&["mcp", "login", "guarded"]).spawn()?;
    let mut lines = BufReader::new(login.stdout.take().ok_or("no output")?).lines();
    let authorize_url = timeout(PATIENCE, lines.next_line()).await??.ok_or("it shows no address")?;
    browse(&authorize_url).await?;
    assert!(timeout(PATIENCE, login.wait()).await??.success());
    let listed = loop {
        let listed = timeout(PATIENCE, command(&["mcp", "servers"]).output()).await??;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        if !listed.contains("connecting") {
            break listed;
        }
    };
    assert!(listed.contains("guarded") && listed.contains("connected") && listed.contains("yes"), "{listed}");
    let logout = timeout(PATIENCE, command(&["mcp", "logout", "guarded"]).output()).await??;
    assert!(logout.status.success(), "{logout:?}");
    Ok(())
}
