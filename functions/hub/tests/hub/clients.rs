//! Clients of others, unmodified, at a hub (`scripts/clients hub` installs them): each program drives one client, and tells what it saw as JSON.

mod ai_sdk;

use crate::support::{PATIENCE, Result, start};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::process::Command;

fn installed() -> PathBuf {
    testkit::installed("clients", "clients hub")
}

/// The answer of a program about a hub of its own.
async fn told(program: &str) -> Result<Value> {
    let data = tempfile::tempdir()?;
    // Receivers of notifications are on this machine.
    let hub = start(data.path(), &[("BUILDSCALE__WEBHOOKS__ALLOW_PRIVATE", "true")]).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    // A program finds the packages beside itself.
    let (programs, installed) = (tempfile::tempdir()?, installed());
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients"))? {
        let entry = entry?;
        std::fs::copy(entry.path(), programs.path().join(entry.file_name()))?;
    }
    std::os::unix::fs::symlink(installed.join("node_modules"), programs.path().join("node_modules"))?;
    let (mut command, file) = match program.split_once('.') {
        Some((_, "py")) => (Command::new(installed.join("python/bin/python")), program.to_owned()),
        Some((name, "mts")) => {
            compile(programs.path(), program).await?;
            (Command::new("node"), format!("built/{name}.mjs"))
        }
        _ => (Command::new("node"), program.to_owned()),
    };
    command.arg(programs.path().join(file));
    command.env("HUB", client.address("/").trim_end_matches('/')).env("WORKSPACE", workspace);
    // The bundler of the console makes pages of clients.
    command.env("CONSOLE", Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/web"));
    let output = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await??;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{program}: {text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_str(&text)?)
}

