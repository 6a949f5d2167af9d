//! `exec`: a command runs once, is followed through failures, and says how it ended.

use crate::common::{Hands, has};
use buildscale_tools::{Command, CommandResult, CommandTool, Commands, Registry, SandboxWait};
use domain::{CallId, Code, FilePath};
use ports::{Exec, Grant, Reservation, Reserve, Sandboxes};
use serde_json::json;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::fakes::FakeSandboxes;
use uuid::Uuid;
use workspace::{Beginning, Workspace};

/// Plays a shell: `fail` fails, `hang` runs until it is ended, `big` is cut, anything else says itself.
fn shell(exec: &Exec) -> (String, Option<i32>) {
    let line = exec.words.last().cloned().unwrap_or_default();
    match line.as_str() {
        "fail" => ("it went wrong\n".into(), Some(3)),
        "hang" => ("so far".into(), None),
        _ => (format!("{line} in {}", exec.folder), Some(0)),
    }
}

pub async fn with_commands() -> (Hands, Arc<FakeSandboxes>) {
    let agent = Hands::agent().await;
    let sandboxes = Arc::new(FakeSandboxes::new(shell));
    let mut hands = agent.with_sandboxes(sandboxes.clone()).await;
    hands.by = agent.by.clone();
    hands.registry = Registry::builtin().with_commands(Commands::default());
    (hands, sandboxes)
}

