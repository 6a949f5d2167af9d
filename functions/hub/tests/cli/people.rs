//! A hub for several people, as the real binary: its own tokens, members, API keys, limits; and the configurations that it refuses.

use crate::support::{ANYWHERE, Hub, command, text};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Output, Stdio},
};

const SECRET: (&str, &str) = ("BUILDSCALE__AUTH__SECRET", "the secret of the hub in this test, for tokens");

/// A hub to which everybody comes with a token.
pub struct Shared(pub Hub);

impl Shared {
    pub fn start(data: &Path, more: &[(&str, &str)]) -> Self {
        Self(Hub::start(data, ANYWHERE, &[&[SECRET], more].concat()))
    }

    pub fn run(&self, token: &str, args: &[&str]) -> Output {
        self.0.command(args).env("BUILDSCALE_TOKEN", token).output().unwrap()
    }

    /// The output of a command, when it succeeds.
    #[track_caller]
    pub fn says(&self, token: &str, args: &[&str]) -> String {
        let output = self.run(token, args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    #[track_caller]
    pub fn json(&self, token: &str, args: &[&str]) -> Value {
        serde_json::from_str(&self.says(token, &[args, &["--json"]].concat())).unwrap()
    }

    /// The code of a refusal.
    #[track_caller]
    fn refusal(&self, token: &str, args: &[&str]) -> String {
        let output = self.run(token, &[args, &["--json"]].concat());
        assert_ne!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stdout));
        let said = text(&output.stderr);
        let error: Value = serde_json::from_str(said.lines().last().unwrap_or_default()).unwrap_or_default();
        error["error"]["code"].as_str().unwrap_or(&said).to_owned()
    }

    fn user(&self, token: &str, workspace: &str) -> String {
        self.json(token, &["member", "me", "-w", workspace])["user_id"].as_str().unwrap().to_owned()
    }
}