/// Checks the types of a program, and makes `built/<name>.mjs` of it.
async fn compile(programs: &Path, program: &str) -> Result {
    const OPTIONS: &str = "--target es2022 --module nodenext --strict --noUncheckedIndexedAccess \
        --lib es2023,dom,dom.iterable,dom.asynciterable --allowJs --outDir built";
    let mut compiler = Command::new("node");
    compiler.current_dir(programs).arg("node_modules/typescript/bin/tsc").args(OPTIONS.split_whitespace()).arg(program);
    let output = tokio::time::timeout(PATIENCE, compiler.kill_on_drop(true).output()).await??;
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

const POET: &str = "I have become a poet.";
const REJECTED: &str = "the model provider refuses the request: so says the script";

/// An answer that does not fit its format, as a completion and a response tell it, each whole and streamed.
fn misfits() -> Value {
    let code = "UNPROCESSABLE";
    json!([[code, true], [code, true], ["failed", code, true], ["response.failed", code, true]])
}

/// The plan of `arrange`, as protocols with a place for it show it at the end.
fn arranged() -> Value {
    let steps =
        json!([{ "step": 1, "title": "shop", "status": "done" }, { "step": 2, "title": "cook", "status": "pending" }]);
    json!({ "done": 1, "total": 2, "steps": steps })
}

#[tokio::test]
async fn openai_for_javascript_works_with_personas_as_models() -> Result {
    let told = told("openai.mjs").await?;
    for persona in ["assistant", "reviewer"] {
        assert!(told["models"].as_array().is_some_and(|all| all.contains(&json!(persona))), "{}", told["models"]);
    }
    assert_eq!(told["model"], "reviewer");
    assert_eq!(told["completion"], json!(["Said.", "stop", true]));
    assert_eq!(told["files"], json!(["Said.", "Said.", "Said.", true, true]));
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
    assert_eq!(told["runTools"], json!(["It is warm, and cold.", ["warm", "cold"]]));
    let calls = json!([["weather", "Rome"], ["weather", "Oslo"]]);
    assert_eq!(told["functions"], json!([calls, "It is warm, and cold.", false]));
    assert_eq!(told["functionsLater"], "Said.");
    let formats = json!([[[6, 6, 6, 6], "bee"], [[6, 6, 6, 6], "bee"]]);
    assert_eq!((&told["formats"], &told["objects"]), (&formats, &json!(["some", 6])));
    assert_eq!(told["misfits"], misfits());
    assert_eq!(
        told["refusals"],
        json!([
            ["BadRequestError", "INVALID_ARGUMENT", "tools", "invalid_request_error"],
            ["BadRequestError", "INVALID_ARGUMENT", "tools", "invalid_request_error"],
            ["BadRequestError", "INVALID_ARGUMENT", "presence_penalty", "invalid_request_error"],
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
    assert_eq!(told["resumed"], json!(["response.created", 1, true, "response.completed"]));
    assert_eq!(told["background"], json!(["queued", "completed", "Said."]));
    assert_eq!(told["conversation"], json!([true, true, true, "Said."]));
    let answer = "It is warm, and cold.";
    assert_eq!(told["functions"], json!([["weather", "Rome"], ["weather", "Oslo"], answer]));
    assert_eq!(told["completed"], json!([5, answer]));
    assert_eq!((&told["formats"], &told["misfits"]), (&json!([[true, "Bee"], [true, "Bee"]]), &misfits()));
    assert_eq!((&told["retrieved"], &told["refusal"]), (&json!(true), &json!(["INVALID_ARGUMENT", "store"])));
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
            "outputs": [
                "wrote /projects/whole/a.md: version 1, 5 bytes, hash HASH", "     1\tfirst", "whole/",
                "edited /projects/whole/a.md: now version 2, hash HASH",
            ],
        })
    );
    assert_eq!(told["again"], json!([4, ["Said."]]));
    assert_eq!(told["plan"], json!([[arranged(), true]]));
    let hint = "(check the chat's model, its limits and the provider's address)";
    assert_eq!(told["broken"], json!(["error", format!("{REJECTED} {hint}")]));
    assert_eq!(told["shown"], json!(["ready", 4, ["Said."], true]));
    assert_eq!(told["asks"], json!(["approval-requested", "write", "/system/agents/poet/persona.md"]));
    assert_eq!(told["approved"], json!([["May I?", POET], ["output-available"], 2]));
    let why = json!({ "buildscale": { "reason": "/system/agents/poet/persona.md is part of how agents in this workspace are set up" } });
    let why_not = "not permitted: a person declined: no poets";
    let texts = ["May I?", "Then I stay as I am."];
    assert_eq!(told["declined"], json!([why, "output-error", why_not, "no poets", texts]));
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
    assert_eq!(told["plan"], json!([arranged(), true, 3]));
    assert_eq!(told["failed"], json!(["RUN_ERROR", "UNPROCESSABLE", REJECTED]));
    assert_eq!(told["interrupt"], json!(["permission", "write", ["approved"]]));
    assert_eq!(told["declined"], "Then I stay as I am.");
    assert_eq!(told["answered"], json!(["Which colour?", "You said blue."]));
    assert_eq!(
        told["functions"],
        json!([["weather", "Rome", "success"], ["weather", "Oslo", "success"], "It is warm, and cold."])
    );
    assert_eq!((&told["refused"], &told["context"]), (&json!([400, "forwardedProps"]), &json!(true)));
    Ok(())
}

#[tokio::test]
async fn another_agent_has_its_tasks_done_over_a2a() -> Result {
    let told = told("a2a.mjs").await?;
    assert_eq!(told["card"], json!([true, true, "Bearer", true]));
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
        told["pushed"],
        json!({
            "first": [["TASK_STATE_INPUT_REQUIRED", true], ["TASK_STATE_COMPLETED", true]],
            "second": [["TASK_STATE_COMPLETED", true]], "made": ["second", true], "listed": ["first", "second"],
            "tooLate": ["UnsupportedOperationError", -32_004], "read": "token of first", "gone": ["TaskNotFoundError", -32_001],
        })
    );
    assert_eq!(
        told["listed"],
        json!({ "context": [[false, "Said."], [true, text("whole")]], "canceled": [true], "all": [true, true, true] })
    );
    assert_eq!(
        told["flow"],
        json!({
            "tags": ["flow"], "asks": ["INPUT_REQUIRED", "Which colour?"], "same": true, "watched": "COMPLETED",
            "answer": { "all": ["a!", "b!"], "colour": "red" }, "read": "COMPLETED",
            "streamed": ["task", "INPUT_REQUIRED"], "stopped": "CANCELED", "listed": [true],
            "again": ["UnsupportedOperationError", -32_004],
            "pushed": [
                [[true, "TASK_STATE_INPUT_REQUIRED"], [true, "TASK_STATE_COMPLETED"]], [[true, "TASK_STATE_COMPLETED"]],
                ["flow", "later"],
            ],
        })
    );
    assert_eq!(told["flowWatched"], "task");
    assert_eq!(
        told["refusals"],
        json!([
            ["RequestMalformedError", -32_602],
            ["RequestMalformedError", -32_602],
            ["UnsupportedOperationError", -32_004],
            ["RequestMalformedError", -32_602],
            ["RequestMalformedError", -32_602],
            ["TaskNotFoundError", -32_001],
            ["TaskNotCancelableError", -32_002],
            ["RequestMalformedError", -32_602],
        ])
    );
    Ok(())
}

