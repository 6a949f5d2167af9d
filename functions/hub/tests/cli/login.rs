//! `buildscale auth login`, against a strict issuer: the device authorization grant (RFC 8628), found by the hub's metadata (RFC 9728).

use crate::{
    issuer::{Issuer, Person},
    support::{ANYWHERE, Hub, hub, text},
};
use serde_json::Value;
use std::{os::unix::fs::PermissionsExt, path::Path, process::Stdio};
use tempfile::TempDir;

/// A hub that trusts this issuer, with further variables.
fn trusting(issuer: &Issuer, more: &[(&str, &str)]) -> (TempDir, Hub) {
    let folder = tempfile::tempdir().unwrap();
    let trusted = issuer.trusted();
    let mut environment: Vec<(&str, &str)> = trusted.iter().map(|(name, value)| (*name, value.as_str())).collect();
    environment.extend(more);
    let hub = Hub::start(folder.path(), ANYWHERE, &environment);
    (folder, hub)
}

/// The files of logins.
fn logins(folder: &Path) -> Vec<std::path::PathBuf> {
    let found = std::fs::read_dir(folder.join("state/buildscale/logins")).into_iter().flatten();
    found
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .collect()
}

/// The error that a command ends with.
#[track_caller]
fn refused(hub: &Hub, args: &[&str]) -> String {
    let output = hub.run(args);
    assert_eq!(output.status.code(), Some(10), "{args:?}: {} {}", text(&output.stdout), text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn a_person_logs_in_their_token_is_refreshed_and_they_log_out() {
    let issuer = Issuer::start(Person::Confirms);
    let (folder, hub) = trusting(&issuer, &[]);
    let before = refused(&hub, &["workspaces"]);
    assert!(before.contains("buildscale auth login") && !before.contains("Authorization:"), "{before}");

    let output = hub.run(&["auth", "login"]);
    let (told, asked) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{asked}");
    assert!(told.starts_with("logged in at http://127.0.0.1:"), "{told}");
    assert!(
        asked.contains(&format!("Open {}/activate in a browser, and enter the code WDJB-MJHT", issuer.url)),
        "{asked}"
    );
    let files = logins(folder.path());
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);

    // The issuer says that its tokens are over at once, so each request has a token of its own.
    hub.run(&["workspaces", "create", "Ann's"]);
    let status = hub.json(0, &["auth", "status", "--json"]).remove(0);
    assert_eq!(status["workspaces"][0]["me"]["role"], "owner");
    assert_eq!((&status["token"], &status["login"]["issuer"]), (&Value::Bool(false), &Value::from(issuer.url.clone())));
    assert!(text(&hub.run(&["auth", "status"]).stdout).contains("takes your login at http://127.0.0.1:"));
    assert!(issuer.refreshes() >= 3, "{}", issuer.refreshes());
    // A token that is given goes before it.
    refused(&hub, &["workspaces", "--token", "another"]);

    // Several at once use each refresh token once.
    let many: Vec<_> =
        (0..4).map(|_| hub.command(&["workspaces", "--json"]).stdout(Stdio::null()).spawn().unwrap()).collect();
    many.into_iter().for_each(|mut one| assert!(one.wait().unwrap().success()));

    let out = hub.run(&["auth", "logout"]);
    assert!(text(&out.stdout).starts_with("logged out at"), "{out:?}");
    assert_eq!((logins(folder.path()).len(), issuer.revoked()), (0, 1));
    assert!(text(&hub.run(&["auth", "logout"]).stdout).starts_with("there is no login at"));
    refused(&hub, &["workspaces"]);
    issuer.has_no_complaint();
    let log = std::fs::read_to_string(folder.path().join("hub.log")).unwrap();
    for secret in issuer.given() {
        assert!(![&told, &asked, &log, &status.to_string()].iter().any(|shown| shown.contains(&secret)), "{secret}");
    }
}

#[test]
fn programs_are_told_the_code_as_json() {
    let issuer = Issuer::start(Person::Confirms);
    let (_folder, hub) = trusting(&issuer, &[]);
    let told = hub.json(0, &["auth", "login", "--json"]);
    assert_eq!(told[0]["user_code"], "WDJB-MJHT");
    assert_eq!(told[0]["verification_uri_complete"], format!("{}/activate?user_code=WDJB-MJHT", issuer.url));
    assert_eq!((&told[1]["issuer"], &told[1]["refreshes"]), (&Value::from(issuer.url.clone()), &Value::Bool(true)));
    issuer.has_no_complaint();
}

#[test]
fn a_login_that_nobody_confirms_says_why() {
    for (person, why) in [(Person::Declines, "was declined"), (Person::DoesNotCome, "the code expired")] {
        let issuer = Issuer::start(person);
        let (folder, hub) = trusting(&issuer, &[]);
        let said = refused(&hub, &["auth", "login"]);
        assert!(said.contains(why) && said.contains("begin again"), "{said}");
        assert_eq!(logins(folder.path()).len(), 0);
        issuer.has_no_complaint();
    }
}

#[test]
fn a_login_that_the_issuer_ended_says_how_to_get_another() {
    let issuer = Issuer::start(Person::Confirms);
    let (_folder, hub) = trusting(&issuer, &[]);
    hub.json(0, &["auth", "login", "--json"]);
    issuer.forget();
    let said = refused(&hub, &["workspaces"]);
    assert!(said.contains("is over: invalid_grant") && said.contains("buildscale auth login"), "{said}");
    hub.json(0, &["auth", "login", "--json"]);
    hub.json(0, &["workspaces", "--json"]);
    issuer.has_no_complaint();
}

#[test]
fn where_nobody_can_log_in_the_command_says_what_to_do() {
    let (_folder, open) = hub();
    assert!(refused(&open, &["auth", "login"]).contains("wants no token: there is nothing to log in to"));
    let folder = tempfile::tempdir().unwrap();
    let secret = ("BUILDSCALE__AUTH__SECRET", "the secret of the hub in this test, for tokens");
    let signing = Hub::start(folder.path(), ANYWHERE, &[secret]);
    let said = refused(&signing, &["auth", "login"]);
    assert!(said.contains("has no issuer to log in at") && said.contains("buildscale token make"), "{said}");

    let issuer = Issuer::start(Person::Confirms);
    let (_folder, nameless) = trusting(&issuer, &[("BUILDSCALE__AUTH__CLI_CLIENT_ID", "")]);
    assert!(refused(&nameless, &["auth", "login"]).contains("auth.cli_client_id"));
    let (_folder, elsewhere) = trusting(&issuer, &[("BUILDSCALE__AUTH__RESOURCE", "https://elsewhere.example")]);
    let said = refused(&elsewhere, &["auth", "login"]);
    assert!(said.contains("says that its address is https://elsewhere.example"), "{said}");
    issuer.has_no_complaint();
}
