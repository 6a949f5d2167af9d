//! Clients of others, unmodified, at a hub (`scripts/clients` installs them): each program drives one client, and tells what it saw as JSON.

use crate::support::{PATIENCE, Result, start};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// The folder of the clients that `scripts/clients` installs.
fn installed() -> PathBuf {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).map(|it| it.join("buildscale"));
    let cache = std::env::var_os("BUILDSCALE_CACHE").map(PathBuf::from).or(cache).unwrap_or_default();
    let folder = cache.join("clients/installed").canonicalize();
    folder.unwrap_or_else(|_| panic!("scripts/clients installs the clients"))
}

/// What a program tells of a hub of its own.
async fn told(program: &str) -> Result<Value> {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    // A program finds the packages beside itself.
    let (programs, installed) = (tempfile::tempdir()?, installed());
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients"))? {
        let entry = entry?;
        std::fs::copy(entry.path(), programs.path().join(entry.file_name()))?;
    }
    std::os::unix::fs::symlink(installed.join("node_modules"), programs.path().join("node_modules"))?;
    let mut command = match program.strip_suffix(".py") {
        Some(_) => Command::new(installed.join("python/bin/python")),
        None => Command::new("node"),
    };
    command
        .arg(programs.path().join(program))
        .env("HUB", client.address("/").trim_end_matches('/'))
        .env("WORKSPACE", workspace);
    let output = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await??;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{program}: {text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_str(&text)?)
}

const POET: &str = "I have become a poet.";

#[tokio::test]
async fn openai_for_javascript_works_with_personas_as_models() -> Result {
    let told = told("openai.mjs").await?;
    for persona in ["assistant", "reviewer"] {
        assert!(told["models"].as_array().is_some_and(|all| all.contains(&json!(persona))), "{}", told["models"]);
    }
    assert_eq!(told["model"], "reviewer");
    assert_eq!(told["completion"], json!(["Said.", "stop", true]));
    let chunks = &told["chunks"];
    assert_eq!(
        (&chunks["reasoning"], &chunks["reason"], &chunks["usage"]),
        (&json!("I think about it."), &json!("stop"), &json!(true))
    );
    assert_eq!(chunks["text"], "I write the file.\n\nI look at it.\n\nI change it.\n\nThe file of chunks is done.");
    assert!(chunks["pieces"].as_u64() > Some(4));
    assert_eq!(told["handed"], json!(["tool_calls", "ask_user", "You said blue."]));
    assert_eq!(told["responses"], json!(["Said.", "Said.", true, "completed"]));
    assert_eq!((&told["sameChat"], &told["conversation"]), (&json!(true), &json!(true)));
    assert_eq!(
        told["stream"],
        json!({
            "text": "I write the file.I look at it.I change it.The file of events is done.", "tokens": true,
            "items": ["reasoning", "message", "write completed", "message", "read completed", "ls completed", "message", "edit completed", "message"],
        })
    );
    assert_eq!((&told["resumed"], &told["retrieved"]), (&json!(true), &json!(true)));
    assert_eq!(told["background"], json!(["queued", "Said."]));
    assert_eq!(told["cancelled"], "cancelled");
    assert_eq!(told["question"], json!(["colour", "You said red."]));
    assert_eq!(told["permission"], json!(["write", POET]));
    assert_eq!(
        told["refusals"],
        json!([
            ["BadRequestError", "INVALID_ARGUMENT", "tools", "invalid_request_error"],
            ["BadRequestError", "INVALID_ARGUMENT", "temperature", "invalid_request_error"],
            ["NotFoundError", "NOT_FOUND", "model", "invalid_request_error"],
            ["ConflictError", "CONFLICT", "previous_response_id", "invalid_request_error"],
        ])
    );
    Ok(())
}

#[tokio::test]
async fn openai_for_python_works_alike() -> Result {
    let told = told("openai_client.py").await?;
    assert_eq!(told["completion"], "Said.");
    assert_eq!(
        told["chunks"],
        "I write the file.\n\nI look at it.\n\nI change it.\n\nThe file of chunks of python is done."
    );
    let text = "I write the file.I look at it.I change it.The file of events of python is done.";
    assert_eq!(told["stream"], json!(["completed", text, "response.created", "response.completed"]));
    assert_eq!(
        (&told["retrieved"], &told["refusal"]),
        (&json!(true), &json!(["INVALID_ARGUMENT", "max_output_tokens"]))
    );
    Ok(())
}