#[tokio::test]
async fn assistants_of_langgraph_run_in_threads() -> Result {
    let told = told("langgraph.mjs").await?;
    let nodes = ["begin", "check", "parts", "each", "join", "end"];
    assert_eq!(
        told["assistants"],
        json!({ "personas": true, "byId": "shout", "nodes": nodes, "persona": 4, "schemas": ["messages"] })
    );
    assert_eq!(told["empty"], json!(["idle", null, {}]));
    assert_eq!(
        told["modes"],
        json!({
            "created": true, "last": "success", "pieces": 4, "complete": 8, "reasoning": "I think about it.",
            "types": ["human", "ai", "tool", "ai", "tool", "tool", "ai", "tool", "ai"],
            "texts": ["I write the file.", "I look at it.", "I change it.", "The file of modes is done."],
            "updates": ["agent", "tools", "agent", "tools", "agent", "tools", "agent"], "custom": ["file", "usage"],
            "tools": [
                "on_tool_start write", "on_tool_end write", "on_tool_start read", "on_tool_end read", "on_tool_start ls",
                "on_tool_end ls", "on_tool_start edit", "on_tool_end edit",
            ],
        })
    );
    assert_eq!(
        told["state"],
        json!({
            "same": true, "next": [], "history": [9, 8, 7, 6, 4, 3, 2, 1], "linked": true, "at": 8, "byId": 8,
            "before": 7,
        })
    );
    assert_eq!((&told["search"], &told["joined"]), (&json!([true, 1]), &json!([true, true])));
    let updates = ["updates"; 7];
    assert_eq!(told["replayed"], json!([&["metadata"][..], &updates, &["end"]].concat()));
    assert_eq!(told["own"], json!(["my-own-thread", [409, "CONFLICT", "thread_id"], "my-own-thread"]));
    assert_eq!((&told["waited"], &told["again"]), (&json!(["Said."]), &json!(["Said.", "Said."])));
    assert_eq!((&told["stateless"], &told["background"]), (&json!(["Said."]), &json!([true, 3, "success"])));
    assert_eq!(told["listed"], json!(["success", "success", "success"]));
    assert_eq!(told["watched"], json!(["metadata", "success", "metadata", "success"]));
    assert_eq!((&told["batch"], &told["counted"]), (&json!(["Said.", "Said."]), &json!([1, 0, {}])));
    Ok(())
}

#[tokio::test]
async fn threads_of_langgraph_wait_and_are_stopped() -> Result {
    let told = told("langgraph-waits.mjs").await?;
    assert_eq!(
        told["permission"],
        json!({
            "asks": ["write", "interrupted", true], "after": ["May I?", POET], "runs": ["success", "interrupted"],
            "next": [[null, 0], ["agent", 0], ["tools", 1], ["tools", 0], ["agent", 0]],
        })
    );
    assert_eq!(
        (&told["declined"], &told["question"]),
        (&json!("Then I stay as I am."), &json!(["Which colour?", "You said red."]))
    );
    assert_eq!(told["nothing"], json!([409, "CONFLICT", "command"]));
    assert_eq!((&told["rejected"], &told["interrupting"]), (&json!([409, "CONFLICT", null]), &json!("Said.")));
    assert_eq!((&told["interrupted"], &told["left"]), (&json!("interrupted"), &json!("interrupted")));
    assert_eq!((&told["cancelled"], &told["copied"]), (&json!(["interrupted", "Said."]), &json!([10, true, true])));
    assert_eq!(told["deleted"], json!([404, "NOT_FOUND", null]));
    assert_eq!(told["cancelledMany"], json!(["interrupted", "interrupted"]));
    assert_eq!(told["rolledBack"], json!(["Said.", "interrupted"]));
    assert_eq!(
        told["refusals"],
        json!([
            [400, "INVALID_ARGUMENT", "stream_mode"],
            [400, "INVALID_ARGUMENT", "multitask_strategy"],
            [409, "CONFLICT", "checkpoint"],
            [400, "INVALID_ARGUMENT", "command"],
            [404, "NOT_FOUND", "assistant_id"],
            [400, "INVALID_ARGUMENT", "assistant_id"],
            [404, "NOT_FOUND", null],
            [400, "INVALID_ARGUMENT", "values"],
            [400, "INVALID_ARGUMENT", "metadata"],
            [400, "INVALID_ARGUMENT", "query"],
        ])
    );
    Ok(())
}