#[tokio::test]
async fn it_is_on_the_list_only_where_there_are_sandboxes() {
    assert!(Registry::builtin().spec("exec").is_none());
    let with = Registry::builtin().with_commands(Commands::default());
    assert_eq!(with.specs().last().map(|spec| spec.name.clone()).as_deref(), Some("exec"), "added at the end");
    let does = with.spec("exec").map(|spec| spec.description.clone()).unwrap_or_default();
    assert!(does.ends_with("no process outlives the call. It has 120 s, or timeout_s of up to 600 s."), "{does}");
    assert_eq!(with.kind("exec"), Some(buildscale_tools::ToolKind::Exec));
    let mut hands = Hands::agent().await;
    hands.registry = with;
    let (code, output) = hands.refused("exec", r#"{"command": "ls"}"#).await;
    assert_eq!(code, Code::Forbidden);
    has(&output, &["no sandbox is configured"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_says_what_it_wrote_and_how_it_ended() {
    let (mut hands, sandboxes) = with_commands().await;
    hands.put("/projects/app/a.md", "x").await;
    let outcome = hands.call("exec", r#"{"command": "cat a.md", "folder": "/projects/app"}"#).await;
    assert_eq!(outcome.output, "cat a.md in /projects/app\n[exit code 0, 0.0 s]");
    assert_eq!(outcome.result["exit_code"], 0);
    assert_eq!(outcome.result["stdout"], "cat a.md in /projects/app");
    let sandbox = sandboxes.ready(hands.workspace.id()).await.unwrap();
    assert!(sandbox.is_some());

    let outcome = hands.call("exec", r#"{"command": "\u001b[31mred\u001b[0m"}"#).await;
    assert_eq!(outcome.output, "red in /\n[exit code 0, 0.0 s]");
    assert_eq!(outcome.result["stdout"], "\u{1b}[31mred\u{1b}[0m in /", "programs have it whole");

    // A command that fails is no misuse: the outcome has its output all the same.
    let outcome = hands.call("exec", r#"{"words": ["fail"]}"#).await;
    assert_eq!((outcome.success, outcome.error.map(|error| error.code)), (false, Some(Code::Unprocessable)));
    assert_eq!(outcome.output, "it went wrong\n[exit code 3, 0.0 s]");
    assert_eq!(outcome.result["exit_code"], 3);

    for (args, field) in [
        (json!({}), "command"),
        (json!({ "command": " " }), "command"),
        (json!({ "words": [] }), "command"),
        (json!({ "command": "a", "words": ["a"] }), "words"),
        (json!({ "command": "a", "folder": "/projects/app/a.md" }), "folder"),
        (json!({ "command": "a", "timeout_s": 0 }), "timeout_s"),
    ] {
        let outcome = hands.call("exec", &args.to_string()).await;
        let error = outcome.error.unwrap();
        assert_eq!((error.code, error.details["field"].as_str()), (Code::InvalidArgument, Some(field)), "{args}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_command_that_runs_is_the_one_that_was_asked_for() {
    let (mut hands, sandboxes) = with_commands().await;
    let sandbox = sandboxes.come_up(hands.workspace.id());
    hands.ok("exec", r#"{"command": "echo a | wc", "timeout_s": 7, "stdin": "in"}"#).await;
    hands.ok("exec", r#"{"words": ["ls", "-l"], "timeout_s": 3000}"#).await;
    let begun = sandbox.begun();
    assert_eq!(begun[0].words, ["/bin/sh", "-c", "echo a | wc"]);
    assert_eq!((begun[0].timeout, begun[0].stdin.as_deref()), (Duration::from_secs(7), Some("in")));
    assert_eq!(begun[1].words, ["ls", "-l"]);
    assert_eq!(begun[1].timeout, Commands::default().longest, "not longer than commands may run here");
    assert!(begun.iter().all(|exec| !exec.network && exec.root.is_root()));
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_starts_is_waited_for_and_one_that_cannot_says_why() {
    let (mut hands, sandboxes) = with_commands().await;
    sandboxes.takes(5);
    hands.ok("exec", r#"{"command": "one"}"#).await;
    sandboxes.release(hands.workspace.id()).await.unwrap();
    sandboxes.takes(100_000);
    let (code, output) = hands.refused("exec", r#"{"command": "two"}"#).await;
    assert_eq!(code, Code::NotBegun);
    has(&output, &["the sandbox is not ready, so the command did not run: a machine is looked for"]);
    sandboxes.release(hands.workspace.id()).await.unwrap();
    sandboxes.cannot_start("there is no capacity");
    has(&hands.refused("exec", r#"{"command": "three"}"#).await.1, &["there is no capacity"]);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_is_let_go_while_it_starts_is_asked_for_again_and_not_for_ever() {
    let (hands, sandboxes) = with_commands().await;
    let workspace = hands.workspace.clone();
    let runs = async || made_again(&workspace, command("one", CallId(Uuid::now_v7()))).await.0;
    let is_let_go = async |times: usize| {
        for _ in 0..times {
            tokio::time::sleep(Duration::from_secs(10)).await;
            sandboxes.release(workspace.id()).await.unwrap();
        }
        sandboxes.takes(1);
    };
    sandboxes.takes(100_000);
    let (ran, ()) = tokio::join!(runs(), is_let_go(1));
    assert_eq!(ran.unwrap().stdout, "one in /");
    sandboxes.release(workspace.id()).await.unwrap();
    sandboxes.takes(100_000);
    let (ran, ()) = tokio::join!(runs(), is_let_go(30));
    has(&ran.unwrap_err().message, &["the command did not run"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_was_begun_is_followed_when_its_sandbox_answers_again() {
    let (hands, sandboxes) = with_commands().await;
    let (workspace, call) = (hands.workspace.clone(), CallId(Uuid::now_v7()));
    let sandbox = sandboxes.come_up(workspace.id());
    let hangs = command("hang", call);
    let first = tokio::time::timeout(Duration::from_secs(1), buildscale_tools::run_command(&workspace, &hangs)).await;
    assert!(first.is_err());
    sandboxes.hide(workspace.id());
    let follows = buildscale_tools::run_command(&workspace, &hangs);
    let answers = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        sandboxes.show(workspace.id(), &sandbox);
        sandbox.finish(call, 0);
    };
    let (ran, ()) = tokio::join!(follows, answers);
    assert_eq!((ran.unwrap().end.code, sandbox.begun().len()), (Some(0), 1));
}

fn command(line: &str, call: CallId) -> Command {
    Command {
        call,
        words: vec![line.into()],
        folder: FilePath::root(),
        root: FilePath::root(),
        stdin: None,
        timeout: Duration::from_secs(60),
        network: false,
        start_timeout: Duration::from_secs(60),
        waits: SandboxWait::AsRows(Duration::ZERO),
        keep: Vec::new(),
    }
}

/// Makes the call as an actor does: again at each time that it is told. Returns the result, and the number of calls.
async fn made_again(workspace: &Workspace, command: Command) -> (Result<CommandResult, domain::Error>, u32) {
    let since = tokio::time::Instant::now();
    for times in 1.. {
        let waits = SandboxWait::AsRows(if times == 1 { Duration::ZERO } else { since.elapsed() });
        let asked = tokio::time::Instant::now();
        let came = buildscale_tools::run_command(workspace, &Command { waits, ..command.clone() }).await;
        let Some(after) = came.as_ref().err().and_then(buildscale_tools::retry_after) else { return (came, times) };
        assert!(asked.elapsed() <= Duration::from_secs(2), "no worker waits: {:?}", asked.elapsed());
        tokio::time::sleep(after).await;
    }
    unreachable!()
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_starts_holds_no_worker_and_one_that_fails_is_not_asked_for_again() {
    let (hands, sandboxes) = with_commands().await;
    let workspace = hands.workspace.clone();
    sandboxes.takes(12);
    let (ran, times) = made_again(&workspace, command("one", CallId(Uuid::now_v7()))).await;
    assert!(ran.is_ok() && (2..10).contains(&times), "{times}: {ran:?}");
    // One that never comes.
    sandboxes.release(workspace.id()).await.unwrap();
    sandboxes.takes(100_000);
    let (ran, times) = made_again(&workspace, command("two", CallId(Uuid::now_v7()))).await;
    let error = ran.unwrap_err();
    assert_eq!((error.code, buildscale_tools::retry_after(&error)), (Code::NotBegun, None));
    assert!((3..20).contains(&times), "{times}");
    // One that fails while a call waits for it.
    sandboxes.release(workspace.id()).await.unwrap();
    let waits = made_again(&workspace, command("three", CallId(Uuid::now_v7())));
    let fails = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        sandboxes.release(workspace.id()).await.unwrap();
        sandboxes.cannot_start("there is no capacity");
        sandboxes.warm(workspace.id()).await.unwrap();
        sandboxes.takes(0);
    };
    let ((ran, _), ()) = tokio::join!(waits, fails);
    has(&ran.unwrap_err().message, &["there is no capacity"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_waits_for_its_place_and_runs_once() {
    let (hands, sandboxes) = with_commands().await;
    let (workspace, call) = (hands.workspace.clone(), CallId(Uuid::now_v7()));
    let sandbox = sandboxes.come_up(workspace.id());
    sandbox.says([Reservation::Busy, Reservation::Busy]);
    let early = buildscale_tools::run_command(&workspace, &command("one", call)).await.unwrap_err();
    assert_eq!((early.code, buildscale_tools::retry_after(&early).is_some()), (Code::NotBegun, true));
    assert_eq!(workspace.begun(call).await.unwrap(), None, "a waiting command has not begun");
    assert!(made_again(&workspace, command("one", call)).await.0.unwrap().failure().is_none());
    let asked = sandbox.asked();
    assert!(asked.len() == 3 && asked.iter().all(|asked| (asked.call, asked.direct) == (call, false)), "{asked:?}");
    assert_eq!(sandbox.begun().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_person_waits_for_a_moment_and_reads_that_nothing_has_begun() {
    let (hands, sandboxes) = with_commands().await;
    let (workspace, call) = (hands.workspace.clone(), CallId(Uuid::now_v7()));
    let sandbox = sandboxes.come_up(workspace.id());
    sandbox.says([Reservation::Busy]);
    let asked = tokio::time::Instant::now();
    let hasty = Command { waits: SandboxWait::Here, ..command("one", call) };
    let error = buildscale_tools::run_command(&workspace, &hasty).await.unwrap_err();
    assert_eq!((error.code, buildscale_tools::retry_after(&error)), (Code::NotBegun, None));
    assert!(error.hint.is_some() && asked.elapsed() < Duration::from_secs(20), "{error}: {:?}", asked.elapsed());
    assert_eq!((sandbox.begun().len(), workspace.begun(call).await.unwrap()), (0, None));
    assert!(sandbox.asked().iter().all(|asked| asked.direct));
    assert!(buildscale_tools::run_command(&workspace, &hasty).await.is_ok(), "the same request can be made again");
}

/// Each point at which a worker can die between its place and the end: a command that was not begun runs once, by the next worker.
#[tokio::test(start_paused = true)]
async fn a_command_that_a_dead_worker_noted_and_did_not_begin_runs_once() {
    let (hands, sandboxes) = with_commands().await;
    let workspace = hands.workspace.clone();
    let sandbox = sandboxes.come_up(workspace.id());
    for (dies, lapses) in
        [("with a place", false), ("with a note", false), ("with a note of a place that lapsed", true)]
    {
        let call = CallId(Uuid::now_v7());
        let asked = Reserve { call, direct: false, wait: Duration::ZERO };
        let Reservation::Granted(grant) = ports::Sandbox::reserve(&*sandbox, asked).await.unwrap() else {
            panic!("{dies}")
        };
        if dies.contains("note") {
            let beginning = Beginning { grant, at: workspace.now() };
            assert_eq!(workspace.begin(call, beginning).await.unwrap(), beginning);
        }
        if lapses {
            sandbox.lapse();
        }
        let before = sandbox.begun().len();
        assert_eq!(
            buildscale_tools::run_command(&workspace, &command(dies, call)).await.unwrap().end.code,
            Some(0),
            "{dies}"
        );
        assert_eq!(sandbox.begun().len(), before + 1, "{dies}");
    }
    // Its machine is another one now: the outcome there is unknown.
    let call = CallId(Uuid::now_v7());
    let elsewhere = Grant { machine: Uuid::now_v7(), number: 1 };
    workspace.begin(call, Beginning { grant: elsewhere, at: workspace.now() }).await.unwrap();
    let before = sandbox.begun().len();
    let error = buildscale_tools::run_command(&workspace, &command("elsewhere", call)).await.unwrap_err();
    assert_eq!((error.code, sandbox.begun().len()), (Code::OutcomeUnknown, before));
    // A place that is gone when the command is handed over is no outcome: another one is asked for, but not for ever.
    let lost = Grant { machine: sandbox.machine(), number: u64::MAX };
    sandbox.says([Reservation::Granted(lost), Reservation::Granted(lost)]);
    assert!(buildscale_tools::run_command(&workspace, &command("later", CallId(Uuid::now_v7()))).await.is_ok());
    sandbox.says(std::iter::repeat_n(Reservation::Granted(lost), 5));
    let never = CallId(Uuid::now_v7());
    let error = buildscale_tools::run_command(&workspace, &command("never", never)).await.unwrap_err();
    assert_eq!((error.code, workspace.begun(never).await.unwrap()), (Code::NotBegun, None));
    // One that was ended while it waited does not begin.
    let ended = CallId(Uuid::now_v7());
    buildscale_tools::kill_command(&workspace, ended).await;
    let error = buildscale_tools::run_command(&workspace, &command("ended", ended)).await.unwrap_err();
    assert_eq!(error.code, Code::Cancelled, "{error}");
    assert_eq!(sandbox.begun().len(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_call_again_is_followed_and_never_run_again() {
    let (hands, sandboxes) = with_commands().await;
    let (workspace, call) = (hands.workspace.clone(), CallId(Uuid::now_v7()));
    let sandbox = sandboxes.come_up(workspace.id());
    let hangs = command("hang", call);
    // A worker begins it and is gone; the next one follows.
    let first = tokio::time::timeout(Duration::from_secs(1), buildscale_tools::run_command(&workspace, &hangs)).await;
    assert!(first.is_err());
    let following = tokio::spawn({
        let (workspace, hangs) = (workspace.clone(), hangs.clone());
        async move { buildscale_tools::run_command(&workspace, &hangs).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    sandbox.finish(call, 0);
    assert_eq!(following.await.unwrap().unwrap().stdout, "so far");
    // And its result is there once more.
    assert_eq!(buildscale_tools::run_command(&workspace, &hangs).await.unwrap().end.code, Some(0));
    assert_eq!(sandbox.begun().len(), 1);

    // A sandbox that does not know the command does not run it again.
    sandboxes.vanish(workspace.id());
    let gone = buildscale_tools::run_command(&workspace, &hangs).await.unwrap_err();
    assert_eq!(gone.code, Code::OutcomeUnknown, "{gone}");
    let another = sandboxes.come_up(workspace.id());
    let unknown = buildscale_tools::run_command(&workspace, &hangs).await.unwrap_err();
    assert_eq!(unknown.code, Code::OutcomeUnknown, "{unknown}");
    assert!(another.begun().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_sandbox_goes_away_was_interrupted() {
    let (hands, sandboxes) = with_commands().await;
    let (workspace, call) = (hands.workspace.clone(), CallId(Uuid::now_v7()));
    let sandbox = sandboxes.come_up(workspace.id());
    let running = tokio::spawn({
        let (workspace, hangs) = (workspace.clone(), command("hang", call));
        async move { buildscale_tools::run_command(&workspace, &hangs).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(sandbox.begun().len(), 1);
    sandboxes.vanish(workspace.id());
    drop(sandbox);
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::OutcomeUnknown, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_command_is_ended_by_its_call() {
    let (hands, sandboxes) = with_commands().await;
    let (workspace, call) = (hands.workspace.clone(), CallId(Uuid::now_v7()));
    sandboxes.come_up(workspace.id());
    let running = tokio::spawn({
        let (workspace, hangs) = (workspace.clone(), command("hang", call));
        async move { buildscale_tools::run_command(&workspace, &hangs).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    buildscale_tools::kill_command(&workspace, call).await;
    let ran = running.await.unwrap().unwrap();
    assert_eq!((ran.end.signal, ran.summary().as_str()), (Some(9), "[signal 9, 0.0 s]"));
    assert_eq!(ran.failure().unwrap().details["signal"], 9, "flows name it");
    // A command that is not known counts as ended.
    buildscale_tools::kill_command(&workspace, CallId(Uuid::now_v7())).await;
}

struct Templates;

impl buildscale_tools::Functions for Templates {
    fn call(&self, name: &str, _: &serde_json::Value) -> Result<serde_json::Value, domain::Error> {
        Err(domain::Error::not_found("function", name))
    }
    fn words(&self, templates: &[String], args: &serde_json::Value) -> Result<Vec<String>, domain::Error> {
        let name = args["name"].as_str().unwrap_or_default();
        Ok(templates.iter().map(|word| word.replace("{{input.name}}", name)).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_of_a_flow_is_filled_in_and_kept_within_its_root() {
    let (hands, sandboxes) = with_commands().await;
    let sandbox = sandboxes.come_up(hands.workspace.id());
    let registry = hands.registry.clone().with_functions(Arc::new(Templates));
    let parameters = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let words = ["wc".to_owned(), "{{input.name}}".to_owned()];
    let tool = CommandTool { name: "count", words: &words, network: true, parameters: &parameters };
    let root: FilePath = "/projects/app".parse().unwrap();
    let call = |args: &'static str| {
        let (registry, workspace, root) = (registry.clone(), hands.workspace.clone(), root.clone());
        async move {
            registry
                .call_command(&workspace, CallId(Uuid::now_v7()), (&tool, Some(&root)), args, SandboxWait::Here, None)
                .await
        }
    };
    assert!(call(r#"{"name": "a.md"}"#).await.success);
    let begun = sandbox.begun();
    assert_eq!(begun[0].words, ["wc", "a.md"]);
    assert_eq!((begun[0].root.as_str(), begun[0].folder.as_str()), ("/projects/app", "/projects/app"));
    assert!(!begun[0].network, "the installation lets no command have a network");
    assert_eq!(call("{}").await.error.map(|error| error.code), Some(Code::InvalidArgument));
}

fn search(folder: PathBuf, tool: String, args: String) -> futures::future::BoxFuture<'static, String> {
    Box::pin(async move {
        let outcome = buildscale_tools::search_folder(&folder, &tool, &args).await;
        serde_json::to_string(&outcome).unwrap()
    })
}

/// A search in the sandbox's mirror, on a cold disk and on a warm one is the same search.
#[tokio::test]
async fn searches_use_the_mirror_of_a_ready_sandbox() {
    let mut warm = Hands::agent().await;
    for (at, content) in [("/data/a", "needle 1\n"), ("/data/deep/b", "needle 2\nno\n"), ("/projects/c", "none\n")] {
        warm.put(at, content).await;
    }
    let mirrors = TempDir::new().unwrap();
    let sandboxes = Arc::new(FakeSandboxes::default().with_mirrors(mirrors.path(), search));
    let mut near = warm.elsewhere_with(sandboxes.clone()).await;
    let sandbox = sandboxes.come_up(warm.workspace.id());
    for round in 0..3 {
        for (tool, args) in [
            ("grep", json!({ "pattern": "needle" })),
            ("grep", json!({ "pattern": "needle", "path": "/data/deep", "mode": "count" })),
            ("glob", json!({ "pattern": "*", "path": "/data" })),
        ] {
            let args = args.to_string();
            assert_eq!(near.ok(tool, &args).await, warm.ok(tool, &args).await, "{tool} in round {round}");
        }
        let looked_here = near.workspace.latest().join("data/a").exists();
        match round {
            0 => {
                assert!(!looked_here, "nothing is fetched to this disk");
                warm.ok("rm", r#"{"path": "/data/a"}"#).await;
                warm.put("/data/deep/d", "needle 4\n").await;
            }
            1 => sandboxes.vanish(warm.workspace.id()),
            _ => assert!(near.workspace.latest().join("data/deep/d").exists(), "without it all is fetched"),
        }
    }
    assert!(sandbox.fake_mirror().unwrap().applied().len() > 1);
}