#[tokio::test]
async fn a_chat_of_the_ai_sdk_shows_asks_and_comes_back() -> Result {
    let told = told("ai-sdk.mjs").await?;
    assert_eq!(
        told["whole"],
        json!({
            "status": "ready", "reasoning": ["I think about it."], "file": "/projects/whole/a.md", "usage": 1,
            "texts": ["I write the file.", "I look at it.", "I change it.", "The file of whole is done."],
            "tools": ["write output-available", "read output-available", "ls output-available", "edit output-available"],
        })
    );
    assert_eq!(told["again"], json!([4, ["Said."]]));
    assert_eq!(told["asks"], json!(["approval-requested", "write", "/system/agents/poet/persona.md"]));
    assert_eq!(told["approved"], json!([["May I?", POET], ["output-available"], 2]));
    assert_eq!(told["answered"], json!(["colour", ["One question.", "You said red."]]));
    let all = "one two three four five six seven eight nine ten";
    assert_eq!(told["back"], json!(["ready", [all], 2]));
    assert_eq!((&told["nothing"], &told["refused"]), (&json!(2), &json!("INVALID_ARGUMENT")));
    Ok(())
}

#[tokio::test]
async fn an_agent_of_ag_ui_runs_is_interrupted_and_resumes() -> Result {
    let told = told("ag-ui.mjs").await?;
    let whole = &told["whole"];
    for kind in [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "STEP_STARTED",
        "REASONING_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CONTENT",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_RESULT",
        "STATE_DELTA",
        "RUN_FINISHED",
    ] {
        assert!(whole["types"].as_array().is_some_and(|types| types.contains(&json!(kind))), "{kind}: {whole}");
    }
    assert_eq!((&whole["files"], &whole["end"]), (&json!(["/projects/state/a.md"]), &json!("success")));
    assert_eq!(
        whole["texts"],
        json!(["I write the file.", "I look at it.", "I change it.", "The file of state is done."])
    );
    assert_eq!((&told["tools"], &told["again"]), (&json!(4), &json!("Said.")));
    assert_eq!(told["interrupt"], json!(["permission", "write", ["approved"]]));
    assert_eq!(told["declined"], "Then I stay as I am.");
    assert_eq!(told["answered"], json!(["Which colour?", "You said blue."]));
    assert_eq!(told["refused"], json!([400, "tools"]));
    Ok(())
}

#[tokio::test]
async fn another_agent_has_its_tasks_done_over_a2a() -> Result {
    let told = told("a2a.mjs").await?;
    assert_eq!(told["card"], json!([true, false, "Bearer", true]));
    assert_eq!(told["inside"][0], true);
    assert_eq!(told["extended"], true);
    let text =
        |name: &str| format!("I write the file.\n\nI look at it.\n\nI change it.\n\nThe file of {name} is done.");
    assert_eq!(
        told["whole"],
        json!({ "state": "COMPLETED", "answer": text("whole"), "file": ["a.md", 200], "history": [1, 2, 2, 2, 2] })
    );
    assert_eq!(told["again"], json!(["Said.", true, false, "COMPLETED"]));
    assert_eq!(
        told["stream"],
        json!({ "first": "task", "last": "COMPLETED", "text": text("stream"), "calls": ["write", "read", "ls", "edit"] })
    );
    assert_eq!(told["asks"], json!(["INPUT_REQUIRED", "write"]));
    assert_eq!(told["declined"], json!(["COMPLETED", "May I?\n\nThen I stay as I am.", true]));
    assert_eq!((&told["watched"], &told["watchedToTheEnd"]), (&json!("task"), &json!("COMPLETED")));
    assert_eq!(told["answered"], json!(["INPUT_REQUIRED", "Which colour?", "One question.\n\nYou said blue."]));
    assert_eq!(told["canceled"], json!([10, "CANCELED"]));
    assert_eq!(told["polled"], json!([0, "Said."]));
    assert_eq!(
        told["refusals"],
        json!([
            ["PushNotificationNotSupportedError", -32_003],
            ["ContentTypeNotSupportedError", -32_005],
            ["UnsupportedOperationError", -32_004],
            ["RequestMalformedError", -32_602],
            ["RequestMalformedError", -32_602],
            ["TaskNotFoundError", -32_001],
            ["TaskNotCancelableError", -32_002],
            ["PushNotificationNotSupportedError", -32_003],
            ["UnsupportedOperationError", -32_004],
        ])
    );
    Ok(())
}

#[tokio::test]
async fn a_turn_goes_on_from_one_protocol_to_the_next() -> Result {
    let told = told("across.mjs").await?;
    assert_eq!(told["begun"], "approval-requested");
    assert_eq!(told["watched"], json!(["response.completed", "write"]));
    assert_eq!(told["answered"], POET);
    assert_eq!(told["read"], json!(["completed", POET, true]));
    Ok(())
}