#[tokio::test]
async fn flows_crons_and_the_store_are_there_for_langgraph() -> Result {
    let told = told("langgraph-flows.mjs").await?;
    let output = json!({ "all": ["a!", "b!"], "colour": "red" });
    assert_eq!(
        told["flow"],
        json!({
            "first": ["metadata", "values", "begin", "values", "__interrupt__", "values", "end"],
            "asks": "Which colour?", "second": ["check", "parts", "join", "end"], "values": output, "children": 2,
            "state": output, "runs": ["success", "interrupted"], "status": "idle", "search": 1,
            "once": [409, "CONFLICT", "input"],
        })
    );
    assert_eq!(told["breakpoint"], json!([["check"], 1]));
    assert_eq!(told["crons"], json!([["*/5 * * * *", "0 9 * * mon-fri"], "Europe/Berlin", "string", true, 1, true]));
    assert_eq!(told["noCrons"], true);
    assert_eq!(
        told["store"],
        json!({
            "item": { "colour": "red", "n": 1 }, "none": null, "search": ["users.ann", "users.bob"], "filter": 1,
            "namespaces": [["users", "ann"], ["users", "bob"]], "left": 1,
        })
    );
    Ok(())
}

#[tokio::test]
async fn use_stream_of_langgraph_asks_stops_and_comes_back() -> Result {
    let told = told("langgraph-react.mjs").await?;
    assert_eq!(told["asks"], json!([["human", "ai"], "write"]));
    assert_eq!((&told["resumed"], &told["again"]), (&json!([POET, null, 4]), &json!([1, 6, null])));
    assert_eq!((&told["back"], &told["stopped"]), (&json!(["Said.", true]), &json!([true, true])));
    assert_eq!(told["kept"], json!([true]));
    assert_eq!((&told["rejoined"], &told["cancelled"]), (&json!([true, 2]), &json!([true, 0])));
    Ok(())
}

#[tokio::test]
async fn langgraph_for_python_works_alike() -> Result {
    let told = told("langgraph_client.py").await?;
    assert_eq!(told["assistants"], true);
    assert_eq!(told["events"], json!(["end", "messages", "metadata", "updates", "values"]));
    assert_eq!((&told["text"], &told["asks"]), (&json!("Said."), &json!("colour")));
    assert_eq!((&told["answered"], &told["joined"]), (&json!("You said blue."), &json!("Said.")));
    assert_eq!((&told["status"], &told["history"]), (&json!("success"), &json!(true)));
    assert_eq!(told["again"], json!(["custom", "end", "messages", "metadata", "updates", "values"]));
    assert_eq!(
        (&told["store"], &told["refused"]),
        (&json!({ "text": "kept" }), &json!(["BadRequestError", "webhook"]))
    );
    Ok(())
}

#[tokio::test]
async fn one_run_goes_from_one_protocol_to_the_next_before_the_eyes_of_the_console() -> Result {
    let told = told("across.mjs").await?;
    assert_eq!(told["begun"], json!(["write", "approval-requested"]));
    assert_eq!(told["streamed"], json!(["response.completed", "write"]));
    assert_eq!((&told["answered"], &told["asks"]), (&json!("One question."), &json!("interrupted")));
    assert_eq!(told["resumed"], "The poet wears red.");
    assert_eq!(told["watched"], json!([1, 1, 1]));
    assert_eq!(told["read"], json!(["completed", "The poet wears red.", "completed"]));
    assert_eq!(
        told["joined"],
        json!([["human", "ai", "tool", "ai", "tool", "ai"], "The poet wears red.", "interrupted"])
    );
    assert_eq!(told["task"], json!([3, "May I?\n\nOne question.\n\nThe poet wears red."]));
    Ok(())
}

