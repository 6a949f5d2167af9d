//! A hub for several people, as the real binary: its own tokens, members, API keys, limits; and what it refuses to start as.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

const BINARY: &str = env!("CARGO_BIN_EXE_buildscale");
const SECRET: (&str, &str) = ("BUILDSCALE__AUTH__SECRET", "the secret of the hub in this test, for tokens");

/// The binary, with nothing in its environment that could reach a model or another hub.
fn command(args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).env_clear().envs(environment.iter().copied()).stdin(Stdio::null());
    for name in ["PATH", "HOME", "TMPDIR", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// A hub that runs. Ends with the test.
struct Hub {
    process: Child,
    address: String,
}

impl Hub {
    fn start(data: &Path, environment: &[(&str, &str)]) -> Self {
        let mut process = command(&["serve", "--json", "--listen", "127.0.0.1:0", "--data-dir"], environment)
            .arg(data)
            .env("BUILDSCALE_LOG", "info")
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(data.join("hub.log")).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        Self { address: ready["address"].as_str().unwrap().to_owned(), process }
    }

    fn run(&self, token: &str, args: &[&str]) -> Output {
        let environment = [("BUILDSCALE_URL", self.address.as_str()), ("BUILDSCALE_TOKEN", token)];
        command(args, &environment).output().unwrap()
    }

    /// What a command prints, when it succeeds.
    #[track_caller]
    fn says(&self, token: &str, args: &[&str]) -> String {
        let output = self.run(token, args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[track_caller]
    fn json(&self, token: &str, args: &[&str]) -> Value {
        serde_json::from_str(&self.says(token, &[args, &["--json"]].concat())).unwrap()
    }

    /// The code of a refusal.
    #[track_caller]
    fn refusal(&self, token: &str, args: &[&str]) -> String {
        let output = self.run(token, &[args, &["--json"]].concat());
        assert_ne!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let error: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default();
        error["error"]["code"].as_str().unwrap_or(&text).to_owned()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn token(name: &str) -> String {
    let output = command(&["token", "make", name, "--data-dir", "/nonexistent"], &[SECRET]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn people_sign_in_invite_each_other_and_make_keys() {
    let data = tempfile::tempdir().unwrap();
    let hub = Hub::start(data.path(), &[SECRET]);
    let (ann, bob) = (token("ann"), token("bob"));
    assert_eq!(hub.refusal("", &["workspaces"]), "UNAUTHORIZED");
    let workspace = hub.says(&ann, &["workspaces", "create", "Ann's"]);
    assert_eq!(hub.json(&bob, &["workspaces"])["workspaces"], serde_json::json!([]));
    assert_eq!(hub.refusal(&bob, &["files", "ls", "-w", &workspace]), "NOT_FOUND");

    hub.says(&ann, &["member", "add", "bob", "viewer"]);
    assert_eq!(hub.json(&bob, &["member", "me", "-w", &workspace])["may"], serde_json::json!(["read"]));
    hub.says(&bob, &["files", "ls"]);
    assert_eq!(hub.refusal(&bob, &["chat", "--once", "hello"]), "FORBIDDEN");
    hub.says(&ann, &["member", "role", "bob", "member"]);
    hub.says(&bob, &["chat", "--once", "Show me what you can do"]);
    assert_eq!(hub.json(&ann, &["member", "list"])["members"].as_array().unwrap().len(), 2);

    let key = hub.says(&ann, &["key", "create", "nightly", "--scope", "read", "--only", &workspace, "--life", "1h"]);
    assert!(key.starts_with("bsk_"), "{key}");
    hub.says(&key, &["files", "ls"]);
    assert_eq!(hub.refusal(&key, &["workspaces", "create", "x"]), "FORBIDDEN");
    assert_eq!(hub.refusal(&key, &["key", "list"]), "FORBIDDEN");
    let keys = hub.json(&ann, &["key", "list"]);
    let id = keys["keys"][0]["key_id"].as_str().unwrap();
    assert_eq!(hub.refusal(&bob, &["key", "revoke", id]), "NOT_FOUND");
    hub.says(&ann, &["key", "revoke", id]);
    assert_eq!(hub.refusal(&key, &["files", "ls"]), "UNAUTHORIZED");

    hub.says(&ann, &["member", "remove", "bob"]);
    assert_eq!(hub.refusal(&bob, &["files", "ls", "-w", &workspace]), "NOT_FOUND");
    assert_eq!(hub.refusal(&ann, &["member", "remove", &hub.user(&ann, &workspace)]), "CONFLICT");

    // None of it is in the log.
    let log = std::fs::read_to_string(data.path().join("hub.log")).unwrap();
    for secret in [&ann, &bob, &key, SECRET.1] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn turns_of_real_workers_are_charged_by_what_they_used() {
    let data = tempfile::tempdir().unwrap();
    let hub = Hub::start(data.path(), &[SECRET, ("BUILDSCALE__AUTH__TOKENS_PER_MINUTE", "1")]);
    let (ann, bob) = (token("ann"), token("bob"));
    hub.says(&ann, &["chat", "--once", "Show me what you can do"]);
    // Should the machine be so slow that a minute has passed, the next turn was charged, too.
    let refused = (0..5).map(|_| hub.run(&ann, &["chat", "--once", "And more", "--json"]));
    let refused = refused.into_iter().find(|output| !output.status.success()).expect("what a turn used counts");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("RATE_LIMITED"), "{refused:?}");
    hub.says(&ann, &["files", "ls"]);
    hub.says(&bob, &["chat", "--once", "Show me what you can do"]);
}

impl Hub {
    fn user(&self, token: &str, workspace: &str) -> String {
        self.json(token, &["member", "me", "-w", workspace])["user_id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_hub_that_others_can_reach_does_not_start_without_a_token() {
    let data = tempfile::tempdir().unwrap();
    let start = |listen: &str, more: &[&str], environment: &[(&str, &str)]| {
        let mut args = vec!["serve", "--json", "--listen", listen, "--data-dir", data.path().to_str().unwrap()];
        args.extend(more);
        let mut serve = command(&args, environment);
        serve.env("BUILDSCALE_LOG", "off").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = serve.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started = line.contains("address");
        // One that has started goes on until it is told; one that has not has ended by itself.
        let _ = process.kill();
        let ended = process.wait_with_output().unwrap();
        (started, String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let token = ("BUILDSCALE__SERVER__AUTH_TOKEN", "the token of the machine's own person");
    for open in ["0.0.0.0:0", "[::]:0"] {
        for (more, environment) in
            [(vec![], vec![]), (vec!["--allow-public"], vec![]), (vec![], vec![token]), (vec![], vec![SECRET])]
        {
            let (started, why) = start(open, &more, &environment);
            assert!(!started && why.contains("can be reached from other machines"), "{open} {more:?}: {why}");
        }
    }
    for environment in [[token], [SECRET]] {
        let (started, why) = start("0.0.0.0:0", &["--allow-public"], &environment);
        assert!(started, "{why}");
    }
    assert!(start("127.0.0.1:0", &[], &[]).0, "on loopback nothing is needed");
    let (started, why) = start("127.0.0.1:0", &[], &[("BUILDSCALE__AUTH__SECRET", "short-secret")]);
    assert!(!started && why.contains("auth.secret") && !why.contains("short-secret"), "{why}");
}

#[test]
fn secrets_are_made_here() {
    let secret = || String::from_utf8(command(&["token", "secret"], &[]).output().unwrap().stdout).unwrap();
    let (one, other) = (secret(), secret());
    assert!(one.trim().len() == 43 && one != other);
    let none = command(&["token", "make", "ann", "--data-dir", "/nonexistent"], &[]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("auth.secret"));
}