/// A token of the hub for somebody of this name.
pub fn token(name: &str) -> String {
    let output = command(&["token", "make", name, "--data-dir", "/nonexistent"]).envs([SECRET]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

#[test]
fn people_sign_in_invite_each_other_and_make_keys() {
    let data = tempfile::tempdir().unwrap();
    let hub = Shared::start(data.path(), &[]);
    let (ann, bob) = (token("ann"), token("bob"));
    assert_eq!(hub.refusal("", &["workspaces"]), "UNAUTHORIZED");
    let workspace = hub.says(&ann, &["workspaces", "create", "Ann's"]);
    assert_eq!(hub.json(&bob, &["workspaces"])["workspaces"], serde_json::json!([]));
    assert_eq!(hub.refusal(&bob, &["files", "ls", "-w", &workspace]), "NOT_FOUND");

    hub.says(&ann, &["member", "add", "bob", "viewer"]);
    assert_eq!(hub.json(&bob, &["member", "me", "-w", &workspace])["may"], serde_json::json!(["read"]));
    hub.says(&bob, &["files", "ls"]);
    assert_eq!(hub.refusal(&bob, &["chat", "--once", "hello"]), "FORBIDDEN");
    for (args, hint) in [
        (&["flow", "run", "review", "--input", "{}"][..], "ask an admin of the workspace to make you a member"),
        (&["workspaces", "rm", workspace.as_str(), "--yes"][..], "ask an owner of the workspace to make you an owner"),
    ] {
        let why = text(&hub.run(&bob, args).stderr);
        assert!(why.contains(hint), "{args:?}: {why}");
    }
    let bobs = hub.user(&bob, &workspace);
    assert_eq!(hub.refusal(&ann, &["member", "role", "zoe", "member"]), "NOT_FOUND");
    hub.says(&ann, &["member", "role", &bobs[..8], "member"]);
    assert_eq!(hub.json(&bob, &["member", "me"])["role"], "member");
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
    // An id may be cut as long as it is the only one that begins so.
    assert_eq!(hub.refusal(&ann, &["key", "revoke", "ffff"]), "NOT_FOUND");
    hub.says(&ann, &["key", "revoke", &id[..8]]);
    assert_eq!(hub.refusal(&key, &["files", "ls"]), "UNAUTHORIZED");
    let why = text(&hub.run(&key, &["files", "ls"]).stderr);
    assert!(why.contains("the API key is not valid") && why.contains("was revoked or has expired"), "{why}");

    hub.says(&ann, &["member", "remove", "bob"]);
    assert_eq!(hub.refusal(&bob, &["files", "ls", "-w", &workspace]), "NOT_FOUND");
    // The home of one who is gone is erased by the id, once.
    hub.says(&ann, &["member", "remove", &bobs, "--erase-home"]);
    assert_eq!(hub.refusal(&ann, &["member", "remove", &bobs, "--erase-home"]), "NOT_FOUND");
    assert_eq!(hub.refusal(&ann, &["member", "remove", &hub.user(&ann, &workspace)]), "CONFLICT");

    // None of it is in the log.
    let log = std::fs::read_to_string(data.path().join("hub.log")).unwrap();
    for secret in [&ann, &bob, &key, SECRET.1] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn a_command_of_one_member_does_not_see_the_home_of_another() {
    let data = tempfile::tempdir().unwrap();
    let hub = Shared::start(data.path(), &[]);
    let (ann, bob) = (token("ann"), token("bob"));
    let workspace = hub.says(&ann, &["workspaces", "create", "Ann's"]);
    hub.says(&ann, &["member", "add", "bob", "editor", "-w", &workspace]);
    let [anns, bobs] = [&ann, &bob].map(|who| hub.user(who, &workspace));
    let draft = data.path().join("draft.md");
    for (who, text, at) in [
        (&ann, "a secret", format!("/users/{anns}/draft.md")),
        (&bob, "his own", format!("/users/{bobs}/draft.md")),
        (&ann, "for all", "/projects/notes.md".to_owned()),
    ] {
        std::fs::write(&draft, text).unwrap();
        hub.says(who, &["files", "put", draft.to_str().unwrap(), &at]);
    }
    let look = ["sandbox", "run", "--", "sh", "-c", "ls users; cat users/*/draft.md projects/notes.md"];
    let seen = hub.says(&bob, &look);
    assert!(seen.contains(&bobs) && seen.contains("his own") && seen.contains("for all"), "{seen}");
    assert!(!seen.contains(&anns) && !seen.contains("secret"), "{seen}");
    let seen = hub.says(&ann, &look);
    assert!(seen.contains("a secret") && !seen.contains("his own") && !seen.contains(&bobs), "{seen}");
}

#[test]
fn turns_of_real_workers_are_charged_by_their_usage() {
    let data = tempfile::tempdir().unwrap();
    let hub = Shared::start(data.path(), &[("BUILDSCALE__AUTH__TOKENS_PER_MINUTE", "1")]);
    let (ann, bob) = (token("ann"), token("bob"));
    hub.says(&ann, &["chat", "--once", "Show me what you can do"]);
    // Should the machine be so slow that a minute has passed, the next turn was charged, too.
    let refused = (0..5).map(|_| hub.run(&ann, &["chat", "--once", "And more", "--json"]));
    let refused = refused.into_iter().find(|output| !output.status.success()).expect("the tokens of a turn count");
    assert!(text(&refused.stderr).contains("RATE_LIMITED"), "{refused:?}");
    hub.says(&ann, &["files", "ls"]);
    hub.says(&bob, &["chat", "--once", "Show me what you can do"]);
}

#[test]
fn a_hub_that_others_can_reach_does_not_start_without_a_token() {
    let data = tempfile::tempdir().unwrap();
    let start = |listen: &str, more: &[&str], environment: &[(&str, &str)]| {
        let mut args = vec!["serve", "--json", "--listen", listen, "--data-dir", data.path().to_str().unwrap()];
        args.extend(more);
        let mut serve = command(&args);
        serve
            .envs(environment.iter().copied())
            .env("BUILDSCALE_LOG", "off")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = serve.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started = line.contains("address");
        // One that has started goes on until it is told; one that has not has ended by itself.
        let _ = process.kill();
        let ended = process.wait_with_output().unwrap();
        (started, text(&ended.stderr))
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
    // As templates pass a parameter that was left out. It opens no door to everybody.
    for empty in ["", " "] {
        let (started, why) = start("0.0.0.0:0", &["--allow-public"], &[(token.0, empty)]);
        assert!(!started && why.contains("(server.auth_token) or accounts"), "{why}");
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
    let secret = || text(&command(&["token", "secret"]).output().unwrap().stdout);
    let (one, other) = (secret(), secret());
    assert!(one.trim().len() == 43 && one != other);
    let none = command(&["token", "make", "ann", "--data-dir", "/nonexistent"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("auth.secret"));
}