#[tokio::test]
async fn a_flow_is_begun_watched_and_answered_by_any_of_them() -> Result {
    let told = told("flows.mjs").await?;
    assert_eq!(told["models"], true);
    let shouted = |all: &[&str], colour: &str| json!({ "all": all, "colour": colour });
    assert_eq!(told["responses"], json!(["ask_user", "response.completed", shouted(&["a!", "b!"], "red")]));
    assert_eq!((&told["read"], &told["numbers"], &told["rest"]), (&json!("completed"), &json!(true), &json!(2)));
    assert_eq!(told["completion"], json!(["tool_calls", "ask_user"]));
    assert_eq!(told["once"], json!([409, "CONFLICT"]));
    let begun = json!([["begin", "output-available"], ["check", "input-available"], ["ask_user", "input-available"]]);
    assert_eq!(told["begun"], begun);
    assert_eq!(told["watched"], json!(["begin", "check", "ask_user"]));
    assert_eq!((&told["answered"], &told["over"]), (&shouted(&["c!"], "blue"), &Value::Null));
    assert_eq!(told["interrupted"], json!([["begin", "check", "ask_user"], "Which colour?"]));
    assert_eq!(told["values"], shouted(&["d!", "e!"], "red"));
    Ok(())
}

#[tokio::test]
async fn use_stream_use_chat_and_the_agent_of_ag_ui_work_in_chromium() -> Result {
    let told = told("browser.mjs").await?;
    assert_eq!((&told["useStream"], &told["reloaded"], &told["kept"]), (&json!([4, 0]), &json!(1), &json!(1)));
    assert_eq!(told["useChat"], json!({ "declined": [2, 0], "reloaded": 1, "kept": 1 }));
    assert_eq!(
        told["agUi"],
        json!({
            "texts": ["The file of state is done.", "Then I stay as I am."], "files": ["/projects/state/a.md"],
            "asked": "write", "streamed": true,
        })
    );
    assert_eq!(told["faults"], json!([]));
    Ok(())
}

#[tokio::test]
async fn a_request_of_the_agent_of_a_flow_is_answered_where_the_flow_was_begun() -> Result {
    let told = told("flow-agents.mjs").await?;
    let end = "It is kept, or not.";
    assert_eq!(told["agUi"], json!([1, "permission", "write", end]));
    let pushed = json!([["TASK_STATE_INPUT_REQUIRED", "write"], ["TASK_STATE_COMPLETED", null]]);
    assert_eq!(told["a2a"], json!(["write", true, end, pushed]));
    assert_eq!(
        told["langgraph"],
        json!({
            "asks": ["write", "keep", "interrupted"], "thread": "interrupted", "next": [["keep", true]], "found": 1,
            "values": { "output": end }, "runs": ["success", "interrupted"], "once": [409, "CONFLICT", "command"],
        })
    );
    assert_eq!((&told["written"], &told["left"]), (&json!(true), &json!(0)));
    Ok(())
}

#[tokio::test]
async fn a_client_written_from_the_types_of_the_planner_chat_works() -> Result {
    let told = told("planner.mts").await?;
    assert_eq!(told["greeting"], json!([["session", "analysis", "text", "done"], "Hello."]));
    assert_eq!(told["look"], json!(["session", "analysis", "tool_call", "tool_result", "text", "done"]));
    let all = [
        "session",
        "analysis",
        "plan_created",
        "step_start",
        "executor_spawned",
        "executor_result",
        "step_complete",
        "text",
        "done",
    ];
    assert_eq!((&told["plan"], &told["answer"]), (&json!(all), &json!("Both are there.")));
    assert_eq!((&told["usage"], &told["sessions"], &told["messages"]), (&json!(true), &json!(true), &json!(true)));
    Ok(())
}
